/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/overlay_rows.h"

#include <string.h>

#include "ctl/frame/out.h"
#include "lib/json/tree.h"

static size_t count_at(struct json_object *object, const char *field)
{
	struct json_object *list = out_at(object, field);

	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

static int unreachable(struct json_object *overlay, struct json_object *array)
{
	struct json_object *list = out_at(overlay, "unreachable");
	int r = 0;

	for (size_t i = 0; r == 0 && i < count_at(overlay, "unreachable"); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		struct tree t = tree_new();

		tree_text(&t, "node", out_text(one, "node"));
		tree_text(&t, "way", "none");
		tree_text(&t, "problem", out_text(one, "why"));
		r = tree_end_in(&t, array);
	}
	return r;
}

static const char *device_of(struct json_object *remote)
{
	return strchr(out_text(remote, "underlay"), ':') ? "roost.vxlan6" : "roost.vxlan";
}

static int block_row(struct json_object *remote, struct json_object *block,
		     struct json_object *array)
{
	const char *way = out_text(block, "way");
	struct tree t = tree_new();

	tree_text(&t, "node", out_text(remote, "node"));
	tree_text(&t, "underlay", out_text(remote, "underlay"));
	tree_text(&t, "block", out_text(block, "block"));
	tree_text(&t, "way", way);
	tree_share(&t, "vtep", out_at(remote, "vtep"));
	tree_text(&t, "mac", out_text(remote, "mac"));
	if (strcmp(way, "direct") != 0)
		tree_text(&t, "device", device_of(remote));
	if (strcmp(way, "missing") == 0)
		tree_text(&t, "problem",
			  "the kernel has no route to it: see roostctl status for the reason");
	return tree_end_in(&t, array);
}

static int blocks(struct json_object *overlay, bool missing, struct json_object *array)
{
	struct json_object *remotes = out_at(overlay, "remotes");
	int r = 0;

	for (size_t i = 0; r == 0 && i < count_at(overlay, "remotes"); i++) {
		struct json_object *remote = json_object_array_get_idx(remotes, i);
		struct json_object *list = out_at(remote, "blocks");

		for (size_t j = 0; r == 0 && j < count_at(remote, "blocks"); j++) {
			struct json_object *block = json_object_array_get_idx(list, j);

			if ((strcmp(out_text(block, "way"), "missing") == 0) == missing)
				r = block_row(remote, block, array);
		}
	}
	return r;
}

int overlay_rows(struct json_object *overlay, struct json_object *array)
{
	int r = unreachable(overlay, array);

	r = r < 0 ? r : blocks(overlay, true, array);
	return r < 0 ? r : blocks(overlay, false, array);
}
