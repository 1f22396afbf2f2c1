/* SPDX-License-Identifier: Apache-2.0 */
/* address list, show, release. */
#include <errno.h>
#include <string.h>

#include "ctl/addresses.h"
#include "ctl/frame/verbs.h"
#include "lib/base/json_out.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/model/model.h"

static void address_row(const struct address_record *a, struct tree *t)
{
	tree_address(t, "address", &a->address);
	tree_text(t, "network", a->network);
	tree_text(t, "node", a->node);
	tree_some_text(t, "namespace", a->namespace);
	tree_some_text(t, "pod", a->pod);
	tree_some_text(t, "pool", a->pool);
	tree_some_text(t, "interface", a->interface);
	tree_some_text(t, "container", a->container);
	tree_some_text(t, "link", a->link);
	tree_some_text(t, "netns", a->netns);
	tree_some_text(t, "assigned", a->assigned);
	if (a->reserved)
		tree_bool(t, "reserved", true);
}

static int address_list_row(const struct ctl_kv *kv, void *arg, struct json_object *array)
{
	AUTO_DONE(address_record_done) struct address_record a = { 0 };
	const struct block *block = arg;
	struct tree t;
	int r = address_record_decode(KV_ARGS(kv), &a, NULL);

	if (r < 0 || (block && (strcmp(a.network, block->network) != 0 ||
				!prefix_contains(&block->block, &a.address))))
		return r == -ENOMEM ? r : 0;
	t = tree_new();
	address_row(&a, &t);
	return tree_end_in(&t, array);
}

int addresses_read(struct ctl *ctl, const char *node, const struct block *block,
		   struct json_object **ret, struct err *err)
{
	char beginning[KEY_TEXT] = KEYS_HOST;

	if (node && keys_of_host_addresses(beginning, node) < 0)
		return node_name_check(node, err) ?: -EINVAL;
	return ctl_rows(ctl, beginning, address_list_row, (void *)(uintptr_t)block, ret, err);
}

/* A name that no record has is a typo, not a node without addresses. */
static int need_node(struct ctl *ctl, const char *node, struct err *err)
{
	static const char *const beginnings[] = { KEYS_NODE, KEYS_SPEC, KEYS_REMOVED };
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	char key[KEY_TEXT];
	int r = node_name_check(node, err);

	for (size_t i = 0; r == 0 && kvs.n == 0 && i < ARRAY_SIZE(beginnings); i++) {
		snprintf(key, sizeof(key), "%s%s", beginnings[i], node);
		r = ctl_read_one(ctl, key, &kvs, err);
	}
	if (r == 0 && kvs.n == 0 && keys_of_host(key, node) == 0)
		r = ctl_read(ctl, key, &kvs, err);
	if (r < 0 || kvs.n)
		return r;
	return err_set(err, -ENOENT, "there is no node %s: see roostctl node list", node);
}

static int address_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	int r = ctl->n_args ? need_node(ctl, ctl->args[0], err) : 0;

	return r < 0 ? r : addresses_read(ctl, ctl->n_args ? ctl->args[0] : NULL, NULL, ret, err);
}

static const struct out_column columns[] = {
	COLUMN("ADDRESS", "address"),
	COLUMN("NETWORK", "network"),
	COLUMN("NODE", "node"),
	COLUMN("NAMESPACE", "namespace"),
	COLUMN("POD", "pod"),
	COLUMN("POOL", "pool"),
	WIDE("INTERFACE", "interface"),
	WIDE("CONTAINER", "container"),
	WIDE("LINK", "link"),
	WIDE("ASSIGNED", "assigned"),
	COLUMNS_END,
};

const struct command_list address_list = {
	.read = address_list_read,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_HOST, NULL },
	.none = "No address is in use",
};

/* --- show ----------------------------------------------------------------------------------- */

/* The block that an address lies in, or none. */
static int block_of(struct ctl *ctl, const struct address *a, const char *network,
		    struct block *ret, bool *ret_found, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	int r = ctl_read(ctl, KEYS_BLOCK, &kvs, err);

	*ret_found = false;
	for (size_t i = 0; r == 0 && !*ret_found && i < kvs.n; i++) {
		struct key key;

		if (key_parse(kvs.v[i].key, &key) == 0 && prefix_contains(&key.block, a) &&
		    (!network || strcmp(key.network, network) == 0))
			*ret_found = block_decode(KV_ARGS(&kvs.v[i]), ret, NULL) == 0;
	}
	return r;
}

static int parse_address(const char *word, struct address *ret, struct err *err)
{
	char shown[SHOW_TEXT];

	if (address_parse(word, ret) == 0)
		return 0;
	return err_set(err, CTL_USAGE, "\"%s\" is not an address", text_show(word, shown));
}

/* The row of this address; NULL: nobody has it. */
static int find_row(struct ctl *ctl, const char *node, const struct address *a, const char *network,
		    struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *rows = NULL;
	char text[ADDRESS_TEXT];
	int r = addresses_read(ctl, node, NULL, &rows, err);

	*ret = NULL;
	address_print(a, text);
	for (size_t i = 0; r == 0 && !*ret && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (strcmp(out_text(row, "address"), text) == 0 &&
		    (!network || strcmp(out_text(row, "network"), network) == 0))
			*ret = json_object_get(row);
	}
	return r;
}

