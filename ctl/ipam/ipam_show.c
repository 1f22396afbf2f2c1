/* SPDX-License-Identifier: Apache-2.0 */
/* ipam show: how much is in use, as tables with bars where there is a terminal. */
#include <errno.h>
#include <unistd.h>

#include "ctl/frame/verbs.h"
#include "ctl/ipam/ipam_use.h"
#include "lib/json/json.h"

#define BAR_WIDTH 20

static const struct out_column pool_columns[] = {
	COLUMN("POOL", "name"),
	COLUMN("CIDR", "cidr"),
	COLUMN("STATE", "state"),
	COLUMN("BLOCKS", "blocks"),
	COLUMN("OF", "blocksMax"),
	COLUMN("USED", "used"),
	COLUMN("IN BLOCKS", "inBlocks"),
	COLUMN("IN POOL", "addresses"),
	COLUMN("USE", "bar"),
	WIDE("NETWORK", "network"),
	WIDE("BLOCKSIZE", "blockSize"),
	WIDE("PREALLOCATE", "preallocate"),
	WIDE("MAX PER NODE", "maxBlocksPerNode"),
	COLUMNS_END,
};

static const struct out_column node_columns[] = {
	COLUMN("NODE", "name"),
	COLUMN("STATE", "state"),
	COLUMN("BLOCKS", "blocks"),
	COLUMN("USED", "used"),
	COLUMN("IN BLOCKS", "inBlocks"),
	COLUMN("USE", "bar"),
	COLUMNS_END,
};

static const struct out_column block_columns[] = {
	COLUMN("BLOCK", "block"),
	COLUMN("NETWORK", "network"),
	COLUMN("POOL", "pool"),
	COLUMN("NODE", "node"),
	COLUMN("USED", "used"),
	COLUMN("FREE", "free"),
	COLUMNS_END,
};

static int add_bars(const struct out *out, struct json_object *rows, const char *whole)
{
	unsigned width = isatty(fileno(out->to)) ? BAR_WIDTH : 0;

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		AUTO(free) char *bar = NULL;

		/* Of a pool that cannot be read nobody knows how large it is. */
		if (!out_at(row, whole))
			continue;
		bar = ipam_bar(out_number(row, "used"), out_number(row, whole), width);
		if (!bar)
			return -ENOMEM;
		json_object_object_add(row, "bar", json_object_new_string(bar));
	}
	return 0;
}

/* Too long for a column, too weighty for -o wide alone. */
static void print_problems(const struct out *out, struct json_object *pools)
{
	for (size_t i = 0; i < json_object_array_length(pools); i++) {
		struct json_object *problem = out_at(json_object_array_get_idx(pools, i),
						     "problem");

		if (problem)
			out_say(out, "%s", json_object_get_string(problem));
	}
}

static int print_tables(struct ctl *ctl, struct json_object *use)
{
	struct json_object *pools = out_at(use, "pools"), *nodes = out_at(use, "nodes");
	int r = add_bars(&ctl->out, pools, "addresses");

	r = r ?: add_bars(&ctl->out, nodes, "inBlocks");
	if (r == 0)
		r = out_list(&ctl->out, pools, pool_columns,
			     "There are no pools yet: roostctl pool create NAME cidr=PREFIX");
	print_problems(&ctl->out, pools);
	fputc('\n', ctl->out.to);
	r = r ?: out_list(&ctl->out, nodes, node_columns, "No node has registered yet");
	if (r < 0 || !ctl->settings->blocks)
		return r;
	fputc('\n', ctl->out.to);
	return out_list(&ctl->out, out_at(use, "blocks"), block_columns, "No block is claimed");
}

int ipam_show(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *use = NULL;
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	/* All at one revision: a block that is just being claimed is there with its index. */
	int r = ctl_read(ctl, "", &kvs, err);

	if (r < 0)
		return r;
	r = ipam_use(&kvs, &use);
	if (r == 0)
		r = ctl->out.format == OUT_JSON ? out_json(&ctl->out, use) : print_tables(ctl, use);
	return r;
}
