/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What roostd counts, in Prometheus' words: docs/METRICS.md.
 *
 *   counts of etcd, kernel, passes, health, the process -> [metrics] -> lib/metrics
 *
 * Pure but for metrics_process(), which reads /proc/self. What only a module itself knows it
 * writes by itself: ipam_metrics(), routing_metrics(), request_stats_metrics().
 */
#pragma once

#include "agent/health.h"
#include "agent/kernel.h"
#include "agent/pass.h"
#include "agent/readiness.h"
#include "agent/reaper.h"
#include "lib/metrics.h"
#include "lib/store_etcd.h"

/* silence_us UINT64_MAX: never heard. */
void metrics_etcd(struct metrics *m, const struct store_etcd_stats *stats, bool connected,
		  uint64_t silence_us);
void metrics_kernel(struct metrics *m, const struct kernel_stats *stats,
		    const struct reaper_stats *reaped);

struct metrics_pass {
	const char *name;
	uint64_t ok, failed;
	struct histogram duration;
};
struct metrics_pass metrics_pass_of(const char *name, struct pass_stats stats);
void metrics_passes(struct metrics *m, const struct metrics_pass *passes, size_t n);

void metrics_health(struct metrics *m, const struct health *health, const struct readiness *ready);
void metrics_process(struct metrics *m);
