/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/kernel_message_parts.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* --- attributes ----------------------------------------------------------------------------- */

bool next_attribute(struct attributes *list, struct attribute *ret)
{
	struct nlattr a;
	size_t step;

	if (list->left < NLA_HDRLEN)
		return false;
	memcpy(&a, list->at, sizeof(a));
	if (a.nla_len < NLA_HDRLEN || a.nla_len > list->left)
		return false;
	*ret = (struct attribute){ .type = a.nla_type & NLA_TYPE_MASK,
				   .data = list->at + NLA_HDRLEN,
				   .length = a.nla_len - NLA_HDRLEN };
	step = NLA_ALIGN((size_t)a.nla_len);
	step = step < list->left ? step : list->left;
	list->at += step;
	list->left -= step;
	return true;
}

struct attributes nested(const struct attribute *a)
{
	return (struct attributes){ a->data, a->length };
}

int open_message(const struct nlmsghdr *hdr, void *body, size_t size, struct attributes *ret)
{
	const uint8_t *p = (const uint8_t *)hdr;
	size_t start = NLMSG_HDRLEN + NLMSG_ALIGN(size);

	if (hdr->nlmsg_len < NLMSG_HDRLEN + size)
		return -EBADMSG;
	memcpy(body, p + NLMSG_HDRLEN, size);
	*ret = (struct attributes){ 0 };
	if (hdr->nlmsg_len > start)
		*ret = (struct attributes){ p + start, hdr->nlmsg_len - start };
	return 0;
}

uint32_t read_u32(const struct attribute *a, uint32_t otherwise)
{
	uint32_t v = otherwise;

	if (a->length >= sizeof(v))
		memcpy(&v, a->data, sizeof(v));
	return v;
}

static uint64_t read_u64(const struct attribute *a)
{
	uint64_t v = 0;

	if (a->length >= sizeof(v))
		memcpy(&v, a->data, sizeof(v));
	return v;
}

bool read_address(const struct attribute *a, sa_family_t family, struct address *ret)
{
	size_t size = family == AF_INET ? 4 : 16;

	if (a->length != size)
		return false;
	*ret = (struct address){ .family = family };
	memcpy(ret->bytes, a->data, size);
	return true;
}

static bool is_ip(sa_family_t family)
{
	return family == AF_INET || family == AF_INET6;
}

/* --- routes --------------------------------------------------------------------------------- */

/* Only tells differences apart, and "none" from all else. */
static uint32_t mix(uint32_t hash, const struct attribute *a)
{
	hash = (hash ^ a->type) * 16777619u;
	for (size_t i = 0; i < a->length; i++)
		hash = (hash ^ a->data[i]) * 16777619u;
	return hash ?: 1;
}

static uint32_t mix_hop(uint32_t hash, const struct khop *h)
{
	hash = mix(hash, &(struct attribute){ RTA_OIF, (const uint8_t *)&h->oif, sizeof(h->oif) });
	return mix(hash,
		   &(struct attribute){ RTA_GATEWAY, h->gateway.bytes, sizeof(h->gateway.bytes) });
}

/* One way out of several: its attributes, after its own header. */
static int read_hop(const struct rtnexthop *h, struct attributes list, sa_family_t family,
		    struct khop *ret, uint32_t *other)
{
	struct attribute a;

	*ret = (struct khop){ .oif = (uint32_t)h->rtnh_ifindex,
			      .onlink = h->rtnh_flags & RTNH_F_ONLINK };
	if (h->rtnh_hops)
		*other = mix(*other, &(struct attribute){ RTA_MULTIPATH, &h->rtnh_hops, 1 });
	while (next_attribute(&list, &a)) {
		if (a.type == RTA_GATEWAY && !read_address(&a, family, &ret->gateway))
			return -EBADMSG;
		if (a.type == RTA_VIA || a.type == RTA_ENCAP)
			*other = mix(*other, &a);
	}
	return 0;
}

/* Their flags change with the state of the links and do not count, but for onlink. */
static int read_hops(const struct attribute *multipath, struct kroute *r)
{
	struct attributes left = nested(multipath);
	const struct khop *first;
	struct khop v[KHOPS_MAX];
	struct rtnexthop h;
	size_t n = 0;

	for (; left.left >= sizeof(h) && n < KHOPS_MAX; n++) {
		struct attributes list;
		size_t step;

		memcpy(&h, left.at, sizeof(h));
		if (h.rtnh_len < sizeof(h) || h.rtnh_len > left.left)
			return -EBADMSG;
		list = (struct attributes){ left.at + sizeof(h), h.rtnh_len - sizeof(h) };
		if (read_hop(&h, list, r->dst.address.family, &v[n], &r->other) < 0)
			return -EBADMSG;
		step = RTNH_ALIGN((size_t)h.rtnh_len);
		step = step < left.left ? step : left.left;
		left.at += step;
		left.left -= step;
	}
	if (n == 0)
		return -EBADMSG;
	r->hop = v[0];
	r->hops = n == 1 ? 0 : khops_find(v, n) ?: KHOPS_UNKNOWN;
	kroute_hops(r, &first);
	r->hop = *first;
	for (size_t i = 0; r->hops == KHOPS_UNKNOWN && i < n; i++)
		r->other = mix_hop(r->other, &v[i]);
	return 0;
}

