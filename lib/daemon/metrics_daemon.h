/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every daemon of ours counts, in Prometheus' words: docs/METRICS.md.
 *
 *   counts of etcd, passes, health, the process -> [metrics_daemon] -> lib/base/metrics
 *
 * Pure but for metrics_process(), which reads /proc/self.
 */
#pragma once

#include "lib/base/metrics.h"
#include "lib/base/pass.h"
#include "lib/daemon/health.h"
#include "lib/store/store_stats.h"

/* silence_us UINT64_MAX: never heard. */
void metrics_etcd(struct metrics *m, const struct store_stats *stats, bool connected,
		  uint64_t silence_us);

struct metrics_pass {
	const char *name;
	uint64_t ok, failed;
	struct histogram duration;
};
struct metrics_pass metrics_pass_of(const char *name, struct pass_stats stats);
void metrics_passes(struct metrics *m, const struct metrics_pass *passes, size_t n);

/* One value for each part that is not well. */
void metrics_problems(struct metrics *m, const struct health *health);
void metrics_process(struct metrics *m);
