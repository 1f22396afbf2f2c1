/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay on this node: whether there is one, what it is made from, what is told of it.
 *
 *   records, identity, tunnel address ─> desired_overlay (pure) ─> kernel
 *        ^ node/, block/ watched while a pool has an encapsulation  `──> node/<self>, health, API
 *
 * A pool that vanishes from etcd stays in the overlay while its extent stands,
 * also over a restart of the agent: the file overlay of the run directory keeps
 * which those are. Nothing is told to the kernel before config and pools are
 * known, and overlay_in_sync() says when others' nodes and blocks are, too:
 * before that nothing may be removed.
 */
#pragma once

#include "agent/addresses/ipam.h"
#include "agent/node/identity.h"
#include "agent/node/register.h"
#include "agent/overlay/desired_overlay.h"
#include "agent/show/status.h"
#include "lib/base/metrics.h"
#include "lib/daemon/serve.h"

struct overlay;

struct overlay_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	struct records *records; /* borrowed, as all of these */
	struct ipam *ipam;       /* holds the tunnel's address */
	struct kernel *kernel;   /* knows the uplink */
	const char *run_dir;
	/* The kernel should follow. */
	void (*changed)(void *arg);
	void *arg;
};

int overlay_new(const struct overlay_options *options, struct overlay **ret, struct err *err);
void overlay_free(struct overlay *o);
AUTO_DEFINE(struct overlay *, overlay_free)

/* Who we are, copied, and whose record says where the tunnel ends. Nothing is made before. */
void overlay_set_self(struct overlay *o, const struct identity *self,
		      struct registration *registration);
/* The tunnel's address, the blocks of this node or what is known has changed. */
void overlay_mark(struct overlay *o);
/* A pool of the overlay whose blocks do not go to BIRD, by what is remembered of it. */
bool overlay_pool_is_silent(const struct overlay *o, const char *pool);
/* While there is one. */
void overlay_readiness(const struct overlay *o, struct readiness *ret);
/* Whether all that it is made from has been read; also if there is none. */
bool overlay_in_sync(const struct overlay *o);

/* Adds tunnels, remotes and their blocks, each free()d by who asked; 0 or -ENOMEM. */
int overlay_desire(struct overlay *o, struct kernel_wants *ret);
/*
 * Addresses of all nodes, free() them, while there is an overlay and all are known; 1, 0 if not,
 * -ENOMEM. Also those without a block: their pods may send through the tunnel.
 */
int overlay_nodes(const struct overlay *o, struct prefixes *ret);
uint16_t overlay_port(const struct overlay *o);
/* What a pod's packets may have; 0: no overlay. */
uint32_t overlay_pod_mtu(const struct overlay *o);

/* As the kernel has it. */
void overlay_status(struct overlay *o, const struct kernel *kernel, struct status_overlay *ret);
void overlay_metrics(struct overlay *o, const struct kernel *kernel, struct metrics *ret);
/* GET /v1/overlay. */
void overlay_show(struct overlay *o, const struct kernel *kernel, struct serve_request *request);
