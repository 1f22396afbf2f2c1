/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: the kernel's messages, made by hand, and a view fed by them. */
#pragma once

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/kernel/kernel_view.h"

#define OWN_PORT 4711
#define OTHERS   815

struct message {
	_Alignas(4) uint8_t bytes[1024];
	size_t used;
};

static inline struct message begin(uint16_t type, uint16_t flags, uint32_t port, const void *body,
				   size_t size)
{
	struct message m = { .used = NLMSG_HDRLEN + NLMSG_ALIGN(size) };
	const struct nlmsghdr hdr = { .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_pid = port };

	memcpy(m.bytes, &hdr, sizeof(hdr));
	memcpy(m.bytes + NLMSG_HDRLEN, body, size);
	return m;
}

static inline void put(struct message *m, uint16_t type, const void *data, size_t size)
{
	const struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + size), .nla_type = type };

	assert_true(m->used + NLA_HDRLEN + NLA_ALIGN(size) <= sizeof(m->bytes));
	memcpy(m->bytes + m->used, &a, sizeof(a));
	if (size)
		memcpy(m->bytes + m->used + NLA_HDRLEN, data, size);
	m->used += NLA_HDRLEN + NLA_ALIGN(size);
}

static inline void put_u32(struct message *m, uint16_t type, uint32_t v)
{
	put(m, type, &v, sizeof(v));
}

static inline size_t nest(struct message *m, uint16_t type)
{
	size_t at = m->used;

	put(m, type, NULL, 0);
	return at;
}

static inline void nest_end(struct message *m, size_t at)
{
	uint16_t length = (uint16_t)(m->used - at);

	memcpy(m->bytes + at, &length, sizeof(length));
}

static inline const struct nlmsghdr *finished(struct message *m)
{
	struct nlmsghdr *hdr = (struct nlmsghdr *)m->bytes;

	hdr->nlmsg_len = (uint32_t)m->used;
	return hdr;
}

static inline void take(struct kernel_view *v, struct message m)
{
	assert_int_equal(kernel_view_take(v, finished(&m)), 0);
}

/* --- links --- */

/* As the plugin leaves it: nothing is set yet. */
static inline struct message link_message(uint16_t type, uint32_t index, const char *name,
					  const char *kind, uint32_t flags)
{
	const struct ifinfomsg body = { .ifi_index = (int)index, .ifi_flags = flags };
	struct message m = begin(type, 0, 0, &body, sizeof(body));
	int32_t conf4[32] = { 0 }, conf6[64] = { 0 };
	size_t outer, inner;

	put(&m, IFLA_IFNAME, name, strlen(name) + 1);
	put_u32(&m, IFLA_MTU, 1500);
	put_u32(&m, IFLA_GROUP, 0);
	outer = nest(&m, IFLA_LINKINFO);
	put(&m, IFLA_INFO_KIND, kind, strlen(kind));
	nest_end(&m, outer);
	outer = nest(&m, IFLA_AF_SPEC);
	inner = nest(&m, AF_INET);
	put(&m, IFLA_INET_CONF, conf4, sizeof(conf4));
	nest_end(&m, inner);
	inner = nest(&m, AF_INET6);
	conf6[devconf_info[CONF6_ACCEPT_RA].place] = 1;
	conf6[devconf_info[CONF6_ACCEPT_DAD].place] = 1;
	conf6[devconf_info[CONF6_DAD_TRANSMITS].place] = 1;
	put(&m, IFLA_INET6_CONF, conf6, sizeof(conf6));
	nest_end(&m, inner);
	nest_end(&m, outer);
	return m;
}

static inline void add_link(struct kernel_view *v, uint32_t index, const char *name)
{
	take(v, link_message(RTM_NEWLINK, index, name, "veth", IFF_UP));
}

/* A vxlan device as ours are, with all of its settings right. */
struct vxlan_made {
	uint32_t vni, mtu;
	const char *local;
	uint8_t mac, learning, ttl;
	bool group; /* and a multicast group */
};

