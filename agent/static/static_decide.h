/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which static routes this node is to have, and what is wrong with the others.
 *
 *   static_entries, labels, kernel_view (addresses, ways) -> [static_decide] -> kernel_desired
 *
 * Pure. The selector comes first: a node that is not meant has nothing to say. Then the record
 * itself, protected subnets by arithmetic, and the way to the gateways. Of several records with
 * one subnet, table and metric the oldest has it. A record that is refused leaves in force what
 * it said when it last could be applied.
 */
#pragma once

#include "agent/kernel/kernel_view.h"
#include "agent/static/static_entries.h"

struct static_input {
	struct labels labels;
	struct prefixes protect;   /* by --protected-subnets */
	struct prefixes endpoints; /* of etcd */
	struct prefixes pools;
	uint32_t table;           /* for records that name none */
	struct address probes[2]; /* IPv4's and IPv6's; family 0: none is given */
	const struct kernel_view *view;
};

/* The addresses to which the decision must know the way: probes and gateways; free() ret->v. */
int static_ways(const struct static_entries *t, const struct static_input *in,
		struct addresses *ret);

/* Sets selected, wanted, route and why of all. 0 or -ENOMEM. */
int static_decide(struct static_entries *t, const struct static_input *in);
