/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/memory_etcd.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"

void *memory_must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* --- sets of versions ----------------------------------------------------------------------- */

static void kv_unref(struct memory_kv *kv)
{
	if (--kv->refs == 0)
		free(kv);
}

static void insert(struct memory_kvs *kvs, size_t at, struct memory_kv *kv)
{
	kv->refs++;
	*(struct memory_kv **)memory_must(array_insert(kvs, at)) = kv;
}

void memory_kvs_add(struct memory_kvs *kvs, struct memory_kv *kv)
{
	insert(kvs, kvs->n, kv);
}

void memory_kvs_done(struct memory_kvs *kvs)
{
	for (size_t i = 0; i < kvs->n; i++)
		kv_unref(kvs->v[i]);
	array_done(kvs);
}

void memory_kvs_copy(struct memory_kvs *to, const struct memory_kvs *from)
{
	*to = (struct memory_kvs){ 0 };
	for (size_t i = 0; i < from->n; i++)
		memory_kvs_add(to, from->v[i]);
}

struct store_kv *memory_kvs_array(const struct memory_kvs *kvs, size_t from, size_t n,
				  bool keys_only)
{
	struct store_kv *array = memory_must(calloc(n + 1, sizeof(*array)));

	for (size_t i = 0; i < n; i++) {
		array[i] = kvs->v[from + i]->kv;
		if (keys_only) {
			array[i].value = "";
			array[i].value_len = 0;
		}
	}
	return array;
}

/* --- the whole ------------------------------------------------------------------------------ */

void memory_etcd_init(struct memory_etcd *e)
{
	*e = (struct memory_etcd){ .revision = 1 };
}

void memory_etcd_done(struct memory_etcd *e)
{
	memory_kvs_done(&e->keys);
	memory_kvs_done(&e->history);
	free(e->leases);
}

void memory_etcd_copy(struct memory_etcd *to, const struct memory_etcd *from)
{
	*to = *from;
	memory_kvs_copy(&to->keys, &from->keys);
	memory_kvs_copy(&to->history, &from->history);
	to->leases = memory_must(calloc(from->n_leases + 1, sizeof(*to->leases)));
	if (from->n_leases)
		memcpy(to->leases, from->leases, from->n_leases * sizeof(*to->leases));
}

/* --- finding -------------------------------------------------------------------------------- */

/* strcmp() compares unsigned bytes, as etcd does. */
bool memory_in_range(const char *key, const char *first, const char *range_end)
{
	if (!range_end || !*range_end)
		return strcmp(key, first) == 0;
	return strcmp(key, first) >= 0 && strcmp(key, range_end) < 0;
}

/* Index of the key, or of the place where it belongs. */
static size_t place_of(const struct memory_etcd *e, const char *key)
{
	return array_place(e->keys.v, e->keys.n, x, strcmp((*x)->kv.key, key));
}

struct memory_kv *memory_find(const struct memory_etcd *e, const char *key)
{
	size_t i = place_of(e, key);

	return i < e->keys.n && !strcmp(e->keys.v[i]->kv.key, key) ? e->keys.v[i] : NULL;
}

void memory_range(const struct memory_etcd *e, const char *key, const char *range_end,
		  struct memory_kvs *ret)
{
	*ret = (struct memory_kvs){ 0 };
	for (size_t i = place_of(e, key);
	     i < e->keys.n && memory_in_range(e->keys.v[i]->kv.key, key, range_end); i++)
		memory_kvs_add(ret, e->keys.v[i]);
}

size_t memory_history_from(const struct memory_etcd *e, int64_t revision)
{
	return array_place(e->history.v, e->history.n, x,
			   (*x)->kv.mod_revision < revision ? -1 : 1);
}

void memory_history_trim(struct memory_etcd *e, int64_t revision)
{
	size_t gone = memory_history_from(e, revision);

	for (size_t i = 0; i < gone; i++)
		kv_unref(e->history.v[i]);
	e->history.n -= gone;
	if (gone)
		memmove(e->history.v, e->history.v + gone,
			e->history.n * sizeof(struct memory_kv *));
}

/* --- changing ------------------------------------------------------------------------------- */

/* The value is empty if NULL. Nobody refers to it yet. */
static struct memory_kv *kv_new(const char *key, const char *value, size_t value_len)
{
	size_t key_size = strlen(key) + 1;
	struct memory_kv *kv = memory_must(calloc(1, sizeof(*kv) + key_size + value_len + 1));

	memcpy(kv->bytes, key, key_size);
	if (value_len)
		memcpy(kv->bytes + key_size, value, value_len);
	kv->kv.key = kv->bytes;
	kv->kv.value = kv->bytes + key_size;
	kv->kv.value_len = value_len;
	return kv;
}