int address_show(struct ctl *ctl, struct err *err)
{
	const char *network = ctl->n_args > 1 ? ctl->args[1] : NULL;
	AUTO(json_put) struct json_object *row = NULL, *object = NULL;
	AUTO_DONE(block_done) struct block block = { 0 };
	struct address a;
	struct tree t;
	bool owned = false;
	int r = parse_address(ctl->args[0], &a, err);

	r = r < 0 ? r : block_of(ctl, &a, network, &block, &owned, err);
	r = r < 0 ? r : find_row(ctl, NULL, &a, network, &row, err);
	if (r < 0)
		return r;
	if (!row && !owned)
		return err_set(err, -ENOENT,
			       "%s is in use nowhere, and no node has a block with it: see "
			       "roostctl pool list",
			       ctl->args[0]);
	t = tree_new();
	tree_address(&t, "address", &a);
	tree_text(&t, "state", row ? "used" : "free");
	if (row && !t.failed)
		tree_merge(t.object, row);
	if (owned) {
		tree_prefix(&t, "block", &block.block);
		tree_text(&t, "blockOwner", block.node);
		if (!row) {
			tree_text(&t, "network", block.network);
			tree_text(&t, "pool", block.pool);
		}
	}
	r = tree_end(&t, &object);
	return r < 0 ? r : out_show(&ctl->out, object);
}

/* --- release -------------------------------------------------------------------------------- */

/* The agent's attachment that holds it; NULL: none of this node. Borrowed from list. */
static struct json_object *attachment_of(struct json_object *list, const char *address,
					 const char *network)
{
	struct json_object *all = out_at(list, "attachments");

	for (size_t i = 0; all && i < json_object_array_length(all); i++) {
		struct json_object *x = json_object_array_get_idx(all, i),
				   *held = out_at(x, "addresses");

		for (size_t j = 0; held && j < json_object_array_length(held); j++) {
			struct json_object *a = json_object_array_get_idx(held, j);

			if (strcmp(out_text(a, "address"), address) == 0 &&
			    (!network || strcmp(out_text(a, "network"), network) == 0))
				return x;
		}
	}
	return NULL;
}

/* Why it cannot be released from here. */
static int refuse_elsewhere(struct ctl *ctl, const struct address *a, const char *network,
			    struct err *err)
{
	AUTO(json_put) struct json_object *row = NULL;
	const char *node;
	int r = find_row(ctl, NULL, a, network, &row, err);

	if (r < 0)
		return r;
	if (!row)
		return err_set(err, -ENOENT, "%s is not in use", ctl->args[0]);
	node = out_text(row, "node");
	if (strcmp(node, ctl->settings->node) == 0)
		return err_set(err, -ENOENT,
			       "no attachment of the agent holds %s, and its key in etcd will be "
			       "deleted: see roostctl ipam check",
			       ctl->args[0]);
	return err_set(err, -EREMOTE, "%s is in use on node %s: run this command there",
		       ctl->args[0], node);
}

static int release_body(struct json_object *attachment, char **ret)
{
	static const char *const fields[] = { "network", "container", "interface" };
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		json_out_text(&out, fields[i], out_text(attachment, fields[i]));
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}

static void say_attachment(const char *address, struct json_object *x)
{
	const char *pod = out_text(x, "pod"), *space = out_text(x, "namespace");

	fprintf(stderr, "%s is held by ", address);
	if (pod && *pod)
		fprintf(stderr, "pod %s/%s, ", space ?: "", pod);
	fprintf(stderr, "container %s, interface %s; if it is running, it loses its network\n",
		out_text(x, "container"), out_text(x, "interface"));
}

int address_release(struct ctl *ctl, struct err *err)
{
	const char *network = ctl->n_args > 1 ? ctl->args[1] : NULL;
	AUTO(json_put) struct json_object *list = NULL, *reply = NULL;
	AUTO(free) char *body = NULL;
	struct json_object *attachment;
	char text[ADDRESS_TEXT];
	struct address a;
	int r = parse_address(ctl->args[0], &a, err);

	r = r < 0 ? r : ctl_agent(ctl, "GET", "/v1/ipam/list", NULL, NULL, &list, err);
	if (r < 0)
		return r;
	address_print(&a, text);
	attachment = attachment_of(list, text, network);
	if (!attachment)
		return refuse_elsewhere(ctl, &a, network, err);
	say_attachment(text, attachment);
	r = ctl_ask(ctl, "Release it?", err);
	if (r == 0 && release_body(attachment, &body) < 0)
		return -ENOMEM;
	if (r == 0 && !ctl->settings->dry_run)
		r = ctl_agent(ctl, "POST", "/v1/ipam/release", body, NULL, &reply, err);
	return r < 0 ? r : out_done(&ctl->out, "address", text, "released");
}
