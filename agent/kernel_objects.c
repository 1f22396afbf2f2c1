/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel_objects.h"

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

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

static int compare_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

int kroute_compare_key(const struct kroute *a, const struct kroute *b)
{
	int c = compare_u32(a->table, b->table);

	c = c ?: prefix_compare(&a->dst, &b->dst);
	c = c ?: compare_u32(a->metric, b->metric);
	return c ?: compare_u32(a->tos, b->tos);
}

int kroute_compare(const struct kroute *a, const struct kroute *b)
{
	int c = kroute_compare_key(a, b);

	c = c ?: compare_u32(a->oif, b->oif);
	c = c ?: compare_u32(a->other, b->other);
	c = c ?: compare_u32(a->type, b->type);
	c = c ?: compare_u32(a->scope, b->scope);
	return c ?: compare_u32(a->protocol, b->protocol);
}

int kneighbour_compare_key(const struct kneighbour *a, const struct kneighbour *b)
{
	return compare_u32(a->link, b->link) ?: address_compare(&a->address, &b->address);
}

static const char *type_name(uint8_t type)
{
	static const char *const names[] = {
		[RTN_LOCAL] = "local ",
		[RTN_BROADCAST] = "broadcast ",
		[RTN_MULTICAST] = "multicast ",
		[RTN_BLACKHOLE] = "blackhole ",
		[RTN_UNREACHABLE] = "unreachable ",
		[RTN_PROHIBIT] = "prohibit ",
		[RTN_THROW] = "throw ",
	};

	return type < ARRAY_SIZE(names) && names[type] ? names[type] : "";
}

const char *kroute_print(const struct kroute *r, const char *dev, char text[KROUTE_TEXT])
{
	char dst[PREFIX_TEXT], device[32] = "", table[24] = "", metric[24] = "";

	if (dev)
		snprintf(device, sizeof(device), " dev %s", dev);
	else if (r->oif)
		snprintf(device, sizeof(device), " dev #%u", r->oif);
	if (r->table != RT_TABLE_MAIN)
		snprintf(table, sizeof(table), " table %u", r->table);
	if (r->metric && !(r->dst.address.family == AF_INET6 && r->metric == ROUTE_METRIC6))
		snprintf(metric, sizeof(metric), " metric %u", r->metric);
	snprintf(text, KROUTE_TEXT, "%s%s%s%s%s", type_name(r->type), prefix_print(&r->dst, dst),
		 device, table, metric);
	return text;
}

/* The numbers are the kernel's; the names those of iproute2. */
const char *route_protocol_name(uint8_t protocol, char *text)
{
	static const char *const names[256] = {
		[RTPROT_REDIRECT] = "redirect",
		[RTPROT_KERNEL] = "kernel",
		[RTPROT_BOOT] = "boot",
		[RTPROT_STATIC] = "static",
		[RTPROT_RA] = "ra",
		[RTPROT_ZEBRA] = "zebra",
		[RTPROT_BIRD] = "bird",
		[RTPROT_DHCP] = "dhcp",
		[RTPROT_BGP] = "bgp",
		[RTPROT_ISIS] = "isis",
		[RTPROT_OSPF] = "ospf",
		[RTPROT_RIP] = "rip",
		[RTPROT_KEEPALIVED] = "keepalived",
	};

	if (names[protocol])
		snprintf(text, 12, "%s", names[protocol]);
	else
		snprintf(text, 12, "%u", protocol);
	return text;
}
