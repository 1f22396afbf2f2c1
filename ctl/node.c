/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node list, show, label, drain, undrain, delete.
 *
 * All that etcd has of nodes is read together. Labels and the drain are changes of spec/<node>;
 * delete writes removed/<node>, and the controller frees what the node holds.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ctl/frame/note.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/effect.h"
#include "lib/base/clock.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/model/lease_holder.h"
#include "lib/model/model.h"

struct nodes {
	struct ctl_kvs nodes, specs, removed, status, blocks;
	struct json_object *held; /* node -> number of its blocks: there are many of both */
};

static void nodes_done(struct nodes *n)
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

		if (block_decode(KV_ARGS(kv), &block, NULL) < 0)
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

static int nodes_read(struct ctl *ctl, const char *node, struct nodes *ret, struct err *err)
{
	int r = node ? node_name_check(node, err) : 0;

	r = r < 0 ? r : read_some(ctl, KEYS_NODE, node, &ret->nodes, err);
	r = r < 0 ? r : read_some(ctl, KEYS_SPEC, node, &ret->specs, err);
	r = r < 0 ? r : read_some(ctl, KEYS_REMOVED, node, &ret->removed, err);
	r = r < 0 ? r : read_some(ctl, KEYS_STATUS_NODE, node, &ret->status, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_BLOCK, &ret->blocks, err);
	if (r == 0 && count_blocks(ret) < 0)
		return -ENOMEM;
	return r;
}

static const struct ctl_kv *find(const struct ctl_kvs *kvs, const char *beginning, const char *node)
{
	char key[KEY_TEXT];

	snprintf(key, sizeof(key), "%s%s", beginning, node);
	return ctl_find(kvs, key);
}

static struct json_object *nodes_object(const struct ctl_kvs *kvs, const char *beginning,
					const char *node)
{
	const struct ctl_kv *kv = find(kvs, beginning, node);
	struct json_object *object = NULL;

	return kv && json_parse(kv->value, kv->value_len, &object, NULL) == 0 ? object : NULL;
}

static size_t nodes_count_blocks(const struct nodes *n, const char *node)
{
	struct json_object *count = NULL;

	json_object_object_get_ex(n->held, node, &count);
	return (size_t)json_object_get_int64(count);
}

static int nodes_count_addresses(struct ctl *ctl, const char *node, size_t *ret, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	char beginning[KEY_TEXT];
	int r = keys_of_host_addresses(beginning, node);

	if (r < 0)
		return err_set(err, r, "\"%s\" is not a valid node name", node);
	r = ctl_read(ctl, beginning, &kvs, err);
	*ret = kvs.n;
	return r;
}

static int nodes_need(const struct nodes *n, const char *node, struct err *err)
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
	const struct address *addresses[] = { &vtep->ipv4, &vtep->ipv6 };
	char text[32 + 2 * ADDRESS_TEXT], address[ADDRESS_TEXT];
	size_t n = MAC_TEXT - 1;

	if (!mac_is_of_device(&vtep->mac))
		return;
	mac_print(&vtep->mac, text);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		if (addresses[i]->family)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s",
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
	if (node_decode(KV_ARGS(kv), &record, &err) < 0) {
		tree_text(t, "problem", err.text);
		return;
	}
	tree_prefix(t, "ipv4", &record.ipv4);
	tree_prefix(t, "ipv6", &record.ipv6);
	add_tunnel(&record.vtep, t);
	tree_some_text(t, "version", record.agent.version);
	tree_some_text(t, "started", record.agent.started);
}

