/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent shows: readiness, the status record, metrics; and the local API (docs/API.md). */
#include <string.h>

#include "agent/agent.h"
#include "agent/show/metrics.h"
#include "agent/show/readiness.h"
#include "agent/show/status.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* --- readiness ------------------------------------------------------------------------------ */

static void gather_readiness(struct agent *a, struct readiness *ret)
{
	struct err why = { "" };

	readiness_add(ret, a->server, false,
		      a->connected       ? ""
		      : a->etcd_error[0] ? a->etcd_error
					 : "it has not answered yet");
	readiness_add(ret, "registration", false,
		      a->registration ? register_reason(a->registration)
				      : "the node's address is not known yet");
	ipam_readiness(a->ipam, ret);
	readiness_add(ret, "kernel", true, kernel_ready(a->kernel, &why) ? "" : why.text);
	if (a->routing)
		routing_readiness(a->routing, ret);
	overlay_readiness(a->overlay, ret);
}

/* --- status --------------------------------------------------------------------------------- */

struct shown {
	struct store_stats etcd;
	struct status_pool *pools;
	struct readiness ready;
	struct status status;
};

static void shown_done(struct shown *s)
{
	free(s->pools);
}

static void describe(struct agent *a, struct shown *ret)
{
	struct status *s = &ret->status;

	gather_readiness(a, &ret->ready);
	store_stats(a->store, &ret->etcd);
	*s = (struct status){
		.node = a->identity.name,
		.version = ROOST_VERSION,
		.started = a->started,
		.address_reason = a->identity.reason,
		.etcd = { a->connected, ret->etcd.endpoint, a->etcd_error,
			  *a->settings->lease.servers ? a->server : NULL },
		.attachments = ipam_attachments(a->ipam),
		.drained = ipam_drained(a->ipam),
		.ready = &ret->ready,
	};
	s->health = health_list(a->health, &s->n_health);
	if (ipam_pool_status(a->ipam, &ret->pools, &s->n_pools) < 0)
		s->n_pools = 0;
	s->pools = ret->pools;
	s->kernel = kernel_stats(a->kernel);
	s->firewall = firewall_stats(a->firewall);
	s->statics = static_routes_counts(a->statics);
	if (a->routing)
		routing_status(a->routing, &s->bird);
	overlay_status(a->overlay, a->kernel, &s->overlay);
}

int api_report(char **ret, void *arg)
{
	AUTO_DONE(shown_done) struct shown shown = { 0 };

	describe(arg, &shown);
	return status_text(&shown.status, STATUS_SIZE_MAX - REPORT_DATED, ret);
}

/* Here alone: in etcd each packet would make a new record. */
static void add_drops(struct agent *a, struct json_object *status)
{
	struct json_object *firewall = json_object_object_get(status, "firewall");
	struct firewall_drops drops = firewall_drops(a->firewall);
	struct json_object *o = firewall ? json_object_new_object() : NULL;

	if (!o)
		return;

	for (enum firewall_drop d = 0; d < FIREWALL_DROPS; d++)
		json_object_object_add(o, firewall_drop_name(d),
				       json_object_new_uint64(drops.packets[d]));
	json_object_object_add(firewall, "drops", o);
}

void api_answer_status(struct serve_request *request, void *arg)
{
	AUTO_DONE(shown_done) struct shown shown = { 0 };
	AUTO(json_put) struct json_object *o = NULL;
	struct agent *a = arg;
	struct err why = { "" };
	bool ready = ipam_ready(a->ipam, &why);

	describe(a, &shown);
	if (status_json(&shown.status, 0, &o) < 0) {
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
		return;
	}
	add_drops(a, o);
	json_object_object_add(o, "node", json_object_new_string(a->identity.name));
	json_object_object_add(o, "ready", json_object_new_boolean(ready));
	json_object_object_add(o, "reason", json_object_new_string(why.text));
	json_object_object_add(o, "generation",
			       json_object_new_int64((int64_t)a->status_watch.generation));
	serve_reply_json(request, ready ? 200 : 503, o);
}

static void status(struct serve_request *request, void *arg)
{
	struct agent *a = arg;

	if (!status_watch_wait(&a->status_watch, request))
		api_answer_status(request, a);
}

