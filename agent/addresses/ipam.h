/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's addresses: the pure allocator with its inputs, its files and its claims.
 *
 *   etcd: pools, extents, labels, own index -> [ipam_inputs, host_keys] -----.
 *   local API: assign, release, check, gc, list -> [requests, show] ----------+-> allocator
 *   local API: attach, detach; kernel: link gone -> [pod_links] --------------|      |
 *   run directory, kernel routes, spool -> [start, notes] --------------------'      |
 *   etcd: claims, releases, address keys <- [own_blocks, recovery, host_keys] <------|
 *   kernel, firewall: what should be <- [desire] <-----------------------------------'
 *
 * Serves when it knows everything, registered and all inputs listed, or, while
 * etcd is away, when the files of this boot say the same; and only while it can prove that
 * its blocks are nobody else's (agent/addresses/authority.h).
 */
#pragma once

#include "agent/firewall/desired_firewall.h"
#include "agent/kernel/kernel.h"
#include "agent/kernel/reaper.h"
#include "agent/node/register.h"
#include "agent/show/readiness.h"
#include "agent/show/status.h"
#include "ipam/attachments/request.h"
#include "lib/base/metrics.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/daemon/serve.h"
#include "lib/store/store.h"

struct ipam;
struct records;

/* The local mark: a file of this name in the run directory. */
#define DRAIN_MARK "drain"

struct ipam_options {
	sd_event *event;
	struct store *store;
	struct timers *timers;
	struct health *health;
	struct records *records;
	struct kernel *kernel;
	struct reaper *reaper;
	const char *prefix, *node, *boot, *run_dir; /* borrowed */
	uint32_t minute;                            /* in ms; shorter in tests */
	/* NULL: not registered. */
	const struct fence *(*fence)(void *arg);
	void (*fence_moved)(int64_t revision, void *arg);
	/* Why the server is out of reach or this node not registered; "" if neither is so. */
	const char *(*reason)(void *arg);
	/* What our record promises, at the least; 0: there is no registration yet. */
	uint32_t (*promise)(void *arg);
	int (*set_promise)(uint32_t seconds, void *arg);
	/* This node has said what it holds, for this recovery. */
	int (*set_recovery)(const char *id, void *arg);
	/* Something that status shows has changed. */
	void (*changed)(void *arg);
	/* Pods or blocks have changed: the kernel should follow. */
	void (*routes_changed)(bool blocks, void *arg);
	/* Once: everything has been read, and every block of ours is certain. */
	void (*known)(void *arg);
	/* Of a pod's link: as the node's uplink, or what fits into the tunnel; 0: unknown. */
	uint32_t (*mtu)(bool encapsulated, void *arg);
	/* ipam_tunnel() may have another answer. */
	void (*tunnel_changed)(void *arg);
	/* etcd takes writes that it refused before: others need not wait either. */
	void (*accepted)(void *arg);
	/* Why no pod may be attached on this node, as an error for its ADD; NULL: it may. */
	const char *(*refuses)(bool route_localnet, void *arg);
	/* Whether the node is drained by a local mark; may be NULL. Asked at every ADD. */
	bool (*marked)(void *arg);
	void *arg;
};

/* Reads the files of this boot and the kernel's routes; 0 or -errno with the reason. */
int ipam_new(const struct ipam_options *options, struct ipam **ret, struct err *err);
void ipam_free(struct ipam *m);
AUTO_DEFINE(struct ipam *, ipam_free)

/* From the registration and the store. */
void ipam_registered(struct ipam *m);
/* The node's record is gone or another's: no proof counts any more. */
void ipam_lost(struct ipam *m);
/* Whether a proof counts at this moment. */
bool ipam_holds(const struct ipam *m);
void ipam_removed(struct ipam *m, bool removed);
void ipam_notice(struct ipam *m, enum store_notice notice);
/* Of which families this node has an address: pools of another are reported. */
void ipam_set_self(struct ipam *m, bool ipv4, bool ipv6);
/* etcd takes writes that it refused before: what rests goes on now. */
void ipam_retry(struct ipam *m);
/* Asks etcd now, and not within a minute: is every block still ours, and is that proven? */
void ipam_look_at_blocks(struct ipam *m);

