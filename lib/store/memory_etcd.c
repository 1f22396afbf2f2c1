/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/memory_etcd.h"

#include <string.h>

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

static void make_room(struct memory_kvs *kvs)
{
	if (kvs->n < kvs->room)
		return;
	kvs->room = kvs->room ? 2 * kvs->room : 16;
	kvs->v = memory_must(realloc(kvs->v, kvs->room * sizeof(struct memory_kv *)));
}

void memory_kvs_add(struct memory_kvs *kvs, struct memory_kv *kv)
{
	make_room(kvs);
	kv->refs++;
	kvs->v[kvs->n++] = kv;
}

void memory_kvs_done(struct memory_kvs *kvs)
{
	for (size_t i = 0; i < kvs->n; i++)
		kv_unref(kvs->v[i]);
	free(kvs->v);
	*kvs = (struct memory_kvs){ 0 };
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
	size_t low = 0, high = e->keys.n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(e->keys.v[middle]->kv.key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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
	size_t low = 0, high = e->history.n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (e->history.v[middle]->kv.mod_revision < revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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

static void insert(struct memory_kvs *kvs, size_t at, struct memory_kv *kv)
{
	make_room(kvs);
	memmove(kvs->v + at + 1, kvs->v + at, (kvs->n - at) * sizeof(struct memory_kv *));
	kv->refs++;
	kvs->v[at] = kv;
	kvs->n++;
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
	e->keys.n--;
	memmove(e->keys.v + at, e->keys.v + at + 1, (e->keys.n - at) * sizeof(struct memory_kv *));
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
