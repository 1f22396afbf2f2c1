/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/desired_kernel_parts.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/sort.h"

/*
 * What comes out of the tunnel is routed on. Where one end takes the tunnel and the other the way
 * past it, for as long as they do not agree, a strict rp_filter would drop half of it.
 */
static bool tunnel_conf(const struct desired_link *l, enum devconf c, int32_t *ret)
{
	switch (c) {
	case CONF_FORWARDING:
		*ret = 1;
		return true;
	case CONF_RP_FILTER:
		*ret = 2;
		return true;
	case CONF6_ACCEPT_RA:
		*ret = 0;
		return true;
	case CONF6_FORWARDING:
		*ret = 1;
		return l->ipv6;
	case CONF6_DISABLE:
		*ret = 0;
		return l->ipv6;
	default:
		return false;
	}
}

/*
 * route_localnet is set to 0 once and then left alone: a chained portmap turns it on for ports
 * that are published on the host's loopback. accept_ra is off for IPv4 pods too: the host's end
 * speaks IPv6 by itself, and a pod could make itself the host's router.
 */
bool desired_conf(const struct desired_link *l, enum devconf c, int32_t *ret)
{
	if (l->tunnel)
		return tunnel_conf(l, c, ret);
	switch (c) {
	case CONF_PROXY_ARP:
	case CONF_RP_FILTER:
	case CONF_FORWARDING:
		*ret = 1;
		return true;
	case CONF_PROXY_DELAY:
	case CONF6_ACCEPT_RA:
		*ret = 0;
		return true;
	case CONF_ROUTE_LOCALNET:
		*ret = l->route_localnet;
		return l->route_localnet || l->fresh;
	case CONF6_PROXY_NDP:
	case CONF6_FORWARDING:
		*ret = 1;
		return l->ipv6;
	case CONF6_DISABLE:
	case CONF6_ACCEPT_DAD:
	case CONF6_DAD_TRANSMITS:
		*ret = 0;
		return l->ipv6;
	case N_DEVCONF:
		break;
	}
	return false;
}

/* --- order ---------------------------------------------------------------------------------- */

static int by_link(const void *a, const void *b)
{
	uint32_t x = ((const struct desired_link *)a)->index;
	uint32_t y = ((const struct desired_link *)b)->index;

	return (x > y) - (x < y);
}

static int by_key(const void *a, const void *b)
{
	return kroute_compare_key(a, b);
}

static int by_route(const void *a, const void *b)
{
	return kroute_compare(a, b);
}

static int by_neighbour(const void *a, const void *b)
{
	const struct kneighbour *x = a, *y = b;
	int c = kneighbour_compare_key(x, y);

	c = c ?: memcmp(&x->mac, &y->mac, sizeof(x->mac));
	return c ?: address_compare(&x->address, &y->address);
}

static int by_neighbour_key(const void *a, const void *b)
{
	return kneighbour_compare_key(a, b);
}

