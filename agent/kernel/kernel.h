/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's kernel state: links, sysctls, neighbours and routes, kept as they should be.
 *
 *   netlink, /proc/sys ─> view ─┐
 *   desire() ─> desired (pure) ─┴─> delta (pure) ─> apply, in order of dependence ─> counts, health
 *
 * Events keep the view current and mark; one quiet pass compares and changes just
 * the difference; every 90 s all is read and compared again. Before open nothing is
 * removed. What is not ours is never touched: a foreign route with the same destination is
 * kept and reported. An attach and a detach are carried out at once, beside the pass, and
 * end in the same state that the pass would have made.
 */
#pragma once

#include "lib/base/pass.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/json/values.h"
#include "lib/netlink/route.h"

/* A pod's link as the state has it. Borrowed while the call lasts. */
struct kernel_pod {
	const char *link;
	struct mac mac; /* of the pod's end */
	const struct address *addresses;
	size_t n_addresses;
	bool route_localnet;
};

/* A block of ours in a routed pool; no_blackhole for blocks of a single address. */
struct kernel_block {
	struct prefix block;
	bool no_blackhole;
};

/*
 * This node's end of the overlay, at most one for each family of the underlay: local's family says
 * which, and so the device's name.
 */
struct kernel_tunnel {
	struct address local; /* of this node: what it sends from */
	struct mac mac;       /* the same on both */
	uint32_t vni, mtu;
	uint16_t port;
	bool checksum_offload;
	struct address addresses[2]; /* of the device, as /32 and /128 */
	size_t n_addresses;
};

/* Another node, or the holder of a lease. */
struct kernel_remote {
	struct address
		underlay; /* where its tunnel ends; its family says which of ours leads there */
	struct address node[2]; /* IPv4, IPv6, for direct routes; AF_UNSPEC: none */
	struct mac mac;
	struct address vtep[2]; /* of its tunnel's end: the next hop of its blocks, by family */
};

struct kernel_remote_block {
	struct prefix block;
	uint32_t remote; /* whose; its index */
	/* A plain route where the remote's address of the block's family is in a subnet of ours. */
	bool may_be_direct;
};

/* All that should be; arrays are free()d by who asked. Pods that are being released are not in it.
 */
struct kernel_wants {
	struct kernel_pod *pods;
	size_t n_pods;
	struct kernel_block *blocks;
	size_t n_blocks;
	struct kernel_tunnel *tunnels;
	size_t n_tunnels;
	struct kernel_remote *remotes;
	size_t n_remotes;
	struct kernel_remote_block *remote_blocks;
	size_t n_remote_blocks;
	struct kroute *routes; /* whatever else is ours, as it is to be: static routes */
	size_t n_routes;
	bool statics_known;    /* all static routes are in routes: others of theirs may go */
	uint32_t export_table; /* 0: none */
	bool ipv6;             /* IPv6 pools are in use: forwarding is wanted for it too */
};

struct kernel;
struct kernel_view;

struct kernel_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	uint32_t minute; /* in ms; shorter in tests: the full compare comes every 1.5 of it */
	/* What should be, from the state as it is now; 0 or -errno. */
	int (*desire)(struct kernel_wants *ret, void *arg);
	/* Prefixes and addresses that no blackhole may cover: etcd's endpoints; may be NULL. */
	int (*protect)(struct prefixes *ret, void *arg);
	/* A pod link of ours (by name) is gone from this namespace. */
	void (*link_gone)(const char *name, void *arg);
	/* Something that status shows has changed. */
	void (*changed)(void *arg);
	/* This static route was removed by another program and is restored; may be NULL. */
	void (*restored)(const struct kroute *r, void *arg);
	/* A pass has been made; may be NULL. */
	void (*passed)(void *arg);
	/* A route of BIRD's is gone, by the socket with this number of netlink; may be NULL. */
	void (*bird_lost)(const struct prefix *dst, uint32_t port, void *arg);
	/* Forwarding of this family was off and is on now; may be NULL. */
	void (*forwards)(sa_family_t family, void *arg);
	void *arg;
};

/* Reads the kernel and changes nothing yet. */
int kernel_new(const struct kernel_options *options, struct kernel **ret, struct err *err);
void kernel_free(struct kernel *k);
AUTO_DEFINE(struct kernel *, kernel_free)

