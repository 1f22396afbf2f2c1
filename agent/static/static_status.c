/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/kernel/delta_kernel.h"

#define SENTENCE_TEXT 512

/* --- what somebody did ---------------------------------------------------------------------- */

static void note_tampering(struct static_entries *t, struct static_entry *e, const char *now)
{
	t->tampered++;
	if (e->tampered.count < UINT32_MAX)
		e->tampered.count++;
	snprintf(e->tampered.last, sizeof(e->tampered.last), "%s", now);
}

static const struct held_route *held_as_wanted(const struct static_entry *e,
					       const struct kernel_view *view)
{
	const struct held_route *r = e->wanted ? kernel_view_route(view, &e->route) : NULL;

	return r && r->h.held ? r : NULL;
}

static bool is_reported_only(const struct static_entry *e)
{
	const struct static_route *record = e->now ?: e->good;

	return record && record->on_tamper == ON_TAMPER_REPORT;
}

void static_watch(struct static_entries *t, const struct kernel_view *view, const char *now)
{
	for (size_t i = 0; i < t->n; i++) {
		struct static_entry *e = t->v[i];
		const struct held_route *r = e->wanted ? kernel_view_route(view, &e->route) : NULL;

		if (!e->wanted || !is_reported_only(e) || (r && r->h.held)) {
			e->away = false;
		} else if (!e->away && r && r->h.confirmed) {
			/* It was there as it should be, and nobody but a person can have taken it.
			 */
			e->away = true;
			note_tampering(t, e, now);
		}
	}
}

void static_restored(struct static_entries *t, const struct kroute *route, const char *now)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i]->wanted && kroute_compare(&t->v[i]->route, route) == 0)
			note_tampering(t, t->v[i], now);
}

/* --- what is to be in the kernel ------------------------------------------------------------ */

struct gathering {
	struct kroute *v;
	size_t n, room;
	int err;
};

static void push(struct gathering *g, const struct kroute *r)
{
	if (array_append(g, *r) < 0)
		g->err = -ENOMEM;
}

static bool is_there(const struct gathering *g, const struct kroute *r)
{
	for (size_t i = 0; i < g->n; i++)
		if (kroute_compare_key(&g->v[i], r) == 0)
			return true;
	return false;
}

static bool is_held_at(const struct held_route *r, const struct prefix *dst, uint32_t table)
{
	return r->h.held && r->route.protocol == static_route_protocol &&
	       (!dst || (r->route.table == table && prefix_compare(&r->route.dst, dst) == 0));
}

/* dst NULL: all. */
static void keep_held(struct gathering *g, const struct kernel_view *view, const struct prefix *dst,
		      uint32_t table)
{
	for (size_t i = 0; i < view->routes.n; i++) {
		const struct held_route *r = view->routes.v[i];

		if (is_held_at(r, dst, table) && !is_there(g, &r->route))
			push(g, &r->route);
	}
}

int static_held(const struct kernel_view *view, struct kroute **ret, size_t *ret_n)
{
	struct gathering g = { 0 };

	keep_held(&g, view, NULL, 0);
	if (g.err < 0) {
		free(g.v);
		return g.err;
	}
	*ret = g.v;
	*ret_n = g.n;
	return 0;
}

/* Those that are still there and that no record has come for. */
static void keep_strays(struct gathering *g, const struct kernel_view *view, struct kroute *strays,
			size_t *n)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		const struct held_route *r = kernel_view_route(view, &strays[i]);

		if (!r || !r->h.held || is_there(g, &strays[i]))
			continue;
		push(g, &strays[i]);
		strays[kept++] = strays[i];
	}
	*n = kept;
}

int static_routes_wanted(const struct static_entries *t, const struct kernel_view *view,
			 struct kroute *strays, size_t *n_strays, struct kroute **ret,
			 size_t *ret_n)
{
	struct gathering g = { 0 };

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i]->wanted && !t->v[i]->away)
			push(&g, &t->v[i]->route);
	for (size_t i = 0; i < t->n; i++) {
		const struct static_entry *e = t->v[i];

		if (e->wanted && e->away)
			keep_held(&g, view, &e->route.dst, e->route.table);
		else if (e->selected && !e->wanted && e->kept.address.family != AF_UNSPEC)
			keep_held(&g, view, &e->kept, e->kept_table);
	}
	keep_strays(&g, view, strays, n_strays);
	if (g.err < 0) {
		free(g.v);
		return g.err;
	}
	*ret = g.v;
	*ret_n = g.n;
	return 0;
}

/* --- how it is ------------------------------------------------------------------------------ */

/* Ours of that subnet and table, whatever it leads to. */
static const struct held_route *held_at(const struct kernel_view *view, const struct prefix *dst,
					uint32_t table)
{
	for (size_t i = 0; i < view->routes.n; i++)
		if (is_held_at(view->routes.v[i], dst, table))
			return view->routes.v[i];
	return NULL;
}

static const struct held_route *held_of(const struct static_entry *e,
					const struct kernel_view *view)
{
	if (e->wanted && e->away)
		return held_at(view, &e->route.dst, e->route.table);
	if (!e->wanted && e->kept.address.family != AF_UNSPEC)
		return held_at(view, &e->kept, e->kept_table);
	return held_as_wanted(e, view);
}

static void say_stranger(const struct kernel_view *view, const struct held_route *r, char *text,
			 size_t size)
{
	const struct held_link *l = kernel_view_link(view, r->foreign->hop.oif);
	char route[KROUTE_TEXT], name[12];

	snprintf(text, size,
		 "foreign route %s of protocol %s has the same destination; left unchanged",
		 kroute_print(r->foreign, l ? l->link.name : NULL, route),
		 route_protocol_name(r->foreign->protocol, name));
}

