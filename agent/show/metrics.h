/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What roostd counts, in Prometheus' words: docs/METRICS.md.
 *
 *   counts of etcd, kernel, passes, health, the process -> [metrics] -> lib/base/metrics
 *
 * Pure but for metrics_process(), which reads /proc/self. What only a module itself knows it
 * writes by itself: ipam_metrics(), routing_metrics(), request_stats_metrics().
 */
#pragma once

#include "agent/firewall/firewall.h"
#include "agent/kernel/kernel.h"
#include "agent/kernel/reaper.h"
#include "agent/show/readiness.h"
#include "lib/daemon/metrics_daemon.h"

void metrics_kernel(struct metrics *m, const struct kernel_stats *stats,
		    const struct reaper_stats *reaped);
void metrics_firewall(struct metrics *m, struct firewall_stats stats, struct firewall_drops drops);

void metrics_health(struct metrics *m, const struct health *health, const struct readiness *ready);
