/* SPDX-License-Identifier: Apache-2.0 */
/* node list, show, label, drain, undrain, delete. */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "ctl/frame/verbs.h"
#include "ctl/nodes.h"
#include "ctl/records/change.h"
#include "lib/base/clock.h"
#include "lib/json/tree.h"
#include "lib/model/model.h"

/* --- list ----------------------------------------------------------------------------------- */

/* Every name that is known, sorted, once. */
static int names_of(const struct nodes *n, struct json_object *names)
{
	const struct {
		const struct ctl_kvs *kvs;
		const char *beginning;
	} from[] = { { &n->nodes, KEYS_NODE },
		     { &n->specs, KEYS_SPEC },
		     { &n->removed, KEYS_REMOVED } };

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		for (size_t j = 0; j < from[i].kvs->n; j++) {
			const char *name = from[i].kvs->v[j].key + strlen(from[i].beginning);

			if (json_object_object_add(names, name, NULL) < 0)
				return -ENOMEM;
		}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	struct json_object *const *x = a, *const *y = b;

	return strcmp(json_object_get_string(out_at(*x, "name")),
		      json_object_get_string(out_at(*y, "name")));
}

static int node_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put)
	struct json_object *array = json_object_new_array(), *names = json_object_new_object();
	AUTO_DONE(nodes_done) struct nodes nodes = { 0 };
	int r = nodes_read(ctl, NULL, &nodes, err);

	if (r < 0)
		return r;
	if (!array || !names || names_of(&nodes, names) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	json_object_object_foreach(names, name, unused) {
		struct json_object *row = NULL;

		r = nodes_row(ctl, &nodes, name, &row, err);
		if (r < 0)
			return r;
		if (json_object_array_add(array, row) < 0) {
			json_object_put(row);
			return err_set(err, -ENOMEM, "out of memory");
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
	.none = "There are no nodes: none has ever started an agent with this etcd and prefix",
};

/* --- show ----------------------------------------------------------------------------------- */

static void add_blocks(const struct nodes *n, const char *node, struct tree *t)
{
	struct json_object *array = json_object_new_array();
	int r = array ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n->blocks.n; i++) {
		const struct ctl_kv *kv = &n->blocks.v[i];
		AUTO_DONE(block_done) struct block block = { 0 };
		struct err ignored;
		struct tree row;

		if (block_decode(kv->key, kv->value, kv->value_len, &block, &ignored) < 0 ||
		    strcmp(block.node, node) != 0)
			continue;
		row = tree_new();
		tree_prefix(&row, "block", &block.block);
		tree_text(&row, "network", block.network);
		tree_text(&row, "pool", block.pool);
		r = tree_end_in(&row, array);
	}
	t->failed = t->failed || r < 0;
	tree_add(t, "ownedBlocks", array);
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
	status = nodes_object(&nodes.status, KEYS_STATUS "node/", node);
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
	return r < 0 ? err_set(err, r, "out of memory") : out_show(&ctl->out, all);
}

/* --- label, drain --------------------------------------------------------------------------- */

static int label_one(struct json_object *labels, const char *word, struct err *err)
{
	size_t len = strcspn(word, "="), n = strlen(word);
	AUTO(free) char *key = strndup(word, word[len] ? len : n - (n > 0));
	char shown[SHOW_TEXT];

	if (!key)
		return err_set(err, -ENOMEM, "out of memory");
	if (word[len]) {
		json_object_object_add(labels, key, json_object_new_string(word + len + 1));
		return 0;
	}
	if (n < 2 || word[n - 1] != '-')
		return err_set(err, CTL_USAGE,
			       "\"%s\" is neither KEY=VALUE nor KEY-, which takes a label away",
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
			return err_set(err, -ENOMEM, "out of memory");
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

static void who(char *text, size_t size)
{
	const struct passwd *user = getpwuid(getuid());
	const char *sudo = getenv("SUDO_USER");
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(text, size, "%s@%s",
		 sudo && *sudo ? sudo
		 : user        ? user->pw_name
			       : "unknown",
		 host);
}

static int removed_text(const char *node, bool now, char **ret, struct err *err)
{
	char by[512]; /* too long a one is refused below */
	struct node_removed removed = { .node = node, .by = by, .now = now };

	who(by, sizeof(by));
	if (word_check(by, err) < 0)
		removed.by = "roostctl";
	clock_utc_text(removed.when);
	return node_removed_encode(&removed, ret) < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
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
	status = nodes_object(&nodes.status, KEYS_STATUS "node/", node);
	if (status && ctl->settings->now)
		return err_set(
			err, -EBUSY,
			"node %s is alive, so its machine is not off: stop its agent first, or "
			"leave out --now",
			node);
	r = say_held(ctl, &nodes, node, status, err);
	r = r < 0 ? r : ctl_ask(ctl, "Remove it?", err);
	r = r < 0 ? r : removed_text(node, ctl->settings->now, &value, err);
	if (r < 0)
		return r;
	kv = ctl_find(&nodes.removed, key);
	if (change_list_add(&changes, kind_find("removed"), key, value, kv ? kv->mod_revision : 0) <
	    0)
		return err_set(err, -ENOMEM, "out of memory");
	r = change_write(ctl, changes.v, changes.n, NULL, err);
	return r < 0 ? r : out_done(&ctl->out, "node", node, "removed");
}
