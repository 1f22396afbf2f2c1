/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/store/store_memory_parts.h"

static char *copy_text(const char *text)
{
	return text ? memory_must(strdup(text)) : NULL;
}

static char *copy_bytes(const char *bytes, size_t n)
{
	char *copy = memory_must(calloc(1, n + 1));

	if (n)
		memcpy(copy, bytes, n);
	return copy;
}

/* The copies are ours, though the structs of store.h call them const. */
static void release(const void *p)
{
	free((void *)(uintptr_t)p);
}

static const struct store_op *copy_ops(const struct store_op *ops, size_t n)
{
	struct store_op *copy = memory_must(calloc(n + 1, sizeof(*copy)));

	for (size_t i = 0; i < n; i++) {
		copy[i] = ops[i];
		copy[i].key = copy_text(ops[i].key);
		copy[i].range_end = copy_text(ops[i].range_end);
		copy[i].value = copy_bytes(ops[i].value, ops[i].value_len);
	}
	return copy;
}

static void free_ops(const struct store_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		release(ops[i].key);
		release(ops[i].range_end);
		release(ops[i].value);
	}
	release(ops);
}

static const struct store_compare *copy_compares(const struct store_compare *compares, size_t n)
{
	struct store_compare *copy = memory_must(calloc(n + 1, sizeof(*copy)));

	for (size_t i = 0; i < n; i++) {
		copy[i] = compares[i];
		copy[i].key = copy_text(compares[i].key);
		copy[i].range_end = copy_text(compares[i].range_end);
		copy[i].value = copy_bytes(compares[i].value, compares[i].value_len);
	}
	return copy;
}

static void free_compares(const struct store_compare *compares, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		release(compares[i].key);
		release(compares[i].range_end);
		release(compares[i].value);
	}
	release(compares);
}

static struct memory_request *request_new(enum memory_kind kind)
{
	struct memory_request *q = memory_must(calloc(1, sizeof(*q)));

	q->refs = 1;
	q->kind = kind;
	return q;
}

static bool has_write(const struct store_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ops[i].kind != STORE_GET)
			return true;
	return false;
}

struct memory_request *memory_request_txn(const struct store_txn *txn)
{
	bool writes = has_write(txn->success, txn->n_success) ||
		      has_write(txn->failure, txn->n_failure);
	struct memory_request *q = request_new(writes ? MEMORY_WRITE : MEMORY_READ);

	q->txn = *txn;
	q->txn.compares = copy_compares(txn->compares, txn->n_compares);
	q->txn.success = copy_ops(txn->success, txn->n_success);
	q->txn.failure = copy_ops(txn->failure, txn->n_failure);
	return q;
}

struct memory_request *memory_request_list(const char *key, const char *range_end)
{
	struct memory_request *q = request_new(MEMORY_LIST);

	q->key = copy_text(key);
	q->range_end = copy_text(range_end);
	return q;
}

struct memory_request *memory_request_lease(enum store_lease_verb verb, int64_t id, int64_t ttl)
{
	struct memory_request *q = request_new(MEMORY_LEASE);

	q->verb = verb;
	q->lease = id;
	q->ttl = ttl;
	return q;
}

struct memory_request *memory_request_ref(struct memory_request *q)
{
	q->refs++;
	return q;
}

void memory_request_unref(struct memory_request *q)
{
	if (--q->refs)
		return;
	free_compares(q->txn.compares, q->txn.n_compares);
	free_ops(q->txn.success, q->txn.n_success);
	free_ops(q->txn.failure, q->txn.n_failure);
	free(q->key);
	free(q->range_end);
	free(q);
}

bool memory_request_writes(const struct memory_request *q)
{
	return q->kind == MEMORY_WRITE || q->kind == MEMORY_LEASE;
}

static void apply_txn(struct memory *m, const struct store_txn *txn, struct memory_answer *ret)
{
	m->stats.txns++;
	if (m->hooks->before_txn)
		m->hooks->before_txn(m, txn);
	memory_txn(m->etcd, txn, ret);
}

void memory_request_refuse(struct memory *m, const struct memory_request *q,
			   struct memory_answer *ret)
{
	/* No key is modified before the beginning. */
	static const struct store_compare never = {
		.key = "/", .target = STORE_MOD_REVISION, .relation = STORE_LESS, .number = 0
	};
	struct store_txn txn = q->txn;

	txn.compares = &never;
	txn.n_compares = 1;
	apply_txn(m, &txn, ret);
}

void memory_request_apply(struct memory *m, const struct memory_request *q,
			  struct memory_answer *ret)
{
	*ret = (struct memory_answer){ .text = "" };
	if (q->kind != MEMORY_LEASE) {
		apply_txn(m, &q->txn, ret);
		return;
	}
	m->stats.leases++;
	if (q->verb == STORE_LEASE_GRANT)
		memory_lease_grant(m->etcd, q->lease, q->ttl, ret);
	else if (q->verb == STORE_LEASE_KEEPALIVE)
		memory_lease_keepalive(m->etcd, q->lease, ret);
	else
		memory_lease_revoke(m->etcd, q->lease, ret);
}
