/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/routing.h"

#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "agent/bird/desired_bird.h"
#include "agent/bird/routing_compare.h"
#include "agent/kernel/fight.h"
#include "agent/kernel/kernel.h"
#include "confd/bird/bird_mask.h"
#include "confd/bird/bird_show.h"
#include "confd/bird_step.h"
#include "confd/renderer.h"
#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/route_protocol.h"
#include "lib/base/secret.h"
#include "lib/daemon/serve.h"
#include "lib/json/tree.h"

/* The operator's template, with its folder; else the shipped one. */
#define TEMPLATE "/etc/roost/templates/bird.conf"
#define SNIPPETS "/etc/roost/bird.d"

/* Sessions and blocks that are named in the log when a change disturbs them. */
#define FLAPS_TOLD 20

#define LOOK_MS    8000
#define DETAILS_MS 60000
/* What two readings of one moment may differ by: BIRD rounds, and clocks are slewed. */
#define CLOCKS_MS 1000
#define DAY_MS    86400000
/* So many are named, the rest is counted. */
#define SESSIONS_TOLD 10
/* BIRD waits for 5 s before it connects; then a session is down, and no longer settling. */
#define SESSION_GRACE_MS  7000
#define SETTLING_SESSIONS "settling/sessions"
#define SETTLING_BIRD     "settling/bird"
/* From look to look while one settles. */
#define SOON_MS 2000

/* BIRD may replace a route by removing and adding it; and a flush takes its time. */
#define SETTLE_MS 100

/* What it is made from; the first four are listed here first of all. */
enum { PEERS, FILTERS, NODES, SPECS, LISTED, CONFIG = LISTED, POOLS, EXTENTS, WANTS };

struct routing {
	struct routing_options o;
	struct identity self;
	struct record_want *wants[WANTS];
	struct record_want *owners; /* block/, with bgp.verifyOwners; or NULL */
	bool extents_known, open;
	/* to BIRD */
	struct renderer *renderer;
	struct publish *publish;
	struct bird_plan meant, next; /* what BIRD should run now; what is on its way to it */
	bool has_meant, has_next;
	/* from BIRD */
	struct bird_step *step;
	struct bird_protocols runs; /* as it said last */
	struct routing_difference difference;
	bool accepted;             /* BIRD runs a file of ours: */
	struct hash accepted_hash; /* the text with this, */
	struct hash next_hash;     /* and what is on its way */
	int64_t configured; /* since when, by BIRD's own word; seconds since 1970, 0: unknown */
	struct status_session *sessions; /* of the last status, */
	char (*since)[TIME_TEXT];        /* with these times */
	struct timer look;
	bool looking, again; /* and once more after it */
	bool settling;       /* a session is not up yet */
	bool refreshing;     /* the details are being asked for, by the API */
	bool mended;         /* a reload has answered the difference that is there */
	uint64_t detailed;   /* when the counts were last asked for; ms */
	/* CLOCK_MONOTONIC in ms, unlike timers: BIRD's own times do not count a machine's sleep */
	int64_t asked, reread; /* for the status; when another's configure was last answered */
	int64_t ours;          /* BIRD's last configure was not after that */
	bool knows_ours;
	/* the route that another program removed, and which; 0: none did */
	struct prefix lost;
	uint32_t lost_by;
	struct timer refeed;
	struct fight refeeds;
};

/* --- what is known -------------------------------------------------------------------------- */

/* Arrays of pointers into the records, and what was read for them; all of it released together. */
struct gathered {
	struct bird_input in;
	struct bird_node *nodes;
	const void **peers, **filters;
	struct bird_extent *extents;
	struct prefixes blocks;
	struct bird_owned *owned;
	struct texts files;
	struct bird_password *passwords;
	struct err *reasons;
	struct cluster_config defaults;
};

static void gathered_done(struct gathered *g)
{
	for (size_t i = 0; g->passwords && i < g->files.n; i++)
		secret_free((char *)(uintptr_t)g->passwords[i].text);
	free(g->passwords);
	free(g->reasons);
	free(g->files.v);
	free(g->nodes);
	free(g->peers);
	free(g->filters);
	free(g->extents);
	free(g->blocks.v);
	free(g->owned);
	cluster_config_done(&g->defaults);
}

static int gather_nodes(const struct routing *r, struct gathered *g)
{
	AUTO(free) const void **nodes = NULL;
	size_t n;
	int rc = records_list(r->o.records, KEY_NODE, &nodes, &n);

	if (rc < 0)
		return rc;
	g->nodes = calloc(n ?: 1, sizeof(*g->nodes));
	if (!g->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct node *node = nodes[i];

		g->nodes[i] = (struct bird_node){ node, records_find(r->o.records, KEY_SPEC,
								     node->name) };
	}
	g->in.nodes = g->nodes;
	g->in.n_nodes = n;
	return 0;
}

static int gather_policy(const struct routing *r, struct gathered *g)
{
	int rc = records_list(r->o.records, KEY_PEER, &g->peers, &g->in.n_peers);

	rc = rc ?: records_list(r->o.records, KEY_FILTER, &g->filters, &g->in.n_filters);
	g->in.peers = (const struct peer *const *)g->peers;
	g->in.filters = (const struct filter *const *)g->filters;
	return rc;
}

static int gather_extents(const struct routing *r, struct gathered *g)
{
	AUTO(free) const void **extents = NULL;
	size_t n;
	int rc = records_list(r->o.records, KEY_EXTENT, &extents, &n);

	if (rc < 0)
		return rc;
	g->extents = calloc(n ?: 1, sizeof(*g->extents));
	if (!g->extents)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct extent *e = extents[i];

		g->extents[i] = (struct bird_extent){
			.extent = e,
			.pool = records_find(r->o.records, KEY_POOL, e->pool),
			.silent = r->o.silent(e->pool, r->o.arg),
		};
	}
	g->in.extents = g->extents;
	g->in.n_extents = n;
	return 0;
}

