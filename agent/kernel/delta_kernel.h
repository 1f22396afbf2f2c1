/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be done so that the kernel holds what it should.
 *
 *   desired_kernel, kernel_view ─> [delta_kernel] ─> apply_kernel
 *
 * Pure but for the marks of what was found right. The operations come in the order of dependence:
 * forwarding, tunnels, links with their settings, addresses of tunnels, neighbours with what
 * tunnels know of MACs, routes; then what is removed, in the reverse order. Only routes and
 * neighbours of our protocol numbers and tunnels of ours with all on them are ever removed. What
 * another program removes again and again is restored at once each time, up to a rate.
 */
#pragma once

#include "agent/kernel/desired_kernel.h"

enum change_kind {
	CHANGE_HOST,      /* forwarding of a family */
	CHANGE_TUNNEL,    /* the overlay's device: made, or changed in place */
	CHANGE_LINK,      /* settings, up, the link-local address */
	CHANGE_ADDRESS,   /* of a tunnel: add */
	CHANGE_NEIGHBOUR, /* set */
	CHANGE_ROUTE_OLD, /* ours with the key of one that follows: taken out of its way */
	CHANGE_ROUTE,     /* add, or put in the place of one of ours */
	CHANGE_ROUTE_GONE,
	CHANGE_NEIGHBOUR_GONE,
	CHANGE_ADDRESS_GONE,
	CHANGE_TUNNEL_GONE, /* also before it is made again */
};

struct change {
	enum change_kind kind;
	bool repair;   /* it had been right, and another program changed it */
	bool replaces; /* ROUTE: ours with its key is there, and gives way in the same step */
	bool forget;   /* ..._GONE: the kernel does not hold it any more */
	int result;    /* by apply */
	bool done;     /* apply made a difference */
	union {
		sa_family_t family;
		struct {
			struct desired_link link;
			uint16_t differ; /* of enum devconf */
			bool up;
			enum gateway6 gateway6; /* as it is; READY: nothing to do */
			bool removed6;          /* by apply: there was one, which went first */
		};
		struct kneighbour neighbour;
		struct kroute route;
		struct {
			int tunnel;
			uint32_t index;                    /* TUNNEL_GONE */
			unsigned set;                      /* TUNNEL: what of it */
			const struct desired_tunnel *want; /* TUNNEL... */
			struct kaddress address;           /* ADDRESS... */
		};
	};
};

struct changes {
	struct change *v;
	size_t n, room;
	size_t first_route, n_routes; /* those to add, and what is in their way: sorted by key */
	uint64_t next;                /* when something that was put off is due; 0: nothing was */
};

/* What is missing or other than it should be. */
int delta_missing(const struct desired_kernel *d, const struct kernel_view *view, uint64_t now,
		  struct changes *ret);
/* What is ours and not wanted. Appends. */
int delta_surplus(const struct desired_kernel *d, const struct kernel_view *view,
		  struct changes *ret);
void changes_done(struct changes *c);
/* Marks what is as it should be: if it is not later, another program changed it. */
void delta_confirm(const struct desired_kernel *d, struct kernel_view *view);

/* "route 10.1.0.5/32 dev roost0123456789". */
#define CHANGE_TEXT 352
const char *change_print(const struct change *c, const struct kernel_view *view,
			 char text[CHANGE_TEXT]);
/* What the view remembers of the thing that is missing; NULL: nothing, or it is surplus. */
struct presence *change_presence(const struct change *c, struct kernel_view *view);
