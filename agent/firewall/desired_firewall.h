/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table `inet roost` of nftables as it should be.
 *
 *   pools, extents, own blocks, nodes, settings -> [desired_firewall] -> firewall -> libnftables
 *
 * Pure. Three parts. Protection, on every node: what pods must not send to, and who may send to the
 * tunnel. The check of sources, on every node: pods send from addresses that are routed to their
 * link (the kernel's rp_filter does that for IPv4 only, and another program can loosen it). NAT, where
 * it is wanted: the masquerade of what leaves all pools from pools with natOutgoing.
 *
 * The text follows from the prefixes as a set: what lies in another prefix is left out, because an
 * interval set refuses what overlaps.
 */
#pragma once

#include "lib/json/values.h"

#define FIREWALL_TABLE "roost"

enum firewall_part {
	FIREWALL_NAT = 1,
	FIREWALL_SOURCES = 2,
	FIREWALL_PROTECTION = 4,
};
#define FIREWALL_PARTS 3
/* What every node has. */
#define FIREWALL_ALWAYS (FIREWALL_SOURCES | FIREWALL_PROTECTION)

/* Why a packet was dropped; each has a counter in the table. */
enum firewall_drop {
	FIREWALL_DROP_SOURCE,   /* of a pod, from an address that is not its own */
	FIREWALL_DROP_LOOPBACK, /* of a pod, to the node's loopback */
	FIREWALL_DROP_VXLAN,    /* of a pod, to the tunnels' port */
	FIREWALL_DROP_ROUTING,  /* of a pod, to BGP or BFD of a node */
	FIREWALL_DROP_UNDERLAY, /* to this node's tunnel, from an address of no node */
	FIREWALL_DROPS
};

struct firewall_wants {
	struct prefixes nat;   /* sources whose traffic is masqueraded */
	struct prefixes pools; /* all that counts as inside, nat or not */
	struct prefixes nodes; /* addresses of all nodes, as host prefixes; only with tunnel */
	bool tunnel;           /* this node has one, and all nodes are known */
	bool ipv6_sources;     /* are checked, too */
	bool pod_loopback;     /* pods may send to the node's loopback where its routing permits */
	bool pod_routing;      /* pods may use BGP and BFD with nodes */
	uint16_t vxlan_port, bgp_port;
};

/* In place: sorted, masked, without what lies in another. */
void firewall_wants_sort(struct firewall_wants *wants);
/* "natOutgoing", "source-check", "protection". */
const char *firewall_part_name(enum firewall_part part);
/* "source", "loopback", ...; the counter's name is drop_ and this. */
const char *firewall_drop_name(enum firewall_drop drop);
/* Which parts are wanted. */
unsigned firewall_parts(const struct firewall_wants *wants);
/* The one transaction that makes the table of just these parts, whatever stood there before. */
int desired_firewall(const struct firewall_wants *wants, unsigned parts, char **ret);
