/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overlay: for each other node where its frames go (FDB) and the MAC of its tunnel's end, for
 * each of its blocks a route there, or past the tunnel where the node is on a subnet of ours.
 *
 * What needs a device waits until there is one: the pass that makes it is followed by another.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/desired_kernel_parts.h"

static bool is_v6(const struct address *a)
{
	return a->family == AF_INET6;
}

/* --- this node's end ------------------------------------------------------------------------ */

/* What no change in place can mend. */
static bool is_outdated(const struct kernel_tunnel *t, const struct kvxlan *is)
{
	return is->vni != t->vni || is->port != t->port || is->other ||
	       (is->local.family != AF_UNSPEC && is->local.family != t->local.family);
}

static void add_tunnel(struct making *m, const struct kernel_tunnel *t)
{
	struct desired *d = &m->d;
	int which = is_v6(&t->local);
	struct desired_tunnel *want = &d->tunnels[which];
	const struct held_link *l = kernel_view_link_named(m->view, tunnel_name(which));
	struct desired_link *link;

	if (want->wanted)
		return;
	*want = (struct desired_tunnel){
		.wanted = true,
		.stranger = l && !l->tunnel,
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
	if (!l || want->stranger || want->outdated)
		return;
	want->index = l->link.index;
	link = &d->links[d->n_links++];
	*link = (struct desired_link){ .index = want->index, .tunnel = true, .ipv6 = want->ipv6 };
	memcpy(link->name, l->link.name, sizeof(link->name));
	m->tunnel_links[which] = link;
}

void add_tunnels(struct making *m)
{
	for (size_t i = 0; i < m->state->n_tunnels; i++)
		add_tunnel(m, &m->state->tunnels[i]);
}

/* --- the others ----------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	return address_compare(a, b);
}

static int gather_underlays(struct making *m)
{
	m->underlays = calloc(m->state->n_remotes + 1, sizeof(*m->underlays));
	if (!m->underlays)
		return -ENOMEM;
	for (size_t i = 0; i < m->state->n_remotes; i++)
		m->underlays[m->n_underlays++] = m->state->remotes[i].underlay;
	if (m->n_underlays)
		qsort(m->underlays, m->n_underlays, sizeof(*m->underlays), by_address);
	return 0;
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

	for (size_t i = 0; i < view->n_addresses; i++) {
		const struct node_address *own = &view->addresses[i];
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

/* dst without host bits. */
static void add_route(struct making *m, const struct prefix *dst, const struct khop *hop)
{
	bool v6 = is_v6(&dst->address);
	bool via = hop->gateway.family != AF_UNSPEC;

	m->d.routes[m->d.n_routes++] = (struct kroute){
		.table = RT_TABLE_MAIN,
		.dst = *dst,
		.metric = v6 ? ROUTE_METRIC6 : 0,
		.hop = *hop,
		.type = RTN_UNICAST,
		.scope = v6 || via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		.protocol = route_protocol,
	};
}

/*
 * IPv6 refuses a gateway that another route leads to over another link, onlink or not: BIRD's for
 * the same block, or our own past the tunnel. So the gateway gets a route of its own.
 */
static void add_gateway_route(struct making *m, const struct address *gateway, uint32_t tunnel)
{
	const struct prefix host = prefix_of(gateway, (uint8_t)address_bits(gateway));

	add_route(m, &host, &(struct khop){ .oif = tunnel });
}

static void add_tunnel_route(struct making *m, const struct kernel_remote *r,
			     const struct prefix *block)
{
	bool v6 = is_v6(&block->address);
	const struct desired_tunnel *t = tunnel_to(m, r);
	const struct address *via = &r->vtep[v6];

	if (!t->index)
		return;
	if (v6) {
		add_gateway_route(m, via, t->index);
		m->tunnel_links[is_v6(&r->underlay)]->ipv6 = true;
	}
	/* A block of one address: its own route is all. */
	if (!v6 || block->length != 128 || address_compare(via, &block->address) != 0)
		add_route(m, block,
			  &(struct khop){ .gateway = *via, .oif = t->index, .onlink = true });
}

/* Mostly pools are apart from where the nodes are, which two comparisons tell. */
static size_t first_underlay(const struct making *m, const struct address *from)
{
	const struct address *v = m->underlays;
	size_t low = 0, high = m->n_underlays;

	if (high && address_compare(&v[high - 1], from) < 0)
		return high;
	if (high && address_compare(&v[0], from) >= 0)
		return 0;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (address_compare(&v[middle], from) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool over_underlay(const struct making *m, const struct prefix *block, char *why,
			  size_t size)
{
	size_t first = first_underlay(m, &block->address);
	char text[ADDRESS_TEXT];

	if (first == m->n_underlays || !prefix_contains(block, &m->underlays[first]))
		return false;
	snprintf(why, size, "it would cover %s, to which a tunnel leads",
		 address_print(&m->underlays[first], text));
	return true;
}

static bool is_refused(struct making *m, const struct kernel_remote *r, const struct prefix *block,
		       char *why, size_t size)
{
	char text[ADDRESS_TEXT], covered[96];

	if (m->state->n_blocks &&
	    bsearch(block, m->own, m->state->n_blocks, sizeof(*block), by_prefix)) {
		snprintf(why, size, "it is a block of this node, too");
		return true;
	}
	if (is_self(m, r)) {
		snprintf(why, size, "its node is said to be at this node's own address %s",
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
			 "its node is reached over %s alone, and this node has no tunnel there",
			 is_v6(&r->underlay) ? "IPv6" : "IPv4");
	else if (!has_mac(r))
		snprintf(why, size, "its node's tunnel has no MAC of its own");
	else if (r->vtep[is_v6(&block->address)].family == AF_UNSPEC)
		snprintf(why, size, "its node's tunnel has no address of its family");
	else
		return false;
	return true;
}

static int add_remote_block(struct making *m, const struct kernel_remote_block *b)
{
	struct refused_block refused = { .block = prefix_mask(&b->block), .remote = true };
	const struct kernel_remote *r = &m->state->remotes[b->remote];
	const struct address *node = &r->node[is_v6(&b->block.address)];
	const struct held_link *l = NULL;

	if (is_refused(m, r, &refused.block, refused.why, sizeof(refused.why)))
		return refuse(m, &refused);
	if (b->may_be_direct && node->family != AF_UNSPEC)
		l = on_link(m->view, node);
	if (!l && is_out_of_reach(m, r, &refused.block, refused.why, sizeof(refused.why)))
		return refuse(m, &refused);
	if (!l)
		add_tunnel_route(m, r, &refused.block);
	/* While the link is down nothing leads there, and the kernel takes no route over it. */
	else if (l->link.flags & IFF_UP)
		add_route(m, &refused.block,
			  &(struct khop){ .gateway = *node, .oif = l->link.index });
	return 0;
}

int add_remotes(struct making *m)
{
	const struct kernel_desired *state = m->state;
	int err = gather_underlays(m);

	for (size_t i = 0; err == 0 && i < state->n_remotes; i++)
		add_vteps(m, &state->remotes[i]);
	for (size_t i = 0; err == 0 && i < state->n_remote_blocks; i++)
		if (state->remote_blocks[i].remote < state->n_remotes)
			err = add_remote_block(m, &state->remote_blocks[i]);
	/* Last, as in the order of neighbours: what is sorted already need not be. */
	for (size_t i = 0; err == 0 && i < state->n_remotes; i++)
		add_fdb(m, &state->remotes[i]);
	return err;
}