static int gather_config(const struct routing *r, struct gathered *g)
{
	g->in.config = records_find(r->o.records, KEY_CONFIG, "");
	if (g->in.config)
		return 0;
	g->in.config = &g->defaults;
	return cluster_config_decode("config", "{}", 2, &g->defaults, NULL);
}

static int gather_owners(const struct routing *r, struct gathered *g)
{
	AUTO(free) const void **places = NULL;
	size_t n = 0;
	int rc = r->owners ? records_list(r->o.records, KEY_BLOCK, &places, &n) : 0;

	/* Without them BIRD would drop the routes to all pods. */
	if (rc < 0 || (r->owners && !records_listed(r->owners)))
		return rc ?: -EAGAIN;
	g->owned = calloc(n ?: 1, sizeof(*g->owned));
	if (!g->owned)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct block_place *p = places[i];

		g->owned[i] = (struct bird_owned){ p->block, p->node };
	}
	g->in.owned = g->owned;
	g->in.n_owned = n;
	return 0;
}

/* A file that cannot be read leaves its session out, with this reason. */
static int gather_passwords(const struct routing *r, struct gathered *g)
{
	int rc = desired_bird_password_files(&g->in, &g->files);

	if (rc < 0)
		return rc;
	g->passwords = calloc(g->files.n ?: 1, sizeof(*g->passwords));
	g->reasons = calloc(g->files.n ?: 1, sizeof(*g->reasons));
	if (!g->passwords || !g->reasons)
		return -ENOMEM;
	for (size_t i = 0; i < g->files.n; i++) {
		char *text = NULL;

		g->passwords[i] = (struct bird_password){ .path = g->files.v[i] };
		if (secret_read_in(r->o.secret_dirs, g->files.v[i], &text, &g->reasons[i]) < 0)
			g->passwords[i].reason = g->reasons[i].text;
		g->passwords[i].text = text;
	}
	g->in.passwords = g->passwords;
	g->in.n_passwords = g->files.n;
	return 0;
}

static int gather(const struct routing *r, struct gathered *g)
{
	const struct bird_version *version = bird_control_version(bird_step_control(r->step));
	int rc;

	g->in = (struct bird_input){
		.self = r->self.name,
		.ipv4 = r->self.ipv4,
		.ipv6 = r->self.ipv6,
		.router_id = r->self.router_id,
		.spec = records_find(r->o.records, KEY_SPEC, r->self.name),
		.version = version ? version->major * 1000 + version->minor : 0,
		.kernel_protocol = route_protocol,
		.snippets = access(SNIPPETS, R_OK | X_OK) == 0 ? SNIPPETS : NULL,
	};
	rc = gather_nodes(r, g);
	rc = rc ?: gather_policy(r, g);
	rc = rc ?: gather_extents(r, g);
	rc = rc ?: gather_config(r, g);
	rc = rc ?: gather_owners(r, g);
	rc = rc ?: r->o.blocks(&g->blocks, r->o.arg);
	g->in.blocks = g->blocks.v;
	g->in.n_blocks = g->blocks.n;
	return rc ?: gather_passwords(r, g);
}

/* --- the plan and its text ------------------------------------------------------------------ */

static int make_plan(const struct routing *r, struct bird_plan *ret, struct err *err)
{
	AUTO_DONE(gathered_done) struct gathered g = { 0 };
	int rc = gather(r, &g);

	rc = rc ?: desired_bird(&g.in, ret);
	/* First of all: from here on anybody may want to quote a text of it. */
	for (size_t i = 0; rc == 0 && i < ret->secrets.n; i++)
		log_hide(ret->secrets.v[i]);
	return rc < 0 ? err_set(err, rc, "%s", strerror(-rc)) : 0;
}

static void tell_problems(struct routing *r, const struct bird_plan *plan)
{
	for (size_t i = 0; i < plan->problems.n; i++) {
		const struct bird_problem *p = &plan->problems.v[i];
		char part[HEALTH_PART];

		snprintf(part, sizeof(part), "routing/%s", p->record);
		health_set(r->o.health, part,
			   p->level == BIRD_PROBLEM ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "%s",
			   p->text);
	}
	health_sweep(r->o.health, "routing/");
}

/* Before it happens: whoever watches sessions go down finds here why. */
static void tell_flaps(const struct bird_plan *before, const struct bird_plan *after)
{
	static const char *const words[] = {
		[BIRD_RESTARTS] = "session %s will restart: %s",
		[BIRD_REMOVED] = "session %s will be removed: %s",
		[BIRD_WITHDRAWS] = "block %s will be withdrawn: %s",
	};
	struct bird_flaps flaps = { 0 };

	if (bird_flaps(before, after, &flaps) < 0)
		return;
	for (size_t i = 0; i < flaps.n && i < FLAPS_TOLD; i++) {
		char line[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(line, sizeof(line), words[flaps.v[i].kind], flaps.v[i].what,
			 flaps.v[i].why);
#pragma GCC diagnostic pop
		log_warning("bird", "%s", line);
	}
	if (flaps.n > FLAPS_TOLD)
		log_warning("bird", "and %zu more sessions or blocks", flaps.n - FLAPS_TOLD);
	bird_flaps_done(&flaps);
}

static int render_plan(struct routing *r, const struct bird_plan *plan, char **ret, size_t *ret_len,
		       struct err *err)
{
	return renderer_run(r->renderer, plan->tree, &(struct mustache_options){ .strict = true },
			    ret, ret_len, err);
}

static int render(char **ret, size_t *ret_len, void *arg, struct err *err)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	struct routing *r = arg;
	int rc;

	/* BIRD learns blocks from there: they come first. */
	kernel_now(r->o.kernel);
	rc = make_plan(r, &plan, err);
	rc = rc ?: render_plan(r, &plan, ret, ret_len, err);
	if (rc < 0)
		return rc;
	/* It holds passwords, and for thousands of peers many megabytes. */
	json_object_put(plan.tree);
	plan.tree = NULL;
	tell_problems(r, &plan);
	if (r->has_meant)
		tell_flaps(&r->meant, &plan);
	bird_plan_done(&r->next);
	r->next = plan;
	r->has_next = true;
	r->next_hash = HASH_TEXTS(*ret);
	plan = (struct bird_plan){ 0 };
	return 0;
}

