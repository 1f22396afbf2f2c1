/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/overlay/desired_overlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/model/lease_holder.h"
#include "lib/model/vtep.h"

#define ETHERNET_MTU 1500
/* Outer IP and UDP, VXLAN, inner Ethernet. */
#define OVERHEAD4 50
#define OVERHEAD6 70

const char *overlay_trouble_text(enum overlay_trouble trouble)
{
	static const char *const texts[] = {
		[OVERLAY_NO_RECORD] = "has blocks of the overlay, but no record node/ in etcd: is "
				      "its agent running?",
		[OVERLAY_NO_TUNNEL] = "reports no tunnel in its record yet: does its agent run, "
				      "and does it support the overlay?",
		[OVERLAY_APART] = "has no address of a family that this node has: give both an "
				  "IPv4 or an IPv6 address",
		[OVERLAY_SAME_MAC] = "reports a tunnel MAC that another node has: every node needs "
				     "its own",
		[OVERLAY_FOREIGN_MAC] = "reports a tunnel MAC that does not follow from its name: "
					"restart its agent; if that does not correct the record, "
					"find out who writes it",
		[OVERLAY_FOREIGN_ADDRESS] = "reports a tunnel address outside its own blocks: "
					    "restart its agent; if that does not correct the "
					    "record, find out who writes it",
	};

	return texts[trouble];
}

uint32_t overlay_mtu(const struct config_vxlan *config, uint32_t uplink, sa_family_t family)
{
	uint32_t overhead = config->mtu_overhead ? config->mtu_overhead
			    : family == AF_INET6 ? OVERHEAD6
						 : OVERHEAD4;

	uplink = uplink ?: ETHERNET_MTU;
	return uplink > overhead ? uplink - overhead : 0;
}

const char *kernel_way_name(enum kernel_way way)
{
	static const char *const names[] = {
		[KERNEL_WAY_NONE] = "missing",
		[KERNEL_WAY_DIRECT] = "direct",
		[KERNEL_WAY_TUNNEL] = "tunnel",
	};

	return names[way];
}

/* --- who is there --------------------------------------------------------------------------- */

struct making {
	const struct overlay_input *in;
	struct overlay_plan plan;
	uint32_t *remote_of; /* by node of the input: number of the remote, from 1; 0: none */
	bool *has_blocks;    /* by node of the input */
	uint8_t *vtep_owned; /* by node of the input: a bit per family of OVERLAY_FAMILIES */
	size_t room;         /* of plan.troubled */
};

static int by_pool_name(const void *name, const void *pool)
{
	return strcmp(name, ((const struct overlay_pool *)pool)->name);
}

static int by_node_name(const void *name, const void *node)
{
	return strcmp(name, (*(const struct node *const *)node)->name);
}

/* The pool of a block that another node has; NULL: it is none of the overlay. */
static const struct overlay_pool *pool_of(const struct overlay_input *in,
					  const struct block_place *b)
{
	if (!in->n_pools || strcmp(b->node, in->self) == 0)
		return NULL;
	return bsearch(b->pool, in->pools, in->n_pools, sizeof(*in->pools), by_pool_name);
}

static ssize_t node_of(const struct overlay_input *in, const struct block_place *b)
{
	const struct node *const *found = in->n_nodes ? bsearch(b->node, in->nodes, in->n_nodes,
								sizeof(*in->nodes), by_node_name)
						      : NULL;

	return found ? found - in->nodes : -1;
}

static int add_trouble(struct making *m, const char *node, enum overlay_trouble trouble)
{
	struct overlay_plan *p = &m->plan;

	if (p->n_troubled == m->room) {
		size_t room = m->room ? m->room * 2 : 8;
		struct overlay_troubled *grown = reallocarray(p->troubled, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		p->troubled = grown;
		m->room = room;
	}
	p->troubled[p->n_troubled++] = (struct overlay_troubled){ node, trouble };
	return 0;
}

/* Of any pool: a tunnel's address may be of one that is no longer in the overlay. */
static void note_vtep_owner(struct making *m, ssize_t i, const struct prefix *block)
{
	const struct node_vtep *vtep = &m->in->nodes[i]->vtep;

	if (vtep->ipv4.family && prefix_contains(block, &vtep->ipv4))
		m->vtep_owned[i] |= 1U << OVERLAY_IPV4;
	if (vtep->ipv6.family && prefix_contains(block, &vtep->ipv6))
		m->vtep_owned[i] |= 1U << OVERLAY_IPV6;
}

static int find_holders(struct making *m)
{
	const struct overlay_input *in = m->in;
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->n_blocks; i++) {
		ssize_t node = node_of(in, in->blocks[i]);

		if (node >= 0)
			note_vtep_owner(m, node, &in->blocks[i]->block);
		if (!pool_of(in, in->blocks[i]))
			continue;
		if (node < 0)
			r = add_trouble(m, in->blocks[i]->node, OVERLAY_NO_RECORD);
		else
			m->has_blocks[node] = true;
	}
	return r;
}

/* --- remotes -------------------------------------------------------------------------------- */

