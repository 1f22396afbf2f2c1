/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks, and the leases among them: block list and show; lease list, show and delete. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/addresses.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/change.h"
#include "lib/base/clock.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/model/lease_holder.h"
#include "lib/model/model.h"

/* A lease is a block with more to it. */
static void block_row(const struct block *block, bool lease, struct tree *t)
{
	AUTO(json_put) struct json_object *data = NULL;

	tree_prefix(t, lease ? "subnet" : "block", &block->block);
	tree_text(t, "network", block->network);
	tree_text(t, "node", block->node);
	tree_text(t, "pool", block->pool);
	tree_some_text(t, "claimed", block->claimed);
	if (!lease) {
		tree_some_text(t, "token", block->token);
		return;
	}
	tree_address(t, "publicIP", &block->lease.public_ip);
	tree_some_text(t, "backendType", block->lease.backend_type);
	if (block->lease.backend_data[0] &&
	    json_parse(block->lease.backend_data, strlen(block->lease.backend_data), &data, NULL) ==
		    0)
		tree_share(t, "backendData", data);
	tree_text(t, "expires", block->lease.expires[0] ? block->lease.expires : "never");
	tree_some_text(t, "owner", block->lease.owner);
	tree_text(t, "state", block->lease.revoked ? "revoked" : "held");
}

static void invalid_row(const char *key, const char *problem, struct tree *t)
{
	struct key parsed;

	if (key_parse(key, &parsed) == 0) {
		tree_prefix(t, "block", &parsed.block);
		tree_text(t, "network", parsed.network);
	}
	tree_text(t, "problem", problem);
}

static int block_list_row(const struct ctl_kv *kv, void *arg, struct json_object *array)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct ctl *ctl = arg;
	struct err why = { "" };
	struct tree t;
	int r = block_decode(KV_ARGS(kv), &block, &why);

	if (r == -ENOMEM)
		return r;
	if (r == 0 && ctl->n_args && strcmp(block.node, ctl->args[0]) != 0)
		return 0;
	t = tree_new();
	if (r < 0)
		invalid_row(kv->key, why.text, &t);
	else
		block_row(&block, false, &t);
	return tree_end_in(&t, array);
}

static int lease_list_row(const struct ctl_kv *kv, void *arg, struct json_object *array)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct ctl *ctl = arg;
	struct tree t;
	int r = block_decode(KV_ARGS(kv), &block, NULL);

	if (r < 0 || !block.lease.public_ip.family ||
	    (ctl->n_args && strcmp(block.network, ctl->args[0]) != 0))
		return r == -ENOMEM ? r : 0;
	t = tree_new();
	block_row(&block, true, &t);
	return tree_end_in(&t, array);
}

static const struct out_column block_columns[] = {
	COLUMN("BLOCK", "block"),     COLUMN("NETWORK", "network"),
	COLUMN("NODE", "node"),       COLUMN("POOL", "pool"),
	COLUMN("CLAIMED", "claimed"), WIDE("TOKEN", "token"),
	WIDE("PROBLEM", "problem"),   COLUMNS_END,
};

const struct command_list block_list = {
	.beginning = KEYS_BLOCK,
	.row = block_list_row,
	.columns = block_columns,
	.none = "No block is claimed: nodes claim one when a pod needs an address",
};

static const struct out_column lease_columns[] = {
	COLUMN("SUBNET", "subnet"),
	COLUMN("NETWORK", "network"),
	COLUMN("PUBLIC IP", "publicIP"),
	COLUMN("BACKEND", "backendType"),
	COLUMN("EXPIRES", "expires"),
	COLUMN("STATE", "state"),
	WIDE("OWNER", "owner"),
	WIDE("DATA", "backendData"),
	WIDE("POOL", "pool"),
	WIDE("CLAIMED", "claimed"),
	COLUMNS_END,
};

const struct command_list lease_list = {
	.beginning = KEYS_BLOCK,
	.row = lease_list_row,
	.columns = lease_columns,
	.none = "There are no leases: clients get them from roost-controller --lease-listen",
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

static int find_block(struct ctl *ctl, const struct ctl_kvs *kvs, const struct ctl_kv **ret,
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
	return err_set(err, -ENOENT, "no node has a block %s: see roostctl block list",
		       text_show(ctl->args[0], shown));
}

/* The block that the words mean, BLOCK [NETWORK], among all that were read. */
static int read_block(struct ctl *ctl, struct ctl_kvs *kvs, const struct ctl_kv **ret,
		      struct block *ret_block, struct err *err)
{
	int r = ctl_read(ctl, KEYS_BLOCK, kvs, err);

	r = r < 0 ? r : find_block(ctl, kvs, ret, err);
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): find_block() has set it */
	return r < 0 ? r : block_decode(KV_ARGS((*ret)), ret_block, err);
}

