/* SPDX-License-Identifier: Apache-2.0 */
/* peer list, filter list. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/verbs.h"
#include "ctl/records/record_verbs.h"

/* A row for the record; NULL for a key of another kind. *ret is borrowed. */
static int add_row(const char *noun, const struct ctl_kv *kv, struct json_object *array,
		   struct json_object **ret)
{
	const struct kind *kind = kind_find(noun);
	int r = 0;

	*ret = NULL;
	if (kind_name(kind, kv->key) && (r = record_row(kind, kv, array)) == 0)
		*ret = json_object_array_get_idx(array, json_object_array_length(array) - 1);
	return r;
}

static void copy(struct json_object *row, const char *name, const char *from)
{
	struct json_object *value = out_at(row, from);

	if (value && !(json_object_is_type(value, json_type_string) &&
		       json_object_get_string_len(value) == 0))
		json_object_object_add(row, name, json_object_get(value));
}

/* --- peers ---------------------------------------------------------------------------------- */

static int peer_row(const struct ctl_kv *kv, void *arg, struct json_object *array)
{
	struct json_object *row, *nodes;
	int r = add_row("peer", kv, array, &row);

	if (!row)
		return r;
	nodes = out_at(row, "nodes");
	copy(row, "neighbour", "peerSelector");
	copy(row, "neighbour", "address");
	copy(row, "onNodes", "nodeSelector");
	if (nodes && json_object_array_length(nodes))
		copy(row, "onNodes", "nodes");
	else if (!out_at(row, "onNodes") && nodes)
		json_object_object_add(row, "onNodes", json_object_new_string("all"));
	return 0;
}

/* Sessions of one peer record, over all nodes that have reported. */
struct peer_use {
	const char *record; /* "peer/tor" */
	int64_t n, up, left_out;
	const char *down, *why; /* the first that is not up: its node's words */
};

static void count_sessions(struct json_object *status, struct peer_use *use)
{
	struct json_object *all = out_at(status, "sessions");
	size_t n = json_object_is_type(all, json_type_array) ? json_object_array_length(all) : 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *s = json_object_array_get_idx(all, i);
		bool up = strcmp(out_text(s, "state"), "Established") == 0;

		if (strcmp(out_text(s, "record"), use->record) != 0)
			continue;
		use->n++;
		use->up += up;
		use->down = up || use->down ? use->down : out_text(status, "node");
	}
}

/* A node leaves a session out that it cannot make safely; the reason is in its health. */
static void count_left_out(struct json_object *status, struct peer_use *use)
{
	struct json_object *all = out_at(status, "health");
	size_t n = json_object_is_type(all, json_type_array) ? json_object_array_length(all) : 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *h = json_object_array_get_idx(all, i);
		const char *part = out_text(h, "part");

		if (strncmp(part, "routing/", strlen("routing/")) != 0 ||
		    strcmp(part + strlen("routing/"), use->record) != 0 ||
		    strcmp(out_text(h, "level"), "error") != 0)
			continue;
		use->left_out++;
		use->why = use->why ?: out_text(h, "reason");
	}
}

/* "up 2/3, 1 left out: REASON" */
static int add_nodes_state(struct json_object *row, struct json_object *const *status, size_t n)
{
	char record[KEY_TEXT];
	struct peer_use use = { .record = record };
	AUTO(free) char *text = NULL;
	int r;

	snprintf(record, sizeof(record), KEYS_PEER "%s", out_text(row, "name"));
	for (size_t i = 0; i < n; i++) {
		count_sessions(status[i], &use);
		count_left_out(status[i], &use);
	}
	if (!use.n && !use.left_out)
		r = asprintf(&text, "no node has a session of it");
	else if (use.left_out)
		r = asprintf(&text, "up %lld/%lld, %lld left out: %s", (long long)use.up,
			     (long long)use.n + (long long)use.left_out, (long long)use.left_out,
			     use.why);
	else
		r = asprintf(&text, "up %lld/%lld%s%s", (long long)use.up, (long long)use.n,
			     use.down ? ", down on " : "", use.down ?: "");
	if (r < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return json_object_object_add(row, "sessions", json_object_new_string(text)) < 0 ? -ENOMEM
											 : 0;
}

static int read_peers(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	AUTO(json_put) struct json_object *rows = NULL;
	AUTO(free) struct json_object **status = NULL;
	size_t n = 0;
	int r = ctl_rows(ctl, KEYS_PEER, peer_row, NULL, &rows, err);

	r = r < 0 ? r : ctl_read(ctl, KEYS_STATUS_NODE, &kvs, err);
	if (r < 0)
		return r;
	status = calloc(kvs.n ?: 1, sizeof(struct json_object *));
	if (!status)
		return -ENOMEM;
	/* What is no JSON says nothing. */
	for (size_t i = 0; i < kvs.n; i++)
		n += json_parse(kvs.v[i].value, kvs.v[i].value_len, &status[n], NULL) == 0;
	for (size_t i = 0; r == 0 && i < json_object_array_length(rows); i++)
		r = add_nodes_state(json_object_array_get_idx(rows, i), status, n);
	for (size_t i = 0; i < n; i++)
		json_object_put(status[i]);
	if (r == 0)
		*ret = TAKE(rows);
	return r;
}

static const struct out_column peer_columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("NEIGHBOUR", "neighbour"),
	COLUMN("ASN", "asn"),
	COLUMN("NODES", "onNodes"),
	COLUMN("STATE", "state"),
	COLUMN("SESSIONS", "sessions"),
	COLUMN("DESCRIPTION", "description"),
	WIDE("IMPORT", "importFilter"),
	WIDE("EXPORT", "exportFilter"),
	WIDE("BFD", "bfd"),
	WIDE("MULTIHOP", "multihop"),
	WIDE("PASSWORDFILE", "passwordFile"),
	WIDE("PROBLEM", "problem"),
	COLUMNS_END,
};

const struct command_list peer_list = {
	.read = read_peers,
	.columns = peer_columns,
	.watches = (const char *const[]){ KEYS_PEER, KEYS_STATUS_NODE, NULL },
	.none = "There are no peers: nodes have sessions only with each other, if the mesh is on "
		"in config",
};

/* --- filters -------------------------------------------------------------------------------- */

static int filter_row(const struct ctl_kv *kv, void *arg, struct json_object *array)
{
	struct json_object *row, *rules;
	int r = add_row("filter", kv, array, &row);

	rules = out_at(row, "rules");
	if (rules)
		json_object_object_add(
			row, "count",
			json_object_new_int64((int64_t)json_object_array_length(rules)));
	return r;
}

static const struct out_column filter_columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("RULES", "count"),
	COLUMN("STATE", "state"),
	WIDE("PROBLEM", "problem"),
	COLUMNS_END,
};

const struct command_list filter_list = {
	.beginning = KEYS_FILTER,
	.row = filter_row,
	.columns = filter_columns,
	.none = "There are no filters: roostctl filter create NAME rules='[...]'",
};