static bool is_foreign(const char *text, size_t len, void *arg)
{
	return len > 0 && (len < strlen(BIRD_CONFIG_MARK) ||
			   memcmp(text, BIRD_CONFIG_MARK, strlen(BIRD_CONFIG_MARK)) != 0);
}

/* --- what BIRD runs ------------------------------------------------------------------------- */

/*
 * What BIRD says: whether it is there, what it runs, how its sessions are. Every eight
 * seconds the short list; the long one, which keeps BIRD busy with thousands of peers, once a
 * minute and when a session's state has changed.
 */

static void tell_disabled(struct routing *r, const struct routing_difference *d)
{
	if (d->disabled)
		health_set(r->o.health, "bird-protocols", LOG_LEVEL_WARNING,
			   "%zu of BIRD's protocols %s disabled by hand (%s): `birdc enable %s`",
			   d->disabled, d->disabled == 1 ? "is" : "are", d->first, d->first);
	else
		health_clear(r->o.health, "bird-protocols");
}

/*
 * Once BIRD is asked to read its file again; what then still differs is told. Nothing while a
 * publication is on its way: that changes what runs anyway.
 */
static void answer_difference(struct routing *r, const struct routing_difference *d)
{
	if (d->missing + d->surplus == 0) {
		r->mended = false;
		tell_disabled(r, d);
		return;
	}
	if (publish_busy(r->publish))
		return;
	if (r->mended) {
		health_set(r->o.health, "bird-protocols", LOG_LEVEL_ERROR,
			   "BIRD does not run the configuration in %s, and a reload did not help: "
			   "%zu protocols missing, %zu unexpected (%s); check which file BIRD was "
			   "started with",
			   r->o.bird_config, d->missing, d->surplus, d->first);
		return;
	}
	r->mended = true;
	log_warning("bird",
		    "BIRD does not run the intended configuration: %zu protocols missing, %zu "
		    "unexpected (%s); reloading it",
		    d->missing, d->surplus, d->first);
	publish_reload(r->publish);
	publish_changed(r->publish);
}

/* "12:34:56.789", or a date of long ago. */
static bool time_of_day(const char *text, int *ret)
{
	unsigned h, m, s, ms;
	int end = 0;

	if (sscanf(text, "%2u:%2u:%2u.%3u%n", &h, &m, &s, &ms, &end) != 4 || text[end])
		return false;
	*ret = (int)(((h * 60 + m) * 60 + s) * 1000 + ms);
	return true;
}

/* One that went down and came back meanwhile. The same moment is told differently by a
 * millisecond from call to call. */
static bool since_differs(const char *a, const char *b)
{
	int x, y;

	if (!time_of_day(a, &x) || !time_of_day(b, &y))
		return strcmp(a, b) != 0;
	x = abs(x - y);
	return x > CLOCKS_MS && x < DAY_MS - CLOCKS_MS;
}

static bool states_differ(const struct bird_protocols *a, const struct bird_protocols *b)
{
	if (a->n != b->n)
		return true;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i].name, b->v[i].name) != 0 ||
		    strcmp(a->v[i].state, b->v[i].state) != 0 ||
		    since_differs(a->v[i].since, b->v[i].since) ||
		    strcmp(a->v[i].bgp_state, b->v[i].bgp_state) != 0)
			return true;
	return false;
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_monotonic_us() / 1000);
}

static void ask(struct routing *r, enum bird_view view, bird_answer_fn *fn)
{
	r->looking = bird_show(bird_step_control(r->step), view, fn, r) == 0;
}

static bool answered(struct routing *r, const struct bird_answer *answer)
{
	r->looking = false;
	if (r->again)
		timer_set(r->o.timers, &r->look, 0, 0);
	else if (r->settling)
		timer_set(r->o.timers, &r->look, SOON_MS, SOON_MS / 4);
	else
		timer_set(r->o.timers, &r->look, LOOK_MS, LOOK_MS / 10);
	r->again = false;
	if (answer->err < 0 && answer->err != -ECONNRESET)
		log_warning("bird", "%s: %s", bird_view_name(answer->view), answer->words);
	return answer->err == 0;
}

/* The answer's records, which are ours from now on. */
static bool take(struct routing *r, struct bird_answer *answer, struct bird_protocols *ret)
{
	if (!answered(r, answer))
		return false;
	*ret = answer->protocols;
	answer->protocols = (struct bird_protocols){ 0 };
	return true;
}

/*
 * The same protocols with other options look alike; but whoever changed them had to reconfigure.
 * BIRD says how long ago that was; when it read the clock lies between the question and the answer.
 * Answered no more often than the details are asked for, so that another who reconfigures for ever
 * makes no loop of it.
 */
static void on_status(struct bird_answer *answer, void *arg)
{
	struct routing *r = arg;
	int64_t now = now_ms(), age;

	if (!answered(r, answer) || bird_status_age_ms(&answer->status, &age) < 0)
		return;
	r->configured = time(NULL) - age / 1000;
	if (publish_busy(r->publish))
		return;
	if (!r->knows_ours) {
		r->knows_ours = true;
		r->ours = now - age;
	} else if (r->asked - age > r->ours + CLOCKS_MS && !r->mended &&
		   (!r->reread || now > r->reread + DETAILS_MS)) {
		r->mended = true;
		r->reread = now;
		log_warning("bird",
			    "BIRD was reconfigured on %s, but not by the agent; reloading its "
			    "configuration",
			    answer->status.last_reconfiguration);
		publish_reload(r->publish);
	}
}