static int show_block(struct ctl *ctl, const struct block *block, bool lease, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL, *addresses = NULL;
	struct tree t;
	int r = lease ? 0 : addresses_read(ctl, block->node, block, &addresses, err);

	if (r < 0)
		return r;
	t = tree_new();
	block_row(block, lease, &t);
	if (addresses)
		tree_number(&t, "used", (int64_t)json_object_array_length(addresses));
	tree_share(&t, "addresses", addresses);
	r = tree_end(&t, &object);
	return r < 0 ? r : out_show(&ctl->out, object);
}

int block_show(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct ctl_kv *kv = NULL;
	int r = read_block(ctl, &kvs, &kv, &block, err);

	return r < 0 ? r : show_block(ctl, &block, false, err);
}

static int read_lease(struct ctl *ctl, struct ctl_kvs *kvs, const struct ctl_kv **ret,
		      struct block *ret_block, struct err *err)
{
	char text[PREFIX_TEXT];
	int r = read_block(ctl, kvs, ret, ret_block, err);

	if (r < 0 || ret_block->lease.public_ip.family)
		return r;
	return err_set(err, -ENOENT,
		       "%s is not a lease: node %s, which runs its own agent, owns it",
		       prefix_print(&ret_block->block, text), ret_block->node);
}

int lease_show(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct ctl_kv *kv = NULL;
	int r = read_lease(ctl, &kvs, &kv, &block, err);

	return r < 0 ? r : show_block(ctl, &block, true, err);
}

/* --- delete --------------------------------------------------------------------------------- */

static bool has_other(const struct ctl_kvs *kvs, const struct ctl_kv *kv, const char *holder)
{
	for (size_t i = 0; i < kvs->n; i++) {
		AUTO_DONE(block_done) struct block block = { 0 };

		if (&kvs->v[i] != kv &&
		    block_decode(kvs->v[i].key, kvs->v[i].value, kvs->v[i].value_len, &block,
				 NULL) == 0 &&
		    strcmp(block.node, holder) == 0)
			return true;
	}
	return false;
}

static int add(struct ctl *ctl, struct change_list *changes, const char *key, bool keep,
	       struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	int r = ctl_read_one(ctl, key, &kvs, err);

	if (r < 0 || !kvs.n)
		return r;
	/* Of the holder the record is put again, unless this was its last: whoever gets it another
	 * lease meanwhile compares it. */
	r = change_list_add(changes, NULL, key, keep ? strdup(kvs.v[0].value) : NULL,
			    kvs.v[0].mod_revision);
	return r;
}

/* Kept for its holder until no confirmation counts any more, which is no later than its end;
 * at once: it is free. */
static int add_block(struct change_list *changes, const struct ctl_kv *kv,
		     const struct block *block, bool at_once)
{
	struct block kept = *block;
	char until[TIME_TEXT], *value = NULL;
	int r;

	clock_utc_of(time(NULL) + LEASE_PROMISE_MAX, until);
	if (!at_once) {
		kept.lease.revoked = true;
		if (!kept.lease.expires[0] || strcmp(kept.lease.expires, until) > 0)
			memcpy(kept.lease.expires, until, sizeof(until));
		r = block_encode(&kept, &value);
		if (r < 0)
			return r;
	}
	return change_list_add(changes, NULL, kv->key, value, kv->mod_revision);
}

int lease_delete(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	AUTO_DONE(block_done) struct block block = { 0 };
	char node[KEY_TEXT], index[KEY_TEXT], text[PREFIX_TEXT];
	const struct ctl_kv *kv = NULL;
	char now[TIME_TEXT];
	bool at_once;
	int r = read_lease(ctl, &kvs, &kv, &block, err);

	if (r < 0)
		return r;
	prefix_print(&block.block, text);
	at_once = ctl->settings->now ||
		  (block.lease.expires[0] && strcmp(block.lease.expires, clock_utc_text(now)) < 0);
	fprintf(stderr, "%s is held by %s, %s%s; %s\n", text, block.node,
		block.lease.expires[0] ? "until " : "for ever", block.lease.expires,
		at_once ? "another client may get it at once"
			: "it stays reserved for this holder for at most an hour; use --now if the "
			  "machine is off");
	r = ctl_ask(ctl, "Delete it?", err);
	r = r < 0 ? r : key_node(node, block.node);
	r = r < 0 ? r : key_host_block(index, block.node, block.network, &block.block);
	r = r < 0 ? r : add_block(&changes, kv, &block, at_once);
	r = r < 0 || !at_once ? r : add(ctl, &changes, index, false, err);
	r = r < 0 || !at_once ? r : add(ctl, &changes, node, has_other(&kvs, kv, block.node), err);
	r = r < 0 ? r : change_write(ctl, changes.v, changes.n, NULL, err);
	return r < 0 ? r : out_done(&ctl->out, "lease", text, "deleted");
}
