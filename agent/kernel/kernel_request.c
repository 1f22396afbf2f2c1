/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/kernel_request_parts.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>

/* libnl would take a page for each. */
#define REQUEST_SIZE 256
/* A gateway of IPv6 takes 28 bytes in a list. */
#define HOPS_REQUEST_SIZE (REQUEST_SIZE + KHOPS_MAX * 32)

static struct nl_msg *request_of_size(size_t size, int type, unsigned flags, const void *body,
				      size_t length)
{
	struct nl_msg *m = nlmsg_alloc_size(size);

	/* libnl takes a pointer to non-const and only copies from it. */
	if (m && (!nlmsg_put(m, NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, (int)flags) ||
		  nlmsg_append(m, (void *)(uintptr_t)body, length, NLMSG_ALIGNTO) < 0)) {
		nlmsg_free(m);
		return NULL;
	}
	return m;
}

struct nl_msg *request(int type, unsigned flags, const void *body, size_t length)
{
	return request_of_size(REQUEST_SIZE, type, flags, body, length);
}

struct nl_msg *whole(struct nl_msg *m, int err)
{
	if (err == 0)
		return m;
	nlmsg_free(m);
	return NULL;
}

int put_address(struct nl_msg *m, int type, const struct address *a)
{
	return nla_put(m, type, (int)address_bits(a) / 8, a->bytes);
}

/* --- routes --------------------------------------------------------------------------------- */

static int put_hop(struct nl_msg *m, const struct khop *h)
{
	struct rtnexthop *head = nlmsg_reserve(m, sizeof(*head), NLMSG_ALIGNTO);
	size_t before = nlmsg_hdr(m)->nlmsg_len - sizeof(*head);
	int err;

	if (!head)
		return -1;
	*head = (struct rtnexthop){ .rtnh_ifindex = (int)h->oif,
				    .rtnh_flags = h->onlink ? RTNH_F_ONLINK : 0 };
	err = h->gateway.family ? put_address(m, RTA_GATEWAY, &h->gateway) : 0;
	head->rtnh_len = (unsigned short)(nlmsg_hdr(m)->nlmsg_len - before);
	return err;
}

static int put_hops(struct nl_msg *m, const struct kroute *r)
{
	const struct khop *v;
	size_t n = kroute_hops(r, &v);
	struct nlattr *list;
	int err = 0;

	if (n > 1) {
		list = nla_nest_start(m, RTA_MULTIPATH);
		for (size_t i = 0; list && err == 0 && i < n; i++)
			err = put_hop(m, &v[i]);
		if (list && err == 0)
			nla_nest_end(m, list);
		return list ? err : -1;
	}
	if (r->hop.oif)
		err = nla_put_u32(m, RTA_OIF, r->hop.oif);
	if (r->hop.gateway.family)
		err = err ?: put_address(m, RTA_GATEWAY, &r->hop.gateway);
	return err;
}

static struct nl_msg *route(int type, unsigned flags, const struct kroute *r)
{
	const struct rtmsg body = { .rtm_family = (uint8_t)r->dst.address.family,
				    .rtm_dst_len = r->dst.length,
				    .rtm_tos = r->tos,
				    .rtm_protocol = r->protocol,
				    .rtm_scope = r->scope,
				    .rtm_type = r->type,
				    .rtm_flags = r->hop.onlink && !r->hops ? RTNH_F_ONLINK : 0 };
	struct nl_msg *m = request_of_size(r->hops ? HOPS_REQUEST_SIZE : REQUEST_SIZE, type, flags,
					   &body, sizeof(body));
	int err;

	if (!m)
		return NULL;
	err = put_address(m, RTA_DST, &r->dst.address);
	err = err ?: nla_put_u32(m, RTA_TABLE, r->table);
	if (r->metric)
		err = err ?: nla_put_u32(m, RTA_PRIORITY, r->metric);
	/* For IPv6 a gateway would name one way out of several; without any, all of them go. */
	if (type != RTM_DELROUTE || !r->hops)
		err = err ?: put_hops(m, r);
	return whole(m, err);
}