/* Whether addresses are served; if not, why. */
bool ipam_ready(struct ipam *m, struct err *why);
/* What config's logLevel says, else that of our own settings. */
enum log_level ipam_log_level(const struct ipam *m, enum log_level own);
/* Prefixes of all pools that are known, for whoever must keep out of them; free() it. */
int ipam_pool_prefixes(const struct ipam *m, struct prefix **ret, size_t *ret_n);
/* The same, and those of pools that are gone and still have blocks. */
int ipam_extent_prefixes(const struct ipam *m, struct prefix **ret, size_t *ret_n);
/* Counts by pool, for status; free() the array, names live until the next change. */
int ipam_pool_status(struct ipam *m, struct status_pool **ret, size_t *ret_n);

/* Pods here, or what else has addresses; marks are not counted. */
size_t ipam_attachments(const struct ipam *m);
/* The operator wants no new pods here: spec/<node>, or the local mark. */
bool ipam_drained(const struct ipam *m);
/* The local mark came or went. */
void ipam_mark_changed(struct ipam *m);
/* A restarted agent that may have yet to read etcd and the kernel: an earlier one of this boot
 * served. */
bool ipam_resuming(const struct ipam *m);
void ipam_readiness(struct ipam *m, struct readiness *ret);
void ipam_metrics(struct ipam *m, struct metrics *ret);
struct pass_stats ipam_passes(const struct ipam *m);

/* Whether somebody here has an address of it. */
bool ipam_uses(const struct ipam *m, const char *network, const struct prefix *block);
/* Own blocks that get routes; free() ret->v. */
int ipam_routed_blocks(struct ipam *m, struct prefixes *ret);
/* What the kernel should have: pods that are attached, blocks that are ours. */
int ipam_desire(struct ipam *m, struct kernel_wants *ret);
/* Whose traffic is masqueraded, and what counts as inside; free() both lists. */
/* Sets nat and pools, each free()d by who asked. */
int ipam_desire_firewall(struct ipam *m, struct firewall_wants *ret);
/* Releases what was waiting for this link to be gone. */
void ipam_link_gone(struct ipam *m, const char *link);
/* Unplugs again what is being released: at the start, and after a failure. */
void ipam_unplug_again(struct ipam *m);

/*
 * The address of this node's end of the overlay, one for each family (0: IPv4, 1: IPv6) that is
 * wanted; nothing is taken or given back before the first call. It is reserved: no boot frees it.
 */
void ipam_want_tunnel(struct ipam *m, const bool wanted[2]);
enum ipam_tunnel_state {
	IPAM_TUNNEL_NONE,    /* not wanted */
	IPAM_TUNNEL_PENDING, /* it will come */
	IPAM_TUNNEL_HELD,
	IPAM_TUNNEL_REFUSED, /* there is none, and why */
};
struct ipam_tunnel {
	enum ipam_tunnel_state state;
	struct address address;
	struct err why;
};
struct ipam_tunnel ipam_tunnel(const struct ipam *m, int family);
/* config, pools and extents are known, from etcd or from the file of this boot. */
bool ipam_inputs_known(const struct ipam *m);

/* Handlers of docs/API.md. */
void ipam_assign(struct ipam *m, struct serve_request *request);
void ipam_release(struct ipam *m, struct serve_request *request);
void ipam_check(struct ipam *m, struct serve_request *request);
void ipam_gc(struct ipam *m, struct serve_request *request);
void ipam_list(struct ipam *m, struct serve_request *request);
/* GET /v1/pod?pod=...: all that is known of it; more() adds to a block of it how others learn it. */
typedef void ipam_block_fn(const struct prefix *block, struct tree *t, void *arg);
void ipam_show_pod(struct ipam *m, struct serve_request *request, ipam_block_fn *more, void *arg);
/* With ?pod=NAMESPACE/POD (or a container's id) those of one. */
void ipam_refusals(struct ipam *m, struct serve_request *request);
void ipam_status(struct ipam *m, struct serve_request *request);
void ipam_attach(struct ipam *m, struct serve_request *request);
void ipam_detach(struct ipam *m, struct serve_request *request);
void ipam_check_link(struct ipam *m, struct serve_request *request);
void ipam_link_status(struct ipam *m, struct serve_request *request);
