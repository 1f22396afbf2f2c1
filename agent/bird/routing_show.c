/* SPDX-License-Identifier: Apache-2.0 */
/* What routing tells about itself: status, readiness, metrics, both texts of BIRD's configuration.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "agent/bird/routing_parts.h"
#include "confd/bird/bird_mask.h"
#include "lib/base/clock.h"

/* --- status --------------------------------------------------------------------------------- */

static int list_sessions(struct routing *r)
{
	size_t n = 0;

	free(r->sessions);
	r->sessions = calloc(r->runs.n ?: 1, sizeof(*r->sessions));
	if (!r->sessions)
		return 0;
	for (size_t i = 0; i < r->runs.n; i++) {
		const struct bird_protocol *p = &r->runs.v[i];
		struct status_session *s = &r->sessions[n];

		if (strcmp(p->proto, "BGP") != 0)
			continue;
		*s = (struct status_session){
			.name = p->name,
			.peer = p->neighbor,
			.asn = p->neighbor_as,
			.state = p->bgp_state[0] ? p->bgp_state : p->state,
			.since = p->since,
			.error = p->last_error,
			.up = routing_session_up(p),
		};
		for (size_t c = 0; c < p->n_channels; c++) {
			s->imported += bird_protocol_channels(&r->runs, p)[c].imported;
			s->exported += bird_protocol_channels(&r->runs, p)[c].exported;
		}
		n++;
	}
	return (int)n;
}

/* Without a record of config its default counts, once that is known to be absent. */
static const char *protocol_of(const struct routing *r)
{
	static const char *const names[] = { [PROTOCOL_BGP] = "bgp",
					     [PROTOCOL_OSPF] = "ospf",
					     [PROTOCOL_RIP] = "rip",
					     [PROTOCOL_NONE] = "none" };
	const struct cluster_config *c = route_record_find(r->records, ROUTE_CONFIG, "");

	if (!r->open)
		return NULL;
	return names[c ? c->protocol : PROTOCOL_BGP];
}

void routing_status(struct routing *r, struct status_bird *ret)
{
	const struct bird_version *v = bird_control_version(bird_step_control(r->step));
	const struct publish_outcome *last = publish_last(r->publish);

	*ret = (struct status_bird){
		.managed = true,
		.connected = v != NULL,
		.protocol = protocol_of(r),
		.configuration = publish_result_name(last->result),
		.when = last->when,
		.error = last->reason.text,
	};
	if (v)
		snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", v->major, v->minor,
			 v->patch);
	ret->n_sessions = (size_t)list_sessions(r);
	ret->sessions = r->sessions;
}

/* --- readiness ------------------------------------------------------------------------------ */

void routing_readiness(struct routing *r, struct readiness *ret)
{
	static const struct {
		const char *name;
		enum route_kind kind;
	} watches[] = {
		{ "watch/peer", ROUTE_PEER },
		{ "watch/filter", ROUTE_FILTER },
		{ "watch/node", ROUTE_NODE },
		{ "watch/specs", ROUTE_SPEC },
	};
	const char *bird = bird_control_problem(bird_step_control(r->step));

	for (size_t i = 0; i < ARRAY_SIZE(watches); i++)
		readiness_add(ret, watches[i].name, false,
			      route_records_synced(r->records, watches[i].kind)
				      ? ""
				      : "etcd has not told all of it yet");
	if (!bird[0] && !r->accepted)
		bird = "it does not run a configuration of ours yet";
	readiness_add(ret, "bird", true, health_reason(r->o.health, "bird") ?: bird);
	readiness_add(ret, "bird-config", false, health_reason(r->o.health, "bird-config"));
	readiness_add(ret, "bird-protocols", false, health_reason(r->o.health, "bird-protocols"));
}

/* --- metrics -------------------------------------------------------------------------------- */

struct metrics_pass routing_passes(const struct routing *r)
{
	const struct publish_stats *stats = publish_stats(r->publish);
	struct metrics_pass pass = { "bird", 0, 0, stats->duration };

	for (unsigned i = 0; i < PUBLISH_RESULTS; i++)
		*(publish_failed(i) ? &pass.failed : &pass.ok) += stats->results[i];
	return pass;
}

static void publish_metrics(const struct routing *r, struct metrics *m)
{
	const struct publish_stats *stats = publish_stats(r->publish);

	metrics_family(m, "roost_bird_publications_total", METRIC_COUNTER,
		       "What became of each rendering of BIRD's configuration.");
	for (unsigned i = PUBLISH_UNCHANGED; i < PUBLISH_RESULTS; i++)
		metrics_count(m, LABELS({ "result", publish_result_name(i) }), stats->results[i]);
	metrics_family(m, "roost_bird_reloads_total", METRIC_COUNTER,
		       "Times that BIRD was told to read its configuration, by outcome.");
	for (unsigned i = 0; i < PUBLISH_ANSWERS; i++)
		metrics_count(m, LABELS({ "outcome", publish_answer_name(i) }), stats->reloads[i]);
	metrics_family(m, "roost_bird_reload_duration_seconds", METRIC_HISTOGRAM,
		       "From telling BIRD to reload to its verdict.");
	metrics_histogram(m, NULL, &stats->reload_duration);
}

