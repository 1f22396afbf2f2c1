/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the kernel into the view's tables. */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/kernel_view_parts.h"

const uint8_t gateway_protocols[4] = { RTPROT_BOOT, RTPROT_STATIC, RTPROT_RA, RTPROT_DHCP };

/* --- routes ------------------------------------------------------------------------------------
 */

static bool is_gateway_protocol(uint8_t protocol)
{
	return memchr(gateway_protocols, protocol, sizeof(gateway_protocols)) != NULL;
}

static void lose_others(struct kernel_view *v, const struct kroute *by, bool own, bool gateways)
{
	struct held_route *next;

	for (struct held_route *r = kernel_view_routes(v, by); r; r = next) {
		next = r->next;
		if (kroute_compare(&r->route, by) == 0 ||
		    (gateways && !kroute_has_gateway(&r->route)))
			continue;
		v->news |= r->h.held && r->h.confirmed && !own;
		kernel_view_lose_route(v, r);
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

static void stranger_went(struct kernel_view *v, const struct kroute *route)
{
	for (struct held_route *r = kernel_view_routes(v, route); r; r = r->next) {
		v->news |= r->stranger != NULL;
		r->beside = false;
		kernel_view_end_conflict(v, r);
	}
}

static void stranger_came(struct kernel_view *v, const struct kroute *route)
{
	for (struct held_route *r = kernel_view_routes(v, route); r; r = r->next)
		r->beside = true;
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
		kernel_view_lose_route(v, r);
	} else if (route->dst.address.family == AF_INET6 && kroute_has_gateway(route) && !own) {
		for (r = kernel_view_routes(v, route); r; r = r->next)
			v->torn |= r->h.held && r->route.hops;
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
	if (message_route(hdr, &r) < 0)
		return -EBADMSG;
	if (is_gateway_protocol(body.rtm_protocol) && (kroute_has_gateway(&r) || r.other)) {
		v->gateways_stale = true;
		v->news |= !gone;
	}
	v->ways += !route_protocol_is_ours(body.rtm_protocol);
	if (!gone)
		replaced(v, hdr, &r, own);
	if (route_protocol_is_ours(body.rtm_protocol))
		return take_our_route(v, &r, gone, own, hdr->nlmsg_pid == 0);
	if (!gone) {
		stranger_came(v, &r);
		return 0;
	}
	stranger_went(v, &r);
	if (r.protocol == RTPROT_BIRD && r.table == RT_TABLE_MAIN && !own &&
	    hdr->nlmsg_pid != v->bird_port && !v->bird_lost.port) {
		v->bird_lost.dst = r.dst;
		/* 0: the kernel itself did, with the link; BIRD sees that, too. */
		v->bird_lost.port = hdr->nlmsg_pid;
	}
	return 0;
}

int kernel_view_take_gateway(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	struct address *grown;
	struct kroute r;

	if (hdr->nlmsg_type != RTM_NEWROUTE)
		return 0;
	if (message_route(hdr, &r) < 0)
		return -EBADMSG;
	if (r.hop.gateway.family == AF_UNSPEC)
		return 0;
	for (size_t i = 0; i < v->gateways.n; i++)
		if (address_compare(&v->gateways.v[i], &r.hop.gateway) == 0)
			return 0;
	grown = reallocarray(v->gateways.v, v->gateways.n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[v->gateways.n++] = r.hop.gateway;
	v->gateways.v = grown;
	return 0;
}

/* --- neighbours --------------------------------------------------------------------------------
 */

static int take_neighbour(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	bool own = v->own_port && hdr->nlmsg_pid == v->own_port;
	struct message_neighbour m;
	struct held_neighbour *n;
	struct held_link *l;
	bool was, same;

	if (message_neighbour(hdr, &m) < 0)
		return -EBADMSG;
	l = kernel_view_link(v, m.neighbour.link);
	if (!l || (m.neighbour.fdb ? !l->tunnel : !l->pod && !l->tunnel))
		return 0;
	n = kernel_view_neighbour(v, &m.neighbour);
	was = n && n->h.held;
	if (hdr->nlmsg_type == RTM_DELNEIGH || !m.permanent) {
		if (was) {
			v->news |= n->h.confirmed && !own;
			kernel_view_lose_neighbour(v, n);
		}
		return 0;
	}
	same = was && kneighbour_same(&n->neighbour, &m.neighbour);
	v->news |= !same && !own;
	return kernel_view_put_neighbour(v, &m.neighbour, NULL);
}

/* --- links -------------------------------------------------------------------------------------
 */

static bool is_pod_link(const struct klink *l)
{
	return l->veth && pod_link_is_ours(l->name);
}

static bool is_tunnel(const struct klink *l)
{
	return l->vxlan && tunnel_of_name(l->name) >= 0;
}

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
	return a->mtu != b->mtu || memcmp(&a->mac, &b->mac, sizeof(a->mac)) != 0 ||
	       a->vxlan != b->vxlan || !kvxlan_same(&a->tunnel, &b->tunnel);
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
		err = kernel_view_rename_link(v, l, now->name);
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

	if (message_link(hdr, &now) < 0)
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
		l = kernel_view_new_link(v, &now);
	if (!l || err < 0)
		return -ENOMEM;
	v->n_pod_links -= l->pod;
	l->pod = is_pod_link(&l->link);
	v->n_pod_links += l->pod;
	l->tunnel = is_tunnel(&l->link);
	l->offload_stale |= l->tunnel;
	l->h.seen = v->generation;
	return 0;
}

/* --- addresses and settings --------------------------------------------------------------------
 */

static bool is_gateway6(const struct message_address *m)
{
	const struct address gateway = pod_gateway(AF_INET6);

	return address_compare(&m->local, &gateway) == 0;
}

static void take_pod_address(struct kernel_view *v, struct held_link *l,
			     const struct message_address *m, bool gone)
{
	enum gateway6 now = gone           ? GATEWAY6_NONE
			    : m->tentative ? GATEWAY6_TENTATIVE
					   : GATEWAY6_READY;

	/* With a link's last IPv4 address the kernel drops its routes without a word. */
	if (gone && m->local.family == AF_INET)
		l->dropped = v->links_lost = v->news = true;
	if (!is_gateway6(m))
		return;
	/* The one that we put in its place is told later, by a worker of the kernel's. */
	if (gone && l->own_removals) {
		l->own_removals--;
		return;
	}
	v->news |= l->h.confirmed && now != GATEWAY6_READY && now != l->gateway6;
	l->gateway6 = now;
}

static bool has_address(const struct kernel_view *v, uint32_t link, sa_family_t family)
{
	for (size_t i = 0; i < v->n_addresses; i++)
		if (v->addresses[i].link == link && v->addresses[i].local.family == family)
			return true;
	return false;
}

static int take_address(struct kernel_view *v, const struct nlmsghdr *hdr)
{
	bool gone = hdr->nlmsg_type == RTM_DELADDR, changed;
	struct node_address address;
	struct message_address m;
	struct held_link *l;

	if (message_address(hdr, &m) < 0)
		return -EBADMSG;
	l = kernel_view_link(v, m.link);
	if (l && l->pod) {
		take_pod_address(v, l, &m, gone);
		return 0;
	}
	address = (struct node_address){ .link = m.link, .local = m.local, .subnet = m.subnet };
	changed = !kernel_view_address(v, &address) == !gone;
	v->news |= changed;
	v->ways += changed;
	if (!gone)
		return kernel_view_put_address(v, &address);
	kernel_view_drop_address(v, &address);
	if (l && m.local.family == AF_INET && !has_address(v, m.link, AF_INET))
		l->dropped = v->links_lost = true;
	return 0;
}

static void take_conf(struct kernel_view *v, const struct message_conf *m)
{
	struct klink before;
	struct held_link *l;

	if (m->link == MESSAGE_CONF_ALL) {
		struct message_conf *host = m->family == AF_INET ? &v->host4 : &v->host6;

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
	struct message_conf conf;
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
		err = message_netconf(hdr, &conf);
		break;
	case RTM_NEWNEIGHTBL:
		err = message_neightbl(hdr, &conf);
		break;
	default:
		return 0;
	}
	if (err == 0)
		take_conf(v, &conf);
	return err == -ENOENT ? 0 : err;
}
