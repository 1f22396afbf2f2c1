/* SPDX-License-Identifier: Apache-2.0 */
/* lease list, show, delete: blocks that the lease server gave away, as etcd has them. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/blocks.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/change.h"
#include "lib/base/clock.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/model/lease_holder.h"

static void lease_row(const struct block *block, struct tree *t)
{
	AUTO(json_put) struct json_object *data = NULL;
	char address[ADDRESS_TEXT];

	tree_prefix(t, "subnet", &block->block);
	tree_text(t, "network", block->network);
	tree_text(t, "publicIP", address_print(&block->lease.public_ip, address));
	tree_some_text(t, "backendType", block->lease.backend_type);
	if (block->lease.backend_data[0] &&
	    json_parse(block->lease.backend_data, strlen(block->lease.backend_data), &data, NULL) ==
		    0)
		tree_share(t, "backendData", data);
	tree_text(t, "expires", block->lease.expires[0] ? block->lease.expires : "never");
	tree_text(t, "state", block->lease.revoked ? "revoked" : "held");
	tree_text(t, "pool", block->pool);
	tree_text(t, "node", block->node);
	tree_some_text(t, "claimed", block->claimed);
}

static int lease_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	int r = ctl_read(ctl, KEYS_BLOCK, &kvs, err);

	if (r < 0)
		return r;
	for (size_t i = 0; array && r == 0 && i < kvs.n; i++) {
		AUTO_DONE(block_done) struct block block = { 0 };
		struct tree t;

		if (block_decode(kvs.v[i].key, kvs.v[i].value, kvs.v[i].value_len, &block, NULL) <
			    0 ||
		    !block.lease.public_ip.family ||
		    (ctl->n_args && strcmp(block.network, ctl->args[0]) != 0))
			continue;
		t = tree_new();
		lease_row(&block, &t);
		r = tree_end_in(&t, array);
	}
	if (!array || r < 0)
		return err_set(err, -ENOMEM, "out of memory");
	*ret = TAKE(array);
	return 0;
}

static const struct out_column columns[] = {
	COLUMN("SUBNET", "subnet"),      COLUMN("NETWORK", "network"),
	COLUMN("PUBLIC IP", "publicIP"), COLUMN("BACKEND", "backendType"),
	COLUMN("EXPIRES", "expires"),    COLUMN("STATE", "state"),
	WIDE("DATA", "backendData"),     WIDE("POOL", "pool"),
	WIDE("CLAIMED", "claimed"),      COLUMNS_END,
};

const struct command_list lease_list = {
	.read = lease_list_read,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_BLOCK, NULL },
	.none = "There are no leases: clients get them from roost-controller --lease-listen",
};

static int read_lease(struct ctl *ctl, struct ctl_kvs *kvs, const struct ctl_kv **ret,
		      struct block *ret_block, struct err *err)
{
	char text[PREFIX_TEXT];
	int r = ctl_read(ctl, KEYS_BLOCK, kvs, err);

	r = r < 0 ? r : ctl_find_block(ctl, kvs, ret, err);
	r = r < 0 ? r : block_decode((*ret)->key, (*ret)->value, (*ret)->value_len, ret_block, err);
	if (r < 0 || ret_block->lease.public_ip.family)
		return r;
	return err_set(err, -ENOENT,
		       "%s is no lease: it belongs to node %s, whose agent lives by "
		       "itself",
		       prefix_print(&ret_block->block, text), ret_block->node);
}

int lease_show(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct ctl_kv *kv = NULL;
	struct tree t;
	int r = read_lease(ctl, &kvs, &kv, &block, err);

	if (r < 0)
		return r;
	t = tree_new();
	lease_row(&block, &t);
	r = tree_end(&t, &object);
	return r < 0 ? err_set(err, r, "out of memory") : out_show(&ctl->out, object);
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
	return r < 0 ? err_set(err, r, "out of memory") : 0;
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
		at_once ? "another gets it at once"
			: "it is kept for an hour at most, so that this holder can ask for it "
			  "again; --now, if its machine is off");
	r = ctl_ask(ctl, "Delete it?", err);
	r = r < 0 ? r : key_node(node, block.node);
	r = r < 0 ? r : key_host_block(index, block.node, block.network, &block.block);
	r = r < 0 ? r : add_block(&changes, kv, &block, at_once);
	r = r < 0 || !at_once ? r : add(ctl, &changes, index, false, err);
	r = r < 0 || !at_once ? r : add(ctl, &changes, node, has_other(&kvs, kv, block.node), err);
	r = r < 0 ? r : change_write(ctl, changes.v, changes.n, NULL, err);
	return r < 0 ? r : out_done(&ctl->out, "lease", text, "deleted");
}