static void add_problems(struct json_object *status, struct tree *t)
{
	struct json_object *health = out_at(status, "health");
	bool array = json_object_is_type(health, json_type_array);

	tree_number(t, "problems", array ? (int64_t)json_object_array_length(health) : 0);
	if (!array)
		return;
	tree_open(t, "parts", '[');
	for (size_t i = 0; i < json_object_array_length(health); i++)
		tree_text(t, NULL, out_text(json_object_array_get_idx(health, i), "part"));
	tree_close(t);
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

static int nodes_row(struct ctl *ctl, const struct nodes *n, const char *node,
		     struct json_object **ret, struct err *err)
{
	AUTO(json_put)
	struct json_object *status = nodes_object(&n->status, KEYS_STATUS_NODE, node);
	AUTO(json_put) struct json_object *spec = nodes_object(&n->specs, KEYS_SPEC, node);
	bool alive = find(&n->status, KEYS_STATUS_NODE, node),
	     drained = json_object_get_boolean(out_at(spec, "drain")),
	     removed = find(&n->removed, KEYS_REMOVED, node);
	struct tree t = tree_new();
	size_t used = (size_t)out_number(status, "total.used");
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
		return -ENOMEM;
	if (r < 0) {
		json_object_put(*ret);
		*ret = NULL;
	}
	return r;
}

/* --- list ----------------------------------------------------------------------------------- */

/* Adds the names of these keys: each once. */
static int add_names(const struct ctl_kvs *kvs, const char *beginning, struct json_object *names)
{
	for (size_t i = 0; i < kvs->n; i++)
		if (json_object_object_add(names, kvs->v[i].key + strlen(beginning), NULL) < 0)
			return -ENOMEM;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	struct json_object *const *x = a, *const *y = b;

	return strcmp(out_text(*x, "name"), out_text(*y, "name"));
}

static int node_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put)
	struct json_object *array = json_object_new_array(), *names = json_object_new_object();
	AUTO_DONE(nodes_done) struct nodes nodes = { 0 };
	int r = nodes_read(ctl, NULL, &nodes, err);

	if (r < 0)
		return r;
	if (!array || !names || add_names(&nodes.nodes, KEYS_NODE, names) < 0 ||
	    add_names(&nodes.specs, KEYS_SPEC, names) < 0 ||
	    add_names(&nodes.removed, KEYS_REMOVED, names) < 0)
		return -ENOMEM;
	json_object_object_foreach(names, name, unused) {
		struct json_object *row = NULL;

		r = nodes_row(ctl, &nodes, name, &row, err);
		if (r < 0)
			return r;
		if (json_object_array_add(array, row) < 0) {
			json_object_put(row);
			return -ENOMEM;
		}
	}
	json_object_array_sort(array, by_name);
	*ret = TAKE(array);
	return 0;
}

static const struct out_column columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("STATE", "state"),
	COLUMN("IPV4", "ipv4"),
	COLUMN("IPV6", "ipv6"),
	COLUMN("VERSION", "version"),
	COLUMN("BLOCKS", "blocks"),
	COLUMN("USED", "used"),
	COLUMN("SESSIONS", "sessions"),
	COLUMN("UP", "established"),
	COLUMN("PROBLEMS", "problems"),
	WIDE("PARTS", "parts"),
	WIDE("STARTED", "started"),
	WIDE("ASN", "asn"),
	WIDE("LABELS", "labels"),
	COLUMNS_END,
};

const struct command_list node_list = {
	.read = node_list_read,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_NODE, KEYS_SPEC, KEYS_REMOVED, KEYS_STATUS,
					  KEYS_BLOCK, NULL },
	.none = "There are no nodes: no agent has registered with this etcd and prefix",
};

/* --- show ----------------------------------------------------------------------------------- */

static void add_blocks(const struct nodes *n, const char *node, struct tree *t)
{
	tree_open(t, "ownedBlocks", '[');
	for (size_t i = 0; i < n->blocks.n; i++) {
		AUTO_DONE(block_done) struct block block = { 0 };

		if (block_decode(KV_ARGS(&n->blocks.v[i]), &block, NULL) < 0 ||
		    strcmp(block.node, node) != 0)
			continue;
		tree_open(t, NULL, '{');
		tree_prefix(t, "block", &block.block);
		tree_text(t, "network", block.network);
		tree_text(t, "pool", block.pool);
		tree_close(t);
	}
	tree_close(t);
}

int node_show(struct ctl *ctl, struct err *err)
{
	AUTO(json_put)
	struct json_object *row = NULL, *all = NULL, *status = NULL, *removed = NULL,
			   *record = NULL, *spec = NULL;
	AUTO_DONE(nodes_done) struct nodes nodes = { 0 };
	const char *node = ctl->args[0];
	struct tree t;
	int r = nodes_read(ctl, node, &nodes, err);

	r = r < 0 ? r : nodes_need(&nodes, node, err);
	r = r < 0 ? r : nodes_row(ctl, &nodes, node, &row, err);
	if (r < 0)
		return r;
	/* In the row these are counts; here they are shown whole. */
	json_object_object_del(row, "problems");
	json_object_object_del(row, "parts");
	json_object_object_del(row, "sessions");
	json_object_object_del(row, "established");
	record = nodes_object(&nodes.nodes, KEYS_NODE, node);
	spec = nodes_object(&nodes.specs, KEYS_SPEC, node);
	status = nodes_object(&nodes.status, KEYS_STATUS_NODE, node);
	removed = nodes_object(&nodes.removed, KEYS_REMOVED, node);
	t = tree_new();
	if (!t.failed)
		tree_merge(t.object, row);
	tree_share(&t, "machine", out_at(record, "machine"));
	tree_share(&t, "boot", out_at(record, "boot"));
	tree_share(&t, "spec", spec);
	tree_share(&t, "removal", removed);
	add_blocks(&nodes, node, &t);
	tree_share(&t, "status", status);
	r = tree_end(&t, &all);
	return r < 0 ? r : out_show(&ctl->out, all);
}

