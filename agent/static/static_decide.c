/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_decide.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

/* What the kernel makes of an IPv6 route without a metric. */
#define METRIC6 1024

/* --- what is protected ---------------------------------------------------------------------- */

static int over_one_of(const struct prefix *subnet, const struct prefixes *list, const char *what,
		       struct err *err)
{
	char a[PREFIX_TEXT], b[PREFIX_TEXT];

	for (size_t i = 0; i < list->n; i++)
		if (prefix_overlaps(subnet, &list->v[i]))
			return err_set(err, -EINVAL, "subnet %s overlaps %s, %s",
				       prefix_print(subnet, a), prefix_print(&list->v[i], b), what);
	return 0;
}

static int over_own_address(const struct prefix *subnet, const struct kernel_view *view,
			    struct err *err)
{
	char a[PREFIX_TEXT], b[ADDRESS_TEXT];

	for (size_t i = 0; i < view->addresses.n; i++)
		if (prefix_contains(subnet, &view->addresses.v[i].address.local))
			return err_set(err, -EINVAL, "subnet %s contains %s, this node's own",
				       prefix_print(subnet, a),
				       address_print(&view->addresses.v[i].address.local, b));
	return 0;
}

static int over_protected(const struct prefix *subnet, const struct static_input *in,
			  struct err *err)
{
	int r = over_one_of(subnet, &in->protect, "which is protected (--protected-subnets)", err);

	r = r ?: over_one_of(subnet, &in->pools, "which is a pool", err);
	r = r ?: over_one_of(subnet, &in->endpoints, "where etcd is", err);
	return r ?: over_own_address(subnet, in->view, err);
}

/* --- where it leads ------------------------------------------------------------------------- */

/* The narrowest subnet of the node around it; 0: none. */
static uint32_t connected_link(const struct address *gateway, const struct kernel_view *view)
{
	const struct kaddress *best = NULL;

	for (size_t i = 0; i < view->addresses.n; i++) {
		const struct kaddress *a = &view->addresses.v[i].address;
		const struct held_link *l = kernel_view_link(view, a->link);

		if (l && (l->link.flags & IFF_UP) && prefix_contains(&a->subnet, gateway) &&
		    (!best || a->subnet.length > best->subnet.length))
			best = a;
	}
	return best ? best->link : 0;
}

/*
 * The kernel knows best. But where a static route of ours already leads to the gateway, it would
 * be an argument against itself: there the node's subnets count.
 */
static uint32_t link_of(const struct address *gateway, const struct static_input *in)
{
	const struct route_lookup *way = kernel_view_lookup(in->view, gateway);

	if (!way || way->err || way->route.type != RTN_UNICAST)
		return 0;
	if (way->route.protocol == static_route_protocol)
		return connected_link(gateway, in->view);
	return kroute_has_gateway(&way->route) ? 0 : way->route.hop.oif;
}

static int on_link(const struct address *gateway, const struct static_input *in, struct khop *ret,
		   struct err *err)
{
	const struct route_lookup *way = kernel_view_lookup(in->view, gateway);
	uint32_t link = link_of(gateway, in);
	char text[ADDRESS_TEXT];

	address_print(gateway, text);
	if (way && !way->err && way->route.type == RTN_LOCAL)
		return err_set(err, -EINVAL, "gateway %s is this node itself", text);
	if (!link)
		return err_set(err, -EHOSTUNREACH,
			       "gateway %s is on no subnet of this node that is up", text);
	*ret = (struct khop){ .gateway = *gateway, .oif = link };
	return 0;
}

static int detect(const struct prefix *subnet, const struct static_input *in, struct khop *ret,
		  struct err *err)
{
	const struct address *probe = &in->probes[subnet->address.family == AF_INET6];
	const struct route_lookup *way;
	char text[ADDRESS_TEXT];

	if (probe->family == AF_UNSPEC)
		return err_set(err, -EINVAL,
			       "no gateway is given, and --fallback-gateway-probe has no address "
			       "of that family");
	address_print(probe, text);
	/* It would be found by the route itself, once that is there. */
	if (prefix_contains(subnet, probe))
		return err_set(err, -EINVAL,
			       "no gateway is given, and it cannot be detected: %s, towards which "
			       "it is looked for, lies in the subnet itself; name a gateway",
			       text);
	way = kernel_view_lookup(in->view, probe);
	if (!way || way->err || way->route.type != RTN_UNICAST ||
	    way->route.hop.gateway.family == AF_UNSPEC)
		return err_set(err, -EHOSTUNREACH,
			       "no gateway is given, and none leads from this node towards %s "
			       "(--fallback-gateway-probe)",
			       text);
	*ret = way->route.hop;
	return 0;
}

static int find_hops(const struct static_route *record, const struct static_input *in,
		     struct kroute *route, struct err *err)
{
	struct khop hops[STATIC_ROUTE_GATEWAYS_MAX];
	size_t n = record->gateways.n;
	int r = 0;

	if (n == 0) {
		r = detect(&record->subnet, in, &hops[0], err);
		n = 1;
	}
	for (size_t i = 0; r == 0 && i < record->gateways.n; i++)
		r = on_link(&record->gateways.v[i], in, &hops[i], err);
	return r ?: kroute_set_hops(route, hops, n);
}

