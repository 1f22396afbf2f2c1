/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ipam/ipam_use.h"

#include <errno.h>
#include <string.h>

#include "ipam/allocator/pool_records.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/model/lease_holder.h"

struct used_block {
	const struct ctl_kv *kv;
	struct block record;
	int64_t used, size;
};

struct use {
	const struct ctl_kvs *kvs;
	struct used_block *blocks; /* in the order of the keys */
	struct pool_records records;
	size_t n_blocks;
	bool lengths[2][129];                  /* which lengths blocks have, IPv4 first */
	struct json_object *by_pool, *by_node; /* rows, by "network/pool" and by name */
};

static void use_done(struct use *u)
{
	for (size_t i = 0; u->blocks && i < u->n_blocks; i++)
		block_done(&u->blocks[i].record);
	pool_records_done(&u->records);
	free(u->blocks);
	json_object_put(u->by_pool);
	json_object_put(u->by_node);
}

static int64_t number(address_count n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* --- the records ---------------------------------------------------------------------------- */

static int take_block(struct use *u, const struct ctl_kv *kv)
{
	struct used_block *b = &u->blocks[u->n_blocks];
	int r = block_decode(KV_ARGS(kv), &b->record, NULL);

	if (r == -ENOMEM)
		return r;
	/* One that is damaged is nobody's: ipam check names it. */
	if (r == 0) {
		b->kv = kv;
		b->size = number(prefix_size(&b->record.block));
		u->lengths[b->record.block.address.family == AF_INET6][b->record.block.length] =
			true;
		u->n_blocks++;
	}
	return 0;
}

static int read_records(struct use *u)
{
	size_t n = 0;
	struct key key;
	int r = 0;

	for (size_t i = 0; i < u->kvs->n; i++)
		n += key_parse(u->kvs->v[i].key, &key) == 0 && key.kind == KEY_BLOCK;
	u->blocks = calloc(n + 1, sizeof(*u->blocks));
	if (!u->blocks)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < u->kvs->n; i++) {
		const struct ctl_kv *kv = &u->kvs->v[i];

		if (key_parse(kv->key, &key) == 0 && key.kind == KEY_BLOCK)
			r = take_block(u, kv);
		else
			r = pool_records_add(&u->records, KV_ARGS(kv), kv->create_revision);
	}
	r = r ?: pool_records_view(&u->records);
	return r;
}

/* --- which block an address lies in --------------------------------------------------------- */

static int compare_block(const void *key, const void *block)
{
	return strcmp(key, ((const struct used_block *)block)->kv->key);
}

static struct used_block *block_of(const struct use *u, const struct key *address)
{
	char text[KEY_TEXT];

	for (unsigned length = address_bits(&address->address) + 1; length-- > 0;) {
		struct prefix p = prefix_of(&address->address, (uint8_t)length);
		struct used_block *b;

		if (!u->lengths[address->address.family == AF_INET6][length] ||
		    key_block(text, address->network, &p) < 0)
			continue;
		b = u->n_blocks ? bsearch(text, u->blocks, u->n_blocks, sizeof(*b), compare_block)
				: NULL;
		if (b && strcmp(b->record.node, address->node) == 0)
			return b;
	}
	return NULL;
}

static void count_addresses(struct use *u)
{
	for (size_t i = 0; i < u->kvs->n; i++) {
		struct used_block *b;
		struct key key;

		if (strncmp(u->kvs->v[i].key, KEYS_HOST, strlen(KEYS_HOST)) != 0 ||
		    key_parse(u->kvs->v[i].key, &key) < 0 || key.kind != KEY_ADDRESS)
			continue;
		b = block_of(u, &key);
		if (b)
			b->used++;
	}
}

/* --- rows ----------------------------------------------------------------------------------- */

static void add(struct json_object *row, const char *field, int64_t n)
{
	struct json_object *value = out_at(row, field);

	json_object_set_int64(
		value, number((address_count)json_object_get_int64(value) + (address_count)n));
}

static void tree_counts(struct tree *t)
{
	tree_number(t, "blocks", 0);
	tree_number(t, "used", 0);
	tree_number(t, "inBlocks", 0);
}

/* Into the table; the row belongs to it. */
static int keep(struct json_object *table, const char *name, struct tree *t,
		struct json_object **ret)
{
	int r = tree_end(t, ret);