/* --- the status with BIRD's sessions of this moment ----------------------------------------- */

/* BIRD answers within milliseconds, unless it is busy with a full table. */
#define LIVE_MS 2000

void api_answer_live(void *arg)
{
	struct agent *a = arg;

	while (a->n_live)
		api_answer_status(a->live[--a->n_live], a);
}

static void on_live_end(struct serve_request *request, enum serve_end why, void *arg)
{
	struct agent *a = arg;

	for (size_t i = 0; i < a->n_live; i++)
		if (a->live[i] == request)
			a->live[i] = a->live[--a->n_live];
	if (why == SERVE_LATE)
		api_answer_status(request, a);
}

static void bgp(struct serve_request *request, void *arg)
{
	struct agent *a = arg;

	if (!a->routing || a->n_live == LIVE_MAX || !routing_refresh(a->routing))
		api_answer_status(request, a);
	else if (serve_wait(request, LIVE_MS, on_live_end, a) == 0)
		a->live[a->n_live++] = request;
}

static void node(struct serve_request *request, void *arg)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	struct agent *a = arg;

	json_object_object_add(o, "node", json_object_new_string(a->identity.name));
	json_object_object_add(o, "mtu", json_object_new_int64(agent_mtu(a)));
	serve_reply_json(request, 200, o);
}

/* --- for monitors --------------------------------------------------------------------------- */

/* That it is answered is the whole message: the loop turns. */
static void healthz(struct serve_request *request, void *arg)
{
	serve_reply(request, 200, "{\"ok\":true}");
}

