/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/metrics_daemon.h"

#include <math.h>

void metrics_etcd(struct metrics *m, const struct store_stats *stats, bool connected,
		  uint64_t silence_us)
{
	metrics_one(m, "roost_etcd_connected", METRIC_GAUGE,
		    "1 while the watches on etcd's keys are confirmed.", connected);
	metrics_one(m, "roost_etcd_silence_seconds", METRIC_GAUGE,
		    "Since etcd last said anything: how old, at most, what is known of it may be.",
		    silence_us == UINT64_MAX ? INFINITY : (double)silence_us / 1e6);
	metrics_family(m, "roost_etcd_requests_total", METRIC_COUNTER,
		       "Requests to a member of etcd, by outcome.");
	for (unsigned o = 0; o < SERVER_OUTCOMES; o++)
		metrics_count(m, LABELS({ "outcome", server_outcome_name(o) }), stats->outcomes[o]);
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

void metrics_problems(struct metrics *m, const struct health *health)
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
}
