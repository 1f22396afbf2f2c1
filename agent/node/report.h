/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status record in etcd, on a lease: written when it changes, gone when we are.
 *
 *   status -> [report] -> store: lease of 60 s, status/node/<node>
 *
 * Written at most every 5 s and only if its text differs from what was written
 * last; a refused write is repeated after 0.1 s, doubling to 30 s. Every write
 * compares the fence's CREATE revision: an agent that lost its
 * name cannot speak in it. The lease is kept every 20 s, together with whatever
 * else wakes the agent then; lost in an outage, it is granted anew and the record
 * written again at once. Ten seconds without a fence and the lease is revoked: a
 * living status would keep the name taken, from others and from ourselves.
 *
 * On SIGTERM the lease is not revoked. Another machine of the same name may
 * be waiting for just that, and would take the name away during a restart. A
 * last record says "stopped" instead; the lease ends by itself within 60 s.
 */
#pragma once

#include "lib/base/timers.h"
#include "lib/store/store.h"

#define REPORT_LEASE_TTL    60
#define REPORT_KEEPALIVE_MS 20000
#define REPORT_INTERVAL_MS  5000
#define REPORT_NO_FENCE_MS  10000

struct report;

struct report_options {
	struct store *store;
	struct timers *timers;
	const char *key;      /* of the status record, with the prefix */
	const char *node_key; /* of the fence, with the prefix */
	/* The text to write, to be freed; asked when it is time to write. */
	int (*build)(char **ret, void *arg);
	/* A sentence when it cannot be written, "" when it can again; may be NULL. */
	void (*trouble)(const char *text, void *arg);
	/* It stands in etcd, and did not before; may be NULL. */
	void (*stands)(void *arg);
	void *arg;
};

int report_new(const struct report_options *options, struct report **ret);
/* Cancels what is under way; what stands in etcd stays until its lease ends. */
void report_free(struct report *r);
AUTO_DEFINE(struct report *, report_free)

/* From registered() and unregistered(): 0 means no fence. */
void report_set_fence(struct report *r, int64_t create_revision);
/* Something may have changed; cheap. */
void report_changed(struct report *r);
/* etcd takes writes that it refused before: what waits for its next try goes now. */
void report_retry(struct report *r);
/* etcd answers again (STORE_WATCHING): do not wait for the next turn. */
void report_kick(struct report *r);
/*
 * The last record, now; done() comes when it is written, has failed, or after 1 s; at once
 * (from the next turn of the timers) if there is nothing to write to.
 */
void report_farewell(struct report *r, timer_fn *done, void *arg);

/* Whether the record stands in etcd and its lease was kept when last asked for. */
bool report_stands(const struct report *r);
/* For tests and status: 0 means none. */
int64_t report_lease(const struct report *r);
