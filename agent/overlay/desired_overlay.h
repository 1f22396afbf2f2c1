/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay as this node should have it: its tunnels, the other nodes, their blocks.
 *
 *   config, pools, own addresses ─┐
 *   node/, block/ of others ──────┴─> [desired_overlay] ─> kernel_desired ─> kernel
 *                                                     `──> troubles ─> health, roostctl
 *
 * Pure, and follows from the records alone. A node counts as a remote while it
 * has a block of a pool with an encapsulation, and while its record claims nothing
 * that is another's: an agent's MAC follows from its name, and the tunnel's addresses
 * lie in its own blocks. Two nodes meet over IPv4 if both have such an address, else
 * over IPv6. What cannot be reached is left out and named; the rest is not concerned.
 */
#pragma once

#include "agent/kernel/kernel.h"
#include "agent/records/records.h"

/* A pool whose blocks are reached through the overlay. */
struct overlay_pool {
	char name[NAME_TEXT], network[NAME_TEXT];
	enum encapsulation encapsulation;
	sa_family_t family;
	bool announce; /* its blocks go to BIRD */
};

enum { OVERLAY_IPV4, OVERLAY_IPV6, OVERLAY_FAMILIES };

struct overlay_input {
	const char *self;
	struct address address[OVERLAY_FAMILIES]; /* of this node; family 0: none */
	struct address tunnel[OVERLAY_FAMILIES];  /* of its end of the tunnel, likewise */
	uint32_t uplink_mtu[OVERLAY_FAMILIES];    /* 0: unknown */
	const struct config_vxlan *config;
	const struct overlay_pool *pools; /* by name; none: there is no overlay */
	size_t n_pools;
	const struct node *const *nodes; /* by name */
	size_t n_nodes;
	const struct block_place *const *blocks;
	size_t n_blocks;
};

enum overlay_trouble {
	OVERLAY_NO_RECORD,      /* node/<node> is not there */
	OVERLAY_NO_TUNNEL,      /* it names no tunnel */
	OVERLAY_APART,          /* no family in common */
	OVERLAY_SAME_MAC,       /* as another's, or ours */
	OVERLAY_FOREIGN_MAC,    /* an agent's that does not follow from its name */
	OVERLAY_FOREIGN_ADDRESS /* the tunnel's address lies in no block of the node */
};
/* What it means for who reads it, to follow "node x ". */
const char *overlay_trouble_text(enum overlay_trouble trouble);

struct overlay_troubled {
	const char *node; /* lies in the input */
	enum overlay_trouble trouble;
};

/* Release with overlay_plan_done(). */
struct overlay_plan {
	struct kernel_tunnel tunnels[OVERLAY_FAMILIES];
	size_t n_tunnels;
	struct kernel_remote *remotes; /* by name, */
	const char **names;            /* which lie in the input */
	size_t n_remotes;
	struct kernel_remote_block *blocks;
	size_t n_blocks;
	struct overlay_troubled *troubled; /* by name */
	size_t n_troubled;
};

/* 0 or -ENOMEM. */
int desired_overlay(const struct overlay_input *in, struct overlay_plan *ret);
void overlay_plan_done(struct overlay_plan *plan);

/* What a packet in the tunnel may have, over that family; an unknown uplink counts as Ethernet. */
uint32_t overlay_mtu(const struct config_vxlan *config, uint32_t uplink, sa_family_t family);
