/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/delta_kernel.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void changes_done(struct changes *c)
{
	array_done(c);
	*c = (struct changes){ 0 };
}

/* Whether another program fights over it and it is not due yet; h may be NULL. */
static bool put_off(const struct presence *h, uint64_t now, struct changes *c)
{
	if (!h || h->fight.not_before <= now)
		return false;
	if (!c->next || h->fight.not_before < c->next)
		c->next = h->fight.not_before;
	return true;
}

/* --- one walk along both -------------------------------------------------------------------- */

/*
 * Both sides are sorted by the same keys, so who goes through one side takes a finger along in the
 * other, which is 0 at first. To search for each of tens of thousands would be most of a pass.
 */
static const struct kroute *wanted_route(const struct desired_kernel *d, size_t *finger,
					 const struct kroute *key)
{
	int c = -1;

	while (*finger < d->n_routes && (c = kroute_compare_key(&d->routes[*finger], key)) < 0)
		++*finger;
	return c == 0 ? &d->routes[*finger] : NULL;
}

static const struct kneighbour *wanted_neighbour(const struct desired_kernel *d, size_t *finger,
						 const struct kneighbour *key)
{
	int c = -1;

	while (*finger < d->n_neighbours &&
	       (c = kneighbour_compare_key(&d->neighbours[*finger], key)) < 0)
		++*finger;
	return c == 0 ? &d->neighbours[*finger] : NULL;
}

static struct held_routes held_routes(const struct kernel_view *v, size_t *finger,
				      const struct kroute *key)
{
	struct held_routes r;
	int c = -1;

	while (*finger < v->routes.n &&
	       (c = kroute_compare_key(&v->routes.v[*finger]->route, key)) < 0)
		++*finger;
	if (c != 0)
		return (struct held_routes){ NULL, 0 };
	r = (struct held_routes){ v->routes.v + *finger, 1 };
	while (*finger + r.n < v->routes.n && kroute_compare_key(&r.v[r.n]->route, key) == 0)
		r.n++;
	return r;
}

static const struct held_neighbour *held_neighbour(const struct kernel_view *v, size_t *finger,
						   const struct kneighbour *key)
{
	int c = -1;

	while (*finger < v->neighbours.n &&
	       (c = kneighbour_compare_key(&v->neighbours.v[*finger]->neighbour, key)) < 0)
		++*finger;
	return c == 0 ? v->neighbours.v[*finger] : NULL;
}

/* --- what is missing ------------------------------------------------------------------------ */

static bool is_off(const struct kconf *host, enum devconf c)
{
	return (host->known & CONF_BIT(c)) && !host->conf[c];
}

static int missing_host(const struct desired_kernel *d, const struct kernel_view *view,
			uint64_t now, struct changes *ret)
{
	struct change c = { .kind = CHANGE_HOST, .family = AF_INET };
	int err = 0;

	c.repair = view->forwarding4.confirmed;
	if (is_off(&view->host4, CONF_FORWARDING) && !put_off(&view->forwarding4, now, ret))
		err = array_append(ret, c);
	c.family = AF_INET6;
	c.repair = view->forwarding6.confirmed;
	if (err == 0 && d->ipv6 && is_off(&view->host6, CONF6_FORWARDING) &&
	    !put_off(&view->forwarding6, now, ret))
		err = array_append(ret, c);
	return err;
}

/* Settings that the kernel has not told it does not have: IPv6 may be switched off as a whole. */
static uint16_t conf_differs(const struct desired_link *want, const struct klink *l)
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
				.differ = conf_differs(want, &l->link),
				.up = !(l->link.flags & IFF_UP),
				.gateway6 = want->ipv6 && !want->tunnel ? l->gateway6
									: GATEWAY6_READY };
	return ret->differ || ret->up || ret->gateway6 != GATEWAY6_READY;
}

static int missing_links(const struct desired_kernel *d, const struct kernel_view *view,
			 uint64_t now, struct changes *ret)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < d->n_links; i++) {
		const struct held_link *l = kernel_view_link(view, d->links[i].index);
		struct change c;

		if (l && link_change(&d->links[i], l, &c) && !put_off(&l->h, now, ret))
			err = array_append(ret, c);
	}
	return err;
}