static void on_details(struct bird_answer *answer, void *arg)
{
	struct routing *r = arg;
	struct bird_protocols now;

	if (!take(r, answer, &now))
		return;
	bird_protocols_done(&r->runs);
	r->runs = now;
	r->o.changed(r->o.arg);
	r->asked = now_ms();
	ask(r, BIRD_VIEW_STATUS, on_status);
}

/* Asked for by a person: what is there now is shown, and the next look judges it. */
static void on_refreshed(struct bird_answer *answer, void *arg)
{
	struct routing *r = arg;

	if (answer->err == 0) {
		bird_protocols_done(&r->runs);
		r->runs = answer->protocols;
		answer->protocols = (struct bird_protocols){ 0 };
	}
	r->refreshing = false;
	r->o.refreshed(r->o.arg);
}

bool routing_refresh(struct routing *r)
{
	if (!r->refreshing)
		r->refreshing = bird_show(bird_step_control(r->step), BIRD_VIEW_PROTOCOLS_ALL,
					  on_refreshed, r) == 0;
	return r->refreshing;
}

/* --- sessions that are down ----------------------------------------------------------------- */

static bool is_up(const struct bird_protocol *p)
{
	return strcmp(p->bgp_state, "Established") == 0;
}

/*
 * How long it has been in this state, by BIRD's own word; a date, or a format of the operator's, is
 * long ago.
 */
static int age_ms(const char *since)
{
	struct timespec now;
	struct tm local;
	int at, today;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!time_of_day(since, &at) || !localtime_r(&now.tv_sec, &local))
		return DAY_MS;
	today = ((local.tm_hour * 60 + local.tm_min) * 60 + local.tm_sec) * 1000 +
		(int)(now.tv_nsec / 1000000);
	return (today - at + DAY_MS) % DAY_MS;
}

/* The address of this node that the session starts from, if it is on no interface. */
static const char *lost_address(const struct routing *r, const struct bird_protocol *p,
				char text[ADDRESS_TEXT])
{
	const struct prefix *own = strchr(p->neighbor, ':') ? &r->self.ipv6 : &r->self.ipv4;

	if (!own->address.family || kernel_has_address(r->o.kernel, &own->address))
		return NULL;
	return address_print(&own->address, text);
}

static void tell_session(struct routing *r, const struct bird_protocol *p, const char *part)
{
	const char *state = p->bgp_state[0] ? p->bgp_state : p->state;
	char text[ADDRESS_TEXT];
	const char *lost = lost_address(r, p, text);

	if (lost)
		health_set(r->o.health, part, LOG_LEVEL_WARNING,
			   "BGP session %s with %s (AS %u) is down: %s; this node's own address %s "
			   "is on no interface: add it again",
			   p->name, p->neighbor, p->neighbor_as, state, lost);
	else
		health_set(r->o.health, part, LOG_LEVEL_WARNING,
			   "BGP session %s with %s (AS %u) is down: %s%s%s; no routes are "
			   "exchanged: check that the neighbour runs, is reachable from this node, "
			   "and has this node configured as its neighbour in AS %u",
			   p->name, p->neighbor, p->neighbor_as, state,
			   p->last_error[0] ? ", " : "", p->last_error, p->local_as);
}

/* What of the sessions is told: how many there are, are up, and are down for too long. */
struct session_count {
	size_t n, up, told, settling;
	const char *first; /* that settles */
};

/* At a start or a change every session is down for a moment. */
static void judge_session(struct routing *r, const struct bird_protocol *p, struct session_count *c)
{
	const struct bird_protocol *details = bird_protocols_find(&r->runs, p->name);
	char part[HEALTH_PART];

	c->n++;
	if (is_up(p)) {
		c->up++;
		return;
	}
	snprintf(part, sizeof(part), "session/%s", p->name);
	/* It has an error again and again: then BIRD begins each time from the start. */
	if ((age_ms(p->since) < SESSION_GRACE_MS && !health_reason(r->o.health, part)) ||
	    !details || is_up(details)) {
		c->first = c->settling++ ? c->first : p->name;
		return;
	}
	if (c->told++ < SESSIONS_TOLD)
		tell_session(r, details, part);
}

static void tell_count(struct routing *r, const struct session_count *c)
{
	if (c->told > SESSIONS_TOLD)
		health_set(r->o.health, "session/others", LOG_LEVEL_WARNING,
			   "%zu more BGP sessions are down: `roostctl bgp` lists them",
			   c->told - SESSIONS_TOLD);
	if (c->settling)
		health_set(r->o.health, SETTLING_SESSIONS, LOG_LEVEL_INFO,
			   "BGP session%s %s%s not up yet", c->settling == 1 ? "" : "s", c->first,
			   c->settling == 1 ? " is" : " and others are");
	else
		health_clear(r->o.health, SETTLING_SESSIONS);
	if (c->n && !c->up && c->told == c->n)
		health_set(r->o.health, "sessions", LOG_LEVEL_ERROR,
			   "0 of %zu BGP session%s up: pods of this node cannot be reached from "
			   "other nodes, and new routes are not learned: see each session/... "
			   "below, and `roostctl bgp`",
			   c->n, c->n == 1 ? " is" : "s are");
	else if (c->up || !c->n)
		health_clear(r->o.health, "sessions");
	health_sweep(r->o.health, "session/");
}

/* What is disabled by hand is told as that. */
static void tell_sessions(struct routing *r, const struct bird_protocols *now)
{
	struct session_count count = { 0 };

	for (size_t i = 0; i < now->n; i++) {
		const struct bird_protocol *p = &now->v[i];

		if (strcmp(p->proto, "BGP") != 0 || (strcmp(p->state, "down") == 0 && !p->info[0]))
			continue;
		judge_session(r, p, &count);
	}
	r->settling = count.settling > 0;
	tell_count(r, &count);
}

