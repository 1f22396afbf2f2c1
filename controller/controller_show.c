/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller shows: /metrics, /healthz, /readyz. */
#include <math.h>
#include <string.h>

#include "controller/controller.h"
#include "lib/base/clock.h"
#include "lib/daemon/metrics_daemon.h"
#include "lib/json/tree.h"

/* --- metrics -------------------------------------------------------------------------------- */

static void show_election(const struct controller *c, struct metrics *m)
{
	metrics_one(m, "roost_controller_leader", METRIC_GAUGE,
		    "1 while this controller leads and may act.", elect_token(c->elect) != 0);
	metrics_one(m, "roost_controller_elections_total", METRIC_COUNTER,
		    "How often this controller has become the leader.", (double)c->elections);
}

static void show_cluster(const struct keeper_stats *s, struct metrics *m)
{
	metrics_one(m, "roost_cluster_keys", METRIC_GAUGE, "Keys below the prefix.",
		    (double)s->keys);
	metrics_family(m, "roost_cluster_nodes", METRIC_GAUGE,
		       "Registered nodes by state; lease: a holder of leases without an agent.");
	metrics_count(m, LABELS({ "state", "alive" }), s->nodes - s->silent - s->leases);
	metrics_count(m, LABELS({ "state", "silent" }), s->silent);
	metrics_count(m, LABELS({ "state", "lease" }), s->leases);
	metrics_one(m, "roost_controller_leases_freed_total", METRIC_COUNTER,
		    "Expired leases whose subnets were freed.", (double)s->leases_freed);
	metrics_one(m, "roost_cluster_blocks", METRIC_GAUGE, "Blocks that have an owner.",
		    (double)s->blocks);
	metrics_one(m, "roost_cluster_addresses", METRIC_GAUGE,
		    "Addresses in use, according to etcd.", (double)s->addresses);
	metrics_family(m, "roost_cluster_removed_nodes", METRIC_GAUGE,
		       "Removed nodes that still have keys, by state of the removal.");
	for (unsigned i = 0; i < REMOVAL_STATES; i++)
		metrics_count(m, LABELS({ "state", removal_state_name(i) }), s->removals[i]);
	metrics_one(m, "roost_controller_comparisons_total", METRIC_COUNTER,
		    "Comparisons of all keys with each other.", (double)s->comparisons);
	metrics_one(m, "roost_controller_comparison_seconds", METRIC_GAUGE,
		    "Duration of the last comparison.", (double)s->comparison_us / 1e6);
}

static void show_findings(const struct repairs *r, struct metrics *m)
{
	metrics_family(m, "roost_cluster_findings", METRIC_GAUGE,
		       "Findings of the last comparison, by kind.");
	for (unsigned i = 0; i < FINDING_KINDS; i++)
		if (!finding_is_local(i))
			metrics_count(m, LABELS({ "kind", finding_kind_name(i) }), r->found[i]);
	metrics_family(m, "roost_controller_repairs_total", METRIC_COUNTER,
		       "Repairs of findings that two comparisons confirmed, by kind.");
	for (unsigned i = 0; i < FINDING_KINDS; i++)
		if (!finding_is_local(i))
			metrics_count(m, LABELS({ "kind", finding_kind_name(i) }), r->tried[i]);
}

static void show_pools(const struct pools *p, struct metrics *m)
{
	metrics_family(m, "roost_cluster_pools_in_trouble", METRIC_GAUGE,
		       "Pools without a free block, and invalid ones.");
	metrics_count(m, LABELS({ "trouble", "full" }), p->full);
	metrics_count(m, LABELS({ "trouble", "invalid" }), p->invalid);
	metrics_one(m, "roost_cluster_nodes_lacking_blocks", METRIC_GAUGE,
		    "Nodes with fewer blocks of a pool than its preallocate says.",
		    (double)p->lacking);
}

static void show_routes(const struct routes *r, struct metrics *m)
{
	metrics_one(m, "roost_cluster_static_routes", METRIC_GAUGE, "Records of static routes.",
		    (double)r->records);
	metrics_family(m, "roost_cluster_static_routes_in_trouble", METRIC_GAUGE,
		       "Static routes that are invalid, in error on some node, or being deleted.");
	metrics_count(m, LABELS({ "trouble", "deleting" }), r->deleting);
	metrics_count(m, LABELS({ "trouble", "error" }), r->in_error);
	metrics_count(m, LABELS({ "trouble", "invalid" }), r->invalid);
	metrics_family(m, "roost_cluster_static_route_reports", METRIC_GAUGE,
		       "Reports of nodes on static routes, one for each node and route.");
	metrics_count(m, LABELS({ "state", "applied" }), r->applied);
	metrics_count(m, LABELS({ "state", "error" }), r->errors);
}

static void show_work(struct work_stats s, struct metrics *m)
{
	metrics_family(m, "roost_controller_transactions_total", METRIC_COUNTER,
		       "Transactions of this controller, by outcome.");
	metrics_count(m, LABELS({ "outcome", "done" }), s.done);
	metrics_count(m, LABELS({ "outcome", "refused" }), s.refused);
	metrics_count(m, LABELS({ "outcome", "failed" }), s.failed);
}