int by_prefix(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

/* --- pods ----------------------------------------------------------------------------------- */

static struct kroute pod_route(const struct address *a, uint32_t link, uint32_t table)
{
	bool v6 = a->family == AF_INET6;

	return (struct kroute){ .table = table,
				.dst = prefix_of(a, (uint8_t)address_bits(a)),
				.metric = v6 ? ROUTE_METRIC6 : 0,
				.hop.oif = link,
				.type = RTN_UNICAST,
				/* IPv6 knows no scopes and shows all as global. */
				.scope = v6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
				.protocol = route_protocol };
}

static bool is_exported_alone(const struct making *m, const struct prefix *host)
{
	return m->n_singles && bsearch(host, m->singles, m->n_singles, sizeof(*host), by_prefix);
}

static void add_pod(struct making *m, const struct kernel_pod *pod, const struct klink *link)
{
	struct desired *d = &m->d;
	struct desired_link *l = &d->links[d->n_links++];

	*l = (struct desired_link){ .index = link->index, .route_localnet = pod->route_localnet };
	memcpy(l->name, link->name, sizeof(l->name));
	for (size_t i = 0; i < pod->n_addresses; i++) {
		const struct address *a = &pod->addresses[i];
		struct kroute r = pod_route(a, link->index, RT_TABLE_MAIN);

		l->ipv6 |= a->family == AF_INET6;
		d->neighbours[d->n_neighbours++] = (struct kneighbour){
			.link = link->index, .address = *a, .mac = pod->mac, .ours = true
		};
		d->routes[d->n_routes++] = r;
		if (m->state->export_table && is_exported_alone(m, &r.dst)) {
			r.table = m->state->export_table;
			d->routes[d->n_routes++] = r;
		}
	}
}

static void add_pods(struct making *m)
{
	for (size_t i = 0; i < m->state->n_pods; i++) {
		const struct kernel_pod *pod = &m->state->pods[i];
		const struct held_link *l = kernel_view_link_named(m->view, pod->link);

		if (l && l->pod)
			add_pod(m, pod, &l->link);
		else
			m->d.without_link++;
	}
}

/* --- blocks --------------------------------------------------------------------------------- */

/*
 * A more specific subnet wins against the blackhole around it, but only while it is up. An
 * address without a subnet (on lo, on a tunnel) is always reached.
 */
static bool over_subnet(const struct prefix *block, const struct kernel_view *view, char *why,
			size_t size)
{
	char text[PREFIX_TEXT];

	for (size_t i = 0; i < view->n_addresses; i++) {
		const struct node_address *a = &view->addresses[i];
		const struct held_link *l;

		if (a->subnet.length == address_bits(&a->local) ||
		    !prefix_overlaps(block, &a->subnet))
			continue;
		l = kernel_view_link(view, a->link);
		snprintf(why, size, "the subnet %s of %s", prefix_print(&a->subnet, text),
			 l ? l->link.name : "a link");
		return true;
	}
	return false;
}

static bool over_gateway(const struct prefix *block, const struct kernel_view *view, char *why,
			 size_t size)
{
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < view->gateways.n; i++)
		if (prefix_contains(block, &view->gateways.v[i])) {
			snprintf(why, size, "the gateway %s",
				 address_print(&view->gateways.v[i], text));
			return true;
		}
	return false;
}

static bool over_protected(const struct prefix *block, const struct prefixes *protect, char *why,
			   size_t size)
{
	char text[PREFIX_TEXT];

	for (size_t i = 0; protect && i < protect->n; i++)
		if (prefix_overlaps(block, &protect->v[i])) {
			snprintf(why, size, "%s, which is protected",
				 prefix_print(&protect->v[i], text));
			return true;
		}
	return false;
}

bool covers_own(const struct making *m, const struct prefix *block, char *why, size_t size)
{
	return over_subnet(block, m->view, why, size) || over_gateway(block, m->view, why, size) ||
	       over_protected(block, m->protect, why, size);
}

int refuse(struct making *m, const struct refused_block *refused)
{
	struct desired *d = &m->d;
	struct refused_block *grown = reallocarray(d->refused, d->n_refused + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	d->refused = grown;
	grown[d->n_refused++] = *refused;
	return 0;
}

static bool is_single(const struct prefix *block)
{
	return block->length == address_bits(&block->address);
}

static int add_block(struct making *m, const struct prefix *block)
{
	struct desired *d = &m->d;
	struct refused_block refused = { .block = *block };
	bool v6 = block->address.family == AF_INET6;
	struct kroute r = { .table = RT_TABLE_MAIN,
			    .dst = prefix_mask(block),
			    .metric = v6 ? ROUTE_METRIC6 : 0,
			    .type = RTN_BLACKHOLE,
			    .protocol = route_protocol };

	if (covers_own(m, block, refused.why, sizeof(refused.why)))
		return refuse(m, &refused);
	d->routes[d->n_routes++] = r;
	if (m->state->export_table) {
		r.table = m->state->export_table;
		d->routes[d->n_routes++] = r;
	}
	return 0;
}

static int add_blocks(struct making *m)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < m->state->n_blocks; i++) {
		const struct kernel_block *b = &m->state->blocks[i];

		if (!b->no_blackhole && !is_single(&b->block))
			err = add_block(m, &b->block);
	}
	return err;
}

static void gather_own(struct making *m)
{
	for (size_t i = 0; i < m->state->n_blocks; i++) {
		m->own[i] = prefix_mask(&m->state->blocks[i].block);
		if (is_single(&m->own[i]))
			m->singles[m->n_singles++] = m->own[i];
	}
	if (m->state->n_blocks)
		qsort(m->own, m->state->n_blocks, sizeof(*m->own), by_prefix);
	if (m->n_singles)
		qsort(m->singles, m->n_singles, sizeof(*m->singles), by_prefix);
}

