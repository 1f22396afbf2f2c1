/* SPDX-License-Identifier: Apache-2.0 */
/* What roost-confd shows: /metrics, /healthz, /readyz. */
#include <string.h>

#include "confd/confd_parts.h"
#include "lib/base/clock.h"
#include "lib/daemon/metrics_daemon.h"

/* --- metrics -------------------------------------------------------------------------------- */

static const char *name_of(const struct confd *c, size_t i)
{
	return job_resource(c->jobs[i])->name;
}

static void show_states(const struct confd *c, struct metrics *m)
{
	metrics_one(m, "roost_confd_resources_invalid", METRIC_GAUGE,
		    "Resources whose file cannot be read.", (double)c->bad.n);
	metrics_family(m, "roost_confd_resource_failed", METRIC_GAUGE,
		       "1 while a resource's file is not what etcd's keys say.");
	for (size_t i = 0; i < c->n_jobs; i++)
		metrics_count(m, LABELS({ "resource", name_of(c, i) }),
			      job_state(c->jobs[i]) == JOB_FAILED);
	metrics_family(m, "roost_confd_resource_kept", METRIC_GAUGE,
		       "1 while a resource's file is kept because etcd was restored or emptied.");
	for (size_t i = 0; i < c->n_jobs; i++)
		metrics_count(m, LABELS({ "resource", name_of(c, i) }), job_keeps(c->jobs[i]));
}

static void show_counts(const struct confd *c, struct metrics *m)
{
	metrics_family(m, "roost_confd_publications_total", METRIC_COUNTER,
		       "Renderings, by what became of them.");
	for (size_t i = 0; i < c->n_jobs; i++)
		for (unsigned r = PUBLISH_UNCHANGED; r < PUBLISH_RESULTS; r++)
			metrics_count(m,
				      LABELS({ "resource", name_of(c, i) },
					     { "result", publish_result_name(r) }),
				      job_stats(c->jobs[i])->results[r]);
	metrics_family(m, "roost_confd_reloads_total", METRIC_COUNTER, "Reloads, by outcome.");
	for (size_t i = 0; i < c->n_jobs; i++)
		for (unsigned a = 0; a < PUBLISH_ANSWERS; a++)
			metrics_count(m,
				      LABELS({ "resource", name_of(c, i) },
					     { "outcome", publish_answer_name(a) }),
				      job_stats(c->jobs[i])->reloads[a]);
}

static void show_metrics(struct serve_request *request, void *arg)
{
	AUTO_DONE(metrics_done) struct metrics m = { 0 };
	const struct confd *c = arg;
	struct store_stats etcd;

	store_stats(c->store, &etcd);
	metrics_family(&m, "roost_build_info", METRIC_GAUGE, "1, with the version of roost-confd.");
	metrics_count(&m, LABELS({ "version", ROOST_VERSION }), 1);
	show_states(c, &m);
	show_counts(c, &m);
	metrics_etcd(&m, &etcd, c->connected,
		     etcd.heard ? clock_monotonic_us() - etcd.heard : UINT64_MAX);
	metrics_problems(&m, c->health);
	metrics_process(&m);
	if (m.err < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "metrics: %s",
				  strerrordesc_np(-m.err));
	else
		serve_reply_text(request, 200, METRICS_CONTENT_TYPE, m.text, m.len);
}

/* --- health --------------------------------------------------------------------------------- */

/* Whoever answers lives. */
static void show_healthz(struct serve_request *request, void *arg)
{
	serve_reply(request, 200, "{\"ok\":true}");
}

static struct json_object *problems(const struct confd *c)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < c->n_jobs; i++) {
		struct json_object *o;

		if (job_state(c->jobs[i]) != JOB_FAILED)
			continue;
		o = json_object_new_object();
		json_object_object_add(o, "part", json_object_new_string(name_of(c, i)));
		json_object_object_add(o, "reason", json_object_new_string(job_reason(c->jobs[i])));
		json_object_array_add(list, o);
	}
	return list;
}

/* A file that could not be made is a problem, but no reason to end this process. */
static void show_readyz(struct serve_request *request, void *arg)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	const struct confd *c = arg;
	bool ready = c->connected;

	if (!o) {
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
		return;
	}
	for (size_t i = 0; i < c->n_jobs; i++)
		ready = ready && job_ready(c->jobs[i]);
	json_object_object_add(o, "ready", json_object_new_boolean(ready));
	json_object_object_add(o, "reason",
			       json_object_new_string(ready ? ""
						      : !c->connected
							      ? "etcd is not followed at the moment"
							      : "the keys are still being read"));
	json_object_object_add(o, "problems", problems(c));
	serve_reply_json(request, ready ? 200 : 503, o);
}

const struct serve_route confd_routes[] = {
	{ "GET", "/metrics", show_metrics },
	{ "GET", "/healthz", show_healthz },
	{ "GET", "/readyz", show_readyz },
};

size_t confd_n_routes(void)
{
	return ARRAY_SIZE(confd_routes);
}