static inline struct message vxlan_message(uint32_t index, const char *name,
					   const struct vxlan_made *v)
{
	const struct ifinfomsg body = { .ifi_index = (int)index, .ifi_flags = IFF_UP };
	struct message m = begin(RTM_NEWLINK, 0, 0, &body, sizeof(body));
	const uint8_t mac[] = { 2, 0, 0, 0, 9, v->mac }, port[] = { 4789 >> 8, 4789 & 255 };
	const uint8_t group[] = { 239, 1, 1, 1 };
	struct address local;
	size_t outer, inner;

	put(&m, IFLA_IFNAME, name, strlen(name) + 1);
	put_u32(&m, IFLA_MTU, v->mtu);
	put(&m, IFLA_ADDRESS, mac, sizeof(mac));
	outer = nest(&m, IFLA_LINKINFO);
	put(&m, IFLA_INFO_KIND, "vxlan", 6);
	inner = nest(&m, IFLA_INFO_DATA);
	put_u32(&m, IFLA_VXLAN_ID, v->vni);
	if (v->group)
		put(&m, IFLA_VXLAN_GROUP, group, sizeof(group));
	if (v->local) {
		assert_int_equal(address_parse(v->local, &local), 0);
		put(&m, local.family == AF_INET ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, local.bytes,
		    address_bits(&local) / 8);
	}
	put(&m, IFLA_VXLAN_TTL, &v->ttl, 1);
	put(&m, IFLA_VXLAN_LEARNING, &v->learning, 1);
	put(&m, IFLA_VXLAN_PORT, port, sizeof(port));
	nest_end(&m, inner);
	nest_end(&m, outer);
	return m;
}

/* --- routes --- */

static inline struct prefix prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p), 0);
	return p;
}

static inline struct message route_message(uint16_t type, uint16_t flags, uint32_t port,
					   const char *dst, uint32_t oif, uint8_t protocol)
{
	struct prefix p = prefix(dst);
	bool v4 = p.address.family == AF_INET;
	const struct rtmsg body = { .rtm_family = (uint8_t)p.address.family,
				    .rtm_dst_len = p.length,
				    .rtm_table = RT_TABLE_MAIN,
				    .rtm_protocol = protocol,
				    .rtm_scope = oif && v4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
				    .rtm_type = oif ? RTN_UNICAST : RTN_BLACKHOLE };
	struct message m = begin(type, flags, port, &body, sizeof(body));

	put(&m, RTA_DST, p.address.bytes, v4 ? 4 : 16);
	if (!v4)
		put_u32(&m, RTA_PRIORITY, ROUTE_METRIC6);
	if (oif)
		put_u32(&m, RTA_OIF, oif);
	return m;
}

static inline void route(struct kernel_view *v, const char *dst, uint32_t oif)
{
	take(v, route_message(RTM_NEWROUTE, 0, OTHERS, dst, oif, route_protocol));
}

/* --- neighbours and addresses --- */

static inline struct address address(const char *text)
{
	struct address a;

	assert_int_equal(address_parse(text, &a), 0);
	return a;
}

static inline struct message neighbour_message(uint16_t type, uint32_t link, const char *text,
					       uint8_t mac, uint16_t nud)
{
	struct address a = address(text);
	const struct ndmsg body = { .ndm_family = (uint8_t)a.family,
				    .ndm_ifindex = (int)link,
				    .ndm_state = nud };
	const uint8_t lladdr[] = { 2, 0, 0, 0, 0, mac }, protocol = route_protocol;
	struct message m = begin(type, 0, OTHERS, &body, sizeof(body));

	put(&m, NDA_DST, a.bytes, address_bits(&a) / 8);
	put(&m, NDA_LLADDR, lladdr, sizeof(lladdr));
	put(&m, NDA_PROTOCOL, &protocol, 1);
	return m;
}

/* port 0: the device's own. */
static inline struct message fdb_message(uint16_t type, uint32_t link, uint8_t mac, const char *dst,
					 uint16_t port)
{
	const struct ndmsg body = { .ndm_family = AF_BRIDGE,
				    .ndm_ifindex = (int)link,
				    .ndm_state = NUD_PERMANENT | NUD_NOARP,
				    .ndm_flags = NTF_SELF };
	const uint8_t lladdr[] = { 2, 0, 0, 0, 0, mac };
	struct message m = begin(type, 0, 0, &body, sizeof(body));
	struct address a = address(dst);

	put(&m, NDA_LLADDR, lladdr, sizeof(lladdr));
	put(&m, NDA_DST, a.bytes, address_bits(&a) / 8);
	if (port)
		put(&m, NDA_PORT, &port, sizeof(port));
	return m;
}

static inline void neighbour(struct kernel_view *v, uint32_t link, const char *text, uint8_t mac)
{
	take(v, neighbour_message(RTM_NEWNEIGH, link, text, mac, NUD_PERMANENT));
}

static inline struct message address_message(uint16_t type, uint32_t link, const char *text,
					     uint8_t length, uint8_t flags)
{
	struct address a = address(text);
	const struct ifaddrmsg body = { .ifa_family = (uint8_t)a.family,
					.ifa_prefixlen = length,
					.ifa_flags = flags,
					.ifa_index = link };
	struct message m = begin(type, 0, 0, &body, sizeof(body));

	put(&m, IFA_ADDRESS, a.bytes, address_bits(&a) / 8);
	return m;
}
