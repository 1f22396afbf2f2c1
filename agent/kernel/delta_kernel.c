/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/delta_kernel_parts.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPAIR_EVERY_MS    200
#define REPAIR_AHEAD_MS    (4 * REPAIR_EVERY_MS)
#define REPAIR_SLOWLY_MS   2000
#define FIGHT_LASTING_MS   120000
#define FIGHT_OVER_MS      10000 /* without a repair */
#define FIGHT_FORGOTTEN_MS 60000

int add_change(struct changes *c, const struct change *change)
{
	if (c->n == c->room) {
		size_t room = c->room ? 2 * c->room : 16;
		struct change *grown = reallocarray(c->v, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		c->v = grown;
		c->room = room;
	}
	c->v[c->n++] = *change;
	return 0;
}

void changes_done(struct changes *c)
{
	free(c->v);
	*c = (struct changes){ 0 };
}

/* --- fights --------------------------------------------------------------------------------- */

void holding_repaired(struct holding *h, uint64_t now)
{
	if (now > h->paid + FIGHT_FORGOTTEN_MS)
		h->fights = 0;
	if (now > h->paid + FIGHT_OVER_MS)
		h->fight_began = now;
	if (h->fights < UINT8_MAX)
		h->fights++;
	h->paid = (h->paid > now ? h->paid : now) + REPAIR_EVERY_MS;
	if (now - h->fight_began >= FIGHT_LASTING_MS)
		h->not_before = now + REPAIR_SLOWLY_MS;
	else if (h->paid > now + REPAIR_AHEAD_MS)
		h->not_before = h->paid - REPAIR_AHEAD_MS;
	else
		h->not_before = now;
}

bool put_off(const struct holding *h, uint64_t now, struct changes *c)
{
	if (!h || h->not_before <= now)
		return false;
	if (!c->next || h->not_before < c->next)
		c->next = h->not_before;
	return true;
}

/* --- what is missing ------------------------------------------------------------------------ */

static bool is_off(const struct message_conf *host, enum devconf c)
{
	return (host->known & CONF_BIT(c)) && !host->conf[c];
}

static int missing_host(const struct desired *d, const struct kernel_view *view, uint64_t now,
			struct changes *ret)
{
	struct change c = { .kind = CHANGE_HOST, .family = AF_INET };
	int err = 0;

	c.repair = view->forwarding4.confirmed;
	if (is_off(&view->host4, CONF_FORWARDING) && !put_off(&view->forwarding4, now, ret))
		err = add_change(ret, &c);
	c.family = AF_INET6;
	c.repair = view->forwarding6.confirmed;
	if (err == 0 && d->ipv6 && is_off(&view->host6, CONF6_FORWARDING) &&
	    !put_off(&view->forwarding6, now, ret))
		err = add_change(ret, &c);
	return err;
}

/* Settings that the kernel has not told it does not have: IPv6 may be switched off as a whole. */
static uint16_t differing(const struct desired_link *want, const struct klink *l)
{
	uint16_t differ = 0;
	int32_t value;

	for (enum devconf c = 0; c < N_DEVCONF; c++)
		if (desired_conf(want, c, &value) && (l->known & CONF_BIT(c)) &&
		    l->conf[c] != value)
			differ |= CONF_BIT(c);
	return differ;
}

static bool link_change(const struct desired_link *want, const struct held_link *l,
			struct change *ret)
{
	*ret = (struct change){ .kind = CHANGE_LINK,
				.repair = l->h.confirmed && (l->confirmed6 || !want->ipv6),
				.link = *want,
				.differ = differing(want, &l->link),
				.up = !(l->link.flags & IFF_UP),
				.gateway6 = want->ipv6 && !want->tunnel ? l->gateway6
									: GATEWAY6_READY };
	return ret->differ || ret->up || ret->gateway6 != GATEWAY6_READY;
}

static int missing_links(const struct desired *d, const struct kernel_view *view, uint64_t now,
			 struct changes *ret)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < d->n_links; i++) {
		const struct held_link *l = kernel_view_link(view, d->links[i].index);
		struct change c;

		if (l && link_change(&d->links[i], l, &c) && !put_off(&l->h, now, ret))
			err = add_change(ret, &c);
	}
	return err;
}

static int missing_neighbour(const struct kneighbour *want, const struct held_neighbour *n,
			     uint64_t now, struct changes *ret)
{
	if (n && n->h.held && kneighbour_same(&n->neighbour, want))
		return 0;
	if (put_off(n ? &n->h : NULL, now, ret))
		return 0;
	return add_change(ret, &(struct change){ .kind = CHANGE_NEIGHBOUR,
						 .repair = n && n->h.confirmed,
						 .neighbour = *want });
}

static int missing_neighbours(const struct paired *p, uint64_t now, struct changes *ret)
{
	const struct desired *d = p->desired;
	int err = 0;

	for (size_t i = 0; err == 0 && i < d->n_neighbours; i++)
		err = missing_neighbour(&d->neighbours[i], p->neighbours[i], now, ret);
	return err;
}

