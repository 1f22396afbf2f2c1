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

static const struct out_column peer_columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("NEIGHBOUR", "neighbour"),
	COLUMN("ASN", "asn"),
	COLUMN("NODES", "onNodes"),
	COLUMN("STATE", "state"),
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
	.beginning = KEYS_PEER,
	.row = peer_row,
	.columns = peer_columns,
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