/* --- spec ----------------------------------------------------------------------------------- */

/*
 * Reads spec/<node>, lets fn change its object, checks it and writes it back if it differs; again
 * when another writer was faster, whose changes stay. 0: written, 1: nothing differs.
 */
typedef int spec_fn(struct json_object *spec, void *arg, struct err *err);
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
	if (r == 0)
		r = json_parse(kvs.n ? kvs.v[0].value : "{}", kvs.n ? kvs.v[0].value_len : 2, &spec,
			       err);
	if (r < 0)
		return err_wrap(err, r, "%s", key);
	r = fn(spec, arg, err);
	if (r < 0 || json_object_equal(old, spec))
		return r < 0 ? r : 1;
	r = json_print(spec, &value);
	if (r == 0)
		r = change_list_add(&changes, kind_find("spec"), key, value,
				    kvs.n ? kvs.v[0].mod_revision : 0);
	if (r < 0)
		return r;
	r = change_check(changes.v, changes.n, &no_world, err);
	r = r < 0 ? r : effect_consent(ctl, changes.v, changes.n, NULL, NULL, err);
	return r < 0 ? r : change_write(ctl, changes.v, changes.n, NULL, err);
}

static int spec_update(struct ctl *ctl, const char *node, spec_fn *fn, void *arg, struct err *err)
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

/* --- label, drain --------------------------------------------------------------------------- */

static int label_one(struct json_object *labels, const char *word, struct err *err)
{
	size_t len = strcspn(word, "="), n = strlen(word);
	AUTO(free) char *key = strndup(word, word[len] ? len : n - (n > 0));
	char shown[SHOW_TEXT];

	if (!key)
		return -ENOMEM;
	if (word[len]) {
		json_object_object_add(labels, key, json_object_new_string(word + len + 1));
		return 0;
	}
	if (n < 2 || word[n - 1] != '-')
		return err_set(err, CTL_USAGE,
			       "\"%s\" is neither KEY=VALUE nor KEY-, which removes a label",
			       text_show(word, shown));
	json_object_object_del(labels, key);
	return 0;
}

static int label_all(struct json_object *spec, void *arg, struct err *err)
{
	const struct ctl *ctl = arg;
	struct json_object *labels = out_at(spec, "labels");
	int r = 0;

	if (!json_object_is_type(labels, json_type_object)) {
		labels = json_object_new_object();
		if (!labels || json_object_object_add(spec, "labels", labels) < 0)
			return -ENOMEM;
	}
	for (size_t i = 1; r == 0 && i < ctl->n_args; i++)
		r = label_one(labels, ctl->args[i], err);
	if (json_object_object_length(labels) == 0)
		json_object_object_del(spec, "labels");
	return r;
}

int node_label(struct ctl *ctl, struct err *err)
{
	int r = spec_update(ctl, ctl->args[0], label_all, ctl, err);

	return r < 0 ? r : out_done(&ctl->out, "node", ctl->args[0], r ? "unchanged" : "labelled");
}

static int set_drain(struct json_object *spec, void *arg, struct err *err)
{
	const bool *drain = arg;

	if (*drain)
		json_object_object_add(spec, "drain", json_object_new_boolean(true));
	else
		json_object_object_del(spec, "drain");
	return 0;
}

static int drain(struct ctl *ctl, bool yes, struct err *err)
{
	int r = spec_update(ctl, ctl->args[0], set_drain, &yes, err);

	return r < 0 ? r
		     : out_done(&ctl->out, "node", ctl->args[0],
				r     ? "unchanged"
				: yes ? "drained"
				      : "undrained");
}

int node_drain(struct ctl *ctl, struct err *err)
{
	return drain(ctl, true, err);
}

int node_undrain(struct ctl *ctl, struct err *err)
{
	return drain(ctl, false, err);
}

