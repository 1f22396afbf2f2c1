/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: etcd's keys, transactions, leases and watches, asynchronous.
 *
 *   [store] -> watch_store -> state -> desired -> delta -> apply -> status
 *
 * One interface, three makers: store_etcd.h (etcd itself), lease_store.h (the
 * records that follow from a lease server, for nodes without etcd) and
 * store_fake.h (in memory, for tests, with faults on demand). What is said of etcd
 * below holds for whatever server there is. Everything runs on the caller's loop, nothing blocks,
 * nothing logs: what a person should know arrives as a notice. Callbacks come from the loop, never
 * from within the call that started the request. What they are given is borrowed and gone when they
 * return. A callback may start, cancel and unwatch anything, but not free the store.
 *
 * Errors, whatever etcd's version calls them:
 *   -ENOTCONN      no endpoint could be reached
 *   -ETIMEDOUT     no reply within the deadline
 *   -EAGAIN        etcd is overloaded or has no leader: later
 *   -EACCES        this user may not do that
 *   -EKEYREJECTED  user, password or token refused
 *   -ENOENT        no such lease
 *   -EEXIST        a lease of this id is there already
 *   -ESTALE        the revision asked for has been compacted
 *   -ERANGE        the revision asked for is still to come
 *   -E2BIG         the request is larger than etcd takes
 *   -EMSGSIZE      the reply is larger than we take
 *   -ENOSPC        etcd's database has reached its quota
 *   -EINVAL        etcd does not understand the request
 *   -EBADMSG       we do not understand the reply
 *   -EIO           anything else, with etcd's own words
 *   -ECANCELED     the store is being freed
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct store;
struct store_call;
struct store_watch;

struct store_kv {
	const char *key;   /* a text; keys with a NUL byte are none of ours and are skipped */
	const char *value; /* value_len bytes, then a NUL */
	size_t value_len;
	int64_t create_revision, mod_revision, version, lease;
};

/* As the decoders of records take them. */
#define KV_ARGS(kv) (kv)->key, (kv)->value, (kv)->value_len

/* --- requests ------------------------------------------------------------------------------- */

enum store_op_kind { STORE_GET, STORE_PUT, STORE_DELETE };

struct store_op {
	enum store_op_kind kind;
	const char *key;
	const char *range_end; /* get, delete: up to but not including; NULL: just the key */
	const char *value;     /* put */
	size_t value_len;
	int64_t lease;     /* put: 0 detaches the key from its lease */
	bool keep_lease;   /* put: leave the lease as it is; the key must exist */
	bool keep_value;   /* put: raise the revision only; the key must exist */
	bool keys_only;    /* get */
	bool count_only;   /* get */
	bool newest_first; /* get: by modification; else by key */
	int64_t limit;     /* get: 0 = all */
};

enum store_target {
	STORE_VALUE,
	STORE_VERSION,
	STORE_CREATE_REVISION,
	STORE_MOD_REVISION,
	STORE_LEASE
};
enum store_relation { STORE_EQUAL, STORE_NOT_EQUAL, STORE_GREATER, STORE_LESS };

struct store_compare {
	const char *key;
	const char *range_end; /* must hold for every key of the range; NULL: just the key */
	enum store_target target;
	enum store_relation relation;
	int64_t number;    /* all targets but the value */
	const char *value; /* false for an absent key, whatever the relation */
	size_t value_len;
};

/* At most 128 of each; no key may be put twice, nor put and deleted. */
struct store_txn {
	const struct store_compare *compares;
	size_t n_compares;
	const struct store_op *success, *failure;
	size_t n_success, n_failure;
	/*
	 * May be sent again after a lost reply: the outcome is the same however
	 * often it is applied. Else a lost reply is told as "unknown".
	 */
	bool repeatable;
	/* Not even an error that etcd returns ends it; for repeatable ones without a deadline. */
	bool persistent;
};
#define STORE_TXN_MAX 128

struct store_op_reply {
	enum store_op_kind kind;
	const struct store_kv *kvs; /* get */
	size_t n;
	int64_t count; /* get: keys in the whole range; delete: keys deleted */
};

struct store_reply {
	int err;          /* 0, or as listed above */
	const char *text; /* why; "" without an error */
	bool unknown;     /* with an error: a write that may have been applied, or may yet be */
	int64_t revision;
	/*
	 * CLOCK_BOOTTIME, ns: when the attempt that this answers was sent. What the reply says was
	 * so at some moment after that; only this makes it a proof. 0 with an error.
	 */
	int64_t sent;
	bool succeeded;                   /* txn: the compares held */
	const struct store_op_reply *ops; /* txn: one per operation of the branch; get: one */
	size_t n_ops;
	bool more;          /* list: another page follows in another callback */
	int64_t lease, ttl; /* leases; ttl 0 after a keep-alive: the lease is gone */
};
typedef void store_reply_fn(const struct store_reply *reply, void *arg);

/*
 * timeout_ms: for everything, fail-over and retries included; 0 takes 8 s, STORE_FOREVER never
 * gives up. ret_call may be NULL. Inputs are copied. 0 or -ENOMEM, -EINVAL (limits above).
 */
