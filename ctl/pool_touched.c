/* SPDX-License-Identifier: Apache-2.0 */
/* What hangs on a pool: read from the keys, not from what agents say, some of which may be down. */
#include <errno.h>
#include <string.h>

#include "ctl/record_verbs.h"
#include "lib/model.h"

struct counts {
	size_t blocks, addresses, nodes;
};

static int count_block(const struct ctl_kv *kv, const char *pool, struct json_object *nodes,
		       struct counts *counts)
{
	AUTO(block_done) struct block block = { 0 };
	struct err ignored;

	if (block_decode(kv->key, kv->value, kv->value_len, &block, &ignored) < 0 ||
	    strcmp(block.pool, pool) != 0)
		return 0;
	counts->blocks++;
	return json_object_object_add(nodes, block.node, NULL);
}

static void count_address(const struct ctl_kv *kv, const char *pool, struct counts *counts)
{
	AUTO(address_record_done) struct address_record address = { 0 };
	struct err ignored;

	if (address_record_decode(kv->key, kv->value, kv->value_len, &address, &ignored) == 0)
		counts->addresses += strcmp(address.pool, pool) == 0;
}

int pool_touched(struct ctl *ctl, const char *pool, char **ret, struct err *err)
{
	AUTO(ctl_kvs_done) struct ctl_kvs blocks = { 0 }, hosts = { 0 };
	AUTO(json_put) struct json_object *nodes = json_object_new_object();
	struct counts counts = { 0 };
	int r = ctl_read(ctl, KEYS_BLOCK, &blocks, err);

	r = r < 0 ? r : ctl_read(ctl, KEYS_HOST, &hosts, err);
	if (r < 0)
		return r;
	if (!nodes)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < blocks.n; i++)
		count_block(&blocks.v[i], pool, nodes, &counts);
	for (size_t i = 0; i < hosts.n; i++)
		count_address(&hosts.v[i], pool, &counts);
	counts.nodes = (size_t)json_object_object_length(nodes);
	if (asprintf(ret,
		     "pool %s: %zu %s on %zu %s, %zu %s in use; running pods keep theirs, nothing "
		     "more is given from it",
		     pool, counts.blocks, counts.blocks == 1 ? "block" : "blocks", counts.nodes,
		     counts.nodes == 1 ? "node" : "nodes", counts.addresses,
		     counts.addresses == 1 ? "address" : "addresses") < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}