	if (r == 0 && json_object_object_add(table, name, *ret) < 0) {
		json_object_put(*ret);
		r = -ENOMEM;
	}
	return r;
}

#define POOL_TEXT (2 * NAME_TEXT + 1)
static const char *pool_id(const char *network, const char *pool, char *text)
{
	snprintf(text, POOL_TEXT, "%s/%s", network, pool);
	return text;
}

static void pool_numbers(const struct pool_view *v, struct tree *t)
{
	tree_text(t, "network", v->network);
	tree_prefix(t, "cidr", &v->cidr);
	tree_number(t, "blockSize", v->block_size);
	tree_number(t, "blocksMax", number(spans_size(&v->usable)));
	tree_number(t, "addresses", number(spans_size(&v->allowed)));
	tree_bool(t, "disabled", v->pool->disabled);
	if (v->pool->preallocate)
		tree_number(t, "preallocate", v->pool->preallocate);
	if (v->pool->max_blocks_per_node)
		tree_number(t, "maxBlocksPerNode", v->pool->max_blocks_per_node);
}

static int pool_row(struct use *u, const struct pool_view *v)
{
	struct tree t = tree_new();
	struct json_object *row;
	char id[POOL_TEXT];

	tree_text(&t, "name", v->name);
	if (v->pool)
		pool_numbers(v, &t);
	tree_counts(&t);
	tree_text(&t, "state",
		  !v->pool || v->wrong.text[0] ? "invalid"
		  : v->pool->disabled          ? "disabled"
		  : v->note.text[0]            ? "differs"
					       : "ok");
	tree_some_text(&t, "problem", v->wrong.text[0] ? v->wrong.text : v->note.text);
	return keep(u->by_pool, pool_id(v->pool ? v->network : "", v->name, id), &t, &row);
}

/* Deleted, or moved to another network, but blocks of it are still out. */
static int gone_pool_row(struct use *u, const char *network, const char *pool,
			 const struct extent *extent, struct json_object **ret)
{
	struct tree t = tree_new();
	char id[POOL_TEXT];

	tree_text(&t, "name", pool);
	tree_text(&t, "network", network);
	if (extent) {
		tree_prefix(&t, "cidr", &extent->cidr);
		tree_number(&t, "blockSize", extent->block_size);
		tree_number(&t, "blocksMax",
			    number(prefix_block_count(&extent->cidr, (uint8_t)extent->block_size)));
		tree_number(&t, "addresses", number(prefix_size(&extent->cidr)));
	}
	tree_counts(&t);
	tree_text(&t, "state", "deleted");
	return keep(u->by_pool, pool_id(network, pool, id), &t, ret);
}

static int pool_rows(struct use *u)
{
	struct json_object *row;
	char id[POOL_TEXT];
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->records.views.n; i++)
		r = pool_row(u, &u->records.views.v[i]);
	for (size_t i = 0; r == 0 && i < u->records.extents.n; i++)
		if (!json_object_object_get_ex(u->by_pool,
					       pool_id(u->records.extents.v[i]->network,
						       u->records.extents.v[i]->pool, id),
					       NULL))
			r = gone_pool_row(u, u->records.extents.v[i]->network,
					  u->records.extents.v[i]->pool, u->records.extents.v[i],
					  &row);
	return r;
}

static int node_row(struct use *u, const char *name, struct json_object **ret)
{
	char registered[KEY_TEXT], status[KEY_TEXT], removed[KEY_TEXT];
	struct tree t = tree_new();

	key_node(registered, name);
	key_status_node(status, name);
	key_removed(removed, name);
	tree_text(&t, "name", name);
	tree_counts(&t);
	tree_text(&t, "state",
		  ctl_find(u->kvs, removed)      ? "removed"
		  : ctl_find(u->kvs, status)     ? "alive"
		  : lease_holder_is(name)        ? "lease"
		  : ctl_find(u->kvs, registered) ? "silent"
						 : "unknown");
	return keep(u->by_node, name, &t, ret);
}

static int node_rows(struct use *u)
{
	struct json_object *row;
	struct key key;
	int r = 0;

	for (size_t i = 0; r == 0 && i < u->kvs->n; i++)
		if (key_parse(u->kvs->v[i].key, &key) == 0 && key.kind == KEY_NODE)
			r = node_row(u, key.node, &row);
	return r;
}

/* --- blocks into rows ----------------------------------------------------------------------- */