/* Without BIRD there are none. The second time nothing is fresh any more. */
static void forget_sessions(struct routing *r)
{
	health_clear(r->o.health, "sessions");
	health_clear(r->o.health, SETTLING_BIRD);
	health_clear(r->o.health, SETTLING_SESSIONS);
	health_sweep(r->o.health, "session/");
	health_sweep(r->o.health, "session/");
	health_sweep(r->o.health, "neighbours/");
	health_sweep(r->o.health, "neighbours/");
	health_sweep(r->o.health, "settling/neighbours/");
	health_sweep(r->o.health, "settling/neighbours/");
}

/* --- OSPF and RIP: neighbours ---------------------------------------------------------------- */

/* Until the first neighbour is to be there: as long as a lost one takes to be forgotten. */
static int neighbour_grace_ms(const struct cluster_config *c)
{
	return 1000 * (int)(c->protocol == PROTOCOL_OSPF ? c->ospf.dead + c->ospf.hello
							 : 2 * c->rip.update_time);
}

static void tell_neighbours(struct routing *r, const struct cluster_config *c, const char *name,
			    const char *since)
{
	char part[HEALTH_PART];
	const char *word = c->protocol == PROTOCOL_OSPF ? "OSPF" : "RIP";

	snprintf(part, sizeof(part), "neighbours/%s", name);
	if (age_ms(since) < neighbour_grace_ms(c) && !health_reason(r->o.health, part)) {
		snprintf(part, sizeof(part), "settling/neighbours/%s", name);
		health_set(r->o.health, part, LOG_LEVEL_INFO, "%s (%s) has no neighbour yet", word,
			   name);
		return;
	}
	health_set(r->o.health, part, LOG_LEVEL_ERROR,
		   "%s (%s) has no neighbour: this node's blocks are announced to nobody, and no "
		   "routes are learned: check that config's %s.interfaces are those towards the "
		   "neighbours, that their timers and password agree, and that no firewall drops "
		   "%s",
		   word, name, c->protocol == PROTOCOL_OSPF ? "ospf" : "rip", word);
}

static void tell_interfaces(struct routing *r, const struct cluster_config *c)
{
	const struct texts *patterns = c->protocol == PROTOCOL_OSPF ? &c->ospf.interfaces
								    : &c->rip.interfaces;
	const char *word = c->protocol == PROTOCOL_OSPF ? "ospf" : "rip";

	for (size_t i = 0; i < patterns->n; i++) {
		char part[HEALTH_PART];

		if (kernel_has_link(r->o.kernel, patterns->v[i]))
			continue;
		snprintf(part, sizeof(part), "neighbours/%s", patterns->v[i]);
		health_set(
			r->o.health, part, LOG_LEVEL_ERROR,
			"this node has no interface %s, which config's %s.interfaces names: "
			"routes are not exchanged there: correct config, or create the interface",
			patterns->v[i], word);
	}
}

static bool has_neighbour(const struct bird_reply *reply, const char *name)
{
	struct bird_line line = { 0 };
	bool mine = false;

	/* "rip4:", a heading, then a row for each. */
	while (bird_line_next(reply, &line)) {
		size_t n = strlen(name);

		if (strncmp(line.text, "rip", 3) == 0)
			mine = strncmp(line.text, name, n) == 0 && line.text[n] == ':';
		else if (mine && strchr("0123456789abcdef", line.text[0]) &&
			 strpbrk(line.text, ".:"))
			return true;
	}
	return false;
}

static void sweep_neighbours(struct routing *r)
{
	health_sweep(r->o.health, "neighbours/");
	health_sweep(r->o.health, "settling/neighbours/");
}

static const struct bird_protocol *of_kind(const struct bird_protocols *all, const char *kind,
					   size_t *i)
{
	for (; *i < all->n; (*i)++)
		if (strcmp(all->v[*i].proto, kind) == 0 && strcmp(all->v[*i].state, "down") != 0)
			return &all->v[(*i)++];
	return NULL;
}

static void on_rip(int err, const struct bird_reply *reply, void *arg)
{
	struct routing *r = arg;
	const struct cluster_config *c = records_find(r->o.records, KEY_CONFIG, "");
	const struct bird_protocol *p;

	if (err < 0 || !c || c->protocol != PROTOCOL_RIP)
		return;
	tell_interfaces(r, c);
	for (size_t i = 0; (p = of_kind(&r->runs, "RIP", &i));)
		if (!has_neighbour(reply, p->name))
			tell_neighbours(r, c, p->name, p->since);
	sweep_neighbours(r);
}

/* BIRD calls OSPF without a full adjacency "Alone". Of RIP it says nothing until it is asked. */
static void look_at_neighbours(struct routing *r, const struct bird_protocols *now)
{
	const struct cluster_config *c = records_find(r->o.records, KEY_CONFIG, "");
	const struct bird_protocol *p;

	if (c && c->protocol == PROTOCOL_RIP) {
		bird_command(bird_step_control(r->step), "show rip neighbors", 0, on_rip, r);
		return;
	}
	if (c && c->protocol == PROTOCOL_OSPF) {
		tell_interfaces(r, c);
		for (size_t i = 0; (p = of_kind(now, "OSPF", &i));)
			if (strcmp(p->info, "Alone") == 0)
				tell_neighbours(r, c, p->name, p->since);
	}
	sweep_neighbours(r);
}

static void on_protocols(struct bird_answer *answer, void *arg)
{
	struct routing *r = arg;
	uint64_t time = timers_now(r->o.timers);
	AUTO_DONE(bird_protocols_done) struct bird_protocols now = { 0 };

	if (!take(r, answer, &now))
		return;
	if (r->has_meant && routing_compare(&r->meant, &now, &r->difference) == 0)
		answer_difference(r, &r->difference);
	tell_sessions(r, &now);
	health_clear(r->o.health, SETTLING_BIRD);
	look_at_neighbours(r, &now);
	if (states_differ(&now, &r->runs) || time >= r->detailed + DETAILS_MS) {
		r->detailed = time;
		ask(r, BIRD_VIEW_PROTOCOLS_ALL, on_details);
	}
}

