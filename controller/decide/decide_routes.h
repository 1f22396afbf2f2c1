/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static routes: what is left of records and of reports that nobody will take back.
 *
 *   mirror -> [decide_routes] -> plans: records and statuses that go
 *
 * Pure. A record that is marked `deleting` goes when no node reports it any more; the last node
 * does that itself, unless it was the controller who took away the last report, or the node died in
 * between. A report goes when its record is not there, or when nothing is known of its node: no
 * registration, no living agent, no removal that is still under way.
 */
#pragma once

#include "controller/state/mirror.h"
#include "controller/state/plan.h"

/* For metrics. */
struct routes {
	size_t records, deleting, invalid, in_error; /* records; the last: in error on some node */
	size_t applied, errors;                      /* what nodes say, of all records */
};

void routes_decide(struct routes *r, const struct mirror *m, struct plans *ret);

/* The statuses of one node go with it. False: not all fitted into the plan. */
bool routes_take_node(struct plans *p, struct plan *plan, const struct mirror *m, const char *node);