static void readyz(struct serve_request *request, void *arg)
{
	AUTO(json_put) struct json_object *o = NULL;
	struct agent *a = arg;
	struct status_bird bird = { 0 };
	struct readiness ready = { 0 };

	gather_readiness(a, &ready);
	if (a->routing)
		routing_status(a->routing, &bird);
	if (readiness_json(&ready, &bird, a->health, &o) < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
	else
		serve_reply_json(request, readiness_is_ready(&ready, NULL) ? 200 : 503, o);
}

static void gather_passes(const struct agent *a, struct metrics *m)
{
	struct metrics_pass passes[4];
	size_t n = 0;

	passes[n++] = metrics_pass_of("kernel", kernel_passes(a->kernel));
	passes[n++] = metrics_pass_of("addresses", ipam_passes(a->ipam));
	passes[n++] = metrics_pass_of("firewall", firewall_passes(a->firewall));
	if (a->routing)
		passes[n++] = routing_passes(a->routing);
	metrics_passes(m, passes, n);
}

/* Microseconds since etcd was last heard of; UINT64_MAX: never. */
static uint64_t silence(const struct agent *a)
{
	struct store_stats stats;

	store_stats(a->store, &stats);
	return stats.heard ? clock_monotonic_us() - stats.heard : UINT64_MAX;
}

static void gather_metrics(struct agent *a, struct metrics *m)
{
	struct reaper_stats reaped = reaper_stats(a->reaper);
	struct kernel_stats kernel = kernel_stats(a->kernel);
	struct store_stats etcd;
	struct readiness ready = { 0 };

	gather_readiness(a, &ready);
	store_stats(a->store, &etcd);
	metrics_family(m, "roost_build_info", METRIC_GAUGE, "1, with the version of roostd.");
	metrics_count(m, LABELS({ "version", ROOST_VERSION }, { "node", a->identity.name }), 1);
	ipam_metrics(a->ipam, m);
	request_stats_metrics(&a->requests, m);
	metrics_etcd(m, &etcd, a->connected, silence(a));
	gather_passes(a, m);
	metrics_kernel(m, &kernel, &reaped);
	metrics_firewall(m, firewall_stats(a->firewall), firewall_drops(a->firewall));
	static_routes_metrics(a->statics, m);
	if (a->routing)
		routing_metrics(a->routing, m);
	overlay_metrics(a->overlay, a->kernel, m);
	certificates_metrics(a->certificates, m);
	metrics_health(m, a->health, &ready);
	metrics_process(m);
}

static void metrics(struct serve_request *request, void *arg)
{
	AUTO_DONE(metrics_done) struct metrics m = { 0 };

	gather_metrics(arg, &m);
	if (m.err < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "metrics: %s",
				  strerrordesc_np(-m.err));
	else
		serve_reply_text(request, 200, METRICS_CONTENT_TYPE, m.text, m.len);
}

/* --- the local API --------------------------------------------------------------------------- */

static struct ipam *ipam_of(void *arg)
{
	return ((struct agent *)arg)->ipam;
}

static void overlay(struct serve_request *request, void *arg)
{
	const struct agent *a = arg;

	overlay_show(a->overlay, a->kernel, request);
}

static void bird_config(struct serve_request *request, void *arg)
{
	const struct agent *a = arg;

	if (a->routing)
		routing_show_config(a->routing, request);
	else
		serve_reply(request, 200, "{\"managed\":false}");
}

static void assign(struct serve_request *request, void *arg)
{
	ipam_assign(ipam_of(arg), request);
}

static void release(struct serve_request *request, void *arg)
{
	ipam_release(ipam_of(arg), request);
}

static void check(struct serve_request *request, void *arg)
{
	ipam_check(ipam_of(arg), request);
}

static void gc(struct serve_request *request, void *arg)
{
	ipam_gc(ipam_of(arg), request);
}

static void list(struct serve_request *request, void *arg)
{
	ipam_list(ipam_of(arg), request);
}

/* How other nodes and routers learn the way to it. */
static void announcement(const struct prefix *block, struct tree *t, void *arg)
{
	struct agent *a = arg;
	struct status_bird bird = { 0 };
	size_t up = 0;

	tree_bool(t, "managed", a->routing != NULL);
	if (!a->routing)
		return;
	routing_status(a->routing, &bird);
	for (size_t i = 0; i < bird.n_sessions; i++)
		up += bird.sessions[i].up;
	tree_bool(t, "announced", routing_announces(a->routing, block));
	tree_some_text(t, "protocol", bird.protocol);
	tree_number(t, "sessions", (int64_t)bird.n_sessions);
	tree_number(t, "established", (int64_t)up);
}

static void pod(struct serve_request *request, void *arg)
{
	ipam_show_pod(ipam_of(arg), request, announcement, arg);
}

static void refusals(struct serve_request *request, void *arg)
{
	ipam_refusals(ipam_of(arg), request);
}

static void ipam_state(struct serve_request *request, void *arg)
{
	ipam_status(ipam_of(arg), request);
}

static void attach(struct serve_request *request, void *arg)
{
	ipam_attach(ipam_of(arg), request);
}

static void detach(struct serve_request *request, void *arg)
{
	ipam_detach(ipam_of(arg), request);
}

static void check_link(struct serve_request *request, void *arg)
{
	ipam_check_link(ipam_of(arg), request);
}

static void ready(struct serve_request *request, void *arg)
{
	ipam_link_status(ipam_of(arg), request);
}

#define MONITOR_ROUTES                                                                             \
	{ "GET", "/metrics", metrics }, { "GET", "/healthz", healthz },                            \
	{                                                                                          \
		"GET", "/readyz", readyz                                                           \
	}

static const struct serve_route monitor_routes[] = { MONITOR_ROUTES };

static const struct serve_route routes[] = {
	{ "POST", "/v1/attach", attach },
	{ "POST", "/v1/detach", detach },
	{ "POST", "/v1/check", check_link },
	/* The same for both plugins: what goes takes its link along. */
	{ "POST", "/v1/gc", gc },
	{ "GET", "/v1/node", node },
	{ "GET", "/v1/ready", ready },
	{ "POST", "/v1/ipam/assign", assign },
	{ "POST", "/v1/ipam/release", release },
	{ "POST", "/v1/ipam/check", check },
	{ "POST", "/v1/ipam/gc", gc },
	{ "GET", "/v1/ipam/list", list },
	{ "GET", "/v1/ipam/status", ipam_state },
	{ "GET", "/v1/status", status },
	{ "GET", "/v1/pod", pod },
	{ "GET", "/v1/refusals", refusals },
	{ "GET", "/v1/bgp", bgp },
	{ "GET", "/v1/bird/config", bird_config },
	{ "GET", "/v1/overlay", overlay },
	MONITOR_ROUTES,
};

const struct serve_route *api_routes(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(routes);
	return routes;
}

const struct serve_route *api_monitor_routes(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(monitor_routes);
	return monitor_routes;
}