static void on_look(void *arg)
{
	struct routing *r = arg;

	/* What is being told now may be from before whatever made us look. */
	r->again = r->looking;
	if (!r->looking)
		ask(r, BIRD_VIEW_PROTOCOLS, on_protocols);
}

static void look_at_all(struct routing *r)
{
	r->knows_ours = false;
	r->detailed = 0;
	timer_set(r->o.timers, &r->look, 0, 0);
}

/* --- outcomes of a publication, and the connection ------------------------------------------ */

static void told(const struct publish_outcome *outcome, void *arg)
{
	struct routing *r = arg;
	bool runs = outcome->result == PUBLISH_DONE || outcome->result == PUBLISH_UNCHANGED ||
		    outcome->result == PUBLISH_UNHEARD;

	if (publish_failed(outcome->result))
		health_set(r->o.health, "bird-config", LOG_LEVEL_ERROR,
			   "BIRD's configuration: %s: %s; BIRD keeps the previous one: `roostctl "
			   "render --diff` shows the rejected change",
			   publish_result_name(outcome->result), outcome->reason.text);
	else
		health_clear(r->o.health, "bird-config");
	if (outcome->result == PUBLISH_DONE) {
		log_info("bird", "BIRD runs a new configuration: %zu sessions", r->next.n_sessions);
		malloc_trim(0);
	}
	if (outcome->result == PUBLISH_DONE || outcome->result == PUBLISH_UNCHANGED) {
		r->accepted = bird_control_version(bird_step_control(r->step)) != NULL;
		r->accepted_hash = r->next_hash;
	}
	if (runs && r->has_next) {
		bird_plan_done(&r->meant);
		r->meant = r->next;
		r->next = (struct bird_plan){ 0 };
		r->has_meant = true;
		r->has_next = false;
	}
	if (outcome->result == PUBLISH_DONE || outcome->result == PUBLISH_UNHEARD ||
	    outcome->result == PUBLISH_NOT_RELOADED)
		look_at_all(r);
	r->o.changed(r->o.arg);
}

static void on_connected(const struct bird_version *version, void *arg)
{
	struct routing *r = arg;

	log_info("bird", "connected to BIRD %u.%u.%u", version->major, version->minor,
		 version->patch);
	health_clear(r->o.health, "bird");
	health_set(r->o.health, SETTLING_BIRD, LOG_LEVEL_INFO, "BIRD's sessions are not known yet");
	r->mended = false;
	r->knows_ours = false;
	/* Another version may want another text; and it may have started with another file. */
	if (r->open)
		publish_changed(r->publish);
	timer_set(r->o.timers, &r->look, 0, 0);
	r->o.changed(r->o.arg);
}

static void on_disconnected(const char *reason, void *arg)
{
	struct routing *r = arg;

	health_set(r->o.health, "bird", LOG_LEVEL_WARNING,
		   "%s; pods here keep running, but their routes are not announced and other "
		   "nodes' routes are not learned: check `systemctl status bird`",
		   reason);
	health_clear(r->o.health, "bird-protocols");
	timer_clear(r->o.timers, &r->look);
	r->looking = false;
	bird_protocols_done(&r->runs);
	r->runs = (struct bird_protocols){ 0 };
	r->difference = (struct routing_difference){ 0 };
	r->accepted = false;
	r->configured = 0;
	forget_sessions(r);
	r->o.changed(r->o.arg);
}

/* --- routes that another program removed ---------------------------------------------------- */

/*
 * Another program removed routes of BIRD's. BIRD does not listen for that and finds it by its
 * next scan, so the agent, which hears it from the kernel, asks BIRD to export again.
 *
 *   kernel: removed by a socket not known as BIRD's ─> [routing_refeed] ─> show route ─> reload out
 *
 * One route is looked at for all: if BIRD still exports it and the kernel does not have it,
 * another program was at work. Else the socket is BIRD's own and heard no more, so a full table
 * that changes costs one question.
 */

static int digit(const struct routing *r)
{
	return r->lost.address.family == AF_INET6 ? 6 : 4;
}

static void on_fed(int err, const struct bird_reply *reply, void *arg)
{
	if (err == 0 && bird_reply_failed(reply))
		log_warning("bird", "BIRD cannot export its routes again: %s", reply->text);
}

static void feed(struct routing *r)
{
	static struct log_limit limit = { .interval_ms = 30000 };
	const struct bird_version *version = bird_control_version(bird_step_control(r->step));
	char command[64], text[PREFIX_TEXT];

	if (!version)
		return;
	fight_repaired(&r->refeeds, timers_now(r->o.timers));
	log_limited(&limit, LOG_LEVEL_WARNING, "bird",
		    "route %s of BIRD, and maybe others, was removed by another program (netlink "
		    "port %u); BIRD exports its routes again",
		    prefix_print(&r->lost, text), r->lost_by);
	snprintf(command, sizeof(command), "reload %sout kernel%d",
		 version->major >= 3 ? "filters " : "", digit(r));
	bird_command(bird_step_control(r->step), command, 0, on_fed, r);
}

static bool shows_route(const struct bird_reply *reply)
{
	struct bird_line line = { 0 };

	while (bird_line_next(reply, &line))
		if (line.code == BIRD_ROUTE)
			return true;
	return false;
}

static void on_shown(int err, const struct bird_reply *reply, void *arg)
{
	struct routing *r = arg;

	if (err == 0 && shows_route(reply) && !kernel_has_bird_route(r->o.kernel, &r->lost))
		feed(r);
	else if (err == 0)
		kernel_set_bird_port(r->o.kernel, r->lost_by);
	r->lost_by = 0;
}

static void on_refeed(void *arg)
{
	struct routing *r = arg;
	char command[64 + PREFIX_TEXT], text[PREFIX_TEXT];

	snprintf(command, sizeof(command), "show route %s export kernel%d",
		 prefix_print(&r->lost, text), digit(r));
	/* A BIRD that is away reads the kernel at its start. */
	if (bird_command(bird_step_control(r->step), command, 0, on_shown, r) < 0)
		r->lost_by = 0;
}

