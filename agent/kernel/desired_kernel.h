/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel should hold for the pods and blocks that there are.
 *
 *   kernel_wants, kernel_view (link numbers, subnets) ─> [desired_kernel] ─> delta_kernel
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
	bool foreign;   /* a device of another kind has its name, which is left */
	bool outdated;  /* ours, but of another make: it goes, and what it carries with it */
	uint32_t index; /* 0: it is not there as it should be */
	bool ipv6;
	struct tunnel is;
};
struct desired_kernel {
	struct desired_link *links;
	size_t n_links;
	struct kneighbour *neighbours;
	size_t n_neighbours;
	struct kroute *routes;
	size_t n_routes;
	struct desired_tunnel tunnels[TUNNELS]; /* by the family of the underlay */
	ARRAY(struct refused_block) refused;
	size_t without_link; /* pods */
	bool ipv6;           /* forwarding is wanted for it too */
	bool statics_known;
};

/* protect may be NULL. 0 or -ENOMEM; release with desired_kernel_done(). */
int desired_kernel(const struct kernel_wants *wants, const struct kernel_view *view,
		   const struct prefixes *protect, struct desired_kernel *ret);
void desired_kernel_done(struct desired_kernel *d);

const struct desired_link *desired_link(const struct desired_kernel *d, uint32_t index);
