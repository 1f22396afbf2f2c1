/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Election: the key leader/controller, on a lease. Whoever made it leads.
 *
 *   lease, key -> [elect] -> elected(token), deposed() -> watches, passes, transactions
 *
 * The token is the key's CREATE revision. Every transaction of the leader compares it, so one that
 * is applied late, whatever stopped it on its way, meets another token or none and does nothing.
 * That alone would do. But a leader that does not know that it has been replaced would still work
 * for nothing, so it also stops by itself before etcd may end its lease: the time counts from
 * before the last keep-alive that was answered was sent, by a clock that runs on while the process
 * or the machine sleeps, and ends a fifth of the lease earlier.
 *
 * Each transaction also puts the key, with the text that its leader wrote at first and its lease
 * as it is: etcd's history then says of each change who made it.
 *
 * The others watch the key and try to make it as soon as it is gone. The compare decides.
 */
#pragma once

#include "lib/base/timers.h"
#include "lib/store/store.h"

struct elect;

struct elect_handlers {
	void (*elected)(int64_t token, void *arg);
	/* Whatever was sent may be forgotten: it is not applied any more. */
	void (*deposed)(const char *why, void *arg);
	/* Who leads, NULL: nobody; told when it changes. May be NULL. */
	void (*leader)(const char *id, void *arg);
	/* A sentence when no lease can be had or kept, "" when it can again; may be NULL. */
	void (*trouble)(const char *text, void *arg);
};

struct elect_options {
	struct store *store;
	struct timers *timers;
	const char *prefix;
	const char *id, *address; /* as in the record */
	uint32_t ttl;             /* seconds */
	const struct elect_handlers *handlers;
	void *arg;
};

/* Starts at once; everything comes by callback. */
int elect_new(const struct elect_options *options, struct elect **ret);
void elect_free(struct elect *e);
AUTO_DEFINE(struct elect *, elect_free)

/* 0: does not lead, or not for certain any more. Ask before each transaction. */
int64_t elect_token(const struct elect *e);
/* The whole key, and what to put there with keep_lease. */
const char *elect_key(const struct elect *e);
const char *elect_value(const struct elect *e);

/* Gives it up at once, so that another can take over; done() when etcd knows, or after a second. */
void elect_resign(struct elect *e, timer_fn *done, void *arg);
/* Pass on the store's notices. */
void elect_notice(struct elect *e, enum store_notice notice, const char *text);