void routing_route_lost(struct routing *r, const struct prefix *dst, uint32_t port)
{
	uint64_t now = timers_now(r->o.timers), due = now + SETTLE_MS;

	if (r->lost_by)
		return;
	r->lost = *dst;
	r->lost_by = port;
	due = r->refeeds.not_before > due ? r->refeeds.not_before : due;
	timer_set(r->o.timers, &r->refeed, due - now, SETTLE_MS);
}

/* --- status and readiness ------------------------------------------------------------------- */

/* BIRD tells the hour of the last day, in local time, and the date of what is older. */
static void since_text(const char *since, char ret[TIME_TEXT])
{
	const time_t now = time(NULL);
	struct tm local;
	int at, today;

	snprintf(ret, TIME_TEXT, "%.*s", TIME_TEXT - 1, since);
	if (!time_of_day(since, &at) || !localtime_r(&now, &local))
		return;
	at /= 1000;
	today = (local.tm_hour * 60 + local.tm_min) * 60 + local.tm_sec;
	clock_utc_of(now - (today - at + (today < at ? DAY_MS / 1000 : 0)), ret);
}

static const char *record_of(const struct routing *r, const char *session)
{
	for (size_t i = 0; r->has_meant && i < r->meant.n_sessions; i++)
		if (strcmp(r->meant.sessions[i].name, session) == 0)
			return r->meant.sessions[i].record;
	return NULL;
}

static int list_sessions(struct routing *r)
{
	size_t n = 0;

	free(r->sessions);
	free(r->since);
	r->sessions = calloc(r->runs.n ?: 1, sizeof(*r->sessions));
	r->since = calloc(r->runs.n ?: 1, sizeof(*r->since));
	if (!r->sessions || !r->since)
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
			.since = r->since[n],
			.record = record_of(r, p->name),
			.error = p->last_error,
			.up = is_up(p),
		};
		since_text(p->since, r->since[n]);
		for (size_t c = 0; c < p->n_channels; c++) {
			s->imported += bird_protocol_channels(&r->runs, p)[c].imported;
			s->exported += bird_protocol_channels(&r->runs, p)[c].exported;
		}
		n++;
	}
	return (int)n;
}

bool routing_announces(const struct routing *r, const struct prefix *block)
{
	for (size_t i = 0; r->has_meant && i < r->meant.n_announced; i++)
		if (prefix_compare(&r->meant.announced[i], block) == 0)
			return true;
	return false;
}

/* Without a record of config its default counts, once that is known to be absent. */
static const char *protocol_of(const struct routing *r)
{
	static const char *const names[] = { [PROTOCOL_BGP] = "bgp",
					     [PROTOCOL_OSPF] = "ospf",
					     [PROTOCOL_RIP] = "rip",
					     [PROTOCOL_NONE] = "none" };
	const struct cluster_config *c = records_find(r->o.records, KEY_CONFIG, "");

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

void routing_readiness(struct routing *r, struct readiness *ret)
{
	static const char *const names[LISTED] = {
		[PEERS] = "watch/peer",
		[FILTERS] = "watch/filter",
		[NODES] = "watch/node",
		[SPECS] = "watch/specs",
	};
	const char *bird = bird_control_problem(bird_step_control(r->step));

	for (size_t i = 0; i < LISTED; i++)
		readiness_add(ret, names[i], false,
			      records_listed(r->wants[i])
				      ? ""
				      : "not all records have been read from etcd yet");
	if (!bird[0] && !r->accepted)
		bird = "it does not run a configuration of roost yet";
	readiness_add(ret, "bird", true, health_reason(r->o.health, "bird") ?: bird);
	/* One neighbour that is down must not stop an upgrade; none at all is this node's fault. */
	readiness_add(ret, "sessions", true, health_reason(r->o.health, "sessions"));
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
		       "Renderings of BIRD's configuration, by result.");
	for (unsigned i = PUBLISH_UNCHANGED; i < PUBLISH_RESULTS; i++)
		metrics_count(m, LABELS({ "result", publish_result_name(i) }), stats->results[i]);
	metrics_family(m, "roost_bird_reloads_total", METRIC_COUNTER,
		       "Reloads of BIRD, by outcome.");
	for (unsigned i = 0; i < PUBLISH_ANSWERS; i++)
		metrics_count(m, LABELS({ "outcome", publish_answer_name(i) }), stats->reloads[i]);
	metrics_family(m, "roost_bird_reload_duration_seconds", METRIC_HISTOGRAM,
		       "Time from the reload request to BIRD's reply.");
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
		       "Prefixes imported from the neighbour.");
	for (size_t i = 0; i < bird->n_sessions; i++)
		metrics_count(m, LABELS({ "session", bird->sessions[i].name }),
			      bird->sessions[i].imported);
	metrics_family(m, "roost_bgp_session_exported_prefixes", METRIC_GAUGE,
		       "Prefixes exported to the neighbour.");
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
		       "Protocols of BIRD that differ from the intended configuration.");
	metrics_count(m, LABELS({ "how", "missing" }), r->difference.missing);
	metrics_count(m, LABELS({ "how", "surplus" }), r->difference.surplus);
	metrics_count(m, LABELS({ "how", "disabled" }), r->difference.disabled);
	session_states(&bird, m);
	each_session(&bird, m);
}

/* --- both texts of the configuration -------------------------------------------------------- */

