/* SPDX-License-Identifier: Apache-2.0 */
/* pool list, pool show. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/record_fields.h"
#include "ctl/records/record_verbs.h"
#include "lib/json/tree.h"
#include "lib/model/model.h"

/* --- how much of each pool is in use, by one walk over keys of which there may be many --------- */

/* The entry of a pool, made if it is not there. */
static struct json_object *entry(struct json_object *all, const char *pool)
{
	static const char *const numbers[] = { "blocks", "used", "free" };
	struct json_object *use = NULL;

	if (json_object_object_get_ex(all, pool, &use))
		return use;
	use = json_object_new_object();
	if (!use)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		json_object_object_add(use, numbers[i], json_object_new_int64(0));
	json_object_object_add(use, "nodes", json_object_new_object());
	if (json_object_object_add(all, pool, use) == 0)
		return use;
	json_object_put(use);
	return NULL;
}

static bool add_block(struct json_object *all, const struct ctl_kv *kv)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	struct json_object *use;

	if (block_decode(KV_ARGS(kv), &block, NULL) < 0)
		return true;
	use = entry(all, block.pool);
	if (!use)
		return false;
	json_object_int_inc(out_at(use, "blocks"), 1);
	return json_object_object_add(out_at(use, "nodes"), block.node, NULL) == 0;
}

static bool add_status(struct json_object *all, const struct ctl_kv *kv)
{
	AUTO(json_put) struct json_object *record = NULL;
	struct json_object *pools;

	if (json_parse(kv->value, kv->value_len, &record, NULL) < 0)
		return true;
	pools = out_at(record, "pools");
	if (!json_object_is_type(pools, json_type_object))
		return true;
	json_object_object_foreach(pools, name, told) {
		struct json_object *use = entry(all, name);

		if (!use)
			return false;
		json_object_int_inc(out_at(use, "used"), out_number(told, "used"));
		json_object_int_inc(out_at(use, "free"), out_number(told, "free"));
	}
	return true;
}

/*
 * {pool: {"blocks": n, "used": n, "free": n, "nodes": {node: null}}}; blocks and nodes are counted
 * from block/ keys, used and free are what living agents report in status/node/.
 * json_object_put() it. NULL: out of memory.
 */
static struct json_object *pool_use(const struct ctl_kvs *blocks, const struct ctl_kvs *status)
{
	AUTO(json_put) struct json_object *all = json_object_new_object();
	bool good = all;

	for (size_t i = 0; good && i < blocks->n; i++)
		good = add_block(all, &blocks->v[i]);
	for (size_t i = 0; good && i < status->n; i++)
		good = add_status(all, &status->v[i]);
	return good ? TAKE(all) : NULL;
}

/* --- list ----------------------------------------------------------------------------------- */

static const struct out_column columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("CIDR", "cidr"),
	COLUMN("BLOCKSIZE", "blockSize"),
	COLUMN("NETWORK", "network"),
	COLUMN("STATE", "state"),
	COLUMN("BLOCKS", "blocks"),
	COLUMN("OF", "blocksMax"),
	COLUMN("NODES", "nodes"),
	COLUMN("USED", "used"),
	WIDE("FREE", "free"),
	WIDE("ROUTED", "routed"),
	WIDE("ENCAPSULATION", "encapsulation"),
	WIDE("NAT", "natOutgoing"),
	WIDE("NODESELECTOR", "nodeSelector"),
	WIDE("NAMESPACES", "namespaces"),
	WIDE("PROBLEM", "problem"),
	COLUMNS_END,
};

/* What all pools are looked at with. */
struct pools_read {
	struct ctl_kvs pools, extents, blocks, status;
	struct json_object *use; /* see pool_use() */
};

static void pools_read_done(struct pools_read *p)
{
	ctl_kvs_done(&p->pools);
	ctl_kvs_done(&p->extents);
	ctl_kvs_done(&p->blocks);
	ctl_kvs_done(&p->status);
	json_object_put(p->use);
}

