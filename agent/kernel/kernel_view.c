/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/kernel_view.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

/* More than people write by hand. */
#define OTHERS_MAX 10000

const uint8_t gateway_protocols[4] = { RTPROT_BOOT, RTPROT_STATIC, RTPROT_RA, RTPROT_DHCP };

/* --- the overlay's devices ------------------------------------------------------------------ */

static const char *const tunnel_names[TUNNELS] = { TUNNEL_DEVICE, TUNNEL_DEVICE6 };

int tunnel_of_name(const char *name)
{
	for (int i = 0; i < TUNNELS; i++)
		if (strcmp(name, tunnel_names[i]) == 0)
			return i;
	return -1;
}

const char *tunnel_name(int tunnel)
{
	return tunnel_names[tunnel];
}

bool tunnel_same(const struct tunnel *a, const struct tunnel *b)
{
	if (!kvxlan_same(&a->vxlan, &b->vxlan) || mac_compare(&a->mac, &b->mac) != 0 ||
	    a->mtu != b->mtu || a->offload != b->offload || a->n_addresses != b->n_addresses)
		return false;
	for (size_t i = 0; i < a->n_addresses; i++)
		if (address_compare(&a->addresses[i], &b->addresses[i]) != 0)
			return false;
	return true;
}

/* --- routes --------------------------------------------------------------------------------- */

static size_t route_place(const struct kernel_view *v, const struct kroute *exact)
{
	return array_place(v->routes.v, v->routes.n, x, kroute_compare(&(*x)->route, exact));
}

struct held_route *kernel_view_route(const struct kernel_view *v, const struct kroute *exact)
{
	size_t i = route_place(v, exact);

	return i < v->routes.n && kroute_compare(&v->routes.v[i]->route, exact) == 0
		       ? v->routes.v[i]
		       : NULL;
}

struct held_routes kernel_view_routes(const struct kernel_view *v, const struct kroute *key)
{
	size_t first = array_place(v->routes.v, v->routes.n, x,
				   kroute_compare_key(&(*x)->route, key));
	size_t end = first;

	while (end < v->routes.n && kroute_compare_key(&v->routes.v[end]->route, key) == 0)
		end++;
	return (struct held_routes){ v->routes.v + first, end - first };
}

static void set_held(size_t *count, struct presence *h, bool held)
{
	*count += held;
	*count -= h->held;
	h->held = held;
}

static void set_route_held(struct kernel_view *v, struct held_route *r, bool held)
{
	v->statics += held != r->h.held && r->route.protocol == static_route_protocol;
	set_held(&v->n_routes, &r->h, held);
}

static void end_conflict(struct kernel_view *v, struct held_route *r)
{
	v->statics += r->foreign && r->route.protocol == static_route_protocol;
	v->n_conflicts -= r->foreign != NULL;
	free(r->foreign);
	r->foreign = NULL;
}

int kernel_view_put_route(struct kernel_view *v, const struct kroute *route,
			  struct held_route **ret)
{
	struct held_route *r = kernel_view_route(v, route), **at;

	if (!r) {
		r = calloc(1, sizeof(*r));
		at = r ? array_insert(&v->routes, route_place(v, route)) : NULL;
		if (!at) {
			free(r);
			return -ENOMEM;
		}
		*at = r;
		r->route = *route;
	}
	set_route_held(v, r, true);
	r->h.seen = v->generation;
	end_conflict(v, r);
	if (ret)
		*ret = r;
	return 0;
}

void kernel_view_drop_route(struct kernel_view *v, const struct kroute *route)
{
	struct held_route *r = kernel_view_route(v, route);

	if (!r)
		return;
	set_route_held(v, r, false);
	end_conflict(v, r);
	array_remove(&v->routes, route_place(v, route));
	free(r);
}

int kernel_view_replace_route(struct kernel_view *v, const struct kroute *route)
{
	struct held_routes old = kernel_view_routes(v, route);

	for (size_t i = old.n; i-- > 0;)
		if (old.v[i]->h.held && kroute_compare(&old.v[i]->route, route) != 0)
			kernel_view_drop_route(v, &old.v[i]->route);
	return kernel_view_put_route(v, route, NULL);
}

