/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics.h"

#include <math.h>

void metrics_etcd(struct metrics *m, const struct store_etcd_stats *stats, bool connected,
		  uint64_t silence_us)
{
	metrics_one(m, "roost_etcd_connected", METRIC_GAUGE,
		    "1 while the watches on etcd's keys are confirmed.", connected);
	metrics_one(m, "roost_etcd_silence_seconds", METRIC_GAUGE,
		    "Since etcd last said anything: how old, at most, what is known of it may be.",
		    silence_us == UINT64_MAX ? INFINITY : (double)silence_us / 1e6);
	metrics_family(m, "roost_etcd_requests_total", METRIC_COUNTER,
		       "Requests to a member of etcd, by outcome.");
	for (unsigned o = 0; o < ETCD_OUTCOMES; o++)
		metrics_count(m, LABELS({ "outcome", etcd_outcome_name(o) }), stats->outcomes[o]);
	metrics_family(m, "roost_etcd_request_duration_seconds", METRIC_HISTOGRAM,
		       "From a request to a member of etcd to its answer or its end.");
	metrics_histogram(m, NULL, &stats->duration);
	metrics_family(m, "roost_etcd_reconnects_total", METRIC_COUNTER,
		       "How often the watch stream was lost and opened anew.");
	metrics_count(m, NULL, stats->reconnects);
	metrics_family(m, "roost_etcd_events_total", METRIC_COUNTER,
		       "Changes of keys that the watches brought.");
	metrics_count(m, NULL, stats->events);
}

void metrics_kernel(struct metrics *m, const struct kernel_stats *stats,
		    const struct reaper_stats *reaped)
{
	metrics_one(m, "roost_kernel_links", METRIC_GAUGE, "Pods' links in the kernel.",
		    (double)stats->links);
	metrics_one(m, "roost_kernel_routes", METRIC_GAUGE, "Routes of ours in the kernel.",
		    (double)stats->routes);
	metrics_one(m, "roost_kernel_neighbours", METRIC_GAUGE,
		    "Permanent neighbours of ours in the kernel.", (double)stats->neighbours);
	metrics_one(m, "roost_kernel_conflicts", METRIC_GAUGE,
		    "Routes of ours that cannot be set because a stranger's is in the way.",
		    (double)stats->conflicts);
	metrics_family(m, "roost_kernel_repairs_total", METRIC_COUNTER,
		       "What somebody else had changed or removed and was put back, by kind.");
	for (unsigned k = 0; k < KERNEL_THINGS; k++)
		metrics_count(m, LABELS({ "kind", kernel_thing_name(k) }), stats->repaired[k]);
	metrics_family(m, "roost_kernel_failures_total", METRIC_COUNTER,
		       "Changes that the kernel refused.");
	metrics_count(m, NULL, stats->failures);
	metrics_family(m, "roost_kernel_compares_total", METRIC_COUNTER,
		       "Times that everything was read from the kernel and compared.");
	metrics_count(m, NULL, stats->compares);
	metrics_family(m, "roost_links_destroyed_total", METRIC_COUNTER,
		       "Links of released pods that were destroyed.");
	metrics_count(m, NULL, reaped->destroyed);
}

struct metrics_pass metrics_pass_of(const char *name, struct pass_stats stats)
{
	return (struct metrics_pass){ name, stats.passes - stats.failures, stats.failures,
				      stats.duration };
}

void metrics_passes(struct metrics *m, const struct metrics_pass *passes, size_t n)
{
	metrics_family(m, "roost_passes_total", METRIC_COUNTER,
		       "Comparisons of what should be with what is, by what and outcome.");
	for (size_t i = 0; i < n; i++) {
		metrics_count(m, LABELS({ "pass", passes[i].name }, { "outcome", "ok" }),
			      passes[i].ok);
		metrics_count(m, LABELS({ "pass", passes[i].name }, { "outcome", "failed" }),
			      passes[i].failed);
	}
	metrics_family(m, "roost_pass_duration_seconds", METRIC_HISTOGRAM,
		       "How long such a pass took, with what it changed.");
	for (size_t i = 0; i < n; i++)
		metrics_histogram(m, LABELS({ "pass", passes[i].name }), &passes[i].duration);
}

void metrics_health(struct metrics *m, const struct health *health, const struct readiness *ready)
{
	size_t n;
	const struct health_entry *entries = health_list(health, &n);

	metrics_family(
		m, "roost_health_problem", METRIC_GAUGE,
		"1 for each part that is not well at the moment; the status has the reason.");
	for (size_t i = 0; i < n; i++)
		metrics_count(m,
			      LABELS({ "part", entries[i].part },
				     { "level", log_level_name(entries[i].level) }),
			      1);
	metrics_one(m, "roost_ready", METRIC_GAUGE,
		    "1 when a pod could be started here and would be reached.",
		    readiness_is_ready(ready, NULL));
	metrics_family(m, "roost_input_ready", METRIC_GAUGE,
		       "1 for each input that is complete and in sync.");
	for (size_t i = 0; i < ready->n; i++)
		metrics_count(m, LABELS({ "input", ready->v[i].name }),
			      !ready->v[i].reason.text[0]);
}