static int read_all(struct ctl *ctl, struct pools_read *ret, struct err *err)
{
	int r = ctl_read(ctl, KEYS_POOL, &ret->pools, err);

	r = r < 0 ? r : ctl_read(ctl, KEYS_EXTENT, &ret->extents, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_BLOCK, &ret->blocks, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_STATUS_NODE, &ret->status, err);
	if (r < 0)
		return r;
	ret->use = pool_use(&ret->blocks, &ret->status);
	return ret->use ? 0 : -ENOMEM;
}

static void add_use(struct json_object *all, const char *pool, struct tree *t)
{
	struct json_object *use = NULL, *nodes;

	json_object_object_get_ex(all, pool, &use);
	nodes = out_at(use, "nodes");
	tree_number(t, "blocks", out_number(use, "blocks"));
	tree_number(t, "nodes", nodes ? json_object_object_length(nodes) : 0);
	tree_number(t, "used", out_number(use, "used"));
	tree_number(t, "free", out_number(use, "free"));
}

static const struct ctl_kv *extent_of(const struct ctl_kvs *extents, const struct pool *pool)
{
	char key[KEY_TEXT];

	return key_extent(key, pool->network, pool->name) < 0 ? NULL : ctl_find(extents, key);
}

/* What the agents would complain of: another pool in its way, an edit without effect. */
static int problem_of(const struct pools_read *in, const struct pool *pool, struct err *err)
{
	const struct ctl_kv *own = extent_of(&in->extents, pool);
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->pools.n; i++) {
		AUTO_DONE(pool_done) struct pool other = { 0 };
		const struct ctl_kv *kv = &in->pools.v[i];

		if (pool_decode(KV_ARGS(kv), &other, err) == 0)
			r = pool_conflicts_pool(pool, &other, err);
	}
	for (size_t i = 0; r == 0 && i < in->extents.n; i++) {
		AUTO_DONE(extent_done) struct extent extent = { 0 };
		const struct ctl_kv *kv = &in->extents.v[i];

		if (extent_decode(KV_ARGS(kv), &extent, err) < 0)
			continue;
		r = kv == own ? pool_differs_from_extent(pool, &extent, err)
			      : pool_conflicts_extent(pool, &extent, err);
	}
	return r;
}

/* The words are those of `ipam show`: every block has an owner, and none has a free address. */
static bool is_full(struct json_object *all, const struct pool *pool)
{
	struct json_object *use = NULL;

	json_object_object_get_ex(all, pool->name, &use);
	return out_number(use, "blocks") >= 1LL << (pool->block_size - pool->cidr.length) &&
	       out_number(use, "used") > 0 && out_number(use, "free") == 0;
}

static void pool_row(const struct pools_read *in, const struct ctl_kv *kv, struct tree *t)
{
	AUTO_DONE(pool_done) struct pool pool = { 0 };
	struct err err = { "" };
	int r = pool_decode(KV_ARGS(kv), &pool, &err);

	tree_text(t, "name", kv->key + strlen(KEYS_POOL));
	if (r < 0) {
		tree_text(t, "state", "invalid");
		tree_text(t, "problem", err.text);
		return;
	}
	r = problem_of(in, &pool, &err);
	tree_prefix(t, "cidr", &pool.cidr);
	tree_number(t, "blockSize", pool.block_size);
	tree_text(t, "network", pool.network);
	tree_text(t, "state",
		  r == -EEXIST              ? "invalid"
		  : pool.disabled           ? "disabled"
		  : r < 0                   ? "differs"
		  : is_full(in->use, &pool) ? "full"
					    : "ok");
	tree_number(t, "blocksMax", 1LL << (pool.block_size - pool.cidr.length));
	tree_bool(t, "routed", pool.routed);
	tree_text(t, "encapsulation",
		  pool.encapsulation == ENCAPSULATION_NONE    ? "none"
		  : pool.encapsulation == ENCAPSULATION_VXLAN ? "vxlan"
							      : "vxlan-cross-subnet");
	tree_bool(t, "natOutgoing", pool.nat_outgoing);
	tree_some_text(t, "nodeSelector", pool.node_selector.text);
	if (pool.namespaces.n)
		tree_texts(t, "namespaces", &pool.namespaces);
	if (pool.strict)
		tree_bool(t, "strict", true);
	tree_some_text(t, "problem", r < 0 ? err.text : "");
	add_use(in->use, pool.name, t);
}

