/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel holds, as far as it concerns us, kept current by its messages.
 *
 *   kernel_message ─> [kernel_view] ─> desired_kernel, delta_kernel
 *
 * Pure. Links all, for names and MTU; routes of our protocol numbers alone, in every table: a
 * node may carry a million others; permanent neighbours on pod links and tunnels alone, and the
 * tables (FDB) of tunnels; the node's own subnets and gateways. What was once as it should be and
 * was lost stays as an entry that is not held: whoever puts it back knows that somebody had removed
 * it, and how often.
 *
 * Dumps and events go through the same door. A dump is framed by begin and end, and end drops
 * what the dump did not show; the events that came meanwhile are read after it, before anything
 * is decided.
 */
#pragma once

#include "agent/kernel/kernel_message.h"

/* What is remembered of an object beside the object. */
struct holding {
	bool held;      /* by the kernel's last word */
	bool confirmed; /* it was there as it should be: if not any more, somebody changed it */
	uint8_t fights; /* repairs in a row */
	uint32_t seen;
	/* In ms of the caller's clock; paid: repairs up to now are accounted for until then. */
	uint64_t fight_began, paid, not_before;
};

struct held_route {
	struct kroute route;
	struct holding h;
	struct kroute *stranger; /* in the way; NULL: none is */
	bool beside;             /* somebody put another of the same key beside it */
	struct held_route *next; /* of the same key */
};
struct held_neighbour {
	struct kneighbour neighbour;
	struct holding h;
};
struct held_link {
	struct klink link;
	struct holding h;
	bool pod;    /* a veth of our naming */
	bool tunnel; /* a vxlan device of our naming */
	/* A tunnel's, which no message tells of; stale: it may have been switched. */
	bool offload, offload_stale;
	bool dropped;    /* the kernel has dropped its IPv4 routes without a word */
	bool confirmed6; /* with its IPv6 settings: before, nobody has changed those */
	enum gateway6 gateway6;
	/* Removals of it by ourselves that the kernel has yet to tell; it does not say whose. */
	uint8_t own_removals;
};
/* The overlay's device with its addresses, which leaves no link behind when it goes. */
struct held_tunnel {
	struct holding h;
	struct ktunnel was; /* as it was confirmed: if it is to be otherwise, nobody changed it */
};
/* Of a link that is no pod's. */
struct node_address {
	uint32_t link, seen;
	struct address local;
	struct prefix subnet;
};

/* Which route the kernel takes to an address. */
struct route_lookup {
	struct address to;
	int err; /* 0, or why there is none: -ENETUNREACH */
	struct kroute route;
};

struct kernel_view {
	void *links_by_index, *links_by_name; /* tsearch; the names of pod links and others */
	void *routes;                         /* by kroute_compare_key */
	void *neighbours;
	struct node_address *addresses;
	size_t n_addresses;
	struct addresses gateways; /* of routes that people and their tools have set */
	bool gateways_stale;
	struct route_lookup *lookups;
	size_t n_lookups;
	uint64_t lookups_of;              /* .ways and .statics when they were made */
	struct message_conf host4, host6; /* of the whole host, what is known of it */
	struct holding forwarding4, forwarding6;
	struct held_tunnel tunnels[2];

	uint32_t own_port;  /* netlink's number of the socket that makes our changes */
	uint32_t bird_port; /* and of BIRD's, as far as it is known */
	/* The first of BIRD's routes that another than the two removed; the caller clears it. */
	struct {
		struct prefix dst;
		uint32_t port; /* 0: none was */
	} bird_lost;
	uint32_t generation; /* of the dump */
	bool torn;           /* a way out of several was taken: what is left must be read */
	bool links_lost;     /* routes may lead to links that are gone or dropped them */
	bool news;           /* somebody else changed what concerns us; the caller clears it */
	uint64_t route6_events;
	uint64_t ways;    /* rises when the way to some address may be another */
	uint64_t statics; /* rises when a static route came, went, or is kept out */
	size_t n_pod_links, n_routes, n_neighbours, n_fdb; /* held */
	size_t n_conflicts;
	char (*gone)[IF_NAME_TEXT]; /* pod links that vanished; the caller takes it */
	size_t n_gone;
};

