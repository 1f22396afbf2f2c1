/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/checks.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/firewall/forward.h"
#include "agent/kernel/kernel_view.h"
#include "lib/base/array.h"
#include "lib/base/log.h"

/* A fault is reported within 15 s. */
#define LOOK_MS  10000
#define SLACK_MS 2000
/* So many are named, the rest is counted. */
#define NAMED_AT_ONCE 10
/* Of what BIRD writes to the kernel, both families. */
#define BIRD_METRIC 32

struct checks {
	struct checks_options o;
	struct forward *forward;
	struct timer timer;
	bool seen[2]; /* the node's address was on an interface, by family */
};

/* --- the node's own addresses --------------------------------------------------------------- */

static void check_address(struct checks *c, int family, const struct prefix *own)
{
	char part[HEALTH_PART], text[PREFIX_TEXT];

	snprintf(part, sizeof(part), "own-address/%s", family ? "ipv6" : "ipv4");
	if (!own->address.family || kernel_has_address(c->o.kernel, &own->address)) {
		c->seen[family] = own->address.family != 0;
		health_clear(c->o.health, part);
	} else if (c->seen[family] || !c->o.configured) {
		health_set(c->o.health, part, LOG_LEVEL_ERROR,
			   "this node's own address %s is on no interface: neighbours and other "
			   "nodes cannot reach this node and its pods; add it again (`ip address "
			   "add %s dev INTERFACE`) and check what manages the interface, or reboot "
			   "for the agent to choose another",
			   address_print(&own->address, text), prefix_print(own, text));
	}
}

/* --- routes of others inside the pools ------------------------------------------------------ */

/* Whether it takes packets that a route of BIRD or roost is meant to lead. */
static bool takes_traffic(const struct kroute *r, const struct extent *e)
{
	if (r->table != RT_TABLE_MAIN || !prefix_contains_prefix(&e->cidr, &r->dst))
		return false;
	return r->dst.length > e->block_size ||
	       (r->dst.length == e->block_size && r->metric < BIRD_METRIC);
}

static const struct extent *extent_of(const void *const *extents, size_t n, const struct kroute *r)
{
	for (size_t i = 0; i < n; i++)
		if (takes_traffic(r, extents[i]))
			return extents[i];
	return NULL;
}

static bool is_own(const struct prefixes *blocks, const struct prefix *dst)
{
	for (size_t i = 0; i < blocks->n; i++)
		if (prefix_overlaps(&blocks->v[i], dst))
			return true;
	return false;
}

static void tell_route(struct checks *c, const struct kroute *r, const struct extent *e, bool own)
{
	char part[HEALTH_PART], dst[PREFIX_TEXT], text[KROUTE_TEXT], name[12];

	prefix_print(&r->dst, dst);
	/* The kernel's pass says it already: it keeps a route of ours out. */
	snprintf(part, sizeof(part), "route/%s", dst);
	if (health_reason(c->o.health, part))
		return;
	snprintf(part, sizeof(part), "foreign-route/%s", dst);
	health_set(
		c->o.health, part, LOG_LEVEL_ERROR,
		"foreign route %s of protocol %s takes packets for addresses of pool %s (a block "
		"of %s) away from the route that BIRD or roost set: remove it (`ip route del "
		"%s`), and whatever adds it",
		kroute_print(r, kernel_view_link_name(kernel_seen(c->o.kernel), r->hop.oif), text),
		route_protocol_name(r->protocol, name), e->pool, own ? "this node" : "another node",
		dst);
}

static void check_routes(struct checks *c)
{
	struct prefixes blocks = { 0 };
	AUTO(free) const void **extents = NULL;
	const struct kroute *routes;
	size_t n_extents = 0, n, told = 0;

	if (kernel_other_routes(c->o.kernel, &routes, &n) < 0)
		return;
	if (n && records_list(c->o.records, KEY_EXTENT, &extents, &n_extents) < 0)
		return;
	/* Without it a block of ours is called another's. */
	if (n)
		ipam_routed_blocks(c->o.ipam, &blocks);
	for (size_t i = 0; i < n; i++) {
		const struct extent *e = extent_of(extents, n_extents, &routes[i]);

		if (e && told++ < NAMED_AT_ONCE)
			tell_route(c, &routes[i], e, is_own(&blocks, &routes[i].dst));
	}
	if (told > NAMED_AT_ONCE)
		health_set(
			c->o.health, "foreign-route/others", LOG_LEVEL_ERROR,
			"%zu more foreign routes take packets for addresses of pools: `ip route` "
			"lists them",
			told - NAMED_AT_ONCE);
	health_sweep(c->o.health, "foreign-route/");
	free(blocks.v);
}

/* --- chains that drop what is forwarded ----------------------------------------------------- */

static void check_forward(struct checks *c)
{
	AUTO(free) struct prefix *pools = NULL;
	struct err chain = { "" }, err = { "" };
	size_t n = 0;
	int r = ipam_extent_prefixes(c->o.ipam, &pools, &n);

	if (r == 0)
		r = forward_drops(c->forward, pools, n, &chain, &err);
	if (r < 0)
		log_debug("firewall", "forward chains cannot be read: %s", err.text);
	else if (r == 0)
		health_clear(c->o.health, "forward");
	else
		health_set(c->o.health, "forward", LOG_LEVEL_ERROR,
			   "chain %s drops what pods send and receive: accept it before the drop, "
			   "for example `iptables -I FORWARD -i roost+ -j ACCEPT` and `iptables -I "
			   "FORWARD -o roost+ -j ACCEPT` (nft: iifname \"roost*\" accept, oifname "
			   "\"roost*\" accept), or set the chain's policy to accept",
			   chain.text);
}

/* --- life ----------------------------------------------------------------------------------- */

static void on_look(void *arg)
{
	struct checks *c = arg;

	check_address(c, 0, &c->o.identity->ipv4);
	check_address(c, 1, &c->o.identity->ipv6);
	check_routes(c);
	check_forward(c);
	timer_set(c->o.timers, &c->timer, LOOK_MS, SLACK_MS);
}

int checks_new(const struct checks_options *options, struct checks **ret)
{
	AUTO(checks_free) struct checks *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->o = *options;
	c->timer = (struct timer){ .fn = on_look, .arg = c };
	r = forward_new(&c->forward);
	if (r < 0)
		return r;
	timer_set(c->o.timers, &c->timer, 1000, SLACK_MS);
	*ret = TAKE(c);
	return 0;
}

void checks_free(struct checks *c)
{
	if (!c)
		return;
	timer_clear(c->o.timers, &c->timer);
	forward_free(c->forward);
	free(c);
}