static bool has_mac(const struct mac *mac)
{
	static const struct mac none;

	return memcmp(mac, &none, sizeof(none)) != 0;
}

/* The family over which two nodes meet, or AF_UNSPEC. */
static sa_family_t common_family(const struct overlay_input *in, const struct node *n)
{
	if (in->address[OVERLAY_IPV4].family && n->ipv4.address.family)
		return AF_INET;
	return in->address[OVERLAY_IPV6].family && n->ipv6.address.family ? AF_INET6 : AF_UNSPEC;
}

static struct kernel_remote remote_of(const struct node *n, sa_family_t family)
{
	return (struct kernel_remote){
		.underlay = family == AF_INET ? n->ipv4.address : n->ipv6.address,
		.node = { n->ipv4.address, n->ipv6.address },
		.mac = n->vtep.mac,
		.vtep = { n->vtep.ipv4, n->vtep.ipv6 },
	};
}

/*
 * A MAC or an address of another node would draw that node's traffic. An agent's MAC follows from
 * its name; a lease's is the client's own, which another program made.
 */
static int drop_false_ends(struct making *m)
{
	const struct overlay_input *in = m->in;
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->n_nodes; i++) {
		const struct node *n = in->nodes[i];
		const struct mac derived = vtep_mac(n->name);

		if (!m->has_blocks[i])
			continue;
		if (!node_is_lease(n) && has_mac(&n->vtep.mac) &&
		    memcmp(&n->vtep.mac, &derived, sizeof(derived)) != 0)
			r = add_trouble(m, n->name, OVERLAY_FOREIGN_MAC);
		else if ((n->vtep.ipv4.family && !(m->vtep_owned[i] & 1U << OVERLAY_IPV4)) ||
			 (n->vtep.ipv6.family && !(m->vtep_owned[i] & 1U << OVERLAY_IPV6)))
			r = add_trouble(m, n->name, OVERLAY_FOREIGN_ADDRESS);
		else
			continue;
		m->has_blocks[i] = false;
	}
	return r;
}

/* For finding those of one MAC: an agent keeps it before a lease, else the first by name. */
struct mac_owner {
	struct mac mac;
	bool lease;
	uint32_t node;
};

static int by_mac(const void *a, const void *b)
{
	const struct mac_owner *x = a, *y = b;
	int c = memcmp(&x->mac, &y->mac, sizeof(x->mac));

	c = c ?: x->lease - y->lease;
	return c ?: (x->node > y->node) - (x->node < y->node);
}

static int drop_equal_macs(struct making *m)
{
	const struct overlay_input *in = m->in;
	const struct mac own = vtep_mac(in->self);
	AUTO(free) struct mac_owner *v = calloc(in->n_nodes ?: 1, sizeof(*v));
	size_t n = 0;
	int r = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_nodes; i++)
		if (m->has_blocks[i] && has_mac(&in->nodes[i]->vtep.mac))
			v[n++] = (struct mac_owner){ in->nodes[i]->vtep.mac,
						     node_is_lease(in->nodes[i]), (uint32_t)i };
	qsort(v, n, sizeof(*v), by_mac);
	for (size_t i = 0; r == 0 && i < n; i++) {
		bool again = i && memcmp(&v[i].mac, &v[i - 1].mac, sizeof(own)) == 0;

		if (!again && memcmp(&v[i].mac, &own, sizeof(own)) != 0)
			continue;
		m->has_blocks[v[i].node] = false;
		r = add_trouble(m, in->nodes[v[i].node]->name, OVERLAY_SAME_MAC);
	}
	return r;
}

static int make_remotes(struct making *m)
{
	const struct overlay_input *in = m->in;
	struct overlay_plan *p = &m->plan;
	int r = 0;

	p->remotes = calloc(in->n_nodes ?: 1, sizeof(*p->remotes));
	p->names = calloc(in->n_nodes ?: 1, sizeof(*p->names));
	if (!p->remotes || !p->names)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < in->n_nodes; i++) {
		const struct node *n = in->nodes[i];
		sa_family_t family = common_family(in, n);

		if (!m->has_blocks[i])
			continue;
		if (!has_mac(&n->vtep.mac)) {
			r = add_trouble(m, n->name, OVERLAY_NO_TUNNEL);
		} else if (!family) {
			r = add_trouble(m, n->name, OVERLAY_APART);
		} else {
			p->names[p->n_remotes] = n->name;
			p->remotes[p->n_remotes++] = remote_of(n, family);
			m->remote_of[i] = (uint32_t)p->n_remotes;
		}
	}
	return r;
}

/*
 * Who tells no address of his tunnel's end, as holders of leases: the first one of his first block
 * serves for all of them. One for each block would do as well, but the kernel compares a new next
 * hop with every other on the device.
 */
static void borrow_vtep(struct kernel_remote *r, const struct prefix *block)
{
	struct address *vtep = &r->vtep[block->address.family == AF_INET6];

	if (vtep->family == AF_UNSPEC)
		*vtep = block->address;
}