/* --- delete --------------------------------------------------------------------------------- */

static int removed_text(const char *node, bool now, char **ret, struct err *err)
{
	char by[512]; /* too long a one is refused below */
	struct node_removed removed = { .node = node, .by = by, .now = now };

	note_who(by, sizeof(by));
	if (word_check(by, err) < 0)
		removed.by = "roostctl";
	clock_utc_text(removed.when);
	return node_removed_encode(&removed, ret) < 0 ? -ENOMEM : 0;
}

static int say_held(struct ctl *ctl, const struct nodes *n, const char *node, bool alive,
		    struct err *err)
{
	size_t blocks = nodes_count_blocks(n, node), addresses = 0;
	int r = nodes_count_addresses(ctl, node, &addresses, err);

	if (r < 0)
		return r;
	fprintf(stderr, "node %s: %zu %s, %zu %s in use; its agent %s\n", node, blocks,
		blocks == 1 ? "block" : "blocks", addresses,
		addresses == 1 ? "address" : "addresses",
		alive ? "is alive, so its blocks stay until it has been silent for the "
			"reclaimAfter of its record"
		      : "is silent");
	return 0;
}

int node_delete(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	AUTO_DONE(nodes_done) struct nodes nodes = { 0 };
	AUTO(json_put) struct json_object *status = NULL;
	const char *node = ctl->args[0];
	const struct ctl_kv *kv = NULL;
	char key[KEY_TEXT], *value = NULL;
	int r = nodes_read(ctl, node, &nodes, err);

	r = r < 0 ? r : nodes_need(&nodes, node, err);
	r = r < 0 ? r : key_removed(key, node);
	if (r < 0)
		return r;
	status = nodes_object(&nodes.status, KEYS_STATUS_NODE, node);
	if (status && ctl->settings->now)
		return err_set(err, -EBUSY,
			       "node %s is alive, so its machine is not off: stop its agent first, "
			       "or omit --now",
			       node);
	r = say_held(ctl, &nodes, node, status, err);
	r = r < 0 ? r : removed_text(node, ctl->settings->now, &value, err);
	if (r < 0)
		return r;
	kv = ctl_find(&nodes.removed, key);
	if (change_list_add(&changes, kind_find("removed"), key, value, kv ? kv->mod_revision : 0) <
	    0)
		return -ENOMEM;
	r = effect_consent(ctl, changes.v, changes.n, NULL, "Remove it?", err);
	r = r < 0 ? r : change_write(ctl, changes.v, changes.n, NULL, err);
	return r < 0 ? r : out_done(&ctl->out, "node", node, "removed");
}

/* --- restore -------------------------------------------------------------------------------- */

/* What the controller, or another machine, has done since. */
static int say_left(struct ctl *ctl, const struct nodes *n, const char *node, struct err *err)
{
	size_t blocks = nodes_count_blocks(n, node), addresses = 0;
	int r = nodes_count_addresses(ctl, node, &addresses, err);

	if (r < 0)
		return r;
	if (find(&n->nodes, KEYS_NODE, node))
		fprintf(stderr, "node %s: its record, %zu %s and %zu %s in use are still there\n",
			node, blocks, blocks == 1 ? "block" : "blocks", addresses,
			addresses == 1 ? "address" : "addresses");
	else
		fprintf(stderr,
			"node %s: its record is gone already, %zu %s and %zu %s in use are still "
			"there; its agent registers again and claims new blocks\n",
			node, blocks, blocks == 1 ? "block" : "blocks", addresses,
			addresses == 1 ? "address" : "addresses");
	return 0;
}

int node_restore(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	AUTO_DONE(nodes_done) struct nodes nodes = { 0 };
	const char *node = ctl->args[0];
	const struct ctl_kv *kv;
	int r = nodes_read(ctl, node, &nodes, err);

	r = r < 0 ? r : nodes_need(&nodes, node, err);
	if (r < 0)
		return r;
	kv = find(&nodes.removed, KEYS_REMOVED, node);
	if (!kv)
		return out_done(&ctl->out, "node", node, "unchanged");
	r = say_left(ctl, &nodes, node, err);
	if (r == 0 &&
	    change_list_add(&changes, kind_find("removed"), kv->key, NULL, kv->mod_revision) < 0)
		return -ENOMEM;
	r = r < 0 ? r : change_write(ctl, changes.v, changes.n, NULL, err);
	return r < 0 ? r : out_done(&ctl->out, "node", node, "restored");
}
