/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/desired_kernel.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/sort.h"

struct making {
	struct desired_kernel d;
	const struct kernel_wants *wants;
	const struct kernel_view *view;
	const struct prefixes *protect;
	struct prefix *singles; /* blocks of one address, sorted */
	size_t n_singles;
	struct prefix *own;        /* all blocks of ours, sorted */
	struct address *underlays; /* where other nodes' tunnels end, sorted */
	size_t n_underlays;
	struct desired_link *tunnel_links[2];
};

#define LEFT (-1) /* as it is */

/*
 * On pod links: route_localnet is set to 0 once and then left alone, because a chained portmap turns
 * it on for ports that are published on the host's loopback. The host's end of a pod without IPv6
 * has it off: by itself it would speak it, and over link-local addresses the pod would reach what
 * listens on [::] and could make itself the host's router.
 *
 * On tunnels: what comes out is routed on. While one end takes the tunnel and the other the way past
 * it, a strict rp_filter would drop half of it.
 */
static const struct {
	int8_t pod, tunnel;
	bool ipv6; /* matters only with an IPv6 address */
} settings[N_DEVCONF] = {
	[CONF6_DISABLE] = { 0, 0, true },          [CONF6_ACCEPT_DAD] = { 0, LEFT, true },
	[CONF6_DAD_TRANSMITS] = { 0, LEFT, true }, [CONF6_ACCEPT_RA] = { 0, 0, false },
	[CONF6_PROXY_NDP] = { 1, LEFT, true },     [CONF6_FORWARDING] = { 1, 1, true },
	[CONF_PROXY_ARP] = { 1, LEFT, false },     [CONF_RP_FILTER] = { 1, 2, false },
	[CONF_FORWARDING] = { 1, 1, false },       [CONF_ROUTE_LOCALNET] = { 0, LEFT, false },
	[CONF_PROXY_DELAY] = { 0, LEFT, false },
};

bool desired_conf(const struct desired_link *l, enum devconf c, int32_t *ret)
{
	int32_t value = l->tunnel ? settings[c].tunnel : settings[c].pod;

	if (!l->tunnel && !l->ipv6 && devconf_info[c].family == AF_INET6) {
		*ret = 1;
		return c == CONF6_DISABLE;
	}
	if (value == LEFT || (settings[c].ipv6 && !l->ipv6))
		return false;
	if (c == CONF_ROUTE_LOCALNET) {
		if (!l->route_localnet && !l->fresh)
			return false;
		value = l->route_localnet;
	}
	*ret = value;
	return true;
}