struct nl_msg *request_route_add(const struct kroute *r)
{
	return route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, r);
}

struct nl_msg *request_route_replace(const struct kroute *r)
{
	return route(RTM_NEWROUTE, NLM_F_REPLACE, r);
}

struct nl_msg *request_route_delete(const struct kroute *r)
{
	return route(RTM_DELROUTE, 0, r);
}

/* --- neighbours ----------------------------------------------------------------------------- */

static struct nl_msg *neighbour(int type, unsigned flags, const struct kneighbour *n)
{
	const struct ndmsg body = { .ndm_family = (uint8_t)(n->fdb ? AF_BRIDGE : n->address.family),
				    .ndm_ifindex = (int)n->link,
				    .ndm_state = type == RTM_NEWNEIGH ? NUD_PERMANENT : 0,
				    .ndm_flags = n->fdb ? NTF_SELF : 0 };
	struct nl_msg *m = request(type, flags, &body, sizeof(body));
	bool set = type == RTM_NEWNEIGH;
	int err = 0;

	if (!m)
		return NULL;
	/* What it is told apart by goes into both; without the rest all of it is removed. */
	if (set || !n->fdb)
		err = put_address(m, NDA_DST, &n->address);
	if (set || n->fdb)
		err = err ?: nla_put(m, NDA_LLADDR, sizeof(n->mac.bytes), n->mac.bytes);
	if (set && !n->fdb)
		err = err ?: nla_put_u8(m, NDA_PROTOCOL, route_protocol);
	return whole(m, err);
}

struct nl_msg *request_neighbour_set(const struct kneighbour *n)
{
	return neighbour(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, n);
}

struct nl_msg *request_neighbour_delete(const struct kneighbour *n)
{
	return neighbour(RTM_DELNEIGH, 0, n);
}

/* --- links ---------------------------------------------------------------------------------- */

static int put_conf(struct nl_msg *m, const struct desired_link *l, uint16_t set)
{
	struct nlattr *spec = nla_nest_start(m, IFLA_AF_SPEC);
	struct nlattr *family = spec ? nla_nest_start(m, AF_INET) : NULL;
	struct nlattr *conf = family ? nla_nest_start(m, IFLA_INET_CONF) : NULL;
	int err = conf ? 0 : -1;

	for (enum devconf c = 0; err == 0 && c < N_DEVCONF; c++) {
		int32_t value;

		if ((set & CONF_BIT(c)) && devconf_info[c].family == AF_INET &&
		    desired_conf(l, c, &value))
			err = nla_put_u32(m, (int)devconf_info[c].place + 1, (uint32_t)value);
	}
	if (err == 0) {
		nla_nest_end(m, conf);
		nla_nest_end(m, family);
		nla_nest_end(m, spec);
	}
	return err;
}

struct nl_msg *request_link_conf(const struct desired_link *l, uint16_t set, bool up)
{
	const struct ifinfomsg body = { .ifi_index = (int)l->index,
					.ifi_flags = up ? IFF_UP : 0,
					.ifi_change = up ? IFF_UP : 0 };
	struct nl_msg *m = request(RTM_SETLINK, 0, &body, sizeof(body));

	return m ? whole(m, put_conf(m, l, set)) : NULL;
}

struct nl_msg *request_link_group(uint32_t link, uint32_t group)
{
	const struct ifinfomsg body = { .ifi_index = (int)link };
	struct nl_msg *m = request(RTM_SETLINK, 0, &body, sizeof(body));

	return m ? whole(m, nla_put_u32(m, IFLA_GROUP, group)) : NULL;
}

struct nl_msg *request_proxy_delay(uint32_t link)
{
	const struct ndtmsg body = { .ndtm_family = AF_INET };
	struct nl_msg *m = request(RTM_SETNEIGHTBL, 0, &body, sizeof(body));
	struct nlattr *parms;
	int err;

