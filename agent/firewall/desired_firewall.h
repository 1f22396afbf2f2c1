/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table `inet roost` of nftables as it should be.
 *
 *   pools, extents, own blocks -> [desired_firewall] -> firewall -> libnftables
 *
 * Pure. Two parts, each there only where it is wanted: the masquerade of what leaves all pools
 * from pools with natOutgoing, and the check that pods send from addresses of their own, for
 * IPv6 alone: for IPv4 the kernel has rp_filter. The text follows from the prefixes as a set: what
 * lies in another prefix is left out, because an interval set refuses what overlaps.
 */
#pragma once

#include "lib/json/values.h"

#define FIREWALL_TABLE "roost"

enum firewall_part {
	FIREWALL_NAT = 1,
	FIREWALL_SOURCES = 2,
};
#define FIREWALL_PARTS 2

struct firewall_wants {
	struct prefixes nat;   /* sources whose traffic is masqueraded */
	struct prefixes pools; /* all that counts as inside, nat or not */
	bool check_sources;
};

/* In place: sorted, masked, without what lies in another. */
void firewall_wants_sort(struct firewall_wants *wants);
/* "natOutgoing", "ipv6-source-check". */
const char *firewall_part_name(enum firewall_part part);
/* Which parts are wanted; 0: no table at all. */
unsigned firewall_parts(const struct firewall_wants *wants);
/* The one transaction that makes the table of just these parts, whatever stood there before. */
int desired_firewall(const struct firewall_wants *wants, unsigned parts, char **ret);