static int missing_neighbours(const struct desired_kernel *d, const struct kernel_view *view,
			      uint64_t now, struct changes *ret)
{
	size_t finger = 0;
	int err = 0;

	for (size_t i = 0; err == 0 && i < d->n_neighbours; i++) {
		const struct kneighbour *want = &d->neighbours[i];
		const struct held_neighbour *n = held_neighbour(view, &finger, want);

		if ((n && n->h.held && kneighbour_same(&n->neighbour, want)) ||
		    put_off(n ? &n->h : NULL, now, ret))
			continue;
		err = array_append(ret, (struct change){ .kind = CHANGE_NEIGHBOUR,
							 .repair = n && n->h.confirmed,
							 .neighbour = *want });
	}
	return err;
}

/*
 * Ours with the same key gives way in one step, so that the destination is reached at every
 * moment; unless a foreign route stands beside it, which the kernel might replace instead.
 */
static int missing_route(const struct kroute *want, struct held_routes olds, uint64_t now,
			 struct changes *ret)
{
	struct change c = { .kind = CHANGE_ROUTE_OLD, .route = *want };
	bool beside = false, replaces = false, repair = false;
	int err = 0;

	for (size_t i = 0; i < olds.n; i++) {
		const struct held_route *r = olds.v[i];

		beside |= r->beside;
		if (kroute_compare(&r->route, want) != 0)
			continue;
		if (r->h.held || r->foreign || put_off(&r->h, now, ret))
			return 0;
		repair = r->h.confirmed;
	}
	for (size_t i = 0; err == 0 && i < olds.n; i++) {
		if (!olds.v[i]->h.held)
			continue;
		if (!beside && !replaces) {
			replaces = true;
			continue;
		}
		c.route = olds.v[i]->route;
		err = array_append(ret, c);
	}
	c = (struct change){
		.kind = CHANGE_ROUTE, .route = *want, .replaces = replaces, .repair = repair
	};
	return err ?: array_append(ret, c);
}

/* The way to a gateway on a tunnel of ours, without which IPv6 refuses routes over it. */
static bool others_need(const struct desired_kernel *d, const struct kroute *r)
{
	if (r->dst.address.family != AF_INET6 || r->dst.length != 128 || !r->hop.oif ||
	    kroute_has_gateway(r))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(d->tunnels); i++)
		if (d->tunnels[i].index == r->hop.oif)
			return true;
	return false;
}

static int missing_routes(const struct desired_kernel *d, const struct kernel_view *view,
			  uint64_t now, struct changes *ret)
{
	bool tunnels = d->tunnels[0].index || d->tunnels[1].index;
	size_t finger = 0;
	int err = 0;

	for (size_t i = 0; err == 0 && tunnels && i < d->n_routes; i++)
		if (others_need(d, &d->routes[i]))
			err = missing_route(&d->routes[i],
					    held_routes(view, &finger, &d->routes[i]), now, ret);
	ret->first_route = ret->n;
	finger = 0;
	for (size_t i = 0; err == 0 && i < d->n_routes; i++)
		if (!tunnels || !others_need(d, &d->routes[i]))
			err = missing_route(&d->routes[i],
					    held_routes(view, &finger, &d->routes[i]), now, ret);
	ret->n_routes = ret->n - ret->first_route;
	return err;
}

/* --- what is missing: the overlay's devices ------------------------------------------------ */

/* Made if they are not there, changed in place where the kernel allows it, else removed and made again. */
static unsigned tunnel_differs(const struct tunnel *want, const struct held_link *l)
{
	const struct kvxlan *is = &l->link.tunnel;
	unsigned set = 0;

	if (address_compare(&is->local, &want->vxlan.local) != 0)
		set |= VXLAN_LOCAL;
	if (is->learning)
		set |= VXLAN_LEARNING;
	if (is->ttl)
		set |= VXLAN_TTL;
	if (want->mtu && l->link.mtu != want->mtu)
		set |= VXLAN_MTU;
	if (memcmp(&l->link.mac, &want->mac, sizeof(want->mac)) != 0)
		set |= VXLAN_MAC;
	if (!l->offload_stale && l->offload != want->offload)
		set |= VXLAN_OFFLOAD;
	return set;
}