/*
 * Ours with the same key gives way in one step, so that the destination is reached at every
 * moment; unless a stranger's stands beside it, which the kernel might take instead.
 */
static int add_route(const struct kroute *want, const struct held_route *olds, bool repair,
		     struct changes *ret)
{
	struct change c = { .kind = CHANGE_ROUTE_OLD };
	bool replaces = false, beside = false;
	int err = 0;

	for (const struct held_route *old = olds; old; old = old->next)
		beside |= old->beside;
	for (const struct held_route *old = olds; err == 0 && old; old = old->next) {
		if (!old->h.held)
			continue;
		if (!beside && !replaces) {
			replaces = true;
			continue;
		}
		c.route = old->route;
		err = add_change(ret, &c);
	}
	c.kind = CHANGE_ROUTE;
	c.route = *want;
	c.replaces = replaces;
	c.repair = repair;
	return err ?: add_change(ret, &c);
}

static int missing_route(const struct kroute *want, const struct held_route *olds, uint64_t now,
			 struct changes *ret)
{
	const struct held_route *r = olds;

	while (r && kroute_compare(&r->route, want) != 0)
		r = r->next;
	if (r && (r->h.held || r->stranger || put_off(&r->h, now, ret)))
		return 0;
	return add_route(want, olds, r && r->h.confirmed, ret);
}

/* The way to a gateway on a tunnel of ours, without which IPv6 refuses routes over it. */
static bool others_need(const struct desired *d, const struct kroute *r)
{
	if (r->dst.address.family != AF_INET6 || r->dst.length != 128 || !r->hop.oif ||
	    kroute_has_gateway(r))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(d->tunnels); i++)
		if (d->tunnels[i].index == r->hop.oif)
			return true;
	return false;
}

static int missing_routes(const struct paired *p, uint64_t now, struct changes *ret)
{
	const struct desired *d = p->desired;
	bool tunnels = d->tunnels[0].index || d->tunnels[1].index;
	int err = 0;

	for (size_t i = 0; err == 0 && tunnels && i < d->n_routes; i++)
		if (others_need(d, &d->routes[i]))
			err = missing_route(&d->routes[i], p->routes[i], now, ret);
	ret->first_route = ret->n;
	for (size_t i = 0; err == 0 && i < d->n_routes; i++)
		if (!tunnels || !others_need(d, &d->routes[i]))
			err = missing_route(&d->routes[i], p->routes[i], now, ret);
	ret->n_routes = ret->n - ret->first_route;
	return err;
}

int delta_missing(const struct desired *d, const struct kernel_view *view, uint64_t now,
		  struct changes *ret)
{
	struct paired p = { 0 };
	int err = pair_held(d, view, &p);

	err = err ?: missing_host(d, view, now, ret);
	err = err ?: missing_tunnels(d, view, now, ret);
	err = err ?: missing_links(d, view, now, ret);
	err = err ?: missing_addresses(d, view, now, ret);
	err = err ?: missing_neighbours(&p, now, ret);
	err = err ?: missing_routes(&p, now, ret);
	paired_done(&p);
	return err;
}

/* --- what is too much ----------------------------------------------------------------------- */

struct surplus {
	const struct desired *desired;
	const struct kernel_view *view;
	struct changes *changes;
	size_t route, neighbour; /* fingers */
	int err;
};

static int by_route_key(const void *a, const void *b)
{
	return kroute_compare_key(&((const struct change *)a)->route,
				  &((const struct change *)b)->route);
}

/* Where another takes its place, that has been dealt with. */
static bool is_replaced(const struct changes *c, const struct kroute *r)
{
	const struct change key = { .route = *r };

	return c->n_routes &&
	       bsearch(&key, c->v + c->first_route, c->n_routes, sizeof(key), by_route_key);
}

/*
 * A pod's link that lives and of which nobody has a record: somebody removed its file while no
 * agent was there. The pod may well be alive, so what leads to it stays until its link goes.
 */
static bool is_unknown_pod(const struct surplus *s, uint32_t index)
{
	const struct held_link *l = index ? kernel_view_link(s->view, index) : NULL;

	return l && l->pod && !pod_link_is_doomed(l->link.group) &&
	       !desired_link(s->desired, index);
}

/* The kernel drops it with the link. */
static bool goes_with_link(const struct surplus *s, uint32_t index)
{
	return index && tunnel_goes(s->desired, kernel_view_link(s->view, index));
}

/* wanted: what should be there instead of it; NULL: nothing. */
static bool may_go(const struct surplus *s, const struct kroute *r, const struct kroute *wanted)
{
	return !is_replaced(s->changes, r) && !goes_with_link(s, r->hop.oif) &&
	       /* Unless the destination is another pod's now. */
	       (wanted || !is_unknown_pod(s, r->hop.oif));
}

static void surplus_route(struct held_route *r, void *arg)
{
	struct surplus *s = arg;
	const struct kroute *wanted = desired_route_at(s->desired, &s->route, &r->route);

	if (s->err < 0 || (wanted && kroute_compare(wanted, &r->route) == 0) ||
	    (!s->desired->statics_known && r->route.protocol == static_route_protocol) ||
	    (r->h.held && !may_go(s, &r->route, wanted)))
		return;
	s->err = add_change(s->changes, &(struct change){ .kind = CHANGE_ROUTE_GONE,
							  .forget = !r->h.held,
							  .route = r->route });
}