	if (!m)
		return NULL;
	err = nla_put_string(m, NDTA_NAME, "arp_cache");
	parms = err ? NULL : nla_nest_start(m, NDTA_PARMS);
	err = parms ? nla_put_u32(m, NDTPA_IFINDEX, link) : -1;
	err = err ?: nla_put_u64(m, NDTPA_PROXY_DELAY, 0);
	if (err == 0)
		nla_nest_end(m, parms);
	return whole(m, err);
}

struct nl_msg *request_gateway6(uint32_t link, bool add)
{
	const struct address gateway = pod_gateway(AF_INET6);
	const struct ifaddrmsg body = { .ifa_family = AF_INET6,
					.ifa_prefixlen = 64,
					.ifa_scope = RT_SCOPE_LINK,
					.ifa_flags = add ? IFA_F_NODAD : 0,
					.ifa_index = link };
	struct nl_msg *m = request(add ? RTM_NEWADDR : RTM_DELADDR,
				   add ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));

	return m ? whole(m, put_address(m, IFA_LOCAL, &gateway)) : NULL;
}

/* --- questions ------------------------------------------------------------------------------ */

struct nl_msg *ask_link(uint32_t index, const char *name)
{
	const struct ifinfomsg body = { .ifi_index = (int)index };
	struct nl_msg *m = request(RTM_GETLINK, 0, &body, sizeof(body));
	int err;

	if (!m)
		return NULL;
	err = nla_put_u32(m, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (name)
		err = err ?: nla_put_string(m, IFLA_IFNAME, name);
	return whole(m, err);
}

struct nl_msg *ask_routes(sa_family_t family, uint8_t protocol, uint32_t table, uint32_t link)
{
	const struct rtmsg body = { .rtm_family = (uint8_t)family, .rtm_protocol = protocol };
	struct nl_msg *m = request(RTM_GETROUTE, 0, &body, sizeof(body));
	int err = 0;

	if (m && table)
		err = nla_put_u32(m, RTA_TABLE, table);
	if (m && link)
		err = err ?: nla_put_u32(m, RTA_OIF, link);
	return m ? whole(m, err) : NULL;
}

struct nl_msg *ask_way(const struct address *to)
{
	const struct rtmsg body = { .rtm_family = (uint8_t)to->family,
				    .rtm_dst_len = (uint8_t)address_bits(to),
				    .rtm_flags = RTM_F_FIB_MATCH };
	struct nl_msg *m = request(RTM_GETROUTE, 0, &body, sizeof(body));

	return m ? whole(m, put_address(m, RTA_DST, to)) : NULL;
}

struct nl_msg *ask_neighbours(uint32_t link)
{
	struct nl_msg *m = request(RTM_GETNEIGH, 0, &(struct ndmsg){ 0 }, sizeof(struct ndmsg));

	return m && link ? whole(m, nla_put_u32(m, NDA_IFINDEX, link)) : m;
}

struct nl_msg *ask_addresses(uint32_t link)
{
	/* By family: the kernel takes the filter by link only so. */
	const struct ifaddrmsg body = { .ifa_family = link ? AF_INET6 : AF_UNSPEC,
					.ifa_index = link };

	return request(RTM_GETADDR, 0, &body, sizeof(body));
}

struct nl_msg *ask_neighbour_tables(void)
{
	return request(RTM_GETNEIGHTBL, 0, &(struct ndtmsg){ .ndtm_family = AF_INET },
		       sizeof(struct ndtmsg));
}

struct nl_msg *ask_host_conf(sa_family_t family)
{
	const struct netconfmsg body = { .ncm_family = (uint8_t)family };
	struct nl_msg *m = request(RTM_GETNETCONF, 0, &body, sizeof(body));

	return m ? whole(m, nla_put_u32(m, NETCONFA_IFINDEX, (uint32_t)NETCONFA_IFINDEX_ALL))
		 : NULL;
}
