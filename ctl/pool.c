/* SPDX-License-Identifier: Apache-2.0 */
/* pool list, pool show. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/pool_use.h"
#include "ctl/records/effective.h"
#include "ctl/records/kind.h"
#include "lib/json/tree.h"
#include "lib/model/model.h"

static const char *const watches[] = { KEYS_POOL, KEYS_EXTENT, KEYS_BLOCK, KEYS_STATUS, NULL };

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
	struct json_object *use; /* see pool_use.h */
};

static void pools_read_done_auto(struct pools_read *p)
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
	r = r < 0 ? r : ctl_read(ctl, KEYS_STATUS "node/", &ret->status, err);
	if (r < 0)
		return r;
	ret->use = pool_use(&ret->blocks, &ret->status);
	return ret->use ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static void add_use(struct json_object *all, const char *pool, struct tree *t)
{
	struct json_object *use = NULL, *nodes;

	json_object_object_get_ex(all, pool, &use);
	nodes = out_at(use, "nodes");
	tree_number(t, "blocks", json_object_get_int64(out_at(use, "blocks")));
	tree_number(t, "nodes", nodes ? json_object_object_length(nodes) : 0);
	tree_number(t, "used", json_object_get_int64(out_at(use, "used")));
	tree_number(t, "free", json_object_get_int64(out_at(use, "free")));
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

		if (pool_decode(kv->key, kv->value, kv->value_len, &other, err) == 0)
			r = pool_conflicts_pool(pool, &other, err);
	}
	for (size_t i = 0; r == 0 && i < in->extents.n; i++) {
		AUTO_DONE(extent_done) struct extent extent = { 0 };
		const struct ctl_kv *kv = &in->extents.v[i];

		if (extent_decode(kv->key, kv->value, kv->value_len, &extent, err) < 0)
			continue;
		r = kv == own ? pool_differs_from_extent(pool, &extent, err)
			      : pool_conflicts_extent(pool, &extent, err);
	}
	return r;
}

static void pool_row(const struct pools_read *in, const struct ctl_kv *kv, struct tree *t)
{
	AUTO_DONE(pool_done) struct pool pool = { 0 };
	struct err err = { "" };
	int r = pool_decode(kv->key, kv->value, kv->value_len, &pool, &err);

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
	tree_text(t, "state", r == -EEXIST ? "invalid" : pool.disabled ? "disabled" : "ok");
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
	AUTO(pools_read_done) struct pools_read in = { 0 };
	AUTO(json_put) struct json_object *array = json_object_new_array();
	int r = read_all(ctl, &in, err);

	if (r < 0)
		return r;
	r = array ? pool_rows(&in, array) : -ENOMEM;
	if (r < 0)
		return err_set(err, r, "out of memory");
	*ret = TAKE(array);
	return 0;
}

const struct command_list pool_list = {
	.read = pool_list_read,
	.columns = columns,
	.watches = watches,
	.none = "There are no pools yet: roostctl pool create NAME cidr=PREFIX",
};

/* --- show ----------------------------------------------------------------------------------- */

/* All that the list has, and every field. */
int pool_show(struct ctl *ctl, struct err *err)
{
	AUTO(pools_read_done) struct pools_read in = { 0 };
	AUTO(json_put) struct json_object *object = NULL;
	const struct ctl_kv *kv = NULL;
	struct err ignored;
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
		return err_set(err, r, "out of memory");
	/* A record that is invalid has been told of already. */
	effective(&pool_record, kv->key, kv->value, kv->value_len, object, &ignored);
	return out_show(&ctl->out, object);
}
