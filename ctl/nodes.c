/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/nodes.h"

#include <errno.h>
#include <string.h>

#include "ctl/records/change.h"
#include "lib/json/tree.h"
#include "lib/model/lease_holder.h"

#define KEYS_STATUS_NODE KEYS_STATUS "node/"

void nodes_done(struct nodes *n)
{
	ctl_kvs_done(&n->nodes);
	ctl_kvs_done(&n->specs);
	ctl_kvs_done(&n->removed);
	ctl_kvs_done(&n->status);
	ctl_kvs_done(&n->blocks);
	json_object_put(n->held);
}

/* How many blocks each node has, by one walk. */
static int count_blocks(struct nodes *n)
{
	n->held = json_object_new_object();
	for (size_t i = 0; n->held && i < n->blocks.n; i++) {
		const struct ctl_kv *kv = &n->blocks.v[i];
		AUTO_DONE(block_done) struct block block = { 0 };
		struct json_object *count = NULL;
		struct err ignored;

		if (block_decode(kv->key, kv->value, kv->value_len, &block, &ignored) < 0)
			continue;
		if (json_object_object_get_ex(n->held, block.node, &count))
			json_object_int_inc(count, 1);
		else
			json_object_object_add(n->held, block.node, json_object_new_int64(1));
	}
	return n->held ? 0 : -ENOMEM;
}

static int read_some(struct ctl *ctl, const char *beginning, const char *node, struct ctl_kvs *ret,
		     struct err *err)
{
	char key[KEY_TEXT];

	if (!node)
		return ctl_read(ctl, beginning, ret, err);
	snprintf(key, sizeof(key), "%s%s", beginning, node);
	return ctl_read_one(ctl, key, ret, err);
}

int nodes_read(struct ctl *ctl, const char *node, struct nodes *ret, struct err *err)
{
	int r = node ? node_name_check(node, err) : 0;

	r = r < 0 ? r : read_some(ctl, KEYS_NODE, node, &ret->nodes, err);
	r = r < 0 ? r : read_some(ctl, KEYS_SPEC, node, &ret->specs, err);
	r = r < 0 ? r : read_some(ctl, KEYS_REMOVED, node, &ret->removed, err);
	r = r < 0 ? r : read_some(ctl, KEYS_STATUS_NODE, node, &ret->status, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_BLOCK, &ret->blocks, err);
	if (r == 0 && count_blocks(ret) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return r;
}

static const struct ctl_kv *find(const struct ctl_kvs *kvs, const char *beginning, const char *node)
{
	char key[KEY_TEXT];

	snprintf(key, sizeof(key), "%s%s", beginning, node);
	return ctl_find(kvs, key);
}

struct json_object *nodes_object(const struct ctl_kvs *kvs, const char *beginning, const char *node)
{
	const struct ctl_kv *kv = find(kvs, beginning, node);
	struct json_object *object = NULL;
	struct err ignored;

	return kv && json_parse(kv->value, kv->value_len, &object, &ignored) == 0 ? object : NULL;
}

size_t nodes_count_blocks(const struct nodes *n, const char *node)
{
	struct json_object *count = NULL;

	json_object_object_get_ex(n->held, node, &count);
	return (size_t)json_object_get_int64(count);
}

int nodes_count_addresses(struct ctl *ctl, const char *node, size_t *ret, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	char beginning[KEY_TEXT];
	int r = keys_of_host_addresses(beginning, node);

	if (r < 0)
		return err_set(err, r, "\"%s\" is no node's name", node);
	r = ctl_read(ctl, beginning, &kvs, err);
	*ret = kvs.n;
	return r;
}

int nodes_need(const struct nodes *n, const char *node, struct err *err)
{
	if (find(&n->nodes, KEYS_NODE, node) || find(&n->specs, KEYS_SPEC, node) ||
	    find(&n->removed, KEYS_REMOVED, node) || nodes_count_blocks(n, node))
		return 0;
	return err_set(err, -ENOENT, "there is no node %s: see roostctl node list", node);
}

/* --- a row ---------------------------------------------------------------------------------- */

/* Where the overlay ends on that node: "ae:ce:09:56:5a:88 10.1.0.0 fd10:1::". */
static void add_tunnel(const struct node_vtep *vtep, struct tree *t)
{
	static const struct mac none;
	const struct address *addresses[] = { &vtep->ipv4, &vtep->ipv6 };
	const uint8_t *m = vtep->mac.bytes;
	char text[32 + 2 * ADDRESS_TEXT], address[ADDRESS_TEXT];
	int n;

	if (memcmp(&vtep->mac, &none, sizeof(none)) == 0)
		return;
	n = snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3],
		     m[4], m[5]);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		if (addresses[i]->family)
			n += snprintf(text + n, sizeof(text) - (size_t)n, " %s",
				      address_print(addresses[i], address));
	tree_text(t, "tunnel", text);
}

