/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel should hold for the pods and blocks that there are.
 *
 *   kernel_desired, kernel_view (link numbers, subnets) ─> [desired_kernel] ─> delta_kernel
 *
 * Pure. All sets are sorted and without repetition, and follow from the state alone. A pod whose
 * link is not there contributes nothing. A blackhole that would cover a connected subnet, a
 * gateway or a protected prefix is refused, with the reason.
 */
#pragma once

#include "agent/kernel/kernel.h"
#include "agent/kernel/kernel_view.h"

struct desired_link {
	uint32_t index;
	char name[IF_NAME_TEXT];
	bool ipv6;
	bool tunnel; /* the overlay's device, and no pod's */
	bool route_localnet;
	bool fresh; /* being attached: what is left alone later is set once */
};
/* Whether this setting matters on the link, and then its value. */
bool desired_conf(const struct desired_link *l, enum devconf c, int32_t *ret);

struct refused_block {
	struct prefix block;
	bool remote; /* no route to it; else no blackhole for it */
	char why[128];
};

/* A device of the overlay. */
struct desired_tunnel {
	bool wanted;
	bool stranger;  /* a device of another kind has its name, which is left */
	bool outdated;  /* ours, but of another make: it goes, and what it carries with it */
	uint32_t index; /* 0: it is not there as it should be */
	bool ipv6;
	struct ktunnel is;
};
/* What of it can be changed in place; for the rest it is made anew. */
enum {
	TUNNEL_LOCAL = 1,
	TUNNEL_LEARNING = 2,
	TUNNEL_TTL = 4,
	TUNNEL_MTU = 8,
	TUNNEL_MAC = 16,
	TUNNEL_OFFLOAD = 32,
	TUNNEL_ALL = 63,
};

struct desired {
	struct desired_link *links;
	size_t n_links;
	struct kneighbour *neighbours;
	size_t n_neighbours;
	struct kroute *routes;
	size_t n_routes;
	struct desired_tunnel tunnels[2]; /* by the family of the underlay */
	struct refused_block *refused;
	size_t n_refused;
	size_t without_link; /* pods */
	bool ipv6;           /* forwarding is wanted for it too */
	bool statics_known;
};

/* protect may be NULL. 0 or -ENOMEM; release with desired_done(). */
int desired_kernel(const struct kernel_desired *state, const struct kernel_view *view,
		   const struct prefixes *protect, struct desired *ret);
void desired_done(struct desired *d);

const struct desired_link *desired_link(const struct desired *d, uint32_t index);
/*
 * That of this key, whatever else; NULL: none. For who goes through keys in their order: finger is
 * 0 at first and goes along. To search for each of tens of thousands would be most of a pass.
 */
const struct kroute *desired_route_at(const struct desired *d, size_t *finger,
				      const struct kroute *key);
const struct kneighbour *desired_neighbour_at(const struct desired *d, size_t *finger,
					      const struct kneighbour *key);