static bool is_repair(const struct kernel_view *view, int which, const struct desired_tunnel *t)
{
	const struct held_tunnel *held = &view->tunnels[which];

	return held->h.confirmed && tunnel_same(&held->was, &t->is);
}

static int missing_tunnel(int which, const struct desired_tunnel *t, const struct kernel_view *view,
			  uint64_t now, struct changes *ret)
{
	const struct held_link *l = t->index ? kernel_view_link(view, t->index) : NULL;
	struct change c = { .kind = CHANGE_TUNNEL,
			    .tunnel = which,
			    .want = t,
			    .set = VXLAN_ALL,
			    .repair = is_repair(view, which, t) };

	if (t->foreign || t->outdated)
		return 0;
	if (l)
		c.set = tunnel_differs(&t->is, l);
	if (!c.set || put_off(&view->tunnels[which].h, now, ret))
		return 0;
	return array_append(ret, c);
}

static int missing_tunnels(const struct desired_kernel *d, const struct kernel_view *view,
			   uint64_t now, struct changes *ret)
{
	int err = 0;

	for (int i = 0; err == 0 && i < TUNNELS; i++)
		if (d->tunnels[i].wanted)
			err = missing_tunnel(i, &d->tunnels[i], view, now, ret);
	return err;
}

static struct kaddress host_address(uint32_t link, const struct address *a)
{
	return (struct kaddress){ .link = link,
				  .local = *a,
				  .subnet = prefix_of(a, (uint8_t)address_bits(a)) };
}

static int missing_addresses(const struct desired_kernel *d, const struct kernel_view *view,
			     uint64_t now, struct changes *ret)
{
	int err = 0;

	for (int i = 0; i < TUNNELS; i++) {
		const struct desired_tunnel *t = &d->tunnels[i];

		for (size_t j = 0; err == 0 && t->index && j < t->is.n_addresses; j++) {
			struct change c = { .kind = CHANGE_ADDRESS,
					    .tunnel = i,
					    .repair = is_repair(view, i, t),
					    .address = host_address(t->index,
								    &t->is.addresses[j]) };

			if (!kernel_view_address(view, &c.address) &&
			    !put_off(&view->tunnels[i].h, now, ret))
				err = array_append(ret, c);
		}
	}
	return err;
}

int delta_missing(const struct desired_kernel *d, const struct kernel_view *view, uint64_t now,
		  struct changes *ret)
{
	int err = missing_host(d, view, now, ret);

	err = err ?: missing_tunnels(d, view, now, ret);
	err = err ?: missing_links(d, view, now, ret);
	err = err ?: missing_addresses(d, view, now, ret);
	err = err ?: missing_neighbours(d, view, now, ret);
	return err ?: missing_routes(d, view, now, ret);
}

/* --- what is surplus ------------------------------------------------------------------------ */

/* Whether this link is to go, and all that is on it with it. */
static bool tunnel_goes(const struct desired_kernel *d, const struct held_link *l)
{
	const struct desired_tunnel *t;

	if (!l || !l->tunnel)
		return false;
	t = &d->tunnels[tunnel_of_name(l->link.name)];
	return !t->wanted || t->outdated;
}

/*
 * A pod's link that lives and of which nobody has a record: its file was removed while no agent
 * ran. The pod may well be alive, so what leads to it stays until its link goes.
 */
static bool is_unknown_pod(const struct desired_kernel *d, const struct held_link *l)
{
	return l && l->pod && !pod_link_is_doomed(l->link.group) && !desired_link(d, l->link.index);
}

/*
 * Where another replaces it that has been dealt with; what is on a tunnel that goes the kernel
 * drops with it. wanted: what should be there instead; NULL: nothing.
 */
