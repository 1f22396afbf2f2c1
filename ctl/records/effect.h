/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change of records does to the cluster that runs: sessions that restart or end, blocks and
 * static routes that are withdrawn, tunnels that are made again, new pods that get other addresses.
 *
 *   records as they are, changes -> BIRD's plan of each node before and after -> [effects_of] -> text
 *
 * Pure. The plans are those that the agents themselves make (agent/bird/desired_bird.h). Beyond some
 * hundreds of nodes only the first ones are compared; `looked` says how many.
 */
#pragma once

#include "ctl/records/change.h"
#include "lib/base/array.h"

/* Every record that an effect follows from. */
struct cluster {
	const struct world *world; /* pools, extents, peers, filters */
	struct ctl_kvs config, nodes, specs, blocks, routes, status;
};
void cluster_done(struct cluster *cluster);

enum effect_kind {
	EFFECT_ENDS,      /* a session goes away */
	EFFECT_RESTARTS,  /* a session goes down and comes back */
	EFFECT_FILTERS,   /* the routes of a session pass another filter */
	EFFECT_WITHDRAWS, /* a block is no longer announced */
	EFFECT_ROUTES,    /* a static route leaves a node */
	EFFECT_TUNNELS,   /* the overlay's device is made again */
	EFFECT_PODS,      /* new pods get addresses of another pool */
};
struct effect {
	enum effect_kind kind;
	char what[192];
	size_t count;
	struct texts nodes; /* each once; borrowed from cluster */
	size_t room;
	uint64_t addresses; /* in use in what is withdrawn, as living agents report */
};
struct effects {
	ARRAY(struct effect) all; /* by kind */
	size_t looked, nodes;     /* compared, of so many */
	bool asks;                /* something that runs, or is promised, changes */
};

/* 0 or -ENOMEM; *ret is set only on success. */
int effects_of(const struct change *changes, size_t n, const struct cluster *cluster,
	       struct effects *ret);
void effects_done(struct effects *effects);
/* A line for each; free() it. NULL: out of memory. */
char *effects_text(const struct effects *effects);

/*
 * Shows the effects of changes, and asks if there are any (consent.c). 0: go on. world NULL: it is
 * read. always: a question that is asked in any case.
 */
int effect_consent(struct ctl *ctl, const struct change *changes, size_t n,
		   const struct world *world, const char *always, struct err *err);