/* The kernel does not hold it any more; it stays only if it may have to be restored. */
static void lose_route(struct kernel_view *v, struct held_route *r)
{
	set_route_held(v, r, false);
	if (!r->h.confirmed && !r->foreign)
		kernel_view_drop_route(v, &r->route);
}

int kernel_view_conflict(struct kernel_view *v, const struct kroute *route,
			 const struct kroute *foreign)
{
	struct kroute *copy = malloc(sizeof(*copy));
	struct held_route *r = NULL;

	if (!copy || kernel_view_put_route(v, route, &r) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*copy = *foreign;
	set_route_held(v, r, false);
	r->foreign = copy;
	v->n_conflicts++;
	v->statics += route->protocol == static_route_protocol;
	/* When the foreign one is gone, adding it repairs nothing. */
	r->h.confirmed = false;
	return 0;
}

void kernel_view_retry_conflicts(struct kernel_view *v)
{
	for (size_t i = 0; i < v->routes.n; i++)
		end_conflict(v, v->routes.v[i]);
}

/* --- ways ----------------------------------------------------------------------------------- */

const struct route_lookup *kernel_view_lookup(const struct kernel_view *v, const struct address *to)
{
	if (v->lookups_of != v->ways + v->statics)
		return NULL;
	for (size_t i = 0; i < v->lookups.n; i++)
		if (address_compare(&v->lookups.v[i].to, to) == 0)
			return &v->lookups.v[i];
	return NULL;
}

int kernel_view_put_lookup(struct kernel_view *v, const struct route_lookup *lookup)
{
	if (v->lookups_of != v->ways + v->statics) {
		v->lookups.n = 0;
		v->lookups_of = v->ways + v->statics;
	}
	return array_append(&v->lookups, *lookup);
}

/* --- neighbours ----------------------------------------------------------------------------- */

static size_t neighbour_place(const struct kernel_view *v, const struct kneighbour *key)
{
	return array_place(v->neighbours.v, v->neighbours.n, x,
			   kneighbour_compare_key(&(*x)->neighbour, key));
}

struct held_neighbour *kernel_view_neighbour(const struct kernel_view *v,
					     const struct kneighbour *key)
{
	size_t i = neighbour_place(v, key);

	return i < v->neighbours.n &&
			       kneighbour_compare_key(&v->neighbours.v[i]->neighbour, key) == 0
		       ? v->neighbours.v[i]
		       : NULL;
}

static void set_neighbour_held(struct kernel_view *v, struct held_neighbour *n, bool held)
{
	set_held(n->neighbour.fdb ? &v->n_fdb : &v->n_neighbours, &n->h, held);
}

int kernel_view_put_neighbour(struct kernel_view *v, const struct kneighbour *neighbour)
{
	struct held_neighbour *n = kernel_view_neighbour(v, neighbour), **at;

	if (!n) {
		n = calloc(1, sizeof(*n));
		at = n ? array_insert(&v->neighbours, neighbour_place(v, neighbour)) : NULL;
		if (!at) {
			free(n);
			return -ENOMEM;
		}
		*at = n;
	}
	n->neighbour = *neighbour;
	set_neighbour_held(v, n, true);
	n->h.seen = v->generation;
	return 0;
}

void kernel_view_drop_neighbour(struct kernel_view *v, const struct kneighbour *key)
{
	struct held_neighbour *n = kernel_view_neighbour(v, key);

	if (!n)
		return;
	set_neighbour_held(v, n, false);
	array_remove(&v->neighbours, neighbour_place(v, key));
	free(n);
}

static void lose_neighbour(struct kernel_view *v, struct held_neighbour *n)
{
	set_neighbour_held(v, n, false);
	if (!n->h.confirmed)
		kernel_view_drop_neighbour(v, &n->neighbour);
}

/* --- links ---------------------------------------------------------------------------------- */

static size_t link_place(const struct kernel_view *v, uint32_t index)
{
	return array_place(v->links.v, v->links.n, x,
			   ((*x)->link.index > index) - ((*x)->link.index < index));
}

struct held_link *kernel_view_link(const struct kernel_view *v, uint32_t index)
{
	size_t i = link_place(v, index);

	return i < v->links.n && v->links.v[i]->link.index == index ? v->links.v[i] : NULL;
}

static struct held_link **named(const struct kernel_view *v, const char *name)
{
	return array_find(v->names.v, v->names.n, x, strcmp((*x)->link.name, name));
}

struct held_link *kernel_view_link_named(const struct kernel_view *v, const char *name)
{
	struct held_link **l = named(v, name);

	return l ? *l : NULL;
}

const char *kernel_view_link_name(const struct kernel_view *v, uint32_t index)
{
	const struct held_link *l = index ? kernel_view_link(v, index) : NULL;

	return l ? l->link.name : NULL;
}

static void note_gone(struct kernel_view *v, const struct held_link *l)
{
	char(*name)[IF_NAME_TEXT] = l->pod ? array_add(&v->gone) : NULL;

	/* Without memory for it the next full compare finds out. */
	if (name)
		memcpy(*name, l->link.name, IF_NAME_TEXT);
}

/* Two may bear one name for a moment, in the order of the events of a rename and a new one. */
static void unname(struct kernel_view *v, const struct held_link *l)
{
	struct held_link **at = named(v, l->link.name);

	if (at && *at == l)
		array_remove(&v->names, (size_t)(at - v->names.v));
}

static int name(struct kernel_view *v, struct held_link *l)
{
	size_t i = array_place(v->names.v, v->names.n, x, strcmp((*x)->link.name, l->link.name));
	struct held_link **at = named(v, l->link.name) ?: array_insert(&v->names, i);

	if (!at)
		return -ENOMEM;
	*at = l;
	return 0;
}

void kernel_view_drop_link(struct kernel_view *v, uint32_t index)
{
	struct held_link *l = kernel_view_link(v, index);

	if (!l)
		return;
	v->n_pod_links -= l->pod;
	note_gone(v, l);
	v->news |= l->tunnel;
	v->links_lost = true;
	unname(v, l);
	array_remove(&v->links, link_place(v, index));
	free(l);
}

static struct held_link *new_link(struct kernel_view *v, const struct klink *link)
{
	struct held_link *l = calloc(1, sizeof(*l)), **at;

	if (!l)
		return NULL;
	l->link = *link;
	l->h.held = true;
	at = array_insert(&v->links, link_place(v, link->index));
	if (at)
		*at = l;
	if (at && name(v, l) == 0)
		return l;
	if (at)
		array_remove(&v->links, link_place(v, link->index));
	free(l);
	return NULL;
}

/* --- the node's own addresses: those of all links but the pods'; there are few --------------- */

struct node_address *kernel_view_address(const struct kernel_view *v, const struct kaddress *key)
{
	for (size_t i = 0; i < v->addresses.n; i++)
		if (kaddress_same(&v->addresses.v[i].address, key))
			return &v->addresses.v[i];
	return NULL;
}

int kernel_view_put_address(struct kernel_view *v, const struct kaddress *address)
{
	struct node_address *a = kernel_view_address(v, address) ?: array_add(&v->addresses);

	if (!a)
		return -ENOMEM;
	*a = (struct node_address){ *address, v->generation };
	return 0;
}

void kernel_view_drop_address(struct kernel_view *v, const struct kaddress *key)
{
	struct node_address *a = kernel_view_address(v, key);

	if (a)
		array_remove(&v->addresses, (size_t)(a - v->addresses.v));
}

/* --- messages: routes ----------------------------------------------------------------------- */

static bool is_gateway_protocol(uint8_t protocol)
{
	return memchr(gateway_protocols, protocol, sizeof(gateway_protocols)) != NULL;
}

static void lose_others(struct kernel_view *v, const struct kroute *by, bool own, bool gateways)
{
	struct held_routes old = kernel_view_routes(v, by);

	for (size_t i = old.n; i-- > 0;) {
		struct held_route *r = old.v[i];

		if (kroute_compare(&r->route, by) == 0 ||
		    (gateways && !kroute_has_gateway(&r->route)))
			continue;
		v->news |= r->h.held && r->h.confirmed && !own;
		lose_route(v, r);
	}
}

/*
 * Somebody put another in the place of whatever has this key. IPv6 joins all gateways of a key
 * to one route, which is then told as a whole.
 */
static void replaced(struct kernel_view *v, const struct nlmsghdr *hdr, const struct kroute *by,
		     bool own)
{
	if (hdr->nlmsg_flags & NLM_F_REPLACE)
		lose_others(v, by, own, false);
	else if (by->dst.address.family == AF_INET6 && kroute_has_gateway(by))
		lose_others(v, by, own, true);
}

static void take_foreign_route(struct kernel_view *v, const struct kroute *route, bool gone)
{
	struct held_routes ours = kernel_view_routes(v, route);

	for (size_t i = 0; i < ours.n; i++) {
		ours.v[i]->beside = !gone;
		if (gone) {
			v->news |= ours.v[i]->foreign != NULL;
			end_conflict(v, ours.v[i]);
		}
	}
}

static int take_our_route(struct kernel_view *v, const struct kroute *route, bool gone, bool own,
			  bool by_kernel)
{
	struct held_route *r = kernel_view_route(v, route);
	bool was = r && r->h.held;

	if (!gone) {
		v->news |= !was && !own;
		return kernel_view_put_route(v, route, NULL);
	}
	if (was) {
		v->news |= r->h.confirmed && !own;
		/* The kernel itself dropped it, with its link: nobody took it away. */
		if (by_kernel && route->protocol == static_route_protocol)
			r->h.confirmed = false;
		lose_route(v, r);
	} else if (route->dst.address.family == AF_INET6 && kroute_has_gateway(route) && !own) {
		struct held_routes ours = kernel_view_routes(v, route);

		for (size_t i = 0; i < ours.n; i++)
			v->torn |= ours.v[i]->h.held && ours.v[i]->route.hops;
	}
	return 0;
}

/* A routing daemon's million come by here: nothing is unpacked for them. */
static bool is_of_no_concern(const struct nlmsghdr *hdr, const struct rtmsg *body)
{
	return (body->rtm_flags & RTM_F_CLONED) ||
	       (!route_protocol_is_ours(body->rtm_protocol) && hdr->nlmsg_type == RTM_NEWROUTE &&
		!(hdr->nlmsg_flags & NLM_F_REPLACE) && !is_gateway_protocol(body->rtm_protocol));
}

static int take_route(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	bool gone = hdr->nlmsg_type == RTM_DELROUTE;
	bool own = v->own_port && hdr->nlmsg_pid == v->own_port;
	struct rtmsg body;
	struct kroute r;

	if (hdr->nlmsg_len < NLMSG_HDRLEN + sizeof(body))
		return -EBADMSG;
	memcpy(&body, (const uint8_t *)hdr + NLMSG_HDRLEN, sizeof(body));
	v->route6_events += body.rtm_family == AF_INET6;
	if (is_of_no_concern(hdr, &body))
		return 0;
	if (kroute_read(hdr, &r) < 0)
		return -EBADMSG;
	if (is_gateway_protocol(body.rtm_protocol)) {
		v->gateways_stale = true;
		v->news |= !gone && (kroute_has_gateway(&r) || r.other);
	}
	v->ways += !route_protocol_is_ours(body.rtm_protocol);
	if (!gone)
		replaced(v, hdr, &r, own);
	if (route_protocol_is_ours(body.rtm_protocol))
		return take_our_route(v, &r, gone, own, hdr->nlmsg_pid == 0);
	take_foreign_route(v, &r, gone);
	if (gone && r.protocol == RTPROT_BIRD && r.table == RT_TABLE_MAIN && !own &&
	    hdr->nlmsg_pid != v->bird_port && !v->bird_lost.port) {
		v->bird_lost.dst = r.dst;
		/* 0: the kernel itself did, with the link; BIRD sees that, too. */
		v->bird_lost.port = hdr->nlmsg_pid;
	}
	return 0;
}

int kernel_view_take_gateway(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	struct kroute r;

	if (hdr->nlmsg_type != RTM_NEWROUTE)
		return 0;
	if (kroute_read(hdr, &r) < 0)
		return -EBADMSG;
	if (r.dst.length && v->others.n < OTHERS_MAX && array_append(&v->others, r) < 0)
		return -ENOMEM;
	if (r.hop.gateway.family == AF_UNSPEC)
		return 0;
	for (size_t i = 0; i < v->gateways.n; i++)
		if (address_compare(&v->gateways.v[i], &r.hop.gateway) == 0)
			return 0;
	return array_append(&v->gateways, r.hop.gateway);
}

/* --- messages: neighbours ------------------------------------------------------------------- */

static int take_neighbour(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	bool own = v->own_port && hdr->nlmsg_pid == v->own_port;
	struct kneighbour now;
	struct held_neighbour *n;
	const struct held_link *l;
	bool was, same;

	if (kneighbour_read(hdr, &now) < 0)
		return -EBADMSG;
	l = kernel_view_link(v, now.link);
	if (!l || (now.fdb ? !l->tunnel : !l->pod && !l->tunnel))
		return 0;
	n = kernel_view_neighbour(v, &now);
	was = n && n->h.held;
	if (hdr->nlmsg_type == RTM_DELNEIGH || !now.permanent) {
		if (was) {
			v->news |= n->h.confirmed && !own;
			lose_neighbour(v, n);
		}
		return 0;
	}
	same = was && kneighbour_same(&n->neighbour, &now);
	v->news |= !same && !own;
	return kernel_view_put_neighbour(v, &now);
}

/* --- messages: links ------------------------------------------------------------------------ */

void kernel_view_offload(struct kernel_view *v, struct held_link *l, bool on)
{
	v->news |= l->h.confirmed && l->offload != on;
	l->offload = on;
	l->offload_stale = false;
}

/* What a message leaves out stays as it was known. */
static void merge_conf(struct klink *l, uint16_t known, const int32_t *conf)
{
	for (size_t c = 0; c < N_DEVCONF; c++)
		if (known & CONF_BIT(c))
			l->conf[c] = conf[c];
	l->known |= known;
}

static bool link_differs(const struct klink *a, const struct klink *b)
{
	for (size_t c = 0; c < N_DEVCONF; c++)
		if ((b->known & CONF_BIT(c)) && a->conf[c] != b->conf[c])
			return true;
	return ((a->flags ^ b->flags) & IFF_UP) || a->group != b->group;
}

static bool tunnel_differs(const struct klink *a, const struct klink *b)
{
	return a->mtu != b->mtu || mac_compare(&a->mac, &b->mac) != 0 || a->vxlan != b->vxlan ||
	       !kvxlan_same(&a->tunnel, &b->tunnel);
}

static int update_link(struct kernel_view *v, struct held_link *l, const struct klink *now)
{
	bool renamed = strcmp(l->link.name, now->name) != 0;
	const struct klink old = l->link;
	int err = 0;

	v->news |= l->h.confirmed &&
		   (renamed || link_differs(&old, now) || (l->tunnel && tunnel_differs(&old, now)));
	if ((old.flags & IFF_UP) && !(now->flags & IFF_UP))
		l->dropped = v->links_lost = true;
	/* What leads over it can be set again. */
	if (!l->pod && ((old.flags ^ now->flags) & IFF_UP)) {
		v->news = true;
		v->ways++;
	}
	if (renamed) {
		/* For those who know it by its name it is gone. */
		unname(v, l);
		note_gone(v, l);
		memcpy(l->link.name, now->name, sizeof(l->link.name));
		err = name(v, l);
		l->h.confirmed = false;
	}
	l->link = *now;
	l->link.known = old.known;
	memcpy(l->link.conf, old.conf, sizeof(old.conf));
	merge_conf(&l->link, now->known, now->conf);
	return err;
}

static int take_link(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	struct held_link *l;
	struct klink now;
	int err = 0;

	if (klink_read(hdr, &now) < 0)
		return -EBADMSG;
	if (hdr->nlmsg_type == RTM_DELLINK) {
		l = kernel_view_link(v, now.index);
		v->ways += l && !l->pod;
		kernel_view_drop_link(v, now.index);
		return 0;
	}
	l = kernel_view_link(v, now.index);
	if (l)
		err = update_link(v, l, &now);
	else
		l = new_link(v, &now);
	if (!l || err < 0)
		return -ENOMEM;
	v->n_pod_links -= l->pod;
	l->pod = l->link.veth && pod_link_is_ours(l->link.name);
	v->n_pod_links += l->pod;
	l->tunnel = l->link.vxlan && tunnel_of_name(l->link.name) >= 0;
	l->offload_stale |= l->tunnel;
	l->h.seen = v->generation;
	return 0;
}

/* --- messages: addresses and settings ------------------------------------------------------- */

static void take_pod_address(struct kernel_view *v, struct held_link *l, const struct kaddress *m,
			     bool gone)
{
	const struct address gateway = pod_gateway(AF_INET6);
	enum gateway6 now = gone           ? GATEWAY6_NONE
			    : m->tentative ? GATEWAY6_TENTATIVE
					   : GATEWAY6_READY;

	/* With a link's last IPv4 address the kernel drops its routes without a word. */
	if (gone && m->local.family == AF_INET)
		l->dropped = v->links_lost = v->news = true;
	if (address_compare(&m->local, &gateway) != 0)
		return;
	/* The event of the one that replaces it comes later, by a worker of the kernel's. */
	if (gone && l->own_removals) {
		l->own_removals--;
		return;
	}
	v->news |= l->h.confirmed && now != GATEWAY6_READY && now != l->gateway6;
	l->gateway6 = now;
}

static bool has_address(const struct kernel_view *v, uint32_t link, sa_family_t family)
{
	for (size_t i = 0; i < v->addresses.n && v->addresses.v; i++)
		if (v->addresses.v[i].address.link == link &&
		    v->addresses.v[i].address.local.family == family)
			return true;
	return false;
}

static int take_address(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	bool gone = hdr->nlmsg_type == RTM_DELADDR, changed;
	struct kaddress m;
	struct held_link *l;

	if (kaddress_read(hdr, &m) < 0)
		return -EBADMSG;
	l = kernel_view_link(v, m.link);
	if (l && l->pod) {
		take_pod_address(v, l, &m, gone);
		return 0;
	}
	changed = !kernel_view_address(v, &m) == !gone;
	v->news |= changed;
	v->ways += changed;
	if (!gone)
		return kernel_view_put_address(v, &m);
	kernel_view_drop_address(v, &m);
	if (l && m.local.family == AF_INET && !has_address(v, m.link, AF_INET))
		l->dropped = v->links_lost = true;
	return 0;
}

static void take_conf(struct kernel_view *v, const struct kconf *m)
{
	struct klink before;
	struct held_link *l;

	if (m->link == KCONF_ALL) {
		struct kconf *host = m->family == AF_INET ? &v->host4 : &v->host6;

		for (size_t c = 0; c < N_DEVCONF; c++)
			if (m->known & CONF_BIT(c)) {
				v->news |= host->conf[c] != m->conf[c];
				host->conf[c] = m->conf[c];
			}
		host->known |= m->known;
		return;
	}
	l = kernel_view_link(v, m->link);
	if (!l)
		return;
	before = l->link;
	merge_conf(&l->link, m->known, m->conf);
	v->news |= l->h.confirmed && link_differs(&before, &l->link);
}

int kernel_view_take(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	struct kconf conf;
	int err = 0;

	switch (hdr->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return take_link(v, hdr);
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return take_route(v, hdr);
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		return take_neighbour(v, hdr);
	case RTM_NEWADDR:
	case RTM_DELADDR:
		return take_address(v, hdr);
	case RTM_NEWNETCONF:
		err = kconf_read(hdr, &conf);
		break;
	case RTM_NEWNEIGHTBL:
		err = kconf_read_neighbour_table(hdr, &conf);
		break;
	default:
		return 0;
	}
	if (err == 0)
		take_conf(v, &conf);
	return err == -ENOENT ? 0 : err;
}

/* --- dumps: what they did not show ---------------------------------------------------------- */

void kernel_view_begin(struct kernel_view *v, enum view_part part)
{
	v->generation++;
	for (size_t i = 0; part == VIEW_ADDRESSES && i < v->links.n; i++) {
		v->links.v[i]->gateway6 = GATEWAY6_NONE;
		v->links.v[i]->own_removals = 0;
	}
}

static void end_routes(struct kernel_view *v, sa_family_t family, bool statics)
{
	for (size_t i = v->routes.n; i-- > 0;) {
		struct held_route *r = v->routes.v[i];

		if (r->h.held && r->h.seen != v->generation &&
		    r->route.dst.address.family == family &&
		    (r->route.protocol == static_route_protocol) == statics)
			lose_route(v, r);
	}
}

/* tunnel: of which the table was dumped; -1: the neighbours were. */
static void end_neighbours(struct kernel_view *v, int tunnel)
{
	const struct held_link *l = tunnel < 0 ? NULL
					       : kernel_view_link_named(v, tunnel_name(tunnel));

	for (size_t i = v->neighbours.n; i-- > 0;) {
		struct held_neighbour *n = v->neighbours.v[i];

		if (n->h.held && n->h.seen != v->generation && n->neighbour.fdb == (tunnel >= 0) &&
		    (tunnel < 0 || (l && n->neighbour.link == l->link.index)))
			lose_neighbour(v, n);
	}
}

void kernel_view_end(struct kernel_view *v, enum view_part part)
{
	switch (part) {
	case VIEW_LINKS:
		for (size_t i = v->links.n; i-- > 0;)
			if (v->links.v[i]->h.seen != v->generation)
				kernel_view_drop_link(v, v->links.v[i]->link.index);
		break;
	case VIEW_ADDRESSES:
		for (size_t i = v->addresses.n; i-- > 0;)
			if (v->addresses.v[i].seen != v->generation)
				array_remove(&v->addresses, i);
		break;
	case VIEW_NEIGHBOURS:
		end_neighbours(v, -1);
		break;
	case VIEW_FDB:
	case VIEW_FDB6:
		end_neighbours(v, part == VIEW_FDB6);
		break;
	case VIEW_ROUTES4:
	case VIEW_STATICS4:
		end_routes(v, AF_INET, part == VIEW_STATICS4);
		break;
	default:
		end_routes(v, AF_INET6, part == VIEW_STATICS6);
	}
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

void kernel_view_settle(struct kernel_view *v)
{
	if (!v->links_lost)
		return;
	v->links_lost = false;
	for (size_t i = v->routes.n; i-- > 0;) {
		struct held_route *r = v->routes.v[i];
		bool gone = leads_to_gone(v, &r->route);

		if (!gone && !(r->h.held && was_dropped(v, &r->route)))
			continue;
		v->news |= r->h.held && r->h.confirmed;
		if (r->route.protocol == static_route_protocol)
			r->h.confirmed = false;
		/* With its link gone nobody can restore it. */
		if (gone)
			kernel_view_drop_route(v, &r->route);
		else
			lose_route(v, r);
	}
	for (size_t i = v->neighbours.n; i-- > 0;)
		if (!kernel_view_link(v, v->neighbours.v[i]->neighbour.link))
			kernel_view_drop_neighbour(v, &v->neighbours.v[i]->neighbour);
	for (size_t i = 0; i < v->links.n; i++)
		v->links.v[i]->dropped = false;
}

void kernel_view_done(struct kernel_view *v)
{
	for (size_t i = 0; i < v->links.n; i++)
		free(v->links.v[i]);
	for (size_t i = 0; i < v->routes.n; i++) {
		free(v->routes.v[i]->foreign);
		free(v->routes.v[i]);
	}
	for (size_t i = 0; i < v->neighbours.n; i++)
		free(v->neighbours.v[i]);
	array_done(&v->links);
	array_done(&v->names);
	array_done(&v->routes);
	array_done(&v->neighbours);
	array_done(&v->addresses);
	array_done(&v->gateways);
	array_done(&v->others);
	array_done(&v->lookups);
	array_done(&v->gone);
	*v = (struct kernel_view){ 0 };
}
