/* SPDX-License-Identifier: Apache-2.0 */
/* peer list, filter list. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/verbs.h"
#include "ctl/records/record_verbs.h"

/* A row for each record of one kind; more() adds what a table wants and the record has not. */
static int rows(struct ctl *ctl, const char *noun, void (*more)(struct json_object *row),
		struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	const struct kind *kind = kind_find(noun);
	int r = ctl_read(ctl, kind->beginning, &kvs, err);

	if (r < 0)
		return r;
	for (size_t i = 0; array && r == 0 && i < kvs.n; i++) {
		if (!kind_name(kind, kvs.v[i].key))
			continue;
		r = record_row(kind, &kvs.v[i], array);
		if (r == 0)
			more(json_object_array_get_idx(array, json_object_array_length(array) - 1));
	}
	if (r < 0 || !array)
		return err_set(err, -ENOMEM, "out of memory");
	*ret = TAKE(array);
	return 0;
}

static void copy(struct json_object *row, const char *name, const char *from)
{
	struct json_object *value = out_at(row, from);

	if (value && !(json_object_is_type(value, json_type_string) &&
		       json_object_get_string_len(value) == 0))
		json_object_object_add(row, name, json_object_get(value));
}

/* --- peers ---------------------------------------------------------------------------------- */

static void peer_more(struct json_object *row)
{
	struct json_object *nodes = out_at(row, "nodes");

	copy(row, "neighbour", "peerSelector");
	copy(row, "neighbour", "address");
	copy(row, "onNodes", "nodeSelector");
	if (nodes && json_object_array_length(nodes))
		copy(row, "onNodes", "nodes");
	else if (!out_at(row, "onNodes") && nodes)
		json_object_object_add(row, "onNodes", json_object_new_string("all"));
}

static int peer_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	return rows(ctl, "peer", peer_more, ret, err);
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
	.read = peer_list_read,
	.columns = peer_columns,
	.watches = (const char *const[]){ KEYS_PEER, NULL },
	.none = "There are no peers: nodes peer with each other alone, if config's mesh is on",
};

/* --- filters -------------------------------------------------------------------------------- */

static void filter_more(struct json_object *row)
{
	struct json_object *rules = out_at(row, "rules");

	if (rules)
		json_object_object_add(
			row, "count",
			json_object_new_int64((int64_t)json_object_array_length(rules)));
}

static int filter_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	return rows(ctl, "filter", filter_more, ret, err);
}

static const struct out_column filter_columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("RULES", "count"),
	COLUMN("STATE", "state"),
	WIDE("PROBLEM", "problem"),
	COLUMNS_END,
};

const struct command_list filter_list = {
	.read = filter_list_read,
	.columns = filter_columns,
	.watches = (const char *const[]){ KEYS_FILTER, NULL },
	.none = "There are no filters: roostctl filter create NAME rules='[...]'",
};
