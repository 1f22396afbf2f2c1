/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/bgp_rows.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ctl/frame/out.h"
#include "lib/json/tree.h"

/* --- rows ----------------------------------------------------------------------------------- */

static int session_row(const char *node, const char *reported, struct json_object *session,
		       struct json_object *array)
{
	const char *state = out_text(session, "state");
	struct tree t = tree_new();

	tree_text(&t, "node", node);
	tree_text(&t, "session", out_text(session, "name"));
	tree_some_text(&t, "record", out_text(session, "record"));
	tree_share(&t, "peer", out_at(session, "peer"));
	tree_share(&t, "asn", out_at(session, "asn"));
	tree_text(&t, "state", state);
	tree_bool(&t, "up", strcmp(state, "Established") == 0);
	tree_share(&t, "since", out_at(session, "since"));
	tree_share(&t, "imported", out_at(session, "imported"));
	tree_share(&t, "exported", out_at(session, "exported"));
	tree_some_text(&t, "reported", reported);
	tree_some_text(&t, "error", out_text(session, "error"));
	return tree_end_in(&t, array);
}

/* quiet: nothing is wrong, there just are no sessions. */
static int other_row(struct json_object *array, const char *node, const char *state, bool quiet,
		     const char *why)
{
	struct tree t = tree_new();

	tree_text(&t, "node", node);
	tree_text(&t, "state", state);
	tree_bool(&t, "up", quiet);
	tree_text(&t, "error", why);
	return tree_end_in(&t, array);
}

static int without_sessions(const char *node, struct json_object *status, struct json_object *array)
{
	const char *protocol = out_text(status, "bird.protocol");

	if (!out_at(status, "bird"))
		return other_row(array, node, "unmanaged", true,
				 "the agent does not manage BIRD: --bird-config is none");
	if (!json_object_get_boolean(out_at(status, "bird.connected")))
		return other_row(array, node, "down", false, "the agent cannot reach BIRD");
	if (strcmp(protocol, "ospf") == 0)
		return other_row(array, node, protocol, true,
				 "runs OSPF, not BGP: see birdc show ospf neighbors");
	if (strcmp(protocol, "rip") == 0)
		return other_row(array, node, protocol, true,
				 "runs RIP, not BGP: see birdc show rip neighbors");
	if (strcmp(protocol, "none") == 0)
		return other_row(array, node, protocol, true,
				 "runs no routing protocol: config says protocol none");
	return other_row(array, node, "alone", true,
			 "runs BGP, but has no neighbour: no peer record selects this node, and no "
			 "other node is in its mesh");
}

int bgp_rows(const char *node, struct json_object *status, struct json_object *array)
{
	struct json_object *sessions = out_at(status, "sessions");
	size_t n = json_object_is_type(sessions, json_type_array)
			   ? json_object_array_length(sessions)
			   : 0;
	int r = 0;

	if (!status)
		return other_row(array, node, "silent", false,
				 "its agent has not reported for a minute: check roostd on that "
				 "node and its connection to etcd");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = session_row(node, out_text(status, "reported"),
				json_object_array_get_idx(sessions, i), array);
	if (n || r < 0)
		return r;
	r = without_sessions(node, status, array);
	if (r < 0 || !out_at(status, "reported"))
		return r;
	return json_object_object_add(
		json_object_array_get_idx(array, json_object_array_length(array) - 1), "reported",
		json_object_get(out_at(status, "reported")));
}

/* --- order ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	struct json_object *x = *(struct json_object *const *)a,
			   *y = *(struct json_object *const *)b;
	int up = json_object_get_boolean(out_at(x, "up")) -
		 json_object_get_boolean(out_at(y, "up"));
	int node = strcmp(out_text(x, "node"), out_text(y, "node"));

	return up ?: node ?: strcmp(out_text(x, "session"), out_text(y, "session"));
}

void bgp_rows_sort(struct json_object *array)
{
	json_object_array_sort(array, compare);
}
