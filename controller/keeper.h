/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: what the leader does, as long as it leads.
 *
 *   elected -> one watch on all keys -> mirror -> [keeper] -> decisions -> plans -> work
 *
 * It knows no loop: whoever has one calls keeper_pass() when changed() said so. Everything follows
 * from the mirror; what is remembered beside it (since when a node is silent, what the last audit
 * found, whom it asked) is forgotten with the leadership, and only makes it wait longer.
 */
#pragma once

#include "controller/decide/decide_kube.h"
#include "controller/decide/decide_pools.h"
#include "controller/decide/decide_recovery.h"
#include "controller/decide/decide_removals.h"
#include "controller/decide/decide_repairs.h"
#include "controller/decide/decide_routes.h"
#include "controller/state/elect.h"
#include "controller/state/plan.h"
#include "lib/daemon/health.h"

struct keeper;

struct keeper_options {
	struct store *store;
	struct timers *timers;
	struct health *health;
	const struct elect *elect;
	const char *prefix;
	uint32_t minute; /* ms of one */
	/* What Kubernetes says, and whom to ask it about; NULL: there is none. */
	const struct kube_nodes *kube;
	void (*expect)(const char *name, const char *uid, void *arg);
	/* There may be something to do. */
	void (*changed)(void *arg);
	void *arg;
};

int keeper_new(const struct keeper_options *options, struct keeper **ret);
void keeper_free(struct keeper *k);
AUTO_DEFINE(struct keeper *, keeper_free)

/* From elected() and deposed(). */
int keeper_start(struct keeper *k);
void keeper_stop(struct keeper *k);

/* Another etcd answers, or an older state of it; before elect_notice(). */
void keeper_went_back(struct keeper *k);
/* Kubernetes has said something new. */
void keeper_look(struct keeper *k);
/* Decides and sends; negative: not all could be done, come again. */
int keeper_pass(struct keeper *k);
/* Whether everything was read, so that it can decide. */
bool keeper_in_sync(const struct keeper *k);

struct keeper_stats {
	size_t keys, nodes, silent, blocks, addresses;
	size_t leases; /* of the nodes: those without an agent, which hold leases */
	uint64_t leases_freed;
	size_t removals[REMOVAL_STATES];
	uint64_t comparisons, comparison_us; /* how many; how long the last one took */
	/* Of the keeper. */
	const struct repairs *repairs;
	const struct pools *pools;
	const struct routes *routes;
	struct work_stats work;
};
struct keeper_stats keeper_stats(const struct keeper *k);