static void add_record(const struct nodes *n, const char *node, struct tree *t)
{
	const struct ctl_kv *kv = find(&n->nodes, KEYS_NODE, node);
	AUTO_DONE(node_done) struct node record = { 0 };
	struct err err = { "" };

	if (!kv)
		return;
	if (node_decode(kv->key, kv->value, kv->value_len, &record, &err) < 0) {
		tree_text(t, "problem", err.text);
		return;
	}
	tree_prefix(t, "ipv4", &record.ipv4);
	tree_prefix(t, "ipv6", &record.ipv6);
	add_tunnel(&record.vtep, t);
	tree_some_text(t, "version", record.agent.version);
	tree_some_text(t, "started", record.agent.started);
}

/* "ok", or an array. */
static void add_problems(struct json_object *status, struct tree *t)
{
	struct json_object *health = out_at(status, "health"), *parts = NULL;

	if (!json_object_is_type(health, json_type_array)) {
		tree_number(t, "problems", 0);
		return;
	}
	tree_number(t, "problems", (int64_t)json_object_array_length(health));
	parts = json_object_new_array();
	for (size_t i = 0; parts && i < json_object_array_length(health); i++)
		json_object_array_add(
			parts,
			json_object_get(out_at(json_object_array_get_idx(health, i), "part")));
	tree_add(t, "parts", parts);
}

static const char *state_of(const char *node, bool alive, bool drained, bool removed,
			    bool registered)
{
	return removed                           ? "removed"
	       : lease_holder_is(node) && !alive ? "lease"
	       : !alive                          ? registered ? "silent" : "unregistered"
	       : drained                         ? "drained"
						 : "alive";
}

int nodes_row(struct ctl *ctl, const struct nodes *n, const char *node, struct json_object **ret,
	      struct err *err)
{
	AUTO(json_put)
	struct json_object *status = nodes_object(&n->status, KEYS_STATUS_NODE, node);
	AUTO(json_put) struct json_object *spec = nodes_object(&n->specs, KEYS_SPEC, node);
	bool alive = find(&n->status, KEYS_STATUS_NODE, node),
	     drained = json_object_get_boolean(out_at(spec, "drain")),
	     removed = find(&n->removed, KEYS_REMOVED, node);
	struct tree t = tree_new();
	size_t used = (size_t)json_object_get_int64(out_at(status, "total.used"));
	int r = 0;

	/* What nobody tells is counted. */
	if (!alive)
		r = nodes_count_addresses(ctl, node, &used, err);
	tree_text(&t, "name", node);
	tree_text(&t, "state",
		  state_of(node, alive, drained, removed, find(&n->nodes, KEYS_NODE, node)));
	tree_bool(&t, "alive", alive);
	tree_bool(&t, "drained", drained);
	tree_bool(&t, "removed", removed);
	add_record(n, node, &t);
	tree_number(&t, "blocks", (int64_t)nodes_count_blocks(n, node));
	tree_number(&t, "used", (int64_t)used);
	if (alive)
		add_problems(status, &t);
	tree_share(&t, "sessions", out_at(status, "bird.sessions"));
	tree_share(&t, "established", out_at(status, "bird.established"));
	tree_share(&t, "labels", out_at(spec, "labels"));
	tree_share(&t, "asn", out_at(spec, "asn"));
	if (tree_end(&t, ret) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	if (r < 0) {
		json_object_put(*ret);
		*ret = NULL;
	}
	return r;
}

/* --- spec ----------------------------------------------------------------------------------- */

static int spec_once(struct ctl *ctl, const char *key, spec_fn *fn, void *arg, struct err *err)
{
	AUTO(json_put) struct json_object *spec = NULL, *old = NULL;
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	const struct world no_world = { 0 };
	char *value = NULL;
	int r = ctl_read_one(ctl, key, &kvs, err);

	if (r < 0)
		return r;
	r = json_parse(kvs.n ? kvs.v[0].value : "{}", kvs.n ? kvs.v[0].value_len : 2, &old, err);
	r = r
		    ?: json_parse(kvs.n ? kvs.v[0].value : "{}", kvs.n ? kvs.v[0].value_len : 2,
				  &spec, err);
	if (r < 0)
		return err_wrap(err, r, "%s", key);
	r = fn(spec, arg, err);
	if (r < 0 || json_object_equal(old, spec))
		return r < 0 ? r : 1;
	r = json_print(spec, &value);
	r = r
		    ?: change_list_add(&changes, kind_find("spec"), key, value,
				       kvs.n ? kvs.v[0].mod_revision : 0);
	if (r < 0)
		return err_set(err, r, "out of memory");
	r = change_check(changes.v, changes.n, &no_world, err);
	return r < 0 ? r : change_write(ctl, changes.v, changes.n, NULL, err);
}

int spec_update(struct ctl *ctl, const char *node, spec_fn *fn, void *arg, struct err *err)
{
	AUTO_DONE(nodes_done) struct nodes nodes = { 0 };
	char key[KEY_TEXT];
	int r = nodes_read(ctl, node, &nodes, err);

	r = r < 0 ? r : nodes_need(&nodes, node, err);
	r = r < 0 ? r : key_spec(key, node);
	if (r < 0)
		return r;
	for (int i = 0; i < CHANGE_TRIES; i++) {
		r = spec_once(ctl, key, fn, arg, err);
		if (r != -EBUSY)
			break;
	}
	return r;
}