static void show_kubernetes_counts(const struct kube_stats *s, struct metrics *m)
{
	metrics_family(m, "roost_kubernetes_requests_total", METRIC_COUNTER,
		       "Requests to the API server that have ended, by verb and outcome.");
	for (unsigned i = 0; i < KUBE_VERBS; i++) {
		const char *verb = kube_verb_name(i);

		metrics_count(m, LABELS({ "verb", verb }, { "outcome", "ok" }), s->ends[i].ok);
		metrics_count(m, LABELS({ "verb", verb }, { "outcome", "expired" }),
			      s->ends[i].expired);
		metrics_count(m, LABELS({ "verb", verb }, { "outcome", "failed" }),
			      s->ends[i].failed);
	}
	metrics_one(m, "roost_kubernetes_lists_total", METRIC_COUNTER,
		    "Complete lists of all Nodes.", (double)s->lists);
	metrics_one(m, "roost_kubernetes_watches_total", METRIC_COUNTER,
		    "Watches that the API server has opened.", (double)s->watches);
	metrics_one(m, "roost_kubernetes_events_total", METRIC_COUNTER,
		    "Events that watches brought, heartbeats and bookmarks among them.",
		    (double)s->events);
	metrics_family(m, "roost_kubernetes_left_out_total", METRIC_COUNTER,
		       "Nodes, labels and pod CIDRs that roost does not accept.");
	metrics_count(m, LABELS({ "what", "node" }), s->objects_bad);
	metrics_count(m, LABELS({ "what", "label" }), s->labels_bad);
	metrics_count(m, LABELS({ "what", "podCIDR" }), s->pod_cidrs_bad);
}

static void show_kubernetes(const struct controller *c, struct metrics *m)
{
	struct kube_stats s;

	if (!c->settings->kubernetes)
		return;
	controller_kube_stats(c, &s);
	show_kubernetes_counts(&s, m);
	/* A stand-by has no client. */
	if (!c->leads)
		return;
	metrics_one(m, "roost_kubernetes_connected", METRIC_GAUGE,
		    "1 while the watch of Nodes is open.", c->kube && s.watching);
	metrics_one(m, "roost_kubernetes_silence_seconds", METRIC_GAUGE,
		    "Time since the API server last answered or sent an event.",
		    c->kube && s.heard ? (double)(clock_monotonic_us() - s.heard) / 1e6 : INFINITY);
	metrics_one(m, "roost_kubernetes_nodes", METRIC_GAUGE, "Nodes in Kubernetes.",
		    c->kube ? (double)s.nodes : 0);
	metrics_one(m, "roost_kubernetes_nodes_in_doubt", METRIC_GAUGE,
		    "Nodes that may be deleted: requested by name.",
		    c->kube ? (double)s.doubts : 0);
}

static void gather(const struct controller *c, struct metrics *m)
{
	struct keeper_stats stats = keeper_stats(c->keeper);
	struct metrics_pass pass = metrics_pass_of("controller", pass_stats(c->pass));
	struct store_stats etcd;

	store_stats(c->store, &etcd);
	metrics_family(m, "roost_build_info", METRIC_GAUGE,
		       "1, with the version of roost-controller.");
	metrics_count(m, LABELS({ "version", ROOST_VERSION }, { "controller", c->id }), 1);
	show_election(c, m);
	/* Stand-bys know nothing of it, and zeros would be a lie. */
	if (keeper_in_sync(c->keeper)) {
		show_cluster(&stats, m);
		show_findings(stats.repairs, m);
		show_pools(stats.pools, m);
		show_routes(stats.routes, m);
	}
	show_work(stats.work, m);
	show_kubernetes(c, m);
	lease_server_metrics(c->lease, m);
	metrics_etcd(m, &etcd, c->connected,
		     etcd.heard ? clock_monotonic_us() - etcd.heard : UINT64_MAX);
	metrics_passes(m, &pass, 1);
	metrics_problems(m, c->health);
	metrics_process(m);
}

static void show_metrics(struct serve_request *request, void *arg)
{
	AUTO_DONE(metrics_done) struct metrics m = { 0 };

	gather(arg, &m);
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

/* A stand-by that sees the leader's key is ready: it could take over. */
static void show_readyz(struct serve_request *request, void *arg)
{
	AUTO(json_put) struct json_object *object = NULL;
	const struct controller *c = arg;
	bool ready = c->connected && (!c->leads || keeper_in_sync(c->keeper));
	struct tree t = tree_new();
	size_t n;
	const struct health_entry *v = health_list(c->health, &n);

	tree_bool(&t, "ready", ready);
	tree_bool(&t, "leads", c->leads);
	tree_text(&t, "leader", c->leader);
	tree_text(&t, "reason",
		  ready           ? ""
		  : !c->connected ? "not connected to etcd"
				  : "the keys are still being read");
	tree_open(&t, "problems", '[');
	for (size_t i = 0; i < n; i++) {
		tree_open(&t, NULL, '{');
		tree_text(&t, "part", v[i].part);
		tree_text(&t, "reason", v[i].reason);
		tree_text(&t, "since", v[i].since);
		tree_close(&t);
	}
	tree_close(&t);
	if (tree_end(&t, &object) < 0)
		serve_reply_error(request, 500, 5, NULL, "out of memory");
	else
		serve_reply_json(request, ready ? 200 : 503, object);
}

int controller_show(struct controller *c)
{
	static const struct serve_route routes[] = {
		{ "GET", "/healthz", show_healthz },
		{ "GET", "/readyz", show_readyz },
		{ "GET", "/metrics", show_metrics },
	};
	struct monitor_options options = {
		.event = c->event,
		.timers = c->timers,
		.health = c->health,
		.address = c->settings->metrics,
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.arg = c,
	};

	int r = options.address[0] ? monitor_new(&options, &c->monitor) : 0;

	/* The two that come first. */
	options.n_routes = 2;
	options.address = c->settings->probes;
	options.flag = "probes";
	return r < 0 || !options.address[0] ? r : monitor_new(&options, &c->probes);
}