void memory_put(struct memory_etcd *e, const struct store_op *op)
{
	const struct store_kv absent = { .value = "" };
	const struct memory_kv *found = memory_find(e, op->key);
	const struct store_kv *old = found ? &found->kv : &absent;
	size_t at = place_of(e, op->key);
	struct memory_kv *kv = op->keep_value ? kv_new(op->key, old->value, old->value_len)
					      : kv_new(op->key, op->value, op->value_len);

	kv->kv.mod_revision = e->revision + 1;
	kv->kv.create_revision = old->create_revision ?: e->revision + 1;
	kv->kv.version = old->version + 1;
	kv->kv.lease = op->keep_lease ? old->lease : op->lease;
	memory_kvs_add(&e->history, kv);
	if (found) {
		kv_unref(e->keys.v[at]);
		kv->refs++;
		e->keys.v[at] = kv;
	} else {
		insert(&e->keys, at, kv);
	}
}

static void delete_at(struct memory_etcd *e, size_t at)
{
	struct memory_kv *gone = kv_new(e->keys.v[at]->kv.key, NULL, 0);

	gone->kv.mod_revision = e->revision + 1;
	memory_kvs_add(&e->history, gone);
	kv_unref(e->keys.v[at]);
	array_remove(&e->keys, at);
}

size_t memory_delete(struct memory_etcd *e, const char *key, const char *range_end)
{
	size_t at = place_of(e, key), n = 0;

	while (at < e->keys.n && memory_in_range(e->keys.v[at]->kv.key, key, range_end)) {
		delete_at(e, at);
		n++;
	}
	return n;
}

/* --- leases --------------------------------------------------------------------------------- */

/* What etcd grants at least, with its usual election times. */
#define MIN_TTL 2

static struct memory_lease *find_lease(const struct memory_etcd *e, int64_t id)
{
	for (size_t i = 0; i < e->n_leases; i++)
		if (e->leases[i].id == id)
			return &e->leases[i];
	return NULL;
}

void memory_lease_grant(struct memory_etcd *e, int64_t id, int64_t ttl, struct memory_answer *ret)
{
	ret->revision = e->revision;
	if (find_lease(e, id)) {
		ret->err = -EEXIST;
		ret->text = "lease already exists";
		return;
	}
	ttl = ttl < MIN_TTL ? MIN_TTL : ttl;
	e->leases = memory_must(realloc(e->leases, (e->n_leases + 1) * sizeof(*e->leases)));
	e->leases[e->n_leases++] = (struct memory_lease){ id, ttl, e->now + ttl };
	ret->lease = id;
	ret->ttl = ttl;
}

/* A lease that is gone is no error here: etcd answers without a TTL. */
void memory_lease_keepalive(struct memory_etcd *e, int64_t id, struct memory_answer *ret)
{
	struct memory_lease *l = find_lease(e, id);

	ret->revision = e->revision;
	ret->lease = id;
	if (!l)
		return;
	l->expires = e->now + l->ttl;
	ret->ttl = l->ttl;
}

static void end_lease(struct memory_etcd *e, struct memory_lease *l)
{
	int64_t id = l->id;
	bool changed = false;

	for (size_t i = 0; i < e->keys.n;) {
		if (e->keys.v[i]->kv.lease == id) {
			AUTO(free) char *key = memory_must(strdup(e->keys.v[i]->kv.key));

			changed |= memory_delete(e, key, NULL) > 0;
		} else {
			i++;
		}
	}
	e->revision += changed;
	*l = e->leases[--e->n_leases];
}

void memory_lease_revoke(struct memory_etcd *e, int64_t id, struct memory_answer *ret)
{
	struct memory_lease *l = find_lease(e, id);

	if (l) {
		end_lease(e, l);
	} else {
		ret->err = -ENOENT;
		ret->text = "requested lease not found";
	}
	ret->revision = e->revision;
}

/* The one that runs out first; of several the lowest id. NULL: none has run out. */
static struct memory_lease *first_expired(const struct memory_etcd *e)
{
	struct memory_lease *first = NULL;

	for (struct memory_lease *l = e->leases; l < e->leases + e->n_leases; l++)
		if (l->expires <= e->now && (!first || l->expires < first->expires ||
					     (l->expires == first->expires && l->id < first->id)))
			first = l;
	return first;
}

void memory_advance(struct memory_etcd *e, int64_t seconds)
{
	struct memory_lease *l;

	e->now += seconds;
	while ((l = first_expired(e)))
		end_lease(e, l);
}

/* --- transactions ----------------------------------------------------------------------------- *
 *
 * Understood or not, then compared, then checked, then done. An error at any of these leaves
 * everything as it was, as in etcd.
 */

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
		else if (ops[i].lease && !find_lease(e, ops[i].lease))
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