static void surplus_neighbour(struct held_neighbour *n, void *arg)
{
	struct surplus *s = arg;

	if (s->err < 0 || desired_neighbour_at(s->desired, &s->neighbour, &n->neighbour) ||
	    (n->h.held &&
	     ((!n->neighbour.ours && !n->neighbour.fdb) || is_unknown_pod(s, n->neighbour.link) ||
	      goes_with_link(s, n->neighbour.link))))
		return;
	s->err = add_change(s->changes, &(struct change){ .kind = CHANGE_NEIGHBOUR_GONE,
							  .forget = !n->h.held,
							  .neighbour = n->neighbour });
}

int delta_surplus(const struct desired *d, const struct kernel_view *view, struct changes *ret)
{
	struct surplus s = { .desired = d, .view = view, .changes = ret };

	kernel_view_each_route(view, surplus_route, &s);
	kernel_view_each_neighbour(view, surplus_neighbour, &s);
	return s.err ?: surplus_tunnels(d, view, ret);
}

/* --- marks ---------------------------------------------------------------------------------- */

struct confirming {
	const struct desired *desired;
	size_t route, neighbour; /* fingers */
};

static void confirm_route(struct held_route *r, void *arg)
{
	struct confirming *c = arg;
	const struct kroute *wanted;

	if (!r->h.held || r->h.confirmed)
		return;
	wanted = desired_route_at(c->desired, &c->route, &r->route);
	r->h.confirmed = wanted && kroute_compare(wanted, &r->route) == 0;
}

static void confirm_neighbour(struct held_neighbour *n, void *arg)
{
	struct confirming *c = arg;

	if (n->h.held && !n->h.confirmed)
		n->h.confirmed = desired_neighbour_at(c->desired, &c->neighbour, &n->neighbour);
}

void delta_confirm(const struct desired *d, struct kernel_view *view)
{
	struct confirming confirming = { .desired = d };

	confirm_tunnels(d, view);
	for (size_t i = 0; i < d->n_links; i++) {
		struct held_link *l = kernel_view_link(view, d->links[i].index);
		struct change c;

		if (!l || link_change(&d->links[i], l, &c))
			continue;
		l->h.confirmed = true;
		l->confirmed6 = d->links[i].ipv6;
	}
	kernel_view_each_neighbour(view, confirm_neighbour, &confirming);
	kernel_view_each_route(view, confirm_route, &confirming);
}

/* --- words ---------------------------------------------------------------------------------- */

static const char *link_name(const struct kernel_view *view, uint32_t index)
{
	const struct held_link *l = index ? kernel_view_link(view, index) : NULL;

	return l ? l->link.name : NULL;
}

static void print_link(const struct change *c, char text[CHANGE_TEXT])
{
	size_t n = (size_t)snprintf(text, CHANGE_TEXT, "link %s:", c->link.name);

	if (c->up)
		n += (size_t)snprintf(text + n, CHANGE_TEXT - n, " up");
	for (enum devconf i = 0; i < N_DEVCONF && n < CHANGE_TEXT; i++) {
		int32_t value;

		if ((c->differ & CONF_BIT(i)) && desired_conf(&c->link, i, &value))
			n += (size_t)snprintf(text + n, CHANGE_TEXT - n, " %s%s=%d",
					      devconf_info[i].family == AF_INET6 ? "ipv6." : "",
					      devconf_info[i].name, value);
	}
	if (c->gateway6 != GATEWAY6_READY && n < CHANGE_TEXT)
		snprintf(text + n, CHANGE_TEXT - n, " link-local address");
}

const char *change_print(const struct change *c, const struct kernel_view *view,
			 char text[CHANGE_TEXT])
{
	char route[KROUTE_TEXT], neighbour[KNEIGHBOUR_TEXT];

	switch (c->kind) {
	case CHANGE_HOST:
		snprintf(text, CHANGE_TEXT, "%s",
			 c->family == AF_INET ? "net.ipv4.ip_forward"
					      : "net.ipv6.conf.all.forwarding");
		break;
	case CHANGE_LINK:
		print_link(c, text);
		break;
	case CHANGE_NEIGHBOUR:
	case CHANGE_NEIGHBOUR_GONE:
		snprintf(text, CHANGE_TEXT, "%s",
			 kneighbour_print(&c->neighbour, link_name(view, c->neighbour.link),
					  neighbour));
		break;
	case CHANGE_TUNNEL:
	case CHANGE_TUNNEL_GONE:
	case CHANGE_ADDRESS:
	case CHANGE_ADDRESS_GONE:
		print_tunnel(c, text);
		break;
	case CHANGE_ROUTE_OLD:
	case CHANGE_ROUTE:
	case CHANGE_ROUTE_GONE:
		snprintf(text, CHANGE_TEXT, "route %s",
			 kroute_print(&c->route, link_name(view, c->route.hop.oif), route));
		break;
	}
	return text;
}
