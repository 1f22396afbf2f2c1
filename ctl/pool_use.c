/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pool_use.h"

#include "lib/json/json.h"
#include "lib/model/model.h"

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

static void add(struct json_object *use, const char *name, int64_t n)
{
	json_object_int_inc(out_at(use, name), n);
}

static bool add_block(struct json_object *all, const struct ctl_kv *kv)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	struct json_object *use;
	struct err ignored;

	if (block_decode(kv->key, kv->value, kv->value_len, &block, &ignored) < 0)
		return true;
	use = entry(all, block.pool);
	if (!use)
		return false;
	add(use, "blocks", 1);
	return json_object_object_add(out_at(use, "nodes"), block.node, NULL) == 0;
}

static bool add_status(struct json_object *all, const struct ctl_kv *kv)
{
	AUTO(json_put) struct json_object *record = NULL;
	struct json_object *pools;
	struct err ignored;

	if (json_parse(kv->value, kv->value_len, &record, &ignored) < 0)
		return true;
	pools = out_at(record, "pools");
	if (!json_object_is_type(pools, json_type_object))
		return true;
	json_object_object_foreach(pools, name, told) {
		struct json_object *use = entry(all, name);

		if (!use)
			return false;
		add(use, "used", json_object_get_int64(out_at(told, "used")));
		add(use, "free", json_object_get_int64(out_at(told, "free")));
	}
	return true;
}

struct json_object *pool_use(const struct ctl_kvs *blocks, const struct ctl_kvs *status)
{
	AUTO(json_put) struct json_object *all = json_object_new_object();
	bool good = all;

	for (size_t i = 0; good && i < blocks->n; i++)
		good = add_block(all, &blocks->v[i]);
	for (size_t i = 0; good && i < status->n; i++)
		good = add_status(all, &status->v[i]);
	return good ? TAKE(all) : NULL;
}