static int read_route_attribute(const struct attribute *a, struct kroute *r)
{
	sa_family_t family = r->dst.address.family;

	switch (a->type) {
	case RTA_DST:
		return read_address(a, family, &r->dst.address) ? 0 : -EBADMSG;
	case RTA_TABLE:
		r->table = read_u32(a, r->table);
		break;
	case RTA_PRIORITY:
		r->metric = read_u32(a, 0);
		break;
	case RTA_OIF:
		r->hop.oif = read_u32(a, 0);
		break;
	case RTA_GATEWAY:
		return read_address(a, family, &r->hop.gateway) ? 0 : -EBADMSG;
	case RTA_MULTIPATH:
		return read_hops(a, r);
	case RTA_VIA:
	case RTA_PREFSRC:
	case RTA_SRC:
	case RTA_NH_ID:
	case RTA_ENCAP:
	case RTA_METRICS:
		r->other = mix(r->other, a);
		break;
	default:
		break;
	}
	return 0;
}

int message_route(const struct nlmsghdr *hdr, struct kroute *ret)
{
	struct attributes list;
	struct attribute a;
	struct rtmsg body;
	struct kroute r;

	if (open_message(hdr, &body, sizeof(body), &list) < 0 || !is_ip(body.rtm_family))
		return -EBADMSG;
	r = (struct kroute){ .table = body.rtm_table,
			     .dst = { .address.family = body.rtm_family,
				      .length = body.rtm_dst_len },
			     .hop.onlink = body.rtm_flags & RTNH_F_ONLINK,
			     .tos = body.rtm_tos,
			     .type = body.rtm_type,
			     .scope = body.rtm_scope,
			     .protocol = body.rtm_protocol };
	if (body.rtm_dst_len > address_bits(&r.dst.address))
		return -EBADMSG;
	while (next_attribute(&list, &a))
		if (read_route_attribute(&a, &r) < 0)
			return -EBADMSG;
	r.dst = prefix_mask(&r.dst);
	/* An IPv6 route that leads nowhere is shown on the loopback device. */
	if (body.rtm_type != RTN_UNICAST && body.rtm_family == AF_INET6)
		r.hop = (struct khop){ 0 };
	/* Of several each has its own. */
	if (r.hops == 0 && r.hop.gateway.family == AF_UNSPEC)
		r.hop.onlink = false;
	*ret = r;
	return 0;
}

/* --- neighbours and addresses --------------------------------------------------------------- */

/* The kernel tells an entry's own port, VNI, link or group of next hops where it has any. */
static int message_fdb(const struct ndmsg *body, struct attributes list,
		       struct message_neighbour *ret)
{
	struct message_neighbour m = {
		.neighbour = { .link = (uint32_t)body->ndm_ifindex, .fdb = true },
		.permanent = (body->ndm_state & NUD_PERMANENT) && (body->ndm_flags & NTF_SELF)
	};
	struct attribute a;
	bool found = false;

	while (next_attribute(&list, &a)) {
		if (a.type == NDA_LLADDR) {
			if (a.length != sizeof(m.neighbour.mac.bytes))
				return -EBADMSG;
			memcpy(m.neighbour.mac.bytes, a.data, a.length);
			found = true;
		} else if (a.type == NDA_DST) {
			if (!read_address(&a, a.length == 4 ? AF_INET : AF_INET6,
					  &m.neighbour.address))
				return -EBADMSG;
		} else if (a.type == NDA_PORT || a.type == NDA_VNI || a.type == NDA_IFINDEX ||
			   a.type == NDA_SRC_VNI || a.type == NDA_NH_ID) {
			m.neighbour.other = true;
		}
	}
	if (!found)
		return -EBADMSG;
	*ret = m;
	return 0;
}

