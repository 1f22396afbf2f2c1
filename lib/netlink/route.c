/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/netlink/route.h"

#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "lib/base/array.h"
#include "lib/base/auto.h"
#include "lib/netlink/attributes.h"

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

/* Set number i is sets.v[i - 1]. */
struct hop_set {
	size_t n;
	struct khop v[];
};
static ARRAY(struct hop_set *) sets;

static int compare_set(const struct khop *a, size_t n, const struct khop *b, size_t m)
{
	int c = compare_u32((uint32_t)n, (uint32_t)m);

	for (size_t i = 0; c == 0 && i < n; i++)
		c = khop_compare(&a[i], &b[i]);
	return c;
}

/* The number of the set, or 0; sorted gets it in order. */
static uint32_t find_set(const struct khop *v, size_t n, struct khop sorted[KHOPS_MAX])
{
	if (n < 2 || n > KHOPS_MAX)
		return 0;
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), by_hop);
	for (size_t i = 0; i < sets.n; i++)
		if (compare_set(sets.v[i]->v, sets.v[i]->n, sorted, n) == 0)
			return (uint32_t)i + 1;
	return 0;
}

uint32_t khops_find(const struct khop *v, size_t n)
{
	struct khop sorted[KHOPS_MAX];

	return find_set(v, n, sorted);
}

uint32_t khops_intern(const struct khop *v, size_t n)
{
	struct khop sorted[KHOPS_MAX];
	uint32_t found = find_set(v, n, sorted);
	struct hop_set *set;

	if (found || n < 2 || n > KHOPS_MAX)
		return found;
	set = malloc(sizeof(*set) + n * sizeof(*v));
	if (!set || array_append(&sets, set) < 0) {
		free(set);
		return 0;
	}
	set->n = n;
	memcpy(set->v, sorted, n * sizeof(*v));
	return (uint32_t)sets.n;
}

static const struct hop_set *set_of(uint32_t hops)
{
	return hops && hops <= sets.n ? sets.v[hops - 1] : NULL;
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

/* --- messages ------------------------------------------------------------------------------- */

/* Only tells differences apart, and "none" from all else. */
static uint32_t mix(uint32_t hash, uint32_t type, const void *data, size_t length)
{
	const uint8_t *p = data;

	hash = (hash ^ type) * 16777619u;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ p[i]) * 16777619u;
	return hash ?: 1;
}

/* What ours never have. */
static uint32_t mix_foreign(uint32_t hash, const struct nlattr *const *t)
{
	static const uint8_t types[] = { RTA_VIA,   RTA_PREFSRC, RTA_SRC,
					 RTA_NH_ID, RTA_ENCAP,   RTA_METRICS };

	for (size_t i = 0; i < sizeof(types); i++)
		if (t[types[i]])
			hash = mix(hash, types[i], attribute_data(t[types[i]]),
				   attribute_length(t[types[i]]));
	return hash;
}

/*
 * Several ways out, each with its attributes after a header of its own. Their flags change with
 * the state of the links and do not count, but for onlink.
 */
static int read_hops(const struct nlattr *multipath, struct kroute *r)
{
	const uint8_t *at = attribute_data(multipath);
	size_t left = attribute_length(multipath), n = 0, step;
	const struct nlattr *t[RTA_MAX + 1];
	struct khop v[KHOPS_MAX];
	const struct khop *first;
	struct rtnexthop h;

	for (; left >= sizeof(h) && n < KHOPS_MAX; n++) {
		memcpy(&h, at, sizeof(h));
		if (h.rtnh_len < sizeof(h) || h.rtnh_len > left)
			return -EBADMSG;
		attributes_table(at + sizeof(h), h.rtnh_len - sizeof(h), t, RTA_MAX);
		v[n] = (struct khop){ .oif = (uint32_t)h.rtnh_ifindex,
				      .onlink = h.rtnh_flags & RTNH_F_ONLINK };
		if (t[RTA_GATEWAY] &&
		    !attribute_address(t[RTA_GATEWAY], r->dst.address.family, &v[n].gateway))
			return -EBADMSG;
		if (h.rtnh_hops)
			r->other = mix(r->other, RTA_MULTIPATH, &h.rtnh_hops, 1);
		r->other = mix_foreign(r->other, t);
		step = RTNH_ALIGN((size_t)h.rtnh_len);
		step = step < left ? step : left;
		at += step;
		left -= step;
	}
	if (n == 0)
		return -EBADMSG;
	r->hop = v[0];
	r->hops = n == 1 ? 0 : khops_find(v, n) ?: KHOPS_UNKNOWN;
	kroute_hops(r, &first);
	r->hop = *first;
	for (size_t i = 0; r->hops == KHOPS_UNKNOWN && i < n; i++) {
		r->other = mix(r->other, RTA_OIF, &v[i].oif, sizeof(v[i].oif));
		r->other = mix(r->other, RTA_GATEWAY, v[i].gateway.bytes,
			       sizeof(v[i].gateway.bytes));
	}
	return 0;
}

int kroute_read(const struct nlmsghdr *hdr, struct kroute *ret)
{
	const struct nlattr *t[RTA_MAX + 1];
	struct rtmsg body;
	struct kroute r;

	if (attributes_read(hdr, &body, sizeof(body), t, RTA_MAX) < 0 ||
	    (body.rtm_family != AF_INET && body.rtm_family != AF_INET6))
		return -EBADMSG;
	r = (struct kroute){ .table = t[RTA_TABLE] ? attribute_u32(t[RTA_TABLE]) : body.rtm_table,
			     .dst = { .address.family = body.rtm_family,
				      .length = body.rtm_dst_len },
			     .metric = attribute_u32(t[RTA_PRIORITY]),
			     .hop = { .oif = attribute_u32(t[RTA_OIF]),
				      .onlink = body.rtm_flags & RTNH_F_ONLINK },
			     .other = mix_foreign(0, t),
			     .tos = body.rtm_tos,
			     .type = body.rtm_type,
			     .scope = body.rtm_scope,
			     .protocol = body.rtm_protocol };
	if (body.rtm_dst_len > address_bits(&r.dst.address) ||
	    (t[RTA_DST] && !attribute_address(t[RTA_DST], body.rtm_family, &r.dst.address)) ||
	    (t[RTA_GATEWAY] &&
	     !attribute_address(t[RTA_GATEWAY], body.rtm_family, &r.hop.gateway)) ||
	    (t[RTA_MULTIPATH] && read_hops(t[RTA_MULTIPATH], &r) < 0))
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