static bool is_v6(const struct address *a)
{
	return a->family == AF_INET6;
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

static int by_address(const void *a, const void *b)
{
	return address_compare(a, b);
}

static int by_prefix(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

/* --- pods ----------------------------------------------------------------------------------- */

/* hop NULL: a blackhole. exported: into the export table, too, if there is one. dst has no host bits. */
static void add_route(struct making *m, const struct prefix *dst, const struct khop *hop,
		      bool exported)
{
	bool v6 = is_v6(&dst->address);
	/* IPv6 knows no scopes and shows all as global. */
	bool direct = !v6 && hop && hop->gateway.family == AF_UNSPEC;
	struct kroute r = { .table = RT_TABLE_MAIN,
			    .dst = *dst,
			    .metric = v6 ? ROUTE_METRIC6 : 0,
			    .type = hop ? RTN_UNICAST : RTN_BLACKHOLE,
			    .scope = direct ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
			    .protocol = route_protocol };

	if (hop)
		r.hop = *hop;
	m->d.routes[m->d.n_routes++] = r;
	if (exported && m->wants->export_table) {
		r.table = m->wants->export_table;
		m->d.routes[m->d.n_routes++] = r;
	}
}

static struct prefix host_prefix(const struct address *a)
{
	return prefix_of(a, (uint8_t)address_bits(a));
}

static void add_pods(struct making *m)
{
	struct desired_kernel *d = &m->d;

	for (size_t i = 0; i < m->wants->n_pods; i++) {
		const struct kernel_pod *pod = &m->wants->pods[i];
		const struct held_link *link = kernel_view_link_named(m->view, pod->link);
		struct desired_link *l;

		if (!link || !link->pod) {
			d->without_link++;
			continue;
		}
		l = &d->links[d->n_links++];
		*l = (struct desired_link){ .index = link->link.index,
					    .route_localnet = pod->route_localnet };
		memcpy(l->name, link->link.name, sizeof(l->name));
		for (size_t j = 0; j < pod->n_addresses; j++) {
			const struct address *a = &pod->addresses[j];
			const struct prefix host = host_prefix(a);

			l->ipv6 |= is_v6(a);
			d->neighbours[d->n_neighbours++] = (struct kneighbour){
				.link = l->index, .address = *a, .mac = pod->mac, .ours = true
			};
			/* A block of one address has no blackhole to be exported. */
			add_route(
				m, &host, &(struct khop){ .oif = l->index },
				array_find(m->singles, m->n_singles, x, prefix_compare(x, &host)));
		}
	}
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Whether a route for all of the block would take away what the node itself needs: then why. */
static bool covers_own(const struct making *m, const struct prefix *block, char *why, size_t size)
{
	const struct kernel_view *view = m->view;
	char text[PREFIX_TEXT];

	/*
	 * A more specific subnet wins against the blackhole around it, but only while it is up. An
	 * address without a subnet (on lo, on a tunnel) is always reached.
	 */
	for (size_t i = 0; i < view->addresses.n; i++) {
		const struct kaddress *a = &view->addresses.v[i].address;

		if (a->subnet.length == address_bits(&a->local) ||
		    !prefix_overlaps(block, &a->subnet))
			continue;
		snprintf(why, size, "the subnet %s of %s", prefix_print(&a->subnet, text),
			 kernel_view_link_name(view, a->link) ?: "a link");
		return true;
	}
	for (size_t i = 0; i < view->gateways.n; i++)
		if (prefix_contains(block, &view->gateways.v[i])) {
			snprintf(why, size, "the gateway %s",
				 address_print(&view->gateways.v[i], text));
			return true;
		}
	for (size_t i = 0; m->protect && i < m->protect->n; i++)
		if (prefix_overlaps(block, &m->protect->v[i])) {
			snprintf(why, size, "%s, which is protected",
				 prefix_print(&m->protect->v[i], text));
			return true;
		}
	return false;
}

static bool is_single(const struct prefix *block)
{
	return block->length == address_bits(&block->address);
}

static int add_blocks(struct making *m)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < m->wants->n_blocks; i++) {
		const struct kernel_block *b = &m->wants->blocks[i];
		struct refused_block refused = { .block = b->block };
		const struct prefix dst = prefix_mask(&b->block);

		if (b->no_blackhole || is_single(&b->block))
			continue;
		if (covers_own(m, &b->block, refused.why, sizeof(refused.why)))
			err = array_append(&m->d.refused, refused);
		else
			add_route(m, &dst, NULL, true);
	}
	return err;
}

static void gather_own(struct making *m)
{
	for (size_t i = 0; i < m->wants->n_blocks; i++) {
		m->own[i] = prefix_mask(&m->wants->blocks[i].block);
		if (is_single(&m->own[i]))
			m->singles[m->n_singles++] = m->own[i];
	}
	if (m->wants->n_blocks)
		qsort(m->own, m->wants->n_blocks, sizeof(*m->own), by_prefix);
	if (m->n_singles)
		qsort(m->singles, m->n_singles, sizeof(*m->singles), by_prefix);
}

/* --- the overlay: this node's end ------------------------------------------------------------ */

/* What no change in place can mend. */
static bool is_outdated(const struct kernel_tunnel *t, const struct kvxlan *is)
{
	return is->vni != t->vni || is->port != t->port || is->other ||
	       (is->local.family != AF_UNSPEC && is->local.family != t->local.family);
}

static void add_tunnel(struct making *m, const struct kernel_tunnel *t)
{
	struct desired_kernel *d = &m->d;
	int which = is_v6(&t->local);
	struct desired_tunnel *want = &d->tunnels[which];
	const struct held_link *l = kernel_view_link_named(m->view, tunnel_name(which));
	struct desired_link *link;

	if (want->wanted)
		return;
	*want = (struct desired_tunnel){
		.wanted = true,
		.foreign = l && !l->tunnel,
		.outdated = l && l->tunnel && is_outdated(t, &l->link.tunnel),
		.is = { .vxlan = { .vni = t->vni, .port = t->port, .local = t->local },
			.mac = t->mac,
			.mtu = t->mtu,
			.offload = t->checksum_offload }
	};
	for (size_t i = 0; i < t->n_addresses && i < ARRAY_SIZE(want->is.addresses); i++) {
		want->is.addresses[want->is.n_addresses++] = t->addresses[i];
		want->ipv6 |= is_v6(&t->addresses[i]);
	}
	if (!l || want->foreign || want->outdated)
		return;
	want->index = l->link.index;
	link = &d->links[d->n_links++];
	*link = (struct desired_link){ .index = want->index, .tunnel = true, .ipv6 = want->ipv6 };
	memcpy(link->name, l->link.name, sizeof(link->name));
	m->tunnel_links[which] = link;
}

static void add_tunnels(struct making *m)
{
	for (size_t i = 0; i < m->wants->n_tunnels; i++)
		add_tunnel(m, &m->wants->tunnels[i]);
}

/*
 * For each other node where its frames go (FDB) and the MAC of its tunnel's end, for each of its
 * blocks a route there, or past the tunnel where the node is on a subnet of ours.
 *
 * What needs a device waits until there is one: the pass that makes it is followed by another.
 */

/* --- the overlay: other nodes ----------------------------------------------------------------------------- */

static void gather_underlays(struct making *m)
{
	for (size_t i = 0; i < m->wants->n_remotes; i++)
		m->underlays[m->n_underlays++] = m->wants->remotes[i].underlay;
	if (m->n_underlays)
		qsort(m->underlays, m->n_underlays, sizeof(*m->underlays), by_address);
}

static struct desired_tunnel *tunnel_to(struct making *m, const struct kernel_remote *r)
{
	return &m->d.tunnels[is_v6(&r->underlay)];
}

static void add_neighbour(struct making *m, uint32_t link, const struct address *a,
			  const struct mac *mac, bool fdb)
{
	m->d.neighbours[m->d.n_neighbours++] = (struct kneighbour){
		.link = link, .address = *a, .mac = *mac, .fdb = fdb, .ours = !fdb
	};
}

/* Another node that says to be at our own address would have us send to ourselves. */
static bool is_self(struct making *m, const struct kernel_remote *r)
{
	const struct desired_tunnel *t = tunnel_to(m, r);

	return address_compare(&r->underlay, &t->is.vxlan.local) == 0;
}

/* Frames to all zeros would be those that lead nowhere else. */
static bool has_mac(const struct kernel_remote *r)
{
	static const struct mac none;

	return memcmp(&r->mac, &none, sizeof(none)) != 0 && !(r->mac.bytes[0] & 1);
}

static bool is_reached(struct making *m, const struct kernel_remote *r)
{
	return tunnel_to(m, r)->index && !is_self(m, r) && has_mac(r);
}

static void add_vteps(struct making *m, const struct kernel_remote *r)
{
	if (!is_reached(m, r))
		return;
	for (size_t f = 0; f < ARRAY_SIZE(r->vtep); f++)
		if (r->vtep[f].family != AF_UNSPEC)
			add_neighbour(m, tunnel_to(m, r)->index, &r->vtep[f], &r->mac, false);
}

static void add_fdb(struct making *m, const struct kernel_remote *r)
{
	if (is_reached(m, r))
		add_neighbour(m, tunnel_to(m, r)->index, &r->underlay, &r->mac, true);
}

/* --- their blocks --------------------------------------------------------------------------- */

/* Which link of ours has a subnet with this address in it, the narrowest; NULL: none. */
static const struct held_link *on_link(const struct kernel_view *view, const struct address *a)
{
	const struct held_link *best = NULL;
	int length = -1;

	for (size_t i = 0; i < view->addresses.n; i++) {
		const struct kaddress *own = &view->addresses.v[i].address;
		const struct held_link *l;

		if (own->subnet.length <= length || !prefix_contains(&own->subnet, a) ||
		    address_compare(&own->local, a) == 0)
			continue;
		l = kernel_view_link(view, own->link);
		if (!l || l->tunnel)
			continue;
		best = l;
		length = own->subnet.length;
	}
	return best;
}

static void add_tunnel_route(struct making *m, const struct kernel_remote *r,
			     const struct prefix *block)
{
	bool v6 = is_v6(&block->address);
	const struct desired_tunnel *t = tunnel_to(m, r);
	const struct address *via = &r->vtep[v6];

	if (!t->index)
		return;
	/*
	 * IPv6 refuses a gateway that another route leads to over another link, onlink or not:
	 * BIRD's for the same block, or our own past the tunnel. So the gateway gets a route of its
	 * own.
	 */
	if (v6) {
		const struct prefix host = host_prefix(via);

		add_route(m, &host, &(struct khop){ .oif = t->index }, false);
		m->tunnel_links[is_v6(&r->underlay)]->ipv6 = true;
	}
	/* A block of one address: its own route is all. */
	if (!v6 || block->length != 128 || address_compare(via, &block->address) != 0)
		add_route(m, block,
			  &(struct khop){ .gateway = *via, .oif = t->index, .onlink = true },
			  false);
}

/* Mostly pools are apart from where the nodes are, which two comparisons tell. */
static size_t first_underlay(const struct making *m, const struct address *from)
{
	const struct address *v = m->underlays;
	size_t n = m->n_underlays;

	if (n && address_compare(&v[n - 1], from) < 0)
		return n;
	if (n && address_compare(&v[0], from) >= 0)
		return 0;
	return array_place(v, n, x, address_compare(x, from));
}

static bool over_underlay(const struct making *m, const struct prefix *block, char *why,
			  size_t size)
{
	size_t first = first_underlay(m, &block->address);
	char text[ADDRESS_TEXT];

	if (first == m->n_underlays || !prefix_contains(block, &m->underlays[first]))
		return false;
	snprintf(why, size, "it would cover %s, the address of a tunnel end",
		 address_print(&m->underlays[first], text));
	return true;
}

static bool is_refused(struct making *m, const struct kernel_remote *r, const struct prefix *block,
		       char *why, size_t size)
{
	char text[ADDRESS_TEXT], covered[96];

	if (array_find(m->own, m->wants->n_blocks, x, prefix_compare(x, block))) {
		snprintf(why, size, "this node owns a block with the same prefix");
		return true;
	}
	if (is_self(m, r)) {
		snprintf(why, size, "its node claims this node's own address %s",
			 address_print(&r->underlay, text));
		return true;
	}
	if (covers_own(m, block, covered, sizeof(covered))) {
		snprintf(why, size, "it would cover %s", covered);
		return true;
	}
	return over_underlay(m, block, why, size);
}

static bool is_out_of_reach(struct making *m, const struct kernel_remote *r,
			    const struct prefix *block, char *why, size_t size)
{
	if (!tunnel_to(m, r)->wanted)
		snprintf(why, size,
			 "its node is reachable over %s only, and this node has no tunnel over it",
			 is_v6(&r->underlay) ? "IPv6" : "IPv4");
	else if (!has_mac(r))
		snprintf(why, size, "its node's tunnel has no MAC address");
	else if (r->vtep[is_v6(&block->address)].family == AF_UNSPEC)
		snprintf(why, size, "its node's tunnel has no address of this family");
	else
		return false;
	return true;
}

static int add_remote_block(struct making *m, const struct kernel_remote_block *b)
{
	struct refused_block refused = { .block = prefix_mask(&b->block), .remote = true };
	const struct kernel_remote *r = &m->wants->remotes[b->remote];
	const struct address *node = &r->node[is_v6(&b->block.address)];
	const struct held_link *l = NULL;

	if (is_refused(m, r, &refused.block, refused.why, sizeof(refused.why)))
		return array_append(&m->d.refused, refused);
	if (b->may_be_direct && node->family != AF_UNSPEC)
		l = on_link(m->view, node);
	if (!l && is_out_of_reach(m, r, &refused.block, refused.why, sizeof(refused.why)))
		return array_append(&m->d.refused, refused);
	if (!l)
		add_tunnel_route(m, r, &refused.block);
	/* While the link is down nothing leads there, and the kernel takes no route over it. */
	else if (l->link.flags & IFF_UP)
		add_route(m, &refused.block,
			  &(struct khop){ .gateway = *node, .oif = l->link.index }, false);
	return 0;
}

static int add_remotes(struct making *m)
{
	const struct kernel_wants *wants = m->wants;
	int err = 0;

	gather_underlays(m);
	for (size_t i = 0; i < wants->n_remotes; i++)
		add_vteps(m, &wants->remotes[i]);
	for (size_t i = 0; err == 0 && i < wants->n_remote_blocks; i++)
		if (wants->remote_blocks[i].remote < wants->n_remotes)
			err = add_remote_block(m, &wants->remote_blocks[i]);
	/* Last, as in the order of neighbours: what is sorted already need not be. */
	for (size_t i = 0; err == 0 && i < wants->n_remotes; i++)
		add_fdb(m, &wants->remotes[i]);
	return err;
}

/* --- all ------------------------------------------------------------------------------------ */

static int make_room(struct making *m)
{
	const struct kernel_wants *wants = m->wants;
	struct desired_kernel *d = &m->d;
	size_t addresses = 0;

	for (size_t i = 0; i < wants->n_pods; i++)
		addresses += wants->pods[i].n_addresses;
	/* Both tables; one more, because a set may be empty. */
	d->routes = calloc(2 * (addresses + wants->n_blocks + wants->n_remote_blocks) +
				   wants->n_routes + 1,
			   sizeof(*d->routes));
	d->neighbours = calloc(addresses + 3 * wants->n_remotes + wants->n_remote_blocks + 1,
			       sizeof(*d->neighbours));
	d->links = calloc(wants->n_pods + ARRAY_SIZE(d->tunnels) + 1, sizeof(*d->links));
	m->singles = calloc(wants->n_blocks + 1, sizeof(*m->singles));
	m->own = calloc(wants->n_blocks + 1, sizeof(*m->own));
	m->underlays = calloc(wants->n_remotes + 1, sizeof(*m->underlays));
	return d->routes && d->neighbours && d->links && m->singles && m->own && m->underlays
		       ? 0
		       : -ENOMEM;
}

/* Several attachments may share a link: what one of them needs, the link needs. */
static void merge_links(struct desired_kernel *d)
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
	const struct kernel_wants *wants = m->wants;
	struct desired_kernel *d = &m->d;
	int err;

	gather_own(m);
	add_tunnels(m);
	add_pods(m);
	err = add_blocks(m);
	if (wants->n_routes)
		memcpy(d->routes + d->n_routes, wants->routes,
		       wants->n_routes * sizeof(*d->routes));
	d->n_routes += wants->n_routes;
	err = err ?: add_remotes(m);

	merge_links(d);
	d->n_routes = sort_unique(d->routes, d->n_routes, sizeof(*d->routes), by_route, by_key);
	d->n_neighbours = sort_unique(d->neighbours, d->n_neighbours, sizeof(*d->neighbours),
				      by_neighbour, by_neighbour_key);
	return err;
}

int desired_kernel(const struct kernel_wants *wants, const struct kernel_view *view,
		   const struct prefixes *protect, struct desired_kernel *ret)
{
	struct making m = { .wants = wants,
			    .view = view,
			    .protect = protect,
			    .d.ipv6 = wants->ipv6,
			    .d.statics_known = wants->statics_known };
	int err = make_room(&m);

	err = err ?: make(&m);
	free(m.singles);
	free(m.own);
	free(m.underlays);
	if (err < 0)
		desired_kernel_done(&m.d);
	else
		*ret = m.d;
	return err;
}

void desired_kernel_done(struct desired_kernel *d)
{
	free(d->routes);
	free(d->neighbours);
	free(d->links);
	array_done(&d->refused);
	*d = (struct desired_kernel){ 0 };
}

const struct desired_link *desired_link(const struct desired_kernel *d, uint32_t index)
{
	return array_find(d->links, d->n_links, x, (x->index > index) - (x->index < index));
}