int message_neighbour(const struct nlmsghdr *hdr, struct message_neighbour *ret)
{
	struct message_neighbour m = { 0 };
	struct attributes list;
	struct attribute a;
	struct ndmsg body;
	bool found = false;

	if (open_message(hdr, &body, sizeof(body), &list) < 0 || body.ndm_ifindex <= 0)
		return -EBADMSG;
	if (body.ndm_family == AF_BRIDGE)
		return message_fdb(&body, list, ret);
	if (!is_ip(body.ndm_family))
		return -EBADMSG;
	m.neighbour.link = (uint32_t)body.ndm_ifindex;
	m.permanent = (body.ndm_state & NUD_PERMANENT) && !(body.ndm_flags & NTF_PROXY);
	while (next_attribute(&list, &a)) {
		if (a.type == NDA_DST)
			found = read_address(&a, body.ndm_family, &m.neighbour.address);
		else if (a.type == NDA_LLADDR && a.length == sizeof(m.neighbour.mac.bytes))
			memcpy(m.neighbour.mac.bytes, a.data, a.length);
		else if (a.type == NDA_PROTOCOL && a.length >= 1)
			m.neighbour.ours = a.data[0] == route_protocol;
	}
	if (!found)
		return -EBADMSG;
	*ret = m;
	return 0;
}

int message_address(const struct nlmsghdr *hdr, struct message_address *ret)
{
	struct message_address m = { 0 };
	struct address peer = { 0 };
	struct attributes list;
	struct attribute a;
	struct ifaddrmsg body;
	uint32_t flags;

	if (open_message(hdr, &body, sizeof(body), &list) < 0 || !is_ip(body.ifa_family))
		return -EBADMSG;
	flags = body.ifa_flags;
	while (next_attribute(&list, &a)) {
		if (a.type == IFA_LOCAL && !read_address(&a, body.ifa_family, &m.local))
			return -EBADMSG;
		if (a.type == IFA_ADDRESS && !read_address(&a, body.ifa_family, &peer))
			return -EBADMSG;
		if (a.type == IFA_FLAGS)
			flags = read_u32(&a, flags);
	}
	/* Either may be left out when both are the same. */
	if (!m.local.family)
		m.local = peer;
	if (!peer.family)
		peer = m.local;
	if (!is_ip(peer.family) || body.ifa_prefixlen > address_bits(&peer))
		return -EBADMSG;
	m.link = body.ifa_index;
	m.subnet = prefix_of(&peer, body.ifa_prefixlen);
	m.tentative = flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED);
	*ret = m;
	return 0;
}

/* --- settings ------------------------------------------------------------------------------- */

static void set_conf(struct message_conf *m, enum devconf c, int32_t value)
{
	m->conf[c] = value;
	m->known |= CONF_BIT(c);
}

int message_netconf(const struct nlmsghdr *hdr, struct message_conf *ret)
{
	struct message_conf m = { 0 };
	struct attributes list;
	struct attribute a;
	struct netconfmsg body;

	if (open_message(hdr, &body, sizeof(body), &list) < 0 || !is_ip(body.ncm_family))
		return -EBADMSG;
	m.family = body.ncm_family;
	while (next_attribute(&list, &a)) {
		int32_t value = (int32_t)read_u32(&a, 0);
		bool v4 = m.family == AF_INET;

		if (a.type == NETCONFA_IFINDEX)
			m.link = (uint32_t)value; /* "all" is -1, "default" -2 */
		else if (a.type == NETCONFA_FORWARDING)
			set_conf(&m, v4 ? CONF_FORWARDING : CONF6_FORWARDING, value);
		else if (a.type == NETCONFA_PROXY_NEIGH)
			set_conf(&m, v4 ? CONF_PROXY_ARP : CONF6_PROXY_NDP, value);
		else if (a.type == NETCONFA_RP_FILTER && v4)
			set_conf(&m, CONF_RP_FILTER, value);
	}
	if (!m.link)
		return -EBADMSG;
	*ret = m;
	return 0;
}

static void read_parms(const struct attribute *parms, struct message_conf *ret)
{
	struct attributes list = nested(parms);
	struct attribute a;

	while (next_attribute(&list, &a)) {
		if (a.type == NDTPA_IFINDEX)
			ret->link = read_u32(&a, 0);
		else if (a.type == NDTPA_PROXY_DELAY)
			set_conf(ret, CONF_PROXY_DELAY, (int32_t)read_u64(&a));
	}
}

int message_neightbl(const struct nlmsghdr *hdr, struct message_conf *ret)
{
	struct message_conf m = { 0 };
	struct attributes list;
	struct attribute a;
	struct ndtmsg body;

	if (open_message(hdr, &body, sizeof(body), &list) < 0)
		return -EBADMSG;
	if (body.ndtm_family != AF_INET)
		return -ENOENT;
	m.family = AF_INET;
	while (next_attribute(&list, &a))
		if (a.type == NDTA_PARMS)
			read_parms(&a, &m);
	if (!m.link || !m.known)
		return -ENOENT;
	*ret = m;
	return 0;
}
