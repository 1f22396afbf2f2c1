/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: understood or not, then compared, then checked, then done.
 * An error at any of these leaves everything as it was, as in etcd.
 */
#include <errno.h>
#include <string.h>

#include "lib/store/memory_etcd.h"

static void refuse(struct memory_answer *a, int err, const char *text)
{
	a->err = err;
	a->text = text;
}

/* --- is it understood? ---------------------------------------------------------------------- */

static bool clash(const struct store_op *a, const struct store_op *b)
{
	if (a->kind == STORE_PUT && b->kind == STORE_PUT)
		return strcmp(a->key, b->key) == 0;
	if (a->kind == STORE_PUT && b->kind == STORE_DELETE)
		return memory_in_range(a->key, b->key, b->range_end);
	if (a->kind == STORE_DELETE && b->kind == STORE_PUT)
		return clash(b, a);
	return false;
}

static void check_form(const struct store_op *ops, size_t n, struct memory_answer *a)
{
	for (size_t i = 0; i < n && !a->err; i++) {
		const struct store_op *op = &ops[i];

		if (!*op->key)
			refuse(a, -EINVAL, "key is not provided");
		else if (op->kind == STORE_PUT && op->keep_lease && op->lease)
			refuse(a, -EINVAL, "lease is provided");
		for (size_t k = 0; k < i; k++)
			if (clash(op, &ops[k]))
				refuse(a, -EINVAL, "duplicate key given in txn request");
	}
}

static void check_compares(const struct store_txn *txn, struct memory_answer *a)
{
	for (size_t i = 0; i < txn->n_compares; i++)
		if (!*txn->compares[i].key)
			refuse(a, -EINVAL, "key is not provided");
}

/* --- do the compares hold? ------------------------------------------------------------------ */

static int compare_bytes(const struct store_kv *kv, const struct store_compare *c)
{
	size_t shorter = kv->value_len < c->value_len ? kv->value_len : c->value_len;
	int r = shorter ? memcmp(kv->value, c->value, shorter) : 0;

	return r ?: (kv->value_len > c->value_len) - (kv->value_len < c->value_len);
}

static int64_t number_of(const struct store_kv *kv, enum store_target target)
{
	switch (target) {
	case STORE_VERSION:
		return kv->version;
	case STORE_CREATE_REVISION:
		return kv->create_revision;
	case STORE_MOD_REVISION:
		return kv->mod_revision;
	case STORE_LEASE:
		return kv->lease;
	case STORE_VALUE:
		break;
	}
	abort();
}

static bool holds_for(const struct store_compare *c, const struct store_kv *kv)
{
	int64_t number = c->target == STORE_VALUE ? 0 : number_of(kv, c->target);
	int r = c->target == STORE_VALUE ? compare_bytes(kv, c)
					 : (number > c->number) - (number < c->number);

	switch (c->relation) {
	case STORE_EQUAL:
		return r == 0;
	case STORE_NOT_EQUAL:
		return r != 0;
	case STORE_GREATER:
		return r > 0;
	case STORE_LESS:
		return r < 0;
	}
	abort();
}

static bool holds(const struct memory_etcd *e, const struct store_compare *c)
{
	const struct store_kv absent = { .key = c->key, .value = "" };
	struct memory_kvs found;
	bool all = true;

	memory_range(e, c->key, c->range_end, &found);
	for (size_t i = 0; i < found.n; i++)
		all = all && holds_for(c, &found.v[i]->kv);
	/* An absent key, or an empty range, has revision 0 and no value that could be compared. */
	if (!found.n)
		all = c->target != STORE_VALUE && holds_for(c, &absent);
	memory_kvs_done(&found);
	return all;
}

static bool all_hold(const struct memory_etcd *e, const struct store_txn *txn)
{
	for (size_t i = 0; i < txn->n_compares; i++)
		if (!holds(e, &txn->compares[i]))
			return false;
	return true;
}

/* --- can the branch be done? ---------------------------------------------------------------- */

static void check_puts(const struct memory_etcd *e, const struct store_op *ops, size_t n,
		       struct memory_answer *a)
{
	for (size_t i = 0; i < n && !a->err; i++) {
		if (ops[i].kind != STORE_PUT)
			continue;
		if ((ops[i].keep_value || ops[i].keep_lease) && !memory_find(e, ops[i].key))
			refuse(a, -EINVAL, "key not found");
		else if (ops[i].lease && !memory_lease_exists(e, ops[i].lease))
			refuse(a, -ENOENT, "requested lease not found");
	}
}

/* --- doing it ------------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	const struct store_kv *x = &(*(struct memory_kv *const *)a)->kv;
	const struct store_kv *y = &(*(struct memory_kv *const *)b)->kv;
	int by_revision = (x->mod_revision < y->mod_revision) - (x->mod_revision > y->mod_revision);

	return by_revision ?: strcmp(x->key, y->key);
}

static void get(const struct memory_etcd *e, const struct store_op *op, struct memory_answer *a,
		struct store_op_reply *reply)
{
	struct memory_kvs found;

	memory_range(e, op->key, op->range_end, &found);
	if (op->newest_first && found.n)
		qsort(found.v, found.n, sizeof(struct memory_kv *), newest_first);
	reply->count = (int64_t)found.n;
	reply->n = op->count_only ? 0 : found.n;
	if (op->limit > 0 && reply->n > (size_t)op->limit)
		reply->n = (size_t)op->limit;
	reply->kvs = memory_kvs_array(&found, 0, reply->n, op->keys_only);
	for (size_t i = 0; i < reply->n; i++)
		memory_kvs_add(&a->held, found.v[i]);
	memory_kvs_done(&found);
}

static void run(struct memory_etcd *e, const struct store_op *ops, size_t n,
		struct memory_answer *a)
{
	bool changed = false;

	a->ops = memory_must(calloc(n + 1, sizeof(*a->ops)));
	a->n_ops = n;
	for (size_t i = 0; i < n; i++) {
		struct store_op_reply *reply = &a->ops[i];

		reply->kind = ops[i].kind;
		if (ops[i].kind == STORE_GET) {
			get(e, &ops[i], a, reply);
		} else if (ops[i].kind == STORE_PUT) {
			memory_put(e, &ops[i]);
			changed = true;
		} else {
			reply->count = (int64_t)memory_delete(e, ops[i].key, ops[i].range_end);
			changed = changed || reply->count;
		}
	}
	/* One revision for all that a txn changed, none if it changed nothing. */
	e->revision += changed;
}

void memory_txn(struct memory_etcd *e, const struct store_txn *txn, struct memory_answer *ret)
{
	const struct store_op *ops;
	size_t n;

	*ret = (struct memory_answer){ .text = "" };
	check_compares(txn, ret);
	check_form(txn->success, txn->n_success, ret);
	check_form(txn->failure, txn->n_failure, ret);
	if (!ret->err) {
		ret->succeeded = all_hold(e, txn);
		ops = ret->succeeded ? txn->success : txn->failure;
		n = ret->succeeded ? txn->n_success : txn->n_failure;
		check_puts(e, ops, n, ret);
		if (!ret->err)
			run(e, ops, n, ret);
	}
	ret->succeeded = ret->succeeded && !ret->err;
	ret->revision = ret->err ? 0 : e->revision;
}

void memory_answer_done(struct memory_answer *a)
{
	for (size_t i = 0; i < a->n_ops; i++)
		free((void *)(uintptr_t)a->ops[i].kvs);
	free(a->ops);
	memory_kvs_done(&a->held);
	*a = (struct memory_answer){ .text = "" };
}
