/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/netlink/link.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>

#include "lib/base/auto.h"
#include "lib/netlink/attributes.h"

/* IPv4's array starts with the kernel's number 1. */
const struct devconf_info devconf_info[N_DEVCONF] = {
	[CONF6_DISABLE] = { "disable_ipv6", AF_INET6, DEVCONF_DISABLE_IPV6 },
	[CONF6_ACCEPT_DAD] = { "accept_dad", AF_INET6, DEVCONF_ACCEPT_DAD },
	[CONF6_DAD_TRANSMITS] = { "dad_transmits", AF_INET6, DEVCONF_DAD_TRANSMITS },
	[CONF6_ACCEPT_RA] = { "accept_ra", AF_INET6, DEVCONF_ACCEPT_RA },
	[CONF6_PROXY_NDP] = { "proxy_ndp", AF_INET6, DEVCONF_PROXY_NDP },
	[CONF6_FORWARDING] = { "forwarding", AF_INET6, DEVCONF_FORWARDING },
	[CONF_PROXY_ARP] = { "proxy_arp", AF_INET, IPV4_DEVCONF_PROXY_ARP - 1 },
	[CONF_RP_FILTER] = { "rp_filter", AF_INET, IPV4_DEVCONF_RP_FILTER - 1 },
	[CONF_FORWARDING] = { "forwarding", AF_INET, IPV4_DEVCONF_FORWARDING - 1 },
	[CONF_ROUTE_LOCALNET] = { "route_localnet", AF_INET, IPV4_DEVCONF_ROUTE_LOCALNET - 1 },
	[CONF_PROXY_DELAY] = { "proxy_delay", AF_UNSPEC, 0 },
};

bool kvxlan_same(const struct kvxlan *a, const struct kvxlan *b)
{
	return a->vni == b->vni && a->port == b->port && a->ttl == b->ttl &&
	       a->learning == b->learning && a->other == b->other &&
	       address_compare(&a->local, &b->local) == 0;
}

static void set_conf(uint16_t *known, int32_t *conf, enum devconf c, uint32_t value)
{
	conf[c] = (int32_t)value;
	*known |= CONF_BIT(c);
}

/* --- links ---------------------------------------------------------------------------------- */

/* The kernel's array may be shorter or longer than our headers say. */
static void read_conf_array(const struct nlattr *a, sa_family_t family, struct klink *ret)
{
	for (enum devconf c = 0; c < N_DEVCONF; c++) {
		size_t offset = devconf_info[c].place * sizeof(int32_t);
		uint32_t value;

		if (devconf_info[c].family != family ||
		    offset + sizeof(value) > attribute_length(a))
			continue;
		memcpy(&value, (const uint8_t *)attribute_data(a) + offset, sizeof(value));
		set_conf(&ret->known, ret->conf, c, value);
	}
}

/*
 * Devices of ours are made without any of these. Which they are does not matter: such a device is
 * removed and made again.
 */
static bool is_foreign_to_ours(const struct nlattr *const *t)
{
	static const uint8_t numbers[] = { IFLA_VXLAN_LINK, IFLA_VXLAN_LIMIT };
	static const uint8_t flags[] = { IFLA_VXLAN_PROXY,           IFLA_VXLAN_RSC,
					 IFLA_VXLAN_L2MISS,          IFLA_VXLAN_L3MISS,
					 IFLA_VXLAN_REMCSUM_TX,      IFLA_VXLAN_REMCSUM_RX,
					 IFLA_VXLAN_COLLECT_METADATA };
	bool foreign = t[IFLA_VXLAN_GROUP] || t[IFLA_VXLAN_GROUP6] || t[IFLA_VXLAN_GBP] ||
		       t[IFLA_VXLAN_GPE];

	for (size_t i = 0; i < sizeof(numbers); i++)
		foreign |= attribute_u32(t[numbers[i]]) != 0;
	for (size_t i = 0; i < sizeof(flags); i++)
		foreign |= attribute_u8(t[flags[i]]) != 0;
	return foreign;
}