/* "" if nothing is wrong. */
static void say_trouble(const struct static_entry *e, const struct kernel_view *view, char *text,
			size_t size)
{
	const struct held_route *r = e->wanted ? kernel_view_route(view, &e->route) : NULL;

	text[0] = '\0';
	if (e->why)
		snprintf(text, size, "%s%s", e->why,
			 e->wanted || held_of(e, view) ? "; what it was before stays in force"
						       : "");
	else if (!e->wanted || (r && r->h.held))
		return;
	else if (e->away)
		snprintf(text, size, "another program removed it, and onTamper is report");
	else if (r && r->foreign)
		say_stranger(view, r, text, size);
	else if (r && r->h.fight.repairs > FIGHT_LOGGED)
		snprintf(text, size,
			 "another program removes it again and again; restored each time");
	else
		snprintf(text, size,
			 "it is not in the kernel yet, or the kernel refuses it: see "
			 "the node's health");
}

/* A way out over a link alone has no gateway. */
static size_t gateways_of(const struct kroute *r, struct address v[KHOPS_MAX])
{
	const struct khop *hops;
	size_t many = kroute_hops(r, &hops), n = 0;

	for (size_t i = 0; i < many; i++)
		if (hops[i].gateway.family != AF_UNSPEC)
			v[n++] = hops[i].gateway;
	return n;
}

/* Only what can be printed goes into a record. */
static void make_sentence(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static int set_status(struct static_entry *e, struct static_route_status *s, const char *now)
{
	char *state = NULL, *text = NULL;
	int r = static_route_status_encode(s, &state);

	if (r < 0)
		return r;
	if (!e->state || strcmp(e->state, state) != 0) {
		snprintf(e->since, sizeof(e->since), "%s", now);
		free(e->state);
		e->state = TAKE(state);
	}
	free(state);
	memcpy(s->since, e->since, sizeof(s->since));
	s->revision = e->mod_revision;
	s->tampered = e->tampered;
	r = static_route_status_encode(s, &text);
	if (r < 0)
		return r;
	free(e->status);
	e->status = text;
	return 0;
}

static int show(struct static_entry *e, const struct kernel_view *view, const char *node,
		const char *now)
{
	const struct held_route *held = held_of(e, view);
	struct address gateways[KHOPS_MAX];
	struct static_route_status s = { .name = e->name, .node = node };
	char error[SENTENCE_TEXT];

	if (held) {
		s.subnet = held->route.dst;
		s.table = held->route.table;
		s.gateways.n = gateways_of(&held->route, gateways);
		s.gateways.v = gateways;
	}
	say_trouble(e, view, error, sizeof(error));
	make_sentence(error);
	s.error = error;
	return set_status(e, &s, now);
}

/* While ours of it is still in the kernel, its status says so. */
static bool is_withdrawn(const struct static_entry *e, const struct kernel_view *view)
{
	const struct held_route *r = e->applied ? kernel_view_route(view, &e->applied_route) : NULL;

	return !r || !r->h.held;
}

static void forget_status(struct static_entry *e)
{
	free(TAKE(e->status));
	free(TAKE(e->state));
	e->since[0] = '\0';
	e->tampered = (struct static_route_tampered){ 0 };
	e->applied = e->away = false;
}

static void note_applied(struct static_entries *t, struct static_entry *e,
			 const struct kernel_view *view, const char *now)
{
	const struct held_route *r = e->wanted ? kernel_view_route(view, &e->route) : NULL;

	/* Who puts another in its place takes it away, too. */
	if (e->applied && r && r->foreign && kroute_compare(&e->applied_route, &e->route) == 0)
		note_tampering(t, e, now);
	if (held_as_wanted(e, view)) {
		e->applied = true;
		e->applied_route = e->route;
	} else if (e->wanted) {
		e->applied = false;
	}
}

int static_status(struct static_entries *t, const struct kernel_view *view, const char *node,
		  const char *now)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n; i++) {
		struct static_entry *e = t->v[i];

		/* In no cluster any more that could be told. */
		if (e->life == STATIC_LOST)
			continue;
		if (e->selected) {
			note_applied(t, e, view, now);
			r = show(e, view, node, now);
		} else if (is_withdrawn(e, view)) {
			forget_status(e);
		}
	}
	return r;
}

void static_remember(struct static_entry *e, const char *key, const char *text, size_t len)
{
	AUTO_DONE(static_route_status_done) struct static_route_status s = { 0 };
	struct static_route_status state;

	if (!text || static_route_status_decode(key, text, len, &s, NULL) < 0)
		return;
	if (s.tampered.count > e->tampered.count)
		e->tampered = s.tampered;
	if (!e->good && s.subnet.address.family != AF_UNSPEC) {
		e->kept = s.subnet;
		e->kept_table = s.table;
	}
	state = s;
	state.since[0] = '\0';
	state.revision = 0;
	state.tampered = (struct static_route_tampered){ 0 };
	if (!e->state && s.since[0] && static_route_status_encode(&state, &e->state) == 0)
		memcpy(e->since, s.since, sizeof(e->since));
}

struct static_counts static_count(const struct static_entries *t)
{
	struct static_counts c = { .records = t->n, .tampered = t->tampered };

	for (size_t i = 0; i < t->n; i++) {
		const struct static_entry *e = t->v[i];

		c.selected += e->selected;
		c.applied += e->selected && e->applied;
		c.errors += e->selected && (e->why || !e->applied);
	}
	return c;
}
