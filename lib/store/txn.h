/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions, written by name: conditions and operations as values, and a builder for those whose
 * parts come one by one.
 *
 *   store_txn(store,
 *             &(struct store_txn){ TXN_IF(if_unchanged(node, fence), if_absent(key)),
 *                                  TXN_THEN(op_put(key, value)),
 *                                  TXN_ELSE(op_get(key)),
 *                                  .repeatable = true },
 *             timeout_ms, on_reply, arg, &call);
 *
 * Pure. The values borrow what they are given.
 */
#pragma once

#include <string.h>

#include "lib/base/array.h"
#include "lib/store/store.h"

/* The key is as it was seen at this revision, since it was made at that one; 0: it is absent. */
static inline struct store_compare if_unchanged(const char *key, int64_t mod_revision)
{
	return (struct store_compare){ .key = key,
				       .target = STORE_MOD_REVISION,
				       .number = mod_revision };
}

static inline struct store_compare if_created(const char *key, int64_t create_revision)
{
	return (struct store_compare){ .key = key,
				       .target = STORE_CREATE_REVISION,
				       .number = create_revision };
}

static inline struct store_compare if_absent(const char *key)
{
	return if_created(key, 0);
}

/* Every key of a range was made, or last written, at this revision or before. With 0 there is none. */
static inline struct store_compare if_none_made_after(const char *key, const char *end,
						      int64_t revision)
{
	return (struct store_compare){ .key = key,
				       .range_end = end,
				       .target = STORE_CREATE_REVISION,
				       .relation = STORE_LESS,
				       .number = revision + 1 };
}

static inline struct store_compare if_none_written_after(const char *key, const char *end,
							 int64_t revision)
{
	return (struct store_compare){ .key = key,
				       .range_end = end,
				       .target = STORE_MOD_REVISION,
				       .relation = STORE_LESS,
				       .number = revision + 1 };
}

static inline struct store_op op_put(const char *key, const char *value)
{
	return (struct store_op){ .kind = STORE_PUT,
				  .key = key,
				  .value = value,
				  .value_len = value ? strlen(value) : 0 };
}

static inline struct store_op op_put_leased(const char *key, const char *value, int64_t lease)
{
	struct store_op op = op_put(key, value);

	op.lease = lease;
	return op;
}

static inline struct store_op op_delete(const char *key)
{
	return (struct store_op){ .kind = STORE_DELETE, .key = key };
}

static inline struct store_op op_get(const char *key)
{
	return (struct store_op){ .kind = STORE_GET, .key = key };
}

/* Whether it is there, and its revisions. */
static inline struct store_op op_get_key(const char *key)
{
	return (struct store_op){ .kind = STORE_GET, .key = key, .keys_only = true };
}

#define TXN_LIST_(type, v, n, ...)                                                                 \
	.v = (const struct type[]){ __VA_ARGS__ },                                                 \
	.n = sizeof((const struct type[]){ __VA_ARGS__ }) / sizeof(struct type)
#define TXN_IF(...)   TXN_LIST_(store_compare, compares, n_compares, __VA_ARGS__)
#define TXN_THEN(...) TXN_LIST_(store_op, success, n_success, __VA_ARGS__)
#define TXN_ELSE(...) TXN_LIST_(store_op, failure, n_failure, __VA_ARGS__)

/* --- the builder ---------------------------------------------------------------------------- */

/* Owns a copy of every text. All zero is empty; release it with txn_done(). */
struct txn {
	ARRAY(struct store_compare) compares;
	ARRAY(struct store_op) ops;
	bool failed; /* out of memory: something is missing */
};
void txn_done(struct txn *t);

void txn_if(struct txn *t, struct store_compare compare);
/* For every key that begins so; the compare's own keys do not count. */
void txn_if_prefix(struct txn *t, const char *beginning, struct store_compare compare);
/* A put without a value fails the transaction: its value could not be made. */
void txn_then(struct txn *t, struct store_op op);
/* All of another, with this before its keys. */
void txn_add(struct txn *t, const char *prefix, const struct txn *other);

bool txn_has_room(const struct txn *t, size_t compares, size_t ops);
/* For store_txn(); valid until the builder changes. */
struct store_txn txn_of(const struct txn *t);