/* BIRD's words for the states of a session, and the protocol's own where BIRD gives none. */
static void session_states(const struct status_bird *bird, struct metrics *m)
{
	static const char *const states[] = { "idle",        "connect",     "active", "passive",
					      "opensent",    "openconfirm", "close",  "down",
					      "established", "other" };
	uint64_t n[ARRAY_SIZE(states)] = { 0 };

	for (size_t i = 0; i < bird->n_sessions; i++) {
		size_t k = 0;

		while (k < ARRAY_SIZE(states) - 1 &&
		       strcasecmp(states[k], bird->sessions[i].state) != 0)
			k++;
		n[k]++;
	}
	metrics_family(m, "roost_bgp_sessions", METRIC_GAUGE, "BGP sessions of BIRD, by state.");
	for (size_t k = 0; k < ARRAY_SIZE(states); k++)
		metrics_count(m, LABELS({ "state", states[k] }), n[k]);
}

static void each_session(const struct status_bird *bird, struct metrics *m)
{
	metrics_family(m, "roost_bgp_session_up", METRIC_GAUGE,
		       "1 while the session is established.");
	for (size_t i = 0; i < bird->n_sessions; i++)
		metrics_count(m, LABELS({ "session", bird->sessions[i].name }),
			      bird->sessions[i].up);
	metrics_family(m, "roost_bgp_session_imported_prefixes", METRIC_GAUGE,
		       "Prefixes that were taken from the neighbour.");
	for (size_t i = 0; i < bird->n_sessions; i++)
		metrics_count(m, LABELS({ "session", bird->sessions[i].name }),
			      bird->sessions[i].imported);
	metrics_family(m, "roost_bgp_session_exported_prefixes", METRIC_GAUGE,
		       "Prefixes that were told to the neighbour.");
	for (size_t i = 0; i < bird->n_sessions; i++)
		metrics_count(m, LABELS({ "session", bird->sessions[i].name }),
			      bird->sessions[i].exported);
}

void routing_metrics(struct routing *r, struct metrics *m)
{
	struct status_bird bird;

	routing_status(r, &bird);
	metrics_one(m, "roost_bird_connected", METRIC_GAUGE,
		    "1 while BIRD's control socket is connected.", bird.connected);
	publish_metrics(r, m);
	metrics_family(m, "roost_bird_protocols_amiss", METRIC_GAUGE,
		       "Protocols of BIRD that are not as they are meant to be.");
	metrics_count(m, LABELS({ "how", "missing" }), r->difference.missing);
	metrics_count(m, LABELS({ "how", "surplus" }), r->difference.surplus);
	metrics_count(m, LABELS({ "how", "disabled" }), r->difference.disabled);
	session_states(&bird, m);
	each_session(&bird, m);
}

/* --- the configuration ---------------------------------------------------------------------- */

static void add_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_object_new_string(text ?: ""));
}

static struct json_object *left_out(const struct bird_plan *plan)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < plan->problems.n; i++) {
		struct json_object *o;

		if (plan->problems.v[i].level != BIRD_PROBLEM)
			continue;
		o = json_object_new_object();
		add_text(o, "record", plan->problems.v[i].record);
		add_text(o, "reason", plan->problems.v[i].text);
		json_object_array_add(list, o);
	}
	return list;
}

/* What a rendering would give now; the plan is the caller's, for its secrets. */
static void add_wanted(struct routing *r, struct bird_plan *plan, struct json_object *o)
{
	AUTO(free) char *text = NULL, *masked = NULL;
	struct err err = { "" };
	size_t len = 0;
	int rc = -EAGAIN;

	if (!r->open)
		err_set(&err, 0, "not all of the records have been read from etcd yet");
	else
		rc = routing_plan(r, plan, &err);
	rc = rc ?: routing_render(r, plan, &text, &len, &err);
	if (rc == 0)
		masked = bird_mask(text, len, &plan->secrets);
	add_text(o, "wanted", masked);
	add_text(o, "wantedError", rc < 0 && !err.text[0] ? strerrordesc_np(-rc) : err.text);
	json_object_object_add(o, "leftOut", left_out(plan));
}

/* What BIRD runs is the file that it accepted, if nobody has touched either since. */
static bool is_confirmed(const struct routing *r, const struct target *t)
{
	struct hash now = HASH_TEXTS(t->text ?: "");

	return r->accepted && !target_unsettled(t) && now.low == r->accepted_hash.low &&
	       now.high == r->accepted_hash.high && !r->difference.missing &&
	       !r->difference.surplus;
}

static void add_running(struct routing *r, const struct texts *secrets, struct json_object *o)
{
	AUTO_DONE(target_done) struct target t = { .dir = -1 };
	struct target_rules rules = { .path = r->o.bird_config };
	AUTO(free) char *masked = NULL;
	struct err err = { "" };
	char since[TIME_TEXT] = "";
	bool there = target_open(&rules, &t, &err) == 0 && t.exists;
	bool confirmed = there && is_confirmed(r, &t);

	if (there)
		masked = bird_mask(t.text ?: "", t.len, secrets);
	if (confirmed && r->configured)
		clock_utc_of(r->configured, since);
	add_text(o, "running", masked);
	add_text(o, "runningError", err.text);
	add_text(o, "runningSince", since);
	add_text(o, "runningFrom", confirmed ? "accepted by BIRD" : "file, not confirmed");
}

void routing_show_config(struct routing *r, struct serve_request *request)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };

	json_object_object_add(o, "managed", json_object_new_boolean(true));
	add_text(o, "path", r->o.bird_config);
	add_wanted(r, &plan, o);
	add_running(r, &plan.secrets, o);
	serve_reply_json(request, 200, o);
}