static int pool_rows(const struct pools_read *in, struct json_object *array)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->pools.n; i++) {
		struct tree t = tree_new();

		pool_row(in, &in->pools.v[i], &t);
		r = tree_end_in(&t, array);
	}
	return r;
}

static int pool_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO_DONE(pools_read_done) struct pools_read in = { 0 };
	AUTO(json_put) struct json_object *array = json_object_new_array();
	int r = read_all(ctl, &in, err);

	if (r < 0)
		return r;
	r = array ? pool_rows(&in, array) : -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE(array);
	return 0;
}

const struct command_list pool_list = {
	.read = pool_list_read,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_POOL, KEYS_EXTENT, KEYS_BLOCK, KEYS_STATUS, NULL },
	.none = "There are no pools yet: roostctl pool create NAME cidr=PREFIX",
};

/* --- show ----------------------------------------------------------------------------------- */

/* All that the list has, and every field. */
int pool_show(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(pools_read_done) struct pools_read in = { 0 };
	AUTO(json_put) struct json_object *object = NULL;
	const struct ctl_kv *kv = NULL;
	char key[KEY_TEXT];
	struct tree t;
	int r = kind_key(kind_find("pool"), ctl->args[0], key, err);

	r = r < 0 ? r : read_all(ctl, &in, err);
	if (r < 0)
		return r;
	kv = ctl_find(&in.pools, key);
	if (!kv)
		return err_set(err, -ENOENT, "there is no pool %s: see roostctl pool list",
			       ctl->args[0]);
	t = tree_new();
	pool_row(&in, kv, &t);
	r = tree_end(&t, &object);
	if (r < 0)
		return r;
	/* A record that is invalid has been told of already. */
	effective(&pool_record, kv->key, kv->value, kv->value_len, object, NULL);
	return out_show(&ctl->out, object);
}

/* --- delete: what hangs on a pool, read from the keys, because some agents may be down -------- */

static bool is_of(const struct ctl_kv *kv, const char *pool)
{
	AUTO_DONE(address_record_done) struct address_record address = { 0 };

	return address_record_decode(KV_ARGS(kv), &address, NULL) == 0 &&
	       strcmp(address.pool, pool) == 0;
}

int pool_touched(struct ctl *ctl, const char *pool, char **ret, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs blocks = { 0 }, hosts = { 0 };
	AUTO(json_put) struct json_object *all = NULL;
	const struct ctl_kvs no_status = { 0 };
	struct json_object *use = NULL;
	int64_t n_blocks, n_nodes, addresses = 0;
	int r = ctl_read(ctl, KEYS_BLOCK, &blocks, err);

	r = r < 0 ? r : ctl_read(ctl, KEYS_HOST, &hosts, err);
	if (r < 0)
		return r;
	all = pool_use(&blocks, &no_status);
	if (!all)
		return -ENOMEM;
	json_object_object_get_ex(all, pool, &use);
	n_blocks = out_number(use, "blocks");
	n_nodes = use ? json_object_object_length(out_at(use, "nodes")) : 0;
	for (size_t i = 0; i < hosts.n; i++)
		addresses += is_of(&hosts.v[i], pool);
	if (asprintf(ret,
		     "pool %s: %lld %s on %lld %s, %lld %s in use; running pods keep their "
		     "addresses, new pods get none of it",
		     pool, (long long)n_blocks, n_blocks == 1 ? "block" : "blocks",
		     (long long)n_nodes, n_nodes == 1 ? "node" : "nodes", (long long)addresses,
		     addresses == 1 ? "address" : "addresses") < 0)
		return -ENOMEM;
	return 0;
}