#define STORE_FOREVER UINT32_MAX
int store_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms, store_reply_fn *fn,
	      void *arg, struct store_call **ret_call);

/* All keys of a range at one revision, page by page; every page but the last has "more" set. */
int store_list(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
	       store_reply_fn *fn, void *arg, struct store_call **ret_call);

/* Shorthands for a txn of one operation; put and delete are repeatable. */
int store_get(struct store *s, const char *key, uint32_t timeout_ms, store_reply_fn *fn, void *arg,
	      struct store_call **ret_call);
int store_put(struct store *s, const char *key, const char *value, int64_t lease,
	      uint32_t timeout_ms, store_reply_fn *fn, void *arg, struct store_call **ret_call);
int store_delete(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		 store_reply_fn *fn, void *arg, struct store_call **ret_call);

/* id 0: one is chosen at random, so that a grant can be repeated; it is in the reply. */
int store_lease_grant(struct store *s, int64_t id, int64_t ttl, uint32_t timeout_ms,
		      store_reply_fn *fn, void *arg, struct store_call **ret_call);
int store_lease_keepalive(struct store *s, int64_t id, uint32_t timeout_ms, store_reply_fn *fn,
			  void *arg, struct store_call **ret_call);
int store_lease_revoke(struct store *s, int64_t id, uint32_t timeout_ms, store_reply_fn *fn,
		       void *arg, struct store_call **ret_call);

/* The callback will not come. What was sent may still be applied. */
void store_cancel(struct store_call *call);

/* --- settled transactions ------------------------------------------------------------------- */

/*
 * A txn that ends with a certain answer, whatever happens to its reply.
 *
 * After a lost reply a read proves nothing: a stopped member may apply the
 * old request when it wakes. So the txn must compare the MOD revision of some
 * existing key, the fence; when the reply is lost, the fence's revision is
 * raised by another txn (or found raised), after which the old one can never
 * be applied any more, and the witness, read in that same txn, tells whether
 * it had been. For a release fence and witness are the block itself; for a
 * claim, whose block must be absent, the fence is the node's own record.
 *
 * fence: index of a compare {MOD_REVISION EQUAL n > 0} without range.
 * witness: index of a success operation. Either a put of one key, whose value
 * nobody else writes (it carries a token); if somebody else has replaced or
 * removed it before it is settled, that counts as refused. Or a delete of the
 * fence itself: any other key may be made again and hide that it was gone.
 */
enum store_outcome {
	STORE_APPLIED,
	STORE_REFUSED,  /* it was not applied and never will be */
	STORE_UNSETTLED /* the store was freed before this was known */
};
const char *store_outcome_name(enum store_outcome outcome);

struct store_settled {
	enum store_outcome outcome;
	/* Of the txn itself; with err if etcd refused it for good (-EACCES, -EINVAL, ...). */
	const struct store_reply *reply;
	/* The reply was lost. Then "reply" is that of the fencing txn, and these are known: */
	bool was_lost;
	const struct store_kv *witness; /* NULL: absent */
	int64_t fence_revision;         /* 0: absent */
};
typedef void store_settled_fn(const struct store_settled *settled, void *arg);

/* Tries for ever, so it is started and cancelled, never timed. */
int store_txn_settled(struct store *s, const struct store_txn *txn, size_t fence, size_t witness,
		      store_settled_fn *fn, void *arg, struct store_call **ret_call);

/* --- watches -------------------------------------------------------------------------------- */

/*
 * A range, listed once and then followed. For each key the caller sees a
 * sequence of puts and deletes of rising revision, none twice, whatever
 * happens to connections and members; after a compaction, or a cut in which
 * events were lost, the difference is delivered. in_sync comes when the
 * listing is complete, and again after every listing anew.
 */
struct store_watch_handlers {
	void (*put)(const struct store_kv *kv, void *arg);
	void (*deleted)(const char *key, int64_t revision, void *arg);
	void (*in_sync)(int64_t revision, void *arg);
};
int store_watch(struct store *s, const char *key, const char *range_end,
		const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret);
void store_unwatch(struct store_watch *w);
/* Called when a listing begins: until in_sync keys come by name, not by revision, so a later change
 * may be told before an earlier one. arg is the handlers'. */
void store_watch_on_listing(struct store_watch *w, void (*fn)(void *arg));

/* --- notices -------------------------------------------------------------------------------- */

enum store_notice {
	STORE_WATCHING,          /* every watch is followed; after trouble: again */
	STORE_TROUBLE,           /* watches are not followed at the moment; text says why */
	STORE_CLUSTER_CHANGED,   /* another cluster answers: everything is listed anew */
	STORE_REVISION_WENT_BACK /* etcd was restored: everything is listed anew */
};
const char *store_notice_name(enum store_notice notice);
typedef void store_notice_fn(enum store_notice notice, const char *text, void *arg);
void store_on_notice(struct store *s, store_notice_fn *fn, void *arg);

/* Cancels all: callbacks of calls get -ECANCELED. */
void store_free(struct store *s);
AUTO_DEFINE(struct store *, store_free)

/* --- small things that users of the store share --------------------------------------------- */

/* End of the range of all keys that start so, at least one byte: the last byte plus one. NULL if
 * out of memory. */
char *store_prefix_end(const char *prefix);