/* What a rendering would give now; the plan is the caller's, for its secrets. */
static void add_wanted(struct routing *r, struct bird_plan *plan, struct tree *t)
{
	AUTO(free) char *text = NULL, *masked = NULL;
	struct err err = { "" };
	size_t len = 0;
	int rc = -EAGAIN;

	if (!r->open)
		err_set(&err, 0, "not all of the records have been read from etcd yet");
	else
		rc = make_plan(r, plan, &err);
	rc = rc ?: render_plan(r, plan, &text, &len, &err);
	if (rc == 0)
		masked = bird_mask(text, len, &plan->secrets);
	tree_text(t, "wanted", masked);
	tree_text(t, "wantedError", rc < 0 && !err.text[0] ? strerrordesc_np(-rc) : err.text);
	tree_open(t, "leftOut", '[');
	for (size_t i = 0; i < plan->problems.n; i++) {
		const struct bird_problem *p = &plan->problems.v[i];

		if (p->level != BIRD_PROBLEM)
			continue;
		tree_open(t, NULL, '{');
		tree_text(t, "record", p->record);
		tree_text(t, "reason", p->text);
		tree_close(t);
	}
	tree_close(t);
}

/* What BIRD runs is the file that it accepted, if nobody has touched either since. */
static bool is_confirmed(const struct routing *r, const struct target *t)
{
	struct hash now = HASH_TEXTS(t->text ?: "");

	return r->accepted && !target_unsettled(t) && now.low == r->accepted_hash.low &&
	       now.high == r->accepted_hash.high && !r->difference.missing &&
	       !r->difference.surplus;
}

static void add_running(struct routing *r, const struct texts *secrets, struct tree *to)
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
	tree_text(to, "running", masked);
	tree_text(to, "runningError", err.text);
	tree_text(to, "runningSince", since);
	tree_text(to, "runningFrom", confirmed ? "accepted by BIRD" : "file, not confirmed");
}

void routing_show_config(struct routing *r, struct serve_request *request)
{
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	AUTO(json_put) struct json_object *o = NULL;
	struct tree t = tree_new();

	tree_bool(&t, "managed", true);
	tree_text(&t, "path", r->o.bird_config);
	add_wanted(r, &plan, &t);
	add_running(r, &plan.secrets, &t);
	if (tree_end(&t, &o) < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
	else
		serve_reply_json(request, 200, o);
}

/* --- events --------------------------------------------------------------------------------- */

static void on_record(const struct record_event *e, void *arg)
{
	if (e->changed)
		routing_changed(arg);
}

/*
 * Every claim is news for all nodes, so block/ is watched only while it is needed. Until it has been
 * listed BIRD runs what it did: without owners it would drop the routes to all pods. False: wait.
 */
static bool owners_known(struct routing *r)
{
	const struct cluster_config *c = records_find(r->o.records, KEY_CONFIG, "");
	bool needed = c && c->bgp.verify_owners && c->protocol == PROTOCOL_BGP;

	if (!needed && r->owners)
		records_unwant(TAKE(r->owners));
	if (needed && !r->owners &&
	    records_want(r->o.records, KEYS_BLOCK, on_record, r, &r->owners) < 0) {
		log_error("bird", "out of memory: the owners of blocks are not known");
		return false;
	}
	return !needed || records_listed(r->owners);
}

void routing_changed(struct routing *r)
{
	bool known = r->self.name[0] && r->extents_known, owners = owners_known(r);

	for (size_t i = 0; i < LISTED; i++)
		known = known && records_listed(r->wants[i]);
	r->open = r->open || (known && owners);
	if (r->open && owners)
		publish_changed(r->publish);
}

void routing_set_self(struct routing *r, const struct identity *self)
{
	r->self = *self;
	routing_changed(r);
}

void routing_inputs_known(struct routing *r)
{
	r->extents_known = true;
	routing_changed(r);
}

/* --- life ----------------------------------------------------------------------------------- */

/* BIRD gives up its rights and reads the file again on `configure`. */
static gid_t birds_group(void)
{
	const struct group *g = getgrnam("bird");

	return g ? g->gr_gid : (gid_t)-1;
}

int routing_new(const struct routing_options *options, struct routing **ret, struct err *err)
{
	static const char *const keys[WANTS] = {
		[PEERS] = KEYS_PEER,     [FILTERS] = KEYS_FILTER, [NODES] = KEYS_NODE,
		[SPECS] = KEYS_SPEC,     [CONFIG] = "config",     [POOLS] = KEYS_POOL,
		[EXTENTS] = KEYS_EXTENT,
	};
	static const struct bird_control_handlers handlers = { on_connected, on_disconnected };
	AUTO(routing_free) struct routing *r = calloc(1, sizeof(*r));
	struct bird_step_options step = {
		.event = options->event,
		.socket = options->bird_socket,
		.program = options->bird_program,
		.handlers = &handlers,
		.arg = r,
	};
	struct publish_options publish = {
		.event = options->event,
		.target = { options->bird_config, 0640, (uid_t)-1, birds_group() },
		.render = render,
		.is_foreign = is_foreign,
		.told = told,
		.arg = r,
	};
	int rc;

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->look = (struct timer){ .fn = on_look, .arg = r };
	r->refeed = (struct timer){ .fn = on_refeed, .arg = r };
	rc = bird_step_new(&step, &r->step);
	if (rc == 0) {
		publish.check = bird_step_check(r->step);
		publish.reload = bird_step_reload(r->step);
		rc = publish_new(&publish, &r->publish);
	}
	rc = rc ?: renderer_new(TEMPLATE, r->o.template_dir, &r->renderer);
	for (size_t i = 0; rc == 0 && i < WANTS; i++)
		rc = records_want(r->o.records, keys[i], on_record, r, &r->wants[i]);
	if (rc < 0)
		return err_set(err, rc, "routing: %s", strerror(-rc));
	*ret = TAKE(r);
	return 0;
}

void routing_free(struct routing *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < WANTS; i++)
		records_unwant(r->wants[i]);
	records_unwant(r->owners);
	publish_free(r->publish);
	timer_clear(r->o.timers, &r->refeed);
	timer_clear(r->o.timers, &r->look);
	bird_step_free(r->step);
	bird_protocols_done(&r->runs);
	free(r->sessions);
	free(r->since);
	renderer_free(r->renderer);
	bird_plan_done(&r->meant);
	bird_plan_done(&r->next);
	free(r);
}
