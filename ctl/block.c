/* SPDX-License-Identifier: Apache-2.0 */
/* block list, block show. */
#include <errno.h>
#include <string.h>

#include "ctl/addresses.h"
#include "ctl/blocks.h"
#include "ctl/frame/verbs.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/model/model.h"

static void block_row(const struct block *block, struct tree *t)
{
	tree_prefix(t, "block", &block->block);
	tree_text(t, "network", block->network);
	tree_text(t, "node", block->node);
	tree_text(t, "pool", block->pool);
	tree_some_text(t, "claimed", block->claimed);
	tree_some_text(t, "token", block->token);
}

static int invalid_row(const struct ctl_kv *kv, const char *problem, struct json_object *array)
{
	struct tree t = tree_new();
	struct key key;

	if (key_parse(kv->key, &key) == 0) {
		tree_prefix(&t, "block", &key.block);
		tree_text(&t, "network", key.network);
	}
	tree_text(&t, "problem", problem);
	return tree_end_in(&t, array);
}

static int block_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	int r = ctl_read(ctl, KEYS_BLOCK, &kvs, err);

	if (r < 0)
		return r;
	for (size_t i = 0; array && r == 0 && i < kvs.n; i++) {
		AUTO_DONE(block_done) struct block block = { 0 };
		struct err why = { "" };
		struct tree t;

		r = block_decode(kvs.v[i].key, kvs.v[i].value, kvs.v[i].value_len, &block, &why);
		if (r < 0 && r != -ENOMEM) {
			r = invalid_row(&kvs.v[i], why.text, array);
			continue;
		}
		if (r < 0 || (ctl->n_args && strcmp(block.node, ctl->args[0]) != 0))
			continue;
		t = tree_new();
		block_row(&block, &t);
		r = tree_end_in(&t, array);
	}
	if (!array || r < 0)
		return err_set(err, -ENOMEM, "out of memory");
	*ret = TAKE(array);
	return 0;
}

static const struct out_column columns[] = {
	COLUMN("BLOCK", "block"),     COLUMN("NETWORK", "network"),
	COLUMN("NODE", "node"),       COLUMN("POOL", "pool"),
	COLUMN("CLAIMED", "claimed"), WIDE("TOKEN", "token"),
	WIDE("PROBLEM", "problem"),   COLUMNS_END,
};

const struct command_list block_list = {
	.read = block_list_read,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_BLOCK, NULL },
	.none = "No block is claimed: nodes claim one when a pod needs an address",
};

/* --- show ----------------------------------------------------------------------------------- */

/* "10.1.0.0/26", "10.1.0.0-26", or any address in it. */
static bool is_meant(const char *word, const struct prefix *block)
{
	struct address a;
	struct prefix p;

	if (prefix_parse(word, &p) == 0 || prefix_parse_key(word, &p) == 0)
		return prefix_compare(&p, block) == 0;
	return address_parse(word, &a) == 0 && prefix_contains(block, &a);
}

int ctl_find_block(struct ctl *ctl, const struct ctl_kvs *kvs, const struct ctl_kv **ret,
		   struct err *err)
{
	const char *network = ctl->n_args > 1 ? ctl->args[1] : NULL;
	char shown[SHOW_TEXT];
	struct key key;

	*ret = NULL;
	for (size_t i = 0; i < kvs->n; i++) {
		if (key_parse(kvs->v[i].key, &key) < 0 || !is_meant(ctl->args[0], &key.block) ||
		    (network && strcmp(network, key.network) != 0))
			continue;
		if (*ret)
			return err_set(err, CTL_USAGE,
				       "%s is a block of several networks: name one, as in "
				       "roostctl %s %s %s %s",
				       ctl->args[0], ctl->command->noun, ctl->command->verb,
				       ctl->args[0], key.network);
		*ret = &kvs->v[i];
	}
	if (*ret)
		return 0;
	return err_set(err, -ENOENT, "nobody has a block %s: see roostctl block list",
		       text_show(ctl->args[0], shown));
}

int block_show(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL, *addresses = NULL;
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct ctl_kv *kv = NULL;
	struct tree t;
	int r = ctl_read(ctl, KEYS_BLOCK, &kvs, err);

	r = r < 0 ? r : ctl_find_block(ctl, &kvs, &kv, err);
	if (r < 0 || !kv)
		return r;
	r = block_decode(kv->key, kv->value, kv->value_len, &block, err);
	r = r < 0 ? r : addresses_read(ctl, block.node, &block, &addresses, err);
	if (r < 0)
		return r;
	t = tree_new();
	block_row(&block, &t);
	tree_number(&t, "used", (int64_t)json_object_array_length(addresses));
	tree_share(&t, "addresses", addresses);
	r = tree_end(&t, &object);
	return r < 0 ? err_set(err, r, "out of memory") : out_show(&ctl->out, object);
}