static void read_vxlan(const struct nlattr *data, struct kvxlan *ret)
{
	const struct nlattr *t[IFLA_VXLAN_MAX + 1];

	attributes_nested(data, t, IFLA_VXLAN_MAX);
	ret->vni = attribute_u32(t[IFLA_VXLAN_ID]);
	if (attribute_length(t[IFLA_VXLAN_PORT]) == 2) {
		const uint8_t *port = attribute_data(t[IFLA_VXLAN_PORT]);

		ret->port = (uint16_t)(port[0] << 8 | port[1]);
	}
	if (!attribute_address(t[IFLA_VXLAN_LOCAL], AF_INET, &ret->local))
		attribute_address(t[IFLA_VXLAN_LOCAL6], AF_INET6, &ret->local);
	ret->learning = attribute_u8(t[IFLA_VXLAN_LEARNING]);
	ret->ttl = attribute_u8(t[IFLA_VXLAN_TTL]);
	ret->other = is_foreign_to_ours(t);
}

static bool is_kind(const struct nlattr *a, const char *kind)
{
	size_t n = strlen(kind), length = attribute_length(a);
	const char *text = length ? attribute_data(a) : "";

	return length >= n && memcmp(text, kind, n) == 0 && (length == n || text[n] == '\0');
}

int klink_read(const struct nlmsghdr *hdr, struct klink *ret)
{
	const struct nlattr *t[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1], *family[AF_INET6 + 1],
		*conf4[IFLA_INET_MAX + 1], *conf6[IFLA_INET6_MAX + 1];
	struct ifinfomsg body;
	struct klink l;

	/* A bridge tells of its ports by the same type; that is not about the link itself. */
	if (attributes_read(hdr, &body, sizeof(body), t, IFLA_MAX) < 0 ||
	    body.ifi_family != AF_UNSPEC || body.ifi_index <= 0)
		return -EBADMSG;
	l = (struct klink){ .index = (uint32_t)body.ifi_index,
			    .mtu = attribute_u32(t[IFLA_MTU]),
			    .group = attribute_u32(t[IFLA_GROUP]),
			    .flags = body.ifi_flags };
	snprintf(l.name, sizeof(l.name), "%.*s", (int)attribute_length(t[IFLA_IFNAME]),
		 t[IFLA_IFNAME] ? (const char *)attribute_data(t[IFLA_IFNAME]) : "");
	if (!l.name[0])
		return -EBADMSG;
	attribute_mac(t[IFLA_ADDRESS], &l.mac);

	attributes_nested(t[IFLA_LINKINFO], info, IFLA_INFO_MAX);
	l.veth = is_kind(info[IFLA_INFO_KIND], "veth");
	l.vxlan = is_kind(info[IFLA_INFO_KIND], "vxlan");
	if (l.vxlan)
		read_vxlan(info[IFLA_INFO_DATA], &l.tunnel);

	attributes_nested(t[IFLA_AF_SPEC], family, AF_INET6);
	attributes_nested(family[AF_INET], conf4, IFLA_INET_MAX);
	attributes_nested(family[AF_INET6], conf6, IFLA_INET6_MAX);
	read_conf_array(conf4[IFLA_INET_CONF], AF_INET, &l);
	read_conf_array(conf6[IFLA_INET6_CONF], AF_INET6, &l);
	*ret = l;
	return 0;
}

/* --- settings ------------------------------------------------------------------------------- */

