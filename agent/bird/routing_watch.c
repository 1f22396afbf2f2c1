/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What BIRD says: whether it is there, what it runs, how its sessions are. Every ten
 * seconds the short list; the long one, which keeps BIRD busy with thousands of peers, once a
 * minute and when a session's state has changed.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/bird/routing_parts.h"
#include "lib/base/clock.h"

#define LOOK_MS    10000
#define DETAILS_MS 60000
/* What two readings of one moment may differ by: BIRD rounds, and clocks are slewed. */
#define CLOCKS_MS 1000
#define DAY_MS    86400000
/* So many are named, the rest is counted. */
#define SESSIONS_TOLD 10
/* How long one may be down before it is told: less than from look to look. */
#define SESSION_GRACE_MS 7000

/* --- the comparison ------------------------------------------------------------------------- */

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
			   "BIRD does not run what %s says, and a reload has not changed that: "
			   "%zu protocols missing, %zu too many (%s); was it started with "
			   "another file?",
			   r->o.bird_config, d->missing, d->surplus, d->first);
		return;
	}
	r->mended = true;
	log_warning("bird",
		    "BIRD runs something else than was meant: %zu protocols missing, %zu too many "
		    "(%s); its configuration is read again",
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
	else
		timer_set(r->o.timers, &r->look, LOOK_MS, LOOK_MS / 4);
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
			    "BIRD was reconfigured by another hand, on %s; its configuration is "
			    "read again",
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
	r->runs_at = timers_now(r->o.timers);
	r->o.changed(r->o.arg);
	r->asked = now_ms();
	ask(r, BIRD_VIEW_STATUS, on_status);
}

/* --- sessions that are down ----------------------------------------------------------------- */

bool routing_session_up(const struct bird_protocol *p)
{
	return strcmp(p->bgp_state, "Established") == 0;
}

/* Told already, or down since long enough ago that it is no mere start. */
static bool is_worth_telling(const struct routing *r, const char *part)
{
	return health_reason(r->o.health, part) ||
	       timers_now(r->o.timers) >= r->runs_at + SESSION_GRACE_MS;
}

static bool tell_session(struct routing *r, const struct bird_protocol *p, bool counted_only)
{
	char part[HEALTH_PART];

	snprintf(part, sizeof(part), "session/%s", p->name);
	if (!is_worth_telling(r, part))
		return false;
	if (counted_only)
		return true;
	health_set(
		r->o.health, part, LOG_LEVEL_WARNING,
		"BGP session %s with %s (AS %u) is down: %s%s%s; no routes come or go by it: see "
		"that the neighbour runs, can be reached from here and has this node as its "
		"neighbour in AS %u",
		p->name, p->neighbor, p->neighbor_as, p->bgp_state[0] ? p->bgp_state : p->state,
		p->last_error[0] ? ", " : "", p->last_error, p->local_as);
	return true;
}

/*
 * One that is down now and was so when the details were last asked for: at a start or a change
 * every session is down for a moment. What is disabled by hand is told as that.
 */
static void tell_sessions(struct routing *r, const struct bird_protocols *now)
{
	size_t n = 0;

	for (size_t i = 0; i < now->n; i++) {
		const struct bird_protocol *p = &now->v[i], *before;

		if (strcmp(p->proto, "BGP") != 0 || routing_session_up(p) ||
		    strcmp(p->state, "down") == 0)
			continue;
		before = bird_protocols_find(&r->runs, p->name);
		if (before && !routing_session_up(before))
			n += tell_session(r, before, n >= SESSIONS_TOLD);
	}
	if (n > SESSIONS_TOLD)
		health_set(r->o.health, "session/others", LOG_LEVEL_WARNING,
			   "%zu more BGP sessions are down: `roostctl bgp` lists them",
			   n - SESSIONS_TOLD);
	health_sweep(r->o.health, "session/");
}

/* Without BIRD there are none. The second time nothing is fresh any more. */
static void forget_sessions(struct routing *r)
{
	health_sweep(r->o.health, "session/");
	health_sweep(r->o.health, "session/");
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

static void look_soon(struct routing *r)
{
	timer_set(r->o.timers, &r->look, 0, 0);
}

void routing_asked_again(struct routing *r)
{
	r->knows_ours = false;
	r->detailed = 0;
	look_soon(r);
}

/* --- the connection ------------------------------------------------------------------------- */

static void on_connected(const struct bird_version *version, void *arg)
{
	struct routing *r = arg;

	log_info("bird", "BIRD %u.%u.%u is there", version->major, version->minor, version->patch);
	health_clear(r->o.health, "bird");
	r->mended = false;
	r->knows_ours = false;
	/* Another version may want another text; and it may have started with another file. */
	if (r->open)
		publish_changed(r->publish);
	look_soon(r);
	r->o.changed(r->o.arg);
}

static void on_disconnected(const char *reason, void *arg)
{
	struct routing *r = arg;

	health_set(r->o.health, "bird", LOG_LEVEL_WARNING,
		   "%s; pods here go on, but their routes are not announced and others' are not "
		   "learned: see `systemctl status bird`",
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

/* --- life ----------------------------------------------------------------------------------- */

int routing_watch_new(struct routing *r)
{
	static const struct bird_control_handlers handlers = { on_connected, on_disconnected };

	struct bird_step_options o = {
		r->o.event, r->o.bird_socket, r->o.bird_program, &handlers, r,
	};

	r->look = (struct timer){ .fn = on_look, .arg = r };
	return bird_step_new(&o, &r->step);
}

void routing_watch_done(struct routing *r)
{
	timer_clear(r->o.timers, &r->look);
	bird_step_free(r->step);
	bird_protocols_done(&r->runs);
	free(r->sessions);
}