void kernel_view_done(struct kernel_view *v);

/* Any message; those that do not concern us are passed over. 0, -EBADMSG or -ENOMEM. */
int kernel_view_take(struct kernel_view *v, const struct nlmsghdr *hdr);
/* From a dump of routes by one of gateway_protocols: just where they lead. */
int kernel_view_take_gateway(struct kernel_view *v, const struct nlmsghdr *hdr);
extern const uint8_t gateway_protocols[4];

/* Routes by family and by which of our protocol numbers they have. */
enum view_part {
	VIEW_LINKS,
	VIEW_ROUTES4,
	VIEW_ROUTES6,
	VIEW_STATICS4,
	VIEW_STATICS6,
	VIEW_NEIGHBOURS,
	VIEW_ADDRESSES,
	VIEW_FDB, /* of the one device, and of the other */
	VIEW_FDB6,
	VIEW_PARTS
};
/* Also when a torn dump starts again. */
void kernel_view_begin(struct kernel_view *v, enum view_part part);
void kernel_view_end(struct kernel_view *v, enum view_part part);
/* As of now; NULL: it was not asked for. */
const struct route_lookup *kernel_view_lookup(const struct kernel_view *v,
					      const struct address *to);
int kernel_view_put_lookup(struct kernel_view *v, const struct route_lookup *lookup);
/* After messages, before anything is decided: lets go what vanished links took with them. */
void kernel_view_settle(struct kernel_view *v);

struct held_link *kernel_view_link(const struct kernel_view *v, uint32_t index);
struct held_link *kernel_view_link_named(const struct kernel_view *v, const char *name);
/* All that have this key, by ->next. */
struct held_route *kernel_view_routes(const struct kernel_view *v, const struct kroute *key);
struct held_route *kernel_view_route(const struct kernel_view *v, const struct kroute *exact);
struct held_neighbour *kernel_view_neighbour(const struct kernel_view *v,
					     const struct kneighbour *key);

struct node_address *kernel_view_address(const struct kernel_view *v,
					 const struct node_address *key);

/* In order of their keys. */
typedef void held_route_fn(struct held_route *r, void *arg);
typedef void held_neighbour_fn(struct held_neighbour *n, void *arg);
typedef void held_link_fn(struct held_link *l, void *arg);
void kernel_view_each_route(const struct kernel_view *v, held_route_fn *fn, void *arg);
void kernel_view_each_neighbour(const struct kernel_view *v, held_neighbour_fn *fn, void *arg);
void kernel_view_each_link(const struct kernel_view *v, held_link_fn *fn, void *arg);

/* What we did ourselves, before the kernel's own word of it is read. */
int kernel_view_put_route(struct kernel_view *v, const struct kroute *r, struct held_route **ret);
/* In the place of whatever else of ours has its key. */
int kernel_view_replace_route(struct kernel_view *v, const struct kroute *r,
			      struct held_route **ret);
void kernel_view_drop_route(struct kernel_view *v, const struct kroute *r);
int kernel_view_put_neighbour(struct kernel_view *v, const struct kneighbour *n,
			      struct held_neighbour **ret);
void kernel_view_drop_neighbour(struct kernel_view *v, const struct kneighbour *n);
/* The link itself is known to be gone. */
void kernel_view_drop_link(struct kernel_view *v, uint32_t index);
/* What asking the device for its checksum offload told. */
void kernel_view_offload(struct kernel_view *v, struct held_link *l, bool on);
int kernel_view_put_address(struct kernel_view *v, const struct node_address *address);
void kernel_view_drop_address(struct kernel_view *v, const struct node_address *key);
/* A stranger's route is in the way of this one of ours. */
int kernel_view_conflict(struct kernel_view *v, const struct kroute *r,
			 const struct kroute *stranger);
/* Lets all conflicts be tried again. */
void kernel_view_retry_conflicts(struct kernel_view *v);
