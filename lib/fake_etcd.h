/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside store_fake: etcd itself, as plain data. Keys with their revisions,
 * transactions, leases on a clock that the caller moves, and the history that
 * watches read. It knows nothing of calls, callbacks or faults.
 */
#pragma once

#include "lib/store.h"

/* One version of a key, never changed, shared by state, history, snapshots and replies. */
struct fake_kv {
	unsigned refs;
	struct store_kv kv; /* version 0: this is a deletion */
	char bytes[];       /* the key, NUL, the value, NUL */
};

struct fake_kvs {
	struct fake_kv **v;
	size_t n, room;
};

struct fake_lease {
	int64_t id, ttl, expires;
};

struct fake_etcd {
	struct fake_kvs keys;    /* by key */
	struct fake_kvs history; /* by revision, then in order of the operations */
	struct fake_lease *leases;
	size_t n_leases;
	int64_t revision, compacted, now;
};

/* What etcd answers. Release it with fake_answer_done(). */
struct fake_answer {
	int err;
	const char *text;
	int64_t revision;
	bool succeeded;
	struct store_op_reply *ops;
	size_t n_ops;
	int64_t lease, ttl;
	struct fake_kvs held; /* what the ops point to */
};

void *fake_must(void *p); /* aborts instead of NULL */

void fake_kvs_add(struct fake_kvs *kvs, struct fake_kv *kv); /* takes a reference of its own */
void fake_kvs_done(struct fake_kvs *kvs);
void fake_kvs_copy(struct fake_kvs *to, const struct fake_kvs *from);
/* The kvs as an array for a reply; to be freed. */
struct store_kv *fake_kvs_array(const struct fake_kvs *kvs, size_t from, size_t n, bool keys_only);

void fake_etcd_init(struct fake_etcd *e);
void fake_etcd_done(struct fake_etcd *e);
void fake_etcd_copy(struct fake_etcd *to, const struct fake_etcd *from);

bool fake_in_range(const char *key, const char *first, const char *range_end);
struct fake_kv *fake_find(const struct fake_etcd *e, const char *key);
void fake_range(const struct fake_etcd *e, const char *key, const char *range_end,
		struct fake_kvs *ret);
/* Index of the first event of this revision or a later one. */
size_t fake_history_from(const struct fake_etcd *e, int64_t revision);

/* fake_etcd_txn.c */
void fake_txn(struct fake_etcd *e, const struct store_txn *txn, struct fake_answer *ret);
void fake_answer_done(struct fake_answer *a);
/* At the revision to come; the caller then raises it. */
void fake_put(struct fake_etcd *e, const struct store_op *op);
/* How many. */
size_t fake_delete(struct fake_etcd *e, const char *key, const char *range_end);

/* fake_etcd_lease.c */
bool fake_lease_exists(const struct fake_etcd *e, int64_t id);
void fake_lease_grant(struct fake_etcd *e, int64_t id, int64_t ttl, struct fake_answer *ret);
void fake_lease_keepalive(struct fake_etcd *e, int64_t id, struct fake_answer *ret);
void fake_lease_revoke(struct fake_etcd *e, int64_t id, struct fake_answer *ret);
void fake_advance(struct fake_etcd *e, int64_t seconds);