static bool may_go(const struct desired_kernel *d, const struct kernel_view *view,
		   const struct changes *c, const struct kroute *r, const struct kroute *wanted)
{
	const struct held_link *l = r->hop.oif ? kernel_view_link(view, r->hop.oif) : NULL;

	return !array_find(c->v + c->first_route, c->n_routes, x,
			   kroute_compare_key(&x->route, r)) &&
	       !tunnel_goes(d, l) &&
	       /* Unless the destination is another pod's now. */
	       (wanted || !is_unknown_pod(d, l));
}

static int surplus_routes(const struct desired_kernel *d, const struct kernel_view *view,
			  struct changes *ret)
{
	size_t finger = 0;
	int err = 0;

	for (size_t i = 0; err == 0 && i < view->routes.n; i++) {
		const struct held_route *r = view->routes.v[i];
		const struct kroute *wanted = wanted_route(d, &finger, &r->route);

		if ((wanted && kroute_compare(wanted, &r->route) == 0) ||
		    (!d->statics_known && r->route.protocol == static_route_protocol) ||
		    (r->h.held && !may_go(d, view, ret, &r->route, wanted)))
			continue;
		err = array_append(ret, (struct change){ .kind = CHANGE_ROUTE_GONE,
							 .forget = !r->h.held,
							 .route = r->route });
	}
	return err;
}

static int surplus_neighbours(const struct desired_kernel *d, const struct kernel_view *view,
			      struct changes *ret)
{
	size_t finger = 0;
	int err = 0;

	for (size_t i = 0; err == 0 && i < view->neighbours.n; i++) {
		const struct held_neighbour *n = view->neighbours.v[i];
		const struct held_link *l;

		if (wanted_neighbour(d, &finger, &n->neighbour))
			continue;
		l = kernel_view_link(view, n->neighbour.link);
		if (n->h.held && ((!n->neighbour.ours && !n->neighbour.fdb) ||
				  is_unknown_pod(d, l) || tunnel_goes(d, l)))
			continue;
		err = array_append(ret, (struct change){ .kind = CHANGE_NEIGHBOUR_GONE,
							 .forget = !n->h.held,
							 .neighbour = n->neighbour });
	}
	return err;
}

/* The kernel's own link-local address stays. */
static bool address_is_wanted(const struct desired_tunnel *t, const struct kaddress *a)
{
	struct kaddress own;

	if (a->local.family == AF_INET6 && address_is_link_local(&a->local))
		return true;
	for (size_t i = 0; i < t->is.n_addresses; i++) {
		own = host_address(a->link, &t->is.addresses[i]);
		if (kaddress_same(&own, a))
			return true;
	}
	return false;
}

static int surplus_addresses(const struct desired_kernel *d, const struct kernel_view *view,
			     struct changes *ret)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < view->addresses.n; i++) {
		const struct kaddress *a = &view->addresses.v[i].address;
		const struct held_link *l = kernel_view_link(view, a->link);
		struct change c = { .kind = CHANGE_ADDRESS_GONE, .address = *a };

		if (!l || !l->tunnel || tunnel_goes(d, l))
			continue;
		c.tunnel = tunnel_of_name(l->link.name);
		if (!address_is_wanted(&d->tunnels[c.tunnel], a))
			err = array_append(ret, c);
	}
	return err;
}

static int surplus_tunnels(const struct desired_kernel *d, const struct kernel_view *view,
			   struct changes *ret)
{
	int err = 0;

	for (int i = 0; err == 0 && i < TUNNELS; i++) {
		const struct held_link *l = kernel_view_link_named(view, tunnel_name(i));
		struct change c = { .kind = CHANGE_TUNNEL_GONE,
				    .tunnel = i,
				    .want = &d->tunnels[i] };

		if (!tunnel_goes(d, l))
			continue;
		c.index = l->link.index;
		err = array_append(ret, c);
	}
	return err;
}

int delta_surplus(const struct desired_kernel *d, const struct kernel_view *view,
		  struct changes *ret)
{
	int err = surplus_routes(d, view, ret);

	err = err ?: surplus_neighbours(d, view, ret);
	err = err ?: surplus_addresses(d, view, ret);
	return err ?: surplus_tunnels(d, view, ret);
}

