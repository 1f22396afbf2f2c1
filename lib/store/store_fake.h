/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in memory, for tests: etcd's semantics, and its misfortunes on demand.
 *
 *   code under test -> store.h -> [store_fake] <- the test: time, faults, other writers
 *
 * Deterministic: no thread, no clock, no loop. A call is queued when it is
 * started; one step reaches etcd (and is applied there), another delivers the
 * reply, so a test can stop, cancel or interfere between them. Watches take
 * one step per page and per revision. What the test itself does through this
 * header happens at once, except that callbacks always wait for a step.
 *
 * Like the real store, a call goes on by itself after a fault if it may: with
 * STORE_FOREVER unless it was perhaps applied and is not repeatable, and
 * always if persistent. A call with a time limit has none left after a fault:
 * it fails.
 *
 * Being a tool for tests it aborts when out of memory.
 */
#pragma once

#include "lib/store/store_memory.h"

struct store *store_fake_new(void);

/* One step; false if there was nothing to do. */
bool store_fake_step(struct store *s);
/* Until nothing is left to do; how many steps. Aborts when it never ends. */
unsigned store_fake_run(struct store *s);

/* Keys per page of lists, watches included; 5000 unless told. */
void store_fake_set_page(struct store *s, size_t keys);
/* A writer's own event comes before the reply, as with etcd half of the time; or after it. */
void store_fake_replies_first(struct store *s, bool on);

/* --- faults: a script, worked off in order by the requests that match ----------------------- */

enum store_fake_kind {
	STORE_FAKE_READ = MEMORY_READ,
	STORE_FAKE_WRITE = MEMORY_WRITE,
	STORE_FAKE_LIST = MEMORY_LIST,
	STORE_FAKE_LEASE = MEMORY_LEASE,
	STORE_FAKE_WATCH = MEMORY_WATCH,
	STORE_FAKE_ANY = 31
};

enum store_fake_fate {
	STORE_FAKE_PASS = MEMORY_PASS, /* nothing happens: to reach the second, the third... */
	STORE_FAKE_LOSE_REPLY = MEMORY_LOSE_REPLY,
	STORE_FAKE_LOSE_REQUEST = MEMORY_LOSE_REQUEST,
	STORE_FAKE_LATE = MEMORY_LATE, /* applied only by store_fake_wake() */
	STORE_FAKE_HOLD = MEMORY_HOLD  /* nothing happens at all until store_fake_release() */
};

/*
 * The next n requests of these kinds (ored) meet this fate. prefix: only txns with an operation on
 * such a key in their success branch, and lists and watches that start so; NULL: all.
 */
void store_fake_next(struct store *s, unsigned kinds, const char *prefix, unsigned n,
		     enum store_fake_fate fate);
/* The next n fail with this error, certainly not applied. */
void store_fake_fail_next(struct store *s, unsigned kinds, const char *prefix, unsigned n, int err);
/* How many faults of the script have not been met yet. */
unsigned store_fake_faults_left(const struct store *s);
void store_fake_forget_faults(struct store *s);

/* Held calls are sent now (and may meet the next fault); how many. */
size_t store_fake_release(struct store *s);
/*
 * The stopped member wakes and applies what it was sent: late requests, and what was cancelled
 * after it had been started. How many.
 */
size_t store_fake_wake(struct store *s);

/* Off: nothing is reached, replies on their way are lost, watches are cut. */
void store_fake_connect(struct store *s, bool on);
/* Only the watches: off, events wait (or are compacted away) until on. */
void store_fake_follow(struct store *s, bool on);

/* --- etcd's own life ------------------------------------------------------------------------ */

/* History up to now is gone: whoever has not seen it must list again. */
void store_fake_compact(struct store *s);
/* Every watch is listed again, as after a doubt; the difference (none) is told. */
void store_fake_relist(struct store *s);

struct store_fake_snapshot;
struct store_fake_snapshot *store_fake_snapshot(const struct store *s);
void store_fake_snapshot_free(struct store_fake_snapshot *snapshot);
AUTO_DEFINE(struct store_fake_snapshot *, store_fake_snapshot_free)
/* Back to then, revision included; late requests died with the old members. */
void store_fake_restore(struct store *s, const struct store_fake_snapshot *snapshot);
/* Another, empty cluster stands in its place. */
void store_fake_wipe(struct store *s);

/* Time passes; leases run out, each with its keys in one revision. */
void store_fake_advance(struct store *s, int64_t seconds);

/* --- the test's own hands ------------------------------------------------------------------- */

/* Each returns the new revision. The lease must exist. */
int64_t store_fake_put(struct store *s, const char *key, const char *value);
int64_t store_fake_put_leased(struct store *s, const char *key, const char *value, int64_t lease);
int64_t store_fake_delete(struct store *s, const char *key, const char *range_end);
/* NULL: absent. Valid until the key changes. */
const struct store_kv *store_fake_get(const struct store *s, const char *key);
/* Whether this value ever stood there, since the beginning or the last restore. */
bool store_fake_ever(const struct store *s, const char *key, const char *value);
/* "key=value\n" of a range, in order; to be freed. */
char *store_fake_dump(const struct store *s, const char *key, const char *range_end);
int64_t store_fake_revision(const struct store *s);

/* Called before a txn is applied, late ones included: the moment for another writer. */
typedef void store_fake_txn_fn(struct store *s, const struct store_txn *txn, void *arg);
void store_fake_before_txn(struct store *s, store_fake_txn_fn *fn, void *arg);

struct memory_stats store_fake_stats(const struct store *s);
