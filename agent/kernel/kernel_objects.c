/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/kernel_objects.h"

#include <errno.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
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

/* --- next hops ------------------------------------------------------------------------------ */

int khop_compare(const struct khop *a, const struct khop *b)
{
	int c = compare_u32(a->oif, b->oif);

	c = c ?: compare_u32(a->gateway.family, b->gateway.family);
	if (c == 0 && a->gateway.family != AF_UNSPEC)
		c = address_compare(&a->gateway, &b->gateway);
	return c ?: compare_u32(a->onlink, b->onlink);
}

static int by_hop(const void *a, const void *b)
{
	return khop_compare(a, b);
}

/* Set number i is sets[i - 1]. */
struct hop_set {
	size_t n;
	struct khop v[];
};
static struct hop_set **sets;
static size_t n_sets;

static int compare_set(const struct khop *a, size_t n, const struct khop *b, size_t m)
{
	int c = compare_u32((uint32_t)n, (uint32_t)m);

	for (size_t i = 0; c == 0 && i < n; i++)
		c = khop_compare(&a[i], &b[i]);
	return c;
}

static uint32_t find_set(const struct khop *sorted, size_t n)
{
	for (size_t i = 0; i < n_sets; i++)
		if (compare_set(sets[i]->v, sets[i]->n, sorted, n) == 0)
			return (uint32_t)i + 1;
	return 0;
}

static bool sort_set(const struct khop *v, size_t n, struct khop sorted[KHOPS_MAX])
{
	if (n < 2 || n > KHOPS_MAX)
		return false;
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), by_hop);
	return true;
}

uint32_t khops_find(const struct khop *v, size_t n)
{
	struct khop sorted[KHOPS_MAX];

	return sort_set(v, n, sorted) ? find_set(sorted, n) : 0;
}

uint32_t khops_intern(const struct khop *v, size_t n)
{
	struct khop sorted[KHOPS_MAX];
	struct hop_set **grown, *set;
	uint32_t found;

	if (!sort_set(v, n, sorted))
		return 0;
	found = find_set(sorted, n);
	if (found)
		return found;
	grown = reallocarray(sets, n_sets + 1, sizeof(*grown));
	if (!grown)
		return 0;
	sets = grown;
	set = malloc(sizeof(*set) + n * sizeof(*v));
	if (!set)
		return 0;
	set->n = n;
	memcpy(set->v, sorted, n * sizeof(*v));
	sets[n_sets++] = set;
	return (uint32_t)n_sets;
}

static const struct hop_set *set_of(uint32_t hops)
{
	return hops && hops <= n_sets ? sets[hops - 1] : NULL;
}

/* By what is in them: the order of routes follows from the state alone. */
static int compare_hops(uint32_t a, uint32_t b)
{
	const struct hop_set *x = set_of(a), *y = set_of(b);

	if (a == b)
		return 0;
	return x && y ? compare_set(x->v, x->n, y->v, y->n) : compare_u32(a, b);
}

int kroute_set_hops(struct kroute *r, const struct khop *v, size_t n)
{
	uint32_t hops = n > 1 ? khops_intern(v, n) : 0;

	if (n > 1 && !hops)
		return -ENOMEM;
	r->hop = hops ? set_of(hops)->v[0] : v[0];
	r->hops = hops;
	return 0;
}

size_t kroute_hops(const struct kroute *r, const struct khop **ret)
{
	const struct hop_set *set = set_of(r->hops);

	*ret = set ? set->v : &r->hop;
	if (set)
		return set->n;
	return r->hop.oif || r->hop.gateway.family != AF_UNSPEC;
}

bool kroute_has_gateway(const struct kroute *r)
{
	return r->hop.gateway.family != AF_UNSPEC || r->hops;
}

/* --- routes --------------------------------------------------------------------------------- */

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

	c = c ?: khop_compare(&a->hop, &b->hop);
	c = c ?: compare_hops(a->hops, b->hops);
	c = c ?: compare_u32(a->other, b->other);
	c = c ?: compare_u32(a->type, b->type);
	c = c ?: compare_u32(a->scope, b->scope);
	return c ?: compare_u32(a->protocol, b->protocol);
}

