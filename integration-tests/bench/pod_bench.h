/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of pod-bench; see pod_bench.c. */
#pragma once

#include "integration-tests/bench/pods.h"

struct bench {
	struct pods pods;
	size_t rounds;                                  /* ADD and DEL alone */
	size_t batches, at_once;                        /* ADDs at once */
	size_t drains, drained, workers, pace_ms, idle; /* DELs while ADDs go on */
	size_t namespaces;
	struct json_object *result;
};

/*
 * Whose turn the i-th is, when each has one a round. All orders come up, so that nobody always
 * follows the same other and pays for what that one left to be done.
 */
size_t bench_turn(const struct bench *b, size_t i);

void bench_drain(struct bench *b);
