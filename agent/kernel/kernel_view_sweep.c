/* SPDX-License-Identifier: Apache-2.0 */
/* What dumps did not show, and what vanished links took with them. */
#include <net/if.h>
#include <stdlib.h>

#include "agent/kernel/kernel_view_parts.h"

/* A tree must not change while it is walked, so the doomed are gathered first. */
struct gathered {
	struct kernel_view *view;
	enum view_part part;
	uint32_t link; /* whose table it is */
	void **v;
	size_t n, room;
};

static void gather(struct gathered *g, void *element)
{
	if (g->n == g->room) {
		size_t room = g->room ? 2 * g->room : 64;
		void **grown = reallocarray(g->v, room, sizeof(*grown));

		/* What is left over now falls at the next full compare. */
		if (!grown)
			return;
		g->v = grown;
		g->room = room;
	}
	g->v[g->n++] = element;
}

static void unseen_route(struct held_route *r, void *arg)
{
	struct gathered *g = arg;
	bool v4 = g->part == VIEW_ROUTES4 || g->part == VIEW_STATICS4;
	bool statics = g->part == VIEW_STATICS4 || g->part == VIEW_STATICS6;

	if (r->h.held && r->h.seen != g->view->generation &&
	    (r->route.dst.address.family == AF_INET) == v4 &&
	    (r->route.protocol == static_route_protocol) == statics)
		gather(g, r);
}

static bool is_fdb(enum view_part part)
{
	return part == VIEW_FDB || part == VIEW_FDB6;
}

static void unseen_neighbour(struct held_neighbour *n, void *arg)
{
	struct gathered *g = arg;

	if (n->h.held && n->h.seen != g->view->generation && n->neighbour.fdb == is_fdb(g->part) &&
	    (!n->neighbour.fdb || n->neighbour.link == g->link))
		gather(g, n);
}

static void unseen_link(struct held_link *l, void *arg)
{
	struct gathered *g = arg;

	if (l->h.seen != g->view->generation)
		gather(g, l);
}

static void end_addresses(struct kernel_view *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->n_addresses; i++)
		if (v->addresses[i].seen == v->generation)
			v->addresses[kept++] = v->addresses[i];
	v->n_addresses = kept;
}

static void forget_gateway6(struct held_link *l, void *arg)
{
	l->gateway6 = GATEWAY6_NONE;
	l->own_removals = 0;
}

static uint32_t tunnel_link(const struct kernel_view *v, int tunnel)
{
	const struct held_link *l = kernel_view_link_named(v, tunnel_name(tunnel));

	return l ? l->link.index : 0;
}

void kernel_view_begin(struct kernel_view *v, enum view_part part)
{
	v->generation++;
	if (part == VIEW_ADDRESSES)
		kernel_view_each_link(v, forget_gateway6, NULL);
}

void kernel_view_end(struct kernel_view *v, enum view_part part)
{
	struct gathered g = { .view = v, .part = part };

	if (part == VIEW_LINKS) {
		kernel_view_each_link(v, unseen_link, &g);
		for (size_t i = 0; i < g.n; i++)
			kernel_view_drop_link(v, ((struct held_link *)g.v[i])->link.index);
	} else if (part == VIEW_NEIGHBOURS || is_fdb(part)) {
		g.link = is_fdb(part) ? tunnel_link(v, part == VIEW_FDB6) : 0;
		kernel_view_each_neighbour(v, unseen_neighbour, &g);
		for (size_t i = 0; i < g.n; i++)
			kernel_view_lose_neighbour(v, g.v[i]);
	} else if (part == VIEW_ADDRESSES) {
		end_addresses(v);
	} else {
		kernel_view_each_route(v, unseen_route, &g);
		for (size_t i = 0; i < g.n; i++)
			kernel_view_lose_route(v, g.v[i]);
	}
	free(g.v);
}

/* Some link of it is not there any more, and with that link the kernel drops the whole route. */
static bool leads_to_gone(const struct kernel_view *v, const struct kroute *r)
{
	const struct khop *hops;
	size_t n = kroute_hops(r, &hops);

	for (size_t i = 0; i < n; i++)
		if (hops[i].oif && !kernel_view_link(v, hops[i].oif))
			return true;
	return false;
}

/* IPv4's are dropped once none of their links is up; IPv6's are told. */
static bool was_dropped(const struct kernel_view *v, const struct kroute *r)
{
	const struct khop *hops;
	size_t n = kroute_hops(r, &hops);
	bool dropped = false;

	for (size_t i = 0; i < n; i++) {
		const struct held_link *l = kernel_view_link(v, hops[i].oif);

		if (!l || (!l->dropped && (l->link.flags & IFF_UP)))
			return false;
		dropped |= l->dropped;
	}
	return dropped && r->dst.address.family == AF_INET;
}

static void stray_route(struct held_route *r, void *arg)
{
	struct gathered *g = arg;

	if (leads_to_gone(g->view, &r->route) || (r->h.held && was_dropped(g->view, &r->route)))
		gather(g, r);
}

static void stray_neighbour(struct held_neighbour *n, void *arg)
{
	struct gathered *g = arg;

	if (!kernel_view_link(g->view, n->neighbour.link))
		gather(g, n);
}

static void undropped(struct held_link *l, void *arg)
{
	l->dropped = false;
}

void kernel_view_settle(struct kernel_view *v)
{
	struct gathered g = { .view = v };

	if (!v->links_lost)
		return;
	v->links_lost = false;
	kernel_view_each_route(v, stray_route, &g);
	for (size_t i = 0; i < g.n; i++) {
		struct held_route *r = g.v[i];

		v->news |= r->h.held && r->h.confirmed;
		if (r->route.protocol == static_route_protocol)
			r->h.confirmed = false;
		/* With its link gone nobody can put it back. */
		if (leads_to_gone(v, &r->route))
			kernel_view_drop_route(v, &r->route);
		else
			kernel_view_lose_route(v, r);
	}
	g.n = 0;
	kernel_view_each_neighbour(v, stray_neighbour, &g);
	for (size_t i = 0; i < g.n; i++)
		kernel_view_drop_neighbour(v, &((struct held_neighbour *)g.v[i])->neighbour);
	free(g.v);
	kernel_view_each_link(v, undropped, NULL);
}