int kneighbour_compare_key(const struct kneighbour *a, const struct kneighbour *b)
{
	int c = compare_u32(a->link, b->link);

	c = c ?: compare_u32(a->fdb, b->fdb);
	if (c)
		return c;
	return a->fdb ? memcmp(&a->mac, &b->mac, sizeof(a->mac))
		      : address_compare(&a->address, &b->address);
}

bool kneighbour_same(const struct kneighbour *a, const struct kneighbour *b)
{
	return kneighbour_compare_key(a, b) == 0 && memcmp(&a->mac, &b->mac, sizeof(a->mac)) == 0 &&
	       address_compare(&a->address, &b->address) == 0 && a->other == b->other;
}

const char *kneighbour_print(const struct kneighbour *n, const char *dev,
			     char text[KNEIGHBOUR_TEXT])
{
	const uint8_t *m = n->mac.bytes;
	char address[ADDRESS_TEXT] = "nowhere";

	if (n->address.family != AF_UNSPEC)
		address_print(&n->address, address);
	if (n->fdb)
		snprintf(text, KNEIGHBOUR_TEXT,
			 "FDB entry %02x:%02x:%02x:%02x:%02x:%02x dst %s dev %s", m[0], m[1], m[2],
			 m[3], m[4], m[5], address, dev ?: "(gone)");
	else
		snprintf(text, KNEIGHBOUR_TEXT, "neighbour %s dev %s", address, dev ?: "(gone)");
	return text;
}

/* --- the overlay's devices ------------------------------------------------------------------- */

static const char *const tunnel_names[] = { TUNNEL_DEVICE, TUNNEL_DEVICE6 };

int tunnel_of_name(const char *name)
{
	for (int i = 0; i < (int)ARRAY_SIZE(tunnel_names); i++)
		if (strcmp(name, tunnel_names[i]) == 0)
			return i;
	return -1;
}

bool kvxlan_same(const struct kvxlan *a, const struct kvxlan *b)
{
	return a->vni == b->vni && a->port == b->port && a->ttl == b->ttl &&
	       a->learning == b->learning && a->other == b->other &&
	       address_compare(&a->local, &b->local) == 0;
}

bool ktunnel_same(const struct ktunnel *a, const struct ktunnel *b)
{
	if (!kvxlan_same(&a->vxlan, &b->vxlan) || memcmp(&a->mac, &b->mac, sizeof(a->mac)) != 0 ||
	    a->mtu != b->mtu || a->offload != b->offload || a->n_addresses != b->n_addresses)
		return false;
	for (size_t i = 0; i < a->n_addresses; i++)
		if (address_compare(&a->addresses[i], &b->addresses[i]) != 0)
			return false;
	return true;
}

const char *tunnel_name(int tunnel)
{
	return tunnel_names[tunnel];
}

/* --- words ----------------------------------------------------------------------------------- */

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

static size_t print_hops(const struct kroute *r, char *text, size_t size)
{
	const struct khop *v;
	size_t many = kroute_hops(r, &v), n = 0;
	char gateway[ADDRESS_TEXT];

	for (size_t i = 0; i < many && n < size; i++)
		if (v[i].gateway.family != AF_UNSPEC)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : " via ",
					      address_print(&v[i].gateway, gateway));
	if (r->hops == KHOPS_UNKNOWN && n < size)
		n += (size_t)snprintf(text + n, size - n, " and others");
	return n < size ? n : size - 1;
}

const char *kroute_print(const struct kroute *r, const char *dev, char text[KROUTE_TEXT])
{
	char dst[PREFIX_TEXT], via[128], device[32] = "", table[24] = "", metric[24] = "";

	via[print_hops(r, via, sizeof(via))] = '\0';
	if (dev)
		snprintf(device, sizeof(device), " dev %s", dev);
	else if (r->hop.oif)
		snprintf(device, sizeof(device), " dev #%u", r->hop.oif);
	if (r->table != RT_TABLE_MAIN)
		snprintf(table, sizeof(table), " table %u", r->table);
	if (r->metric && !(r->dst.address.family == AF_INET6 && r->metric == ROUTE_METRIC6))
		snprintf(metric, sizeof(metric), " metric %u", r->metric);
	snprintf(text, KROUTE_TEXT, "%s%s%s%s%s%s", type_name(r->type), prefix_print(&r->dst, dst),
		 via, device, table, metric);
	return text;
}
