/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static routes as route list and route show have them: what the record says, and how it is on
 * each node.
 *
 *   records, statuses, nodes, labels as read -> [route_rows] -> tree -> out
 *
 * Pure. Which nodes are meant is judged from node/ and spec/, what they have done from the status
 * that each of them reports. A node is
 *
 *   applied      it has the route as the record says it now
 *   error        it says why it has not, or has only an earlier one
 *   pending      it has not reported on the record as it is now
 *   silent       the same, and its agent does not report anything
 *   withdrawing  it is not meant any more and still reports
 */
#pragma once

#include "ctl/frame/ctl.h"
#include "lib/model/model.h"

struct route_node {
	const char *name;
	struct node_spec spec;
	bool alive;
};

struct route_view {
	struct ctl_kvs routes, status, nodes, specs, removed, alive; /* alive: status/node/ */
	struct route_node *v; /* those that should apply routes, by name */
	size_t n;
};
void route_view_done(struct route_view *view);
/* v from what was read. 0 or -ENOMEM. */
int route_view_nodes(struct route_view *view);

/*
 * name, the record's fields, state ("ok", "error", "pending", "deleting", "invalid"), problem, via,
 * selected, applied, errors, pending, silent, withdrawing, tampered, summary; nodes[] if asked for.
 * 0 or -ENOMEM.
 */
int route_row(const struct route_view *view, const struct ctl_kv *kv, bool nodes,
	      struct json_object **ret);
