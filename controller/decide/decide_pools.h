/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools: how each is, for status/pool/<pool>, and whom to ask for blocks when one is full.
 *
 *   mirror, time -> [decide_pools] -> plans: status records, give-back keys
 *
 * Pure. A pool is full when an agent that lives says so, or when every block of its extent has an
 * owner. Agents claim what `preallocate` says by themselves; here it is only verified. Of a full
 * pool the nodes with the most empty blocks, if they have others in it, are asked to give back. An
 * agent answers by deleting the key when it has given what it can spare; it is not asked again
 * within a minute.
 */
#pragma once

#include "controller/state/mirror.h"
#include "controller/state/plan.h"

/* How many nodes are asked at a time for one pool. */
#define POOL_ASKED_MAX 8

struct asked {
	char *key; /* relative: host/<node>/give-back/<network> */
	uint64_t when;
};

/* What is remembered from one pass to the next. */
struct pools {
	struct asked *v;
	size_t n, room;
	size_t full, invalid, lacking; /* pools, pools, nodes */
};
void pools_done(struct pools *p);

/* utc: the same moment as now, as records have it; minute: in ms. */
void pools_decide(struct pools *p, const struct mirror *m, uint64_t now, const char *utc,
		  uint64_t minute, struct plans *ret);