int kconf_read(const struct nlmsghdr *hdr, struct kconf *ret)
{
	const struct nlattr *t[NETCONFA_MAX + 1];
	struct netconfmsg body;
	struct kconf c;
	bool v4;

	if (attributes_read(hdr, &body, sizeof(body), t, NETCONFA_MAX) < 0 ||
	    (body.ncm_family != AF_INET && body.ncm_family != AF_INET6))
		return -EBADMSG;
	v4 = body.ncm_family == AF_INET;
	/* "all" is -1, "default" -2. */
	c = (struct kconf){ .family = body.ncm_family, .link = attribute_u32(t[NETCONFA_IFINDEX]) };
	if (!c.link)
		return -EBADMSG;
	if (t[NETCONFA_FORWARDING])
		set_conf(&c.known, c.conf, v4 ? CONF_FORWARDING : CONF6_FORWARDING,
			 attribute_u32(t[NETCONFA_FORWARDING]));
	if (t[NETCONFA_PROXY_NEIGH])
		set_conf(&c.known, c.conf, v4 ? CONF_PROXY_ARP : CONF6_PROXY_NDP,
			 attribute_u32(t[NETCONFA_PROXY_NEIGH]));
	if (t[NETCONFA_RP_FILTER] && v4)
		set_conf(&c.known, c.conf, CONF_RP_FILTER, attribute_u32(t[NETCONFA_RP_FILTER]));
	*ret = c;
	return 0;
}

int kconf_read_neighbour_table(const struct nlmsghdr *hdr, struct kconf *ret)
{
	const struct nlattr *t[NDTA_MAX + 1], *parms[NDTPA_MAX + 1];
	struct kconf c = { .family = AF_INET };
	struct ndtmsg body;
	uint64_t delay = 0;

	if (attributes_read(hdr, &body, sizeof(body), t, NDTA_MAX) < 0)
		return -EBADMSG;
	attributes_nested(t[NDTA_PARMS], parms, NDTPA_MAX);
	c.link = attribute_u32(parms[NDTPA_IFINDEX]);
	if (body.ndtm_family != AF_INET || !c.link || !parms[NDTPA_PROXY_DELAY])
		return -ENOENT;
	if (attribute_length(parms[NDTPA_PROXY_DELAY]) >= sizeof(delay))
		memcpy(&delay, attribute_data(parms[NDTPA_PROXY_DELAY]), sizeof(delay));
	set_conf(&c.known, c.conf, CONF_PROXY_DELAY, (uint32_t)delay);
	*ret = c;
	return 0;
}

/* --- addresses ------------------------------------------------------------------------------ */

int kaddress_read(const struct nlmsghdr *hdr, struct kaddress *ret)
{
	const struct nlattr *t[IFA_MAX + 1];
	struct address local, peer;
	struct ifaddrmsg body;
	bool has_local, has_peer;
	uint32_t flags;

	if (attributes_read(hdr, &body, sizeof(body), t, IFA_MAX) < 0 ||
	    (body.ifa_family != AF_INET && body.ifa_family != AF_INET6))
		return -EBADMSG;
	has_local = attribute_address(t[IFA_LOCAL], body.ifa_family, &local);
	has_peer = attribute_address(t[IFA_ADDRESS], body.ifa_family, &peer);
	/* Either may be left out when both are the same. */
	if ((t[IFA_LOCAL] && !has_local) || (t[IFA_ADDRESS] && !has_peer) ||
	    (!has_local && !has_peer))
		return -EBADMSG;
	if (!has_local)
		local = peer;
	if (!has_peer)
		peer = local;
	if (body.ifa_prefixlen > address_bits(&peer))
		return -EBADMSG;
	flags = t[IFA_FLAGS] ? attribute_u32(t[IFA_FLAGS]) : body.ifa_flags;
	*ret = (struct kaddress){ .link = body.ifa_index,
				  .local = local,
				  .subnet = prefix_of(&peer, body.ifa_prefixlen),
				  .tentative = flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) };
	return 0;
}

bool kaddress_same(const struct kaddress *a, const struct kaddress *b)
{
	return a->link == b->link && address_compare(&a->local, &b->local) == 0 &&
	       prefix_compare(&a->subnet, &b->subnet) == 0;
}
