/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/store_fake_parts.h"

static char *copy_text(const char *text)
{
	return text ? fake_must(strdup(text)) : NULL;
}

static char *copy_bytes(const char *bytes, size_t n)
{
	char *copy = fake_must(calloc(1, n + 1));

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
	struct store_op *copy = fake_must(calloc(n + 1, sizeof(*copy)));

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
	struct store_compare *copy = fake_must(calloc(n + 1, sizeof(*copy)));

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

static struct fake_request *request_new(enum store_fake_kind kind)
{
	struct fake_request *q = fake_must(calloc(1, sizeof(*q)));

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

struct fake_request *fake_request_txn(const struct store_txn *txn)
{
	bool writes = has_write(txn->success, txn->n_success) ||
		      has_write(txn->failure, txn->n_failure);
	struct fake_request *q = request_new(writes ? STORE_FAKE_WRITE : STORE_FAKE_READ);

	q->txn = *txn;
	q->txn.compares = copy_compares(txn->compares, txn->n_compares);
	q->txn.success = copy_ops(txn->success, txn->n_success);
	q->txn.failure = copy_ops(txn->failure, txn->n_failure);
	return q;
}

struct fake_request *fake_request_list(const char *key, const char *range_end)
{
	struct fake_request *q = request_new(STORE_FAKE_LIST);

	q->key = copy_text(key);
	q->range_end = copy_text(range_end);
	return q;
}

struct fake_request *fake_request_lease(enum store_lease_verb verb, int64_t id, int64_t ttl)
{
	struct fake_request *q = request_new(STORE_FAKE_LEASE);

	q->verb = verb;
	q->lease = id;
	q->ttl = ttl;
	return q;
}

struct fake_request *fake_request_ref(struct fake_request *q)
{
	q->refs++;
	return q;
}

void fake_request_unref(struct fake_request *q)
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

bool fake_request_writes(const struct fake_request *q)
{
	return q->kind == STORE_FAKE_WRITE || q->kind == STORE_FAKE_LEASE;
}

static void apply_txn(struct fake *f, const struct fake_request *q, struct fake_answer *ret)
{
	f->stats.txns++;
	if (f->before_txn)
		f->before_txn(&f->base, &q->txn, f->before_txn_arg);
	fake_txn(&f->etcd, &q->txn, ret);
}

void fake_request_apply(struct fake *f, const struct fake_request *q, struct fake_answer *ret)
{
	*ret = (struct fake_answer){ .text = "" };
	if (q->kind != STORE_FAKE_LEASE) {
		apply_txn(f, q, ret);
		return;
	}
	f->stats.leases++;
	if (q->verb == STORE_LEASE_GRANT)
		fake_lease_grant(&f->etcd, q->lease, q->ttl, ret);
	else if (q->verb == STORE_LEASE_KEEPALIVE)
		fake_lease_keepalive(&f->etcd, q->lease, ret);
	else
		fake_lease_revoke(&f->etcd, q->lease, ret);
}