/* --- all ------------------------------------------------------------------------------------ */

static int make_room(struct making *m)
{
	const struct kernel_desired *state = m->state;
	struct desired *d = &m->d;
	size_t addresses = 0;

	for (size_t i = 0; i < state->n_pods; i++)
		addresses += state->pods[i].n_addresses;
	/* Both tables; one more, because a set may be empty. */
	d->routes = calloc(2 * (addresses + state->n_blocks + state->n_remote_blocks) +
				   state->n_routes + 1,
			   sizeof(*d->routes));
	d->neighbours = calloc(addresses + 3 * state->n_remotes + state->n_remote_blocks + 1,
			       sizeof(*d->neighbours));
	d->links = calloc(state->n_pods + ARRAY_SIZE(d->tunnels) + 1, sizeof(*d->links));
	m->singles = calloc(state->n_blocks + 1, sizeof(*m->singles));
	m->own = calloc(state->n_blocks + 1, sizeof(*m->own));
	return d->routes && d->neighbours && d->links && m->singles && m->own ? 0 : -ENOMEM;
}

/* Several attachments may share a link: what one of them needs, the link needs. */
static void merge_links(struct desired *d)
{
	size_t kept = 0;

	if (d->n_links == 0)
		return;
	qsort(d->links, d->n_links, sizeof(*d->links), by_link);
	for (size_t i = 1; i < d->n_links; i++) {
		struct desired_link *last = &d->links[kept];
		const struct desired_link *l = &d->links[i];

		if (l->index == last->index) {
			last->ipv6 |= l->ipv6;
			last->route_localnet |= l->route_localnet;
		} else {
			d->links[++kept] = *l;
		}
	}
	d->n_links = kept + 1;
}

static int make(struct making *m)
{
	const struct kernel_desired *state = m->state;
	struct desired *d = &m->d;
	int err;

	gather_own(m);
	add_tunnels(m);
	add_pods(m);
	err = add_blocks(m);
	if (state->n_routes)
		memcpy(d->routes + d->n_routes, state->routes,
		       state->n_routes * sizeof(*d->routes));
	d->n_routes += state->n_routes;
	err = err ?: add_remotes(m);

	merge_links(d);
	d->n_routes = sort_unique(d->routes, d->n_routes, sizeof(*d->routes), by_route, by_key);
	d->n_neighbours = sort_unique(d->neighbours, d->n_neighbours, sizeof(*d->neighbours),
				      by_neighbour, by_neighbour_key);
	return err;
}

int desired_kernel(const struct kernel_desired *state, const struct kernel_view *view,
		   const struct prefixes *protect, struct desired *ret)
{
	struct making m = { .state = state,
			    .view = view,
			    .protect = protect,
			    .d.ipv6 = state->ipv6,
			    .d.statics_known = state->statics_known };
	int err = make_room(&m);

	err = err ?: make(&m);
	free(m.singles);
	free(m.own);
	free(m.underlays);
	if (err < 0)
		desired_done(&m.d);
	else
		*ret = m.d;
	return err;
}

void desired_done(struct desired *d)
{
	free(d->routes);
	free(d->neighbours);
	free(d->links);
	free(d->refused);
	*d = (struct desired){ 0 };
}

const struct desired_link *desired_link(const struct desired *d, uint32_t index)
{
	const struct desired_link key = { .index = index };

	return d->n_links ? bsearch(&key, d->links, d->n_links, sizeof(key), by_link) : NULL;
}

const struct kroute *desired_route_at(const struct desired *d, size_t *finger,
				      const struct kroute *key)
{
	int c = -1;

	while (*finger < d->n_routes && (c = kroute_compare_key(&d->routes[*finger], key)) < 0)
		++*finger;
	return c == 0 ? &d->routes[*finger] : NULL;
}

const struct kneighbour *desired_neighbour_at(const struct desired *d, size_t *finger,
					      const struct kneighbour *key)
{
	int c = -1;

	while (*finger < d->n_neighbours &&
	       (c = kneighbour_compare_key(&d->neighbours[*finger], key)) < 0)
		++*finger;
	return c == 0 ? &d->neighbours[*finger] : NULL;
}
