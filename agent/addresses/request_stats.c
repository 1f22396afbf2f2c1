/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/request_stats.h"

#include <string.h>

static const struct {
	const char *path;
	enum request_verb verb;
} paths[] = {
	{ "/v1/ipam/assign", REQUEST_ASSIGN },
	{ "/v1/attach", REQUEST_ATTACH },
	{ "/v1/detach", REQUEST_DETACH },
	{ "/v1/ipam/release", REQUEST_RELEASE },
	{ "/v1/check", REQUEST_CHECK },
	{ "/v1/ipam/check", REQUEST_CHECK },
	{ "/v1/gc", REQUEST_GC },
	{ "/v1/ipam/gc", REQUEST_GC },
};

static enum request_outcome outcome_of(unsigned status)
{
	if (status == 0)
		return REQUEST_GONE;
	if (status < 400)
		return REQUEST_OK;
	if (status < 500)
		return REQUEST_REFUSED;
	return status == 503 ? REQUEST_UNAVAILABLE : status == 507 ? REQUEST_FULL : REQUEST_FAILED;
}

void request_stats_add(struct request_stats *s, const char *path, unsigned status, uint64_t us)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (strcmp(paths[i].path, path) != 0)
			continue;
		s->outcomes[paths[i].verb][outcome_of(status)]++;
		histogram_add(&s->duration[paths[i].verb], us);
		return;
	}
}

void request_stats_metrics(const struct request_stats *s, struct metrics *m)
{
	static const char *const verbs[] = {
		"assign", "attach", "detach", "release", "check", "gc"
	};
	static const char *const outcomes[] = { "ok",   "refused", "unavailable",
						"full", "failed",  "gone" };

	metrics_family(m, "roost_requests_total", METRIC_COUNTER,
		       "Requests of the plugins, by verb and outcome.");
	for (size_t v = 0; v < REQUEST_VERBS; v++)
		for (size_t o = 0; o < REQUEST_OUTCOMES; o++)
			metrics_count(m, LABELS({ "verb", verbs[v] }, { "outcome", outcomes[o] }),
				      s->outcomes[v][o]);
	metrics_family(m, "roost_request_duration_seconds", METRIC_HISTOGRAM,
		       "From a plugin's request to its answer, waiting for a block included.");
	for (size_t v = 0; v < REQUEST_VERBS; v++)
		metrics_histogram(m, LABELS({ "verb", verbs[v] }), &s->duration[v]);
}