/* Less what the pool excludes. */
static int block_size(const struct use *u, struct used_block *b)
{
	const struct pool_view *v = pool_views_find(&u->records.views, b->record.pool);
	AUTO_DONE(spans_done) struct spans span = { 0 };
	int r;

	if (!v || !v->pool || strcmp(v->network, b->record.network) != 0)
		return 0;
	r = spans_add(&span, span_of(&b->record.block));
	if (r == 0 && b->record.block.address.family == v->cidr.address.family)
		b->size = number(spans_common_size(&v->allowed, &span));
	return r;
}

static void count_into(struct json_object *row, const struct used_block *b)
{
	add(row, "blocks", 1);
	add(row, "used", b->used);
	add(row, "inBlocks", b->size);
}

static int block_row(const struct used_block *b, struct json_object *array)
{
	struct tree t = tree_new();

	tree_prefix(&t, "block", &b->record.block);
	tree_text(&t, "network", b->record.network);
	tree_text(&t, "pool", b->record.pool);
	tree_text(&t, "node", b->record.node);
	tree_number(&t, "used", b->used);
	tree_number(&t, "free", b->size > b->used ? b->size - b->used : 0);
	return tree_end_in(&t, array);
}

static int count_block(struct use *u, struct used_block *b, struct json_object *array)
{
	struct json_object *pool = NULL, *node = NULL;
	char id[POOL_TEXT];
	int r = block_size(u, b);

	pool_id(b->record.network, b->record.pool, id);
	if (r == 0 && !json_object_object_get_ex(u->by_pool, id, &pool))
		r = gone_pool_row(u, b->record.network, b->record.pool, NULL, &pool);
	if (r == 0 && !json_object_object_get_ex(u->by_node, b->record.node, &node))
		r = node_row(u, b->record.node, &node);
	if (r < 0)
		return r;
	count_into(pool, b);
	count_into(node, b);
	return block_row(b, array);
}

/* Only after all are counted. */
static void mark_full(struct json_object *table)
{
	json_object_object_foreach(table, id, row) {
		(void)id;
		int64_t all = out_number(row, "blocksMax");

		if (all && out_number(row, "blocks") >= all &&
		    out_number(row, "used") >= out_number(row, "inBlocks") &&
		    strcmp(out_text(row, "state"), "ok") == 0)
			json_object_object_add(row, "state", json_object_new_string("full"));
	}
}

static struct json_object *values_of(struct json_object *table)
{
	struct json_object *array = json_object_new_array();

	json_object_object_foreach(table, name, row) {
		(void)name;
		if (array)
			json_object_array_add(array, json_object_get(row));
	}
	return array;
}

int ipam_use(const struct ctl_kvs *kvs, struct json_object **ret)
{
	AUTO_DONE(use_done)
	struct use u = { .kvs = kvs,
			 .by_pool = json_object_new_object(),
			 .by_node = json_object_new_object() };
	AUTO(json_put) struct json_object *blocks = json_object_new_array();
	struct tree t;
	int r = u.by_pool && u.by_node && blocks ? read_records(&u) : -ENOMEM;

	r = r ?: pool_rows(&u);
	r = r ?: node_rows(&u);
	if (r < 0)
		return r;
	count_addresses(&u);
	for (size_t i = 0; r == 0 && i < u.n_blocks; i++)
		r = count_block(&u, &u.blocks[i], blocks);
	if (r < 0)
		return r;
	mark_full(u.by_pool);
	t = tree_new();
	tree_add(&t, "pools", values_of(u.by_pool));
	tree_add(&t, "nodes", values_of(u.by_node));
	tree_add(&t, "blocks", TAKE(blocks));
	return tree_end(&t, ret);
}

char *ipam_bar(int64_t used, int64_t of, unsigned width)
{
	/* Rounded down, but never to nothing while there is something. */
	int64_t share = of > 0 ? (int64_t)((address_count)used * 100 / (address_count)of) : 0;
	int64_t filled = of > 0 ? (int64_t)((address_count)used * width / (address_count)of) : 0;
	char bar[65] = "", *text;

	width = width < sizeof(bar) ? width : (unsigned)sizeof(bar) - 1;
	filled = filled > width ? width : filled == 0 && used > 0 && width ? 1 : filled;
	memset(bar, '.', width);
	memset(bar, '#', (size_t)filled);
	if (asprintf(&text, "%s%s%lld%%", bar, width ? " " : "", (long long)share) < 0)
		return NULL;
	return text;
}
