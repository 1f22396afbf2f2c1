/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel holds, as far as it concerns us, kept current by its messages.
 *
 *   netlink ─> lib/netlink: values ─> [kernel_view] ─> desired_kernel, delta_kernel
 *
 * Pure. Links all, for names and MTU; routes of our protocol numbers alone, in every table: a
 * node may carry a million others; permanent neighbours on pod links and tunnels alone, and the
 * tables (FDB) of tunnels; the node's own subnets and gateways. What was once as it should be and
 * was lost stays as an entry that is not held: the one that restores it knows that another program had
 * removed it, and how often.
 *
 * Dumps and events go through the same door. A dump is framed by begin and end, and end drops
 * what the dump did not show; the events that came meanwhile are read after it, before anything
 * is decided.
 *
 * The tables are sorted arrays of pointers. An entry stays where it is until it is dropped; places
 * in a table change with every entry that comes or goes. A walk that may lose entries goes backwards.
 */
#pragma once

#include "agent/kernel/fight.h"
#include "lib/base/array.h"
#include "lib/cni/pod_link.h"
#include "lib/netlink/link.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/route.h"

/* The host end's link-local address, which the pod's IPv6 default route leads to. */
enum gateway6 { GATEWAY6_NONE, GATEWAY6_TENTATIVE, GATEWAY6_READY };

/*
 * The overlay's devices, by the family of the underlay. A vxlan device of such a name is ours, with
 * all that is on it.
 */
#define TUNNEL_DEVICE  "roost.vxlan"
#define TUNNEL_DEVICE6 "roost.vxlan6"
#define TUNNELS        2
/* Which of the overlay's devices has this name: 0, 1 for the IPv6 underlay, or -1. */
int tunnel_of_name(const char *name);
const char *tunnel_name(int tunnel);

struct tunnel {
	struct kvxlan vxlan;
	struct mac mac;
	uint32_t mtu; /* 0: the kernel's choice */
	bool offload; /* of checksums */
	struct address addresses[2];
	size_t n_addresses;
};
bool tunnel_same(const struct tunnel *a, const struct tunnel *b);

/* What is remembered of an object beside the object. */
struct presence {
	bool held;      /* by the kernel's last message */
	bool confirmed; /* it was there as it should be: if not any more, another program changed it */
	uint32_t seen;
	struct fight fight;
};

struct held_route {
	struct kroute route;
	struct presence h;
	struct kroute *foreign; /* another program's, which keeps ours out; NULL: none does */
	bool beside;            /* another program added one with the same key */
};
/* Those of one key: a part of the view's table. */
struct held_routes {
	struct held_route **v;
	size_t n;
};
struct held_neighbour {
	struct kneighbour neighbour;
	struct presence h;
};
struct held_link {
	struct klink link;
	struct presence h;
	bool pod;    /* a veth of our naming */
	bool tunnel; /* a vxlan device of our naming */
	/* A tunnel's, of which there is no message; stale: it may have been switched. */
	bool offload, offload_stale;
	bool dropped;    /* the kernel has dropped its IPv4 routes without a message */
	bool confirmed6; /* with its IPv6 settings: before, nobody has changed those */
	enum gateway6 gateway6;
	/* Removals of it by ourselves whose events are still to come; they do not say whose. */
	uint8_t own_removals;
};
/* The overlay's device with its addresses, which leaves no link behind when it goes. */
struct held_tunnel {
	struct presence h;
	struct tunnel was; /* as it was confirmed: if it is to be otherwise, nobody changed it */
};
/* Of a link that is no pod's. */
struct node_address {
	struct kaddress address;
	uint32_t seen;
};

/* Which route the kernel takes to an address. */
struct route_lookup {
	struct address to;
	int err; /* 0, or why there is none: -ENETUNREACH */
	struct kroute route;
};

struct kernel_view {
	ARRAY(struct held_link *) links;           /* by index */
	ARRAY(struct held_link *) names;           /* by name */
	ARRAY(struct held_route *) routes;         /* by kroute_compare(), so by key first */
	ARRAY(struct held_neighbour *) neighbours; /* by key */
	ARRAY(struct node_address) addresses;
	ARRAY(struct address) gateways; /* of routes that people and their tools have set */
	/* Such routes in the main table themselves, but for default routes. */
	ARRAY(struct kroute) others;
	bool gateways_stale; /* both of them */
	ARRAY(struct route_lookup) lookups;
	uint64_t lookups_of;       /* .ways and .statics when they were made */
	struct kconf host4, host6; /* of the whole host, what is known of it */
	struct presence forwarding4, forwarding6;
	struct held_tunnel tunnels[TUNNELS];

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
	bool news;           /* another program changed what concerns us; the caller clears it */
	uint64_t route6_events;
	uint64_t ways;    /* rises when the way to some address may be another */
	uint64_t statics; /* rises when a static route came, went, or is kept out */
	size_t n_pod_links, n_routes, n_neighbours, n_fdb; /* held */
	size_t n_conflicts;
	ARRAY(char[IF_NAME_TEXT]) gone; /* pod links that vanished; the caller empties it */
};

void kernel_view_done(struct kernel_view *v);

/* Any message; those that do not concern us are passed over. 0, -EBADMSG or -ENOMEM. */
int kernel_view_take(struct kernel_view *v, const struct nlmsghdr *hdr);
/* From a dump of routes by one of gateway_protocols. */
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
/* After messages, before anything is decided: lets go what vanished links took with them. */
void kernel_view_settle(struct kernel_view *v);

struct held_link *kernel_view_link(const struct kernel_view *v, uint32_t index);
struct held_link *kernel_view_link_named(const struct kernel_view *v, const char *name);
/* "(gone)" if there is none. */
const char *kernel_view_link_name(const struct kernel_view *v, uint32_t index);
struct held_routes kernel_view_routes(const struct kernel_view *v, const struct kroute *key);
struct held_route *kernel_view_route(const struct kernel_view *v, const struct kroute *exact);
struct held_neighbour *kernel_view_neighbour(const struct kernel_view *v,
					     const struct kneighbour *key);
struct node_address *kernel_view_address(const struct kernel_view *v, const struct kaddress *key);
/* As of now; NULL: it was not asked for. */
const struct route_lookup *kernel_view_lookup(const struct kernel_view *v,
					      const struct address *to);
int kernel_view_put_lookup(struct kernel_view *v, const struct route_lookup *lookup);

/* What we did ourselves, before the kernel's event of it is read. */
int kernel_view_put_route(struct kernel_view *v, const struct kroute *r, struct held_route **ret);
/* Instead of whatever else of ours has its key. */
int kernel_view_replace_route(struct kernel_view *v, const struct kroute *r);
void kernel_view_drop_route(struct kernel_view *v, const struct kroute *r);
int kernel_view_put_neighbour(struct kernel_view *v, const struct kneighbour *n);
void kernel_view_drop_neighbour(struct kernel_view *v, const struct kneighbour *n);
/* The link itself is known to be gone. */
void kernel_view_drop_link(struct kernel_view *v, uint32_t index);
/* The device was asked for its checksum offload. */
void kernel_view_offload(struct kernel_view *v, struct held_link *l, bool on);
int kernel_view_put_address(struct kernel_view *v, const struct kaddress *address);
void kernel_view_drop_address(struct kernel_view *v, const struct kaddress *key);
/* A foreign route keeps this one of ours out. */
int kernel_view_conflict(struct kernel_view *v, const struct kroute *r,
			 const struct kroute *foreign);
/* Lets all conflicts be tried again. */
void kernel_view_retry_conflicts(struct kernel_view *v);
