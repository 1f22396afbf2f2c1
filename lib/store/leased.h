/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key on a lease of etcd: granted, written, kept alive, given up.
 *
 *   owner: when, and what follows -> [leased] -> store: one lease, one request at a time
 *
 * It starts nothing by itself but the timer of the keep-alive: the owner asks for one request, hears
 * its outcome as an event, and decides what comes next. While call is set, a request is under way.
 */
#pragma once

#include "lib/base/timers.h"
#include "lib/store/store.h"

enum leased_event {
	LEASED_GRANTED,     /* there is a lease, and no key on it yet */
	LEASED_NOT_GRANTED, /* for the reason in the reply */
	LEASED_WRITTEN,
	LEASED_REFUSED, /* the condition did not hold; ops[0] of the reply is the key as it is */
	LEASED_NOT_WRITTEN,
	LEASED_KEEP, /* it is time for leased_keep(); keep is set until it was kept */
	LEASED_KEPT,
	LEASED_NOT_KEPT,
	LEASED_LOST /* etcd has ended the lease, and the key with it; lease is 0 */
};

struct leased_options {
	struct store *store;
	struct timers *timers;
	const char *key;                       /* whole */
	int64_t ttl;                           /* seconds */
	uint32_t keep_ms, keep_slack_ms;       /* from one keep-alive to the next */
	uint32_t grant_timeout_ms, timeout_ms; /* the latter of all other requests */
	/* reply is NULL for LEASED_KEEP. */
	void (*event)(enum leased_event event, const struct store_reply *reply, void *arg);
	void *arg;
};

/* Lies in its owner's struct; it is only read from outside. */
struct leased {
	struct leased_options o;
	struct store_call *call;
	struct timer timer;
	int64_t lease; /* 0: none */
	bool keep;
	/* The lease lives until then for certain, in ms of the timers: counted from before the request
	 * for it was sent. */
	uint64_t until;
	uint64_t sent;
};

/* Zero before; undone by leased_done(), after which the lease ends by itself. */
void leased_init(struct leased *l, const struct leased_options *options);
void leased_done(struct leased *l);

/* Each starts one request; 0, or -ENOMEM and no event. */
int leased_grant(struct leased *l);
int leased_put(struct leased *l, const char *value, struct store_compare condition);
int leased_keep(struct leased *l);

/* LEASED_KEEP comes at once; after this time. */
void leased_keep_now(struct leased *l);
void leased_keep_in(struct leased *l, uint64_t ms, uint64_t slack_ms);
/* What is under way is forgotten, and no keep-alive is due; the lease stays. */
void leased_cancel(struct leased *l);
/* The lease counts as gone; its number. */
int64_t leased_forget(struct leased *l);
/* etcd is asked to end it; unanswered, it ends by itself. */
void leased_drop(struct leased *l);