static int by_block(const void *a, const void *b)
{
	return prefix_compare(&((const struct kernel_remote_block *)a)->block,
			      &((const struct kernel_remote_block *)b)->block);
}

static int make_blocks(struct making *m)
{
	const struct overlay_input *in = m->in;
	struct overlay_plan *p = &m->plan;

	p->blocks = calloc(in->n_blocks ?: 1, sizeof(*p->blocks));
	if (!p->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_blocks; i++) {
		const struct block_place *b = in->blocks[i];
		const struct overlay_pool *pool = pool_of(in, b);
		ssize_t node = pool ? node_of(in, b) : -1;

		if (node < 0 || !m->remote_of[node])
			continue;
		borrow_vtep(&p->remotes[m->remote_of[node] - 1], &b->block);
		p->blocks[p->n_blocks++] = (struct kernel_remote_block){
			.block = b->block,
			.remote = m->remote_of[node] - 1,
			.may_be_direct = pool->encapsulation == ENCAPSULATION_VXLAN_CROSS_SUBNET,
		};
	}
	/* Keys are sorted as text. What is in order here, no pass of the kernel's has to sort. */
	qsort(p->blocks, p->n_blocks, sizeof(*p->blocks), by_block);
	return 0;
}

/* --- tunnels -------------------------------------------------------------------------------- */

/* A node without a block here may send to us all the same. */
static bool is_met_over(const struct overlay_input *in, sa_family_t family)
{
	for (size_t i = 0; i < in->n_nodes; i++)
		if (strcmp(in->nodes[i]->name, in->self) != 0 && has_mac(&in->nodes[i]->vtep.mac) &&
		    common_family(in, in->nodes[i]) == family)
			return true;
	return false;
}

static void make_tunnel(struct making *m, int family)
{
	const struct overlay_input *in = m->in;
	const struct address *local = &in->address[family];
	struct kernel_tunnel *t = &m->plan.tunnels[m->plan.n_tunnels++];

	*t = (struct kernel_tunnel){
		.local = *local,
		.mac = vtep_mac(in->self),
		.vni = in->config->vni,
		.mtu = overlay_mtu(in->config, in->uplink_mtu[family], local->family),
		.port = (uint16_t)in->config->port,
		.checksum_offload = in->config->checksum_offload,
	};
	for (size_t i = 0; i < OVERLAY_FAMILIES; i++)
		if (in->tunnel[i].family)
			t->addresses[t->n_addresses++] = in->tunnel[i];
}

/* The second one only where a node is met over IPv6. */
static void make_tunnels(struct making *m)
{
	const struct overlay_input *in = m->in;
	bool four = in->address[OVERLAY_IPV4].family;

	if (four)
		make_tunnel(m, OVERLAY_IPV4);
	if (in->address[OVERLAY_IPV6].family && (!four || is_met_over(in, AF_INET6)))
		make_tunnel(m, OVERLAY_IPV6);
}

/* --- all of it ------------------------------------------------------------------------------ */

static int by_troubled_name(const void *a, const void *b)
{
	return strcmp(((const struct overlay_troubled *)a)->node,
		      ((const struct overlay_troubled *)b)->node);
}

/* A node without a record is named once, however many blocks it has. */
static void sort_troubled(struct overlay_plan *p)
{
	size_t kept = 0;

	if (!p->n_troubled)
		return;
	qsort(p->troubled, p->n_troubled, sizeof(*p->troubled), by_troubled_name);
	for (size_t i = 1; i < p->n_troubled; i++)
		if (strcmp(p->troubled[i].node, p->troubled[kept].node) != 0)
			p->troubled[++kept] = p->troubled[i];
	p->n_troubled = kept + 1;
}

void overlay_plan_done(struct overlay_plan *plan)
{
	free(plan->remotes);
	free(plan->names);
	free(plan->blocks);
	free(plan->troubled);
	*plan = (struct overlay_plan){ 0 };
}

int desired_overlay(const struct overlay_input *in, struct overlay_plan *ret)
{
	AUTO(free) uint32_t *remotes = calloc(in->n_nodes ?: 1, sizeof(*remotes));
	AUTO(free) bool *has_blocks = calloc(in->n_nodes ?: 1, sizeof(*has_blocks));
	AUTO(free) uint8_t *vtep_owned = calloc(in->n_nodes ?: 1, sizeof(*vtep_owned));
	struct making m = {
		.in = in,
		.remote_of = remotes,
		.has_blocks = has_blocks,
		.vtep_owned = vtep_owned,
	};
	int r = remotes && has_blocks && vtep_owned ? 0 : -ENOMEM;

	if (r == 0 && in->n_pools) {
		make_tunnels(&m);
		r = find_holders(&m);
		r = r ?: drop_false_ends(&m);
		r = r ?: drop_equal_macs(&m);
		r = r ?: make_remotes(&m);
		r = r ?: make_blocks(&m);
	}
	if (r < 0) {
		overlay_plan_done(&m.plan);
		return r;
	}
	sort_troubled(&m.plan);
	*ret = m.plan;
	return 0;
}
