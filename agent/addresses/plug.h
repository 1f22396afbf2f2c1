/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods' links: the local API's attach, detach, check, and the way between addresses and kernel.
 *
 *   roost -> attach, detach, check -> [plug] -> ipam: files, states
 *                                           `-> kernel: routes, neighbours, sysctls
 *   kernel: link gone -> [plug] -> ipam: the address is free       `-> reaper: links destroyed
 *
 * Decides nothing about addresses or routes: it carries what one part says to the other.
 */
#pragma once

#include "agent/addresses/ipam.h"
#include "agent/kernel/kernel.h"
#include "agent/kernel/reaper.h"
#include "lib/daemon/serve.h"

struct plug;

struct plug_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	uint32_t minute;
	/* Prefixes that no blackhole may cover; see kernel.h. */
	int (*protect)(struct prefixes *ret, void *arg);
	/* Adds what the overlay should be; see kernel.h. */
	int (*overlay)(struct kernel_wants *ret, void *arg);
	/* Something that status shows has changed. */
	void (*changed)(void *arg);
	/* Static routes, and what became of them; see kernel.h. */
	int (*statics)(struct kernel_wants *ret, void *arg);
	void (*restored)(const struct kroute *r, void *arg);
	void (*passed)(void *arg);
	void (*bird_lost)(const struct prefix *dst, uint32_t port, void *arg);
	/* See kernel.h. */
	void (*forwards)(sa_family_t family, void *arg);
	void *arg;
};

/* Takes the reaper. The kernel is read, and changed once the addresses are known: plug_open(). */
int plug_new(const struct plug_options *options, struct reaper *reaper, struct plug **ret,
	     struct err *err);
void plug_free(struct plug *p);
AUTO_DEFINE(struct plug *, plug_free)
/* Borrowed; from now on both know each other. */
void plug_set_ipam(struct plug *p, struct ipam *ipam);
/* All inputs are known: what is not wanted any more may be removed. */
void plug_open(struct plug *p);

/* For the addresses' part. */
bool plug_unplug(struct plug *p, const struct attachment *a);
/* soon: a block came or went, and neighbours wait for the way to it. */
void plug_routes_changed(struct plug *p, bool soon);
/* A pod has got its addresses, and will be attached soon. */
void plug_adding(struct plug *p);
/* And not when all is quiet. */
void plug_now(struct plug *p);
/* Of the uplink that has this address of the node; 0: unknown. */
uint32_t plug_mtu(struct plug *p, const struct address *node);

struct kernel *plug_kernel(const struct plug *p);
struct reaper_stats plug_reaped(const struct plug *p);

/* Handlers of docs/API.md. */
void plug_attach(struct plug *p, struct serve_request *request);
void plug_detach(struct plug *p, struct serve_request *request);
void plug_check(struct plug *p, struct serve_request *request);
void plug_ready(struct plug *p, struct serve_request *request);
