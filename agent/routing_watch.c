/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What BIRD says: whether it is there, what it runs, how its sessions are. Every ten
 * seconds the short list; the long one, which keeps BIRD busy with thousands of peers, once a
 * minute and when a session's state has changed.
 */
#include <errno.h>
#include <string.h>

#include "agent/routing_parts.h"
#include "lib/clock.h"

#define LOOK_MS    10000
#define DETAILS_MS 60000
/* What two readings of one moment may differ by: BIRD rounds, and clocks are slewed. */
#define CLOCKS_MS 1000
#define DAY_MS    86400000

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

	if (!answered(r, answer) || publish_busy(r->publish) ||
	    bird_status_age_ms(&answer->status, &age) < 0)
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
	r->o.changed(r->o.arg);
	r->asked = now_ms();
	ask(r, BIRD_VIEW_STATUS, on_status);
}

static void on_protocols(struct bird_answer *answer, void *arg)
{
	struct routing *r = arg;
	uint64_t time = timers_now(r->o.timers);
	AUTO(bird_protocols_done) struct bird_protocols now = { 0 };

	if (!take(r, answer, &now))
		return;
	if (r->has_meant && routing_compare(&r->meant, &now, &r->difference) == 0)
		answer_difference(r, &r->difference);
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

	health_set(r->o.health, "bird", LOG_LEVEL_WARNING, "%s", reason);
	health_clear(r->o.health, "bird-protocols");
	timer_clear(r->o.timers, &r->look);
	r->looking = false;
	bird_protocols_done(&r->runs);
	r->runs = (struct bird_protocols){ 0 };
	r->difference = (struct routing_difference){ 0 };
	r->o.changed(r->o.arg);
}

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
			.up = strcmp(p->bgp_state, "Established") == 0,
		};
		for (size_t c = 0; c < p->n_channels; c++) {
			s->imported += bird_protocol_channels(&r->runs, p)[c].imported;
			s->exported += bird_protocol_channels(&r->runs, p)[c].exported;
		}
		n++;
	}
	return (int)n;
}

void routing_status(struct routing *r, struct status_bird *ret)
{
	const struct bird_version *v = bird_control_version(bird_step_control(r->step));
	const struct publish_outcome *last = publish_last(r->publish);

	*ret = (struct status_bird){
		.managed = true,
		.connected = v != NULL,
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