/* 0 with the route, -ENOMEM, or another with the reason why this record gets none. */
static int route_of(const struct static_route *record, const struct static_input *in,
		    struct kroute *ret, struct err *err)
{
	bool v6 = record->subnet.address.family == AF_INET6;
	struct kroute route = { .table = record->table ?: in->table,
				.dst = record->subnet,
				.metric = record->metric,
				.type = RTN_UNICAST,
				.protocol = static_route_protocol };
	int r = over_protected(&record->subnet, in, err);

	if (v6 && !route.metric)
		route.metric = METRIC6;
	r = r ?: find_hops(record, in, &route, err);
	if (r == 0)
		*ret = route;
	return r;
}

/* --- ways ----------------------------------------------------------------------------------- */

static int add_way(struct addresses *ways, const struct address *a)
{
	struct address *grown;

	for (size_t i = 0; i < ways->n; i++)
		if (address_compare(&ways->v[i], a) == 0)
			return 0;
	grown = reallocarray(ways->v, ways->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[ways->n++] = *a;
	ways->v = grown;
	return 0;
}

static int add_gateways(struct addresses *ways, const struct static_route *record)
{
	int r = 0;

	for (size_t i = 0; record && r == 0 && i < record->gateways.n; i++)
		r = add_way(ways, &record->gateways.v[i]);
	return r;
}

int static_ways(const struct static_entries *t, const struct static_input *in,
		struct addresses *ret)
{
	struct addresses ways = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(in->probes); i++)
		if (in->probes[i].family != AF_UNSPEC)
			r = add_way(&ways, &in->probes[i]);
	for (size_t i = 0; r == 0 && i < t->n; i++) {
		r = add_gateways(&ways, t->v[i]->now);
		if (r == 0 && t->v[i]->good != t->v[i]->now)
			r = add_gateways(&ways, t->v[i]->good);
	}
	if (r < 0)
		free(ways.v);
	else
		*ret = ways;
	return r;
}

/* --- all ------------------------------------------------------------------------------------ */

static int refuse(struct static_entry *e, const char *why)
{
	e->wanted = false;
	free(e->why);
	e->why = strdup(why);
	return e->why ? 0 : -ENOMEM;
}

/* What the record said when it could be applied. */
static int fall_back(struct static_entry *e, const struct static_input *in)
{
	int r;

	if (!e->good || e->good == e->now)
		return 0;
	r = route_of(e->good, in, &e->route, NULL);
	e->wanted = r == 0;
	return r == -ENOMEM ? r : 0;
}

static int decide_one(struct static_entry *e, const struct static_input *in)
{
	struct err err = { "" };
	int r;

	free(TAKE(e->why));
	e->wanted = false;
	e->selected = !static_is_deleting(e) && selector_matches(static_selector(e), &in->labels);
	if (!e->selected)
		return 0;
	if (e->now) {
		r = route_of(e->now, in, &e->route, &err);
		e->wanted = r == 0;
		if (r == 0 || r == -ENOMEM)
			return r;
		r = refuse(e, err.text);
	} else {
		r = refuse(e, e->broken ?: "it makes no sense");
	}
	return r ?: fall_back(e, in);
}

/* Those that want the same place one after the other, the oldest first. */
static int by_place(const void *a, const void *b)
{
	const struct static_entry *x = *(struct static_entry *const *)a,
				  *y = *(struct static_entry *const *)b;
	int c = kroute_compare_key(&x->route, &y->route);

	if (c == 0 && x->create_revision != y->create_revision)
		c = x->create_revision < y->create_revision ? -1 : 1;
	return c ?: strcmp(x->name, y->name);
}

static size_t wanted_ones(const struct static_entries *t, struct static_entry **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i]->wanted)
			ret[n++] = t->v[i];
	if (n)
		qsort(ret, n, sizeof(struct static_entry *), by_place);
	return n;
}

/* The oldest has the place; true if somebody who lost it may have another to fall back to. */
static int settle_places(struct static_entry **v, size_t n, const struct static_input *in,
			 bool *ret)
{
	const struct static_entry *first = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		char why[NAME_TEXT + 128];

		if (!first || kroute_compare_key(&first->route, &v[i]->route) != 0) {
			first = v[i];
			continue;
		}
		/* What it fell back to is somebody else's by now. */
		if (v[i]->why) {
			v[i]->wanted = false;
			continue;
		}
		snprintf(why, sizeof(why),
			 "static route %s has the same subnet, table and metric and is older",
			 first->name);
		r = refuse(v[i], why);
		r = r ?: fall_back(v[i], in);
		*ret |= v[i]->wanted;
	}
	return r;
}

/* What is wanted by its present words is what to fall back to from now on. */
static void remember_good(struct static_entry *e)
{
	if (!e->wanted || e->why || e->good == e->now)
		return;
	record_drop(e->good);
	e->good = record_keep(e->now);
	e->kept = (struct prefix){ 0 };
}

int static_decide(struct static_entries *t, const struct static_input *in)
{
	AUTO(free) struct static_entry **v = calloc(t->n + 1, sizeof(struct static_entry *));
	bool again = true;
	int r = v ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < t->n; i++)
		r = decide_one(t->v[i], in);
	/* Each falls back once at most. */
	while (r == 0 && again) {
		again = false;
		r = settle_places(v, wanted_ones(t, v), in, &again);
	}
	for (size_t i = 0; r == 0 && i < t->n; i++)
		remember_good(t->v[i]);
	return r;
}