/* --- marks ---------------------------------------------------------------------------------- */

static bool is_right(const struct desired_tunnel *t, const struct kernel_view *view)
{
	const struct held_link *l = t->index ? kernel_view_link(view, t->index) : NULL;

	if (!l || tunnel_differs(&t->is, l))
		return false;
	for (size_t i = 0; i < t->is.n_addresses; i++) {
		const struct kaddress a = host_address(t->index, &t->is.addresses[i]);

		if (!kernel_view_address(view, &a))
			return false;
	}
	return true;
}

void delta_confirm(const struct desired_kernel *d, struct kernel_view *view)
{
	size_t route = 0, neighbour = 0;
	struct change ignored;

	for (size_t i = 0; i < TUNNELS; i++)
		if (is_right(&d->tunnels[i], view)) {
			view->tunnels[i].h.confirmed = true;
			view->tunnels[i].was = d->tunnels[i].is;
		}
	for (size_t i = 0; i < d->n_links; i++) {
		struct held_link *l = kernel_view_link(view, d->links[i].index);

		if (!l || link_change(&d->links[i], l, &ignored))
			continue;
		l->h.confirmed = true;
		l->confirmed6 = d->links[i].ipv6;
	}
	for (size_t i = 0; i < view->neighbours.n; i++) {
		struct held_neighbour *n = view->neighbours.v[i];

		if (n->h.held && !n->h.confirmed)
			n->h.confirmed = wanted_neighbour(d, &neighbour, &n->neighbour);
	}
	for (size_t i = 0; i < view->routes.n; i++) {
		struct held_route *r = view->routes.v[i];
		const struct kroute *wanted;

		if (!r->h.held || r->h.confirmed)
			continue;
		wanted = wanted_route(d, &route, &r->route);
		r->h.confirmed = wanted && kroute_compare(wanted, &r->route) == 0;
	}
}

struct presence *change_presence(const struct change *c, struct kernel_view *view)
{
	struct held_neighbour *n;
	struct held_route *r;
	struct held_link *l;

	switch (c->kind) {
	case CHANGE_HOST:
		return c->family == AF_INET ? &view->forwarding4 : &view->forwarding6;
	case CHANGE_LINK:
		l = kernel_view_link(view, c->link.index);
		return l ? &l->h : NULL;
	case CHANGE_TUNNEL:
	case CHANGE_ADDRESS:
		return &view->tunnels[c->tunnel].h;
	case CHANGE_NEIGHBOUR:
		n = kernel_view_neighbour(view, &c->neighbour);
		return n ? &n->h : NULL;
	case CHANGE_ROUTE:
		r = kernel_view_route(view, &c->route);
		return r ? &r->h : NULL;
	default:
		return NULL;
	}
}

/* --- words ---------------------------------------------------------------------------------- */

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

static size_t print_set(const struct change *c, char *text, size_t size)
{
	static const char *const names[] = { "local", "learning", "ttl",
					     "mtu",   "mac",      "checksum offload" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && n < size; i++)
		if (c->set & (1u << i))
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", names[i]);
	return n;
}

static void print_tunnel(const struct change *c, char text[CHANGE_TEXT])
{
	const char *name = tunnel_name(c->tunnel);
	char address[PREFIX_TEXT], what[64] = "";

	if (c->kind == CHANGE_ADDRESS || c->kind == CHANGE_ADDRESS_GONE) {
		snprintf(text, CHANGE_TEXT, "address %s of %s",
			 address_print(&c->address.local, address), name);
		return;
	}
	if (c->kind == CHANGE_TUNNEL && c->want->index)
		print_set(c, what, sizeof(what));
	snprintf(text, CHANGE_TEXT, "device %s%s%s", name, what[0] ? ": " : "", what);
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
			 kneighbour_print(&c->neighbour,
					  kernel_view_link_name(view, c->neighbour.link),
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
			 kroute_print(&c->route, kernel_view_link_name(view, c->route.hop.oif),
				      route));
		break;
	}
	return text;
}
