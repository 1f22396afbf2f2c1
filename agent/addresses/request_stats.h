/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the local API's requests went: how many, how they ended, how long they took.
 *
 *   serve: each answer -> [request_stats] -> metrics
 *
 * Pure. An ADD is an assign and an attach, a DEL a detach or a release. The time is the agent's
 * own: from the whole request to its answer, waiting for a block included.
 */
#pragma once

#include "lib/base/metrics.h"

enum request_verb {
	REQUEST_ASSIGN,
	REQUEST_ATTACH,
	REQUEST_DETACH,
	REQUEST_RELEASE,
	REQUEST_CHECK,
	REQUEST_GC,
	REQUEST_VERBS
};
enum request_outcome {
	REQUEST_OK,
	REQUEST_REFUSED,     /* wrong, or in conflict with what is: asking again will not help */
	REQUEST_UNAVAILABLE, /* not now: the agent or etcd is not ready, the node is drained */
	REQUEST_FULL,        /* no address left */
	REQUEST_FAILED,      /* a fault of ours */
	REQUEST_GONE,        /* nobody waited for the answer any more */
	REQUEST_OUTCOMES
};

struct request_stats {
	uint64_t outcomes[REQUEST_VERBS][REQUEST_OUTCOMES];
	struct histogram duration[REQUEST_VERBS];
};

/* Of serve's answered(); paths that are none of these are not counted. */
void request_stats_add(struct request_stats *s, const char *path, unsigned status, uint64_t us);
void request_stats_metrics(const struct request_stats *s, struct metrics *m);