/* desire() can be asked: what is missing is added from now on, also while etcd is away. */
void kernel_start(struct kernel *k);
/* The state is complete: from now on what is not wanted any more is removed, too. */
void kernel_open(struct kernel *k);
/* What is wanted has changed. */
void kernel_mark(struct kernel *k);
/* The same, and the pass runs before other work: a block came or went. */
void kernel_soon(struct kernel *k);
/* The pass runs now if it is marked, and not when all is quiet. */
void kernel_now(struct kernel *k);
/* Removes all that is ours, pod links included. For who ends afterwards: it is no pass. */
int kernel_clear(struct kernel *k, struct err *err);
/* Whether the first compare has been done and nothing of it failed; else why. */
bool kernel_ready(const struct kernel *k, struct err *why);

/* Sysctls, neighbours and routes of one pod, now. On failure what this call made is taken back. */
int kernel_attach(struct kernel *k, const struct kernel_pod *pod, struct err *err);
/*
 * Takes the pod out of routing now, and its link into DOOMED_GROUP if it exists: 0, -ENODEV if
 * there is no such link (routes went with it), or another -errno.
 */
int kernel_detach(struct kernel *k, const struct kernel_pod *pod, struct err *err);
/* Reads from the kernel: 0, or -ENOENT with a sentence that names what is missing or wrong. */
int kernel_check(struct kernel *k, const struct kernel_pod *pod, struct err *err);

/* What the kernel holds as far as it concerns us; valid until the loop goes on. */
const struct kernel_view *kernel_seen(const struct kernel *k);
/*
 * Has the kernel say which route leads to this address, unless it said so already and nothing that
 * could matter has changed; kernel_view_lookup() tells. 0 or -errno: it could not be asked.
 */
int kernel_look_up(struct kernel *k, const struct address *to);
/* Whether an interface of this node has the address. */
bool kernel_has_address(const struct kernel *k, const struct address *a);
/* Whether a link has a name of this shell pattern. */
bool kernel_has_link(const struct kernel *k, const char *pattern);
/*
 * Routes of the main table that people and their tools have set, but for default routes; valid
 * until the loop goes on. The kernel is asked only if one has changed. 0 or -errno.
 */
int kernel_other_routes(struct kernel *k, const struct kroute **ret, size_t *ret_n);
/* Asks the kernel whether it has this route of BIRD's. */
bool kernel_has_bird_route(struct kernel *k, const struct prefix *dst);
/* What this socket removes is BIRD's own business: bird_lost() is not called for it. */
void kernel_set_bird_port(struct kernel *k, uint32_t port);

/* How another node's block is reached, by the route of ours that the kernel holds for it. */
enum kernel_way { KERNEL_WAY_NONE, KERNEL_WAY_DIRECT, KERNEL_WAY_TUNNEL, KERNEL_WAYS };
const char *kernel_way_name(enum kernel_way way); /* "missing", "direct", "tunnel" */
enum kernel_way kernel_way(const struct kernel *k, const struct prefix *block);
/* Of the link that leads to this address of the node (its uplink); 0: unknown. */
uint32_t kernel_uplink_mtu(const struct kernel *k, const struct address *node);

/* What is repaired. */
enum kernel_thing {
	KERNEL_HOST, /* forwarding */
	KERNEL_LINK, /* its settings */
	KERNEL_NEIGHBOUR,
	KERNEL_ROUTE,
	KERNEL_TUNNEL, /* the overlay's device, its addresses */
	KERNEL_FDB,
	KERNEL_THINGS
};
const char *kernel_thing_name(enum kernel_thing thing); /* "host", "link", ... */

struct kernel_stats {
	uint64_t links, routes, neighbours, fdb; /* ours, as the kernel holds them */
	uint64_t repaired[KERNEL_THINGS];
	uint64_t repairs;   /* what another program had changed or removed */
	uint64_t conflicts; /* foreign routes that keep ours out at the moment */
	uint64_t failures;  /* changes that the kernel refused */
	uint64_t passes, compares;
	uint64_t last_pass_us;
};
struct kernel_stats kernel_stats(const struct kernel *k);
struct pass_stats kernel_passes(const struct kernel *k);
