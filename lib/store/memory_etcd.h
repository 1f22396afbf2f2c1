/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside store_memory: etcd itself, as plain data. Keys with their revisions,
 * transactions, leases on a clock that the caller moves, and the history that
 * watches read. It knows nothing of calls, callbacks or faults.
 */
#pragma once

#include "lib/store/store.h"

/* One version of a key, never changed, shared by state, history, snapshots and replies. */
struct memory_kv {
	unsigned refs;
	struct store_kv kv; /* version 0: this is a deletion */
	char bytes[];       /* the key, NUL, the value, NUL */
};

struct memory_kvs {
	struct memory_kv **v;
	size_t n, room;
};

struct memory_lease {
	int64_t id, ttl, expires;
};

struct memory_etcd {
	struct memory_kvs keys;    /* by key */
	struct memory_kvs history; /* by revision, then in order of the operations */
	struct memory_lease *leases;
	size_t n_leases;
	int64_t revision, compacted, now;
};

/* What etcd answers. Release it with memory_answer_done(). */
struct memory_answer {
	int err;
	const char *text;
	int64_t revision;
	bool succeeded;
	struct store_op_reply *ops;
	size_t n_ops;
	int64_t lease, ttl;
	struct memory_kvs held; /* what the ops point to */
};

void *memory_must(void *p); /* aborts instead of NULL */

void memory_kvs_add(struct memory_kvs *kvs,
		    struct memory_kv *kv); /* takes a reference of its own */
void memory_kvs_done(struct memory_kvs *kvs);
void memory_kvs_copy(struct memory_kvs *to, const struct memory_kvs *from);
/* The kvs as an array for a reply; to be freed. */
struct store_kv *memory_kvs_array(const struct memory_kvs *kvs, size_t from, size_t n,
				  bool keys_only);

void memory_etcd_init(struct memory_etcd *e);
void memory_etcd_done(struct memory_etcd *e);
void memory_etcd_copy(struct memory_etcd *to, const struct memory_etcd *from);

bool memory_in_range(const char *key, const char *first, const char *range_end);
struct memory_kv *memory_find(const struct memory_etcd *e, const char *key);
void memory_range(const struct memory_etcd *e, const char *key, const char *range_end,
		  struct memory_kvs *ret);
/* Index of the first event of this revision or a later one. */
size_t memory_history_from(const struct memory_etcd *e, int64_t revision);
/* Forgets what was before this revision. */
void memory_history_trim(struct memory_etcd *e, int64_t revision);

/* --- transactions ---------------------------------------------------------------------------- */

void memory_txn(struct memory_etcd *e, const struct store_txn *txn, struct memory_answer *ret);
void memory_answer_done(struct memory_answer *a);
/* At the revision to come; the caller then raises it. */
void memory_put(struct memory_etcd *e, const struct store_op *op);
/* How many. */
size_t memory_delete(struct memory_etcd *e, const char *key, const char *range_end);

/* --- leases ---------------------------------------------------------------------------------- */

void memory_lease_grant(struct memory_etcd *e, int64_t id, int64_t ttl, struct memory_answer *ret);
void memory_lease_keepalive(struct memory_etcd *e, int64_t id, struct memory_answer *ret);
void memory_lease_revoke(struct memory_etcd *e, int64_t id, struct memory_answer *ret);
void memory_advance(struct memory_etcd *e, int64_t seconds);
