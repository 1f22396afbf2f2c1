/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel and the firewall should have because of pools, blocks and pods. */
#include <errno.h>
#include <string.h>

#include "agent/addresses/ipam_state.h"

/* --- the kernel ----------------------------------------------------------------------------- */

struct kernel_pod ipam_kernel_pod(const struct attachment *a, struct address *room)
{
	for (size_t i = 0; i < a->addresses.n; i++)
		room[i] = a->addresses.v[i].address;
	return (struct kernel_pod){
		.link = a->link,
		.mac = a->mac,
		.addresses = room,
		.n_addresses = a->addresses.n,
		.route_localnet = a->route_localnet,
	};
}

static int desire_pods(const struct attachments *all, struct kernel_wants *ret)
{
	size_t n = 0, n_addresses = 0;
	struct address *addresses;

	for (size_t i = 0; i < all->n; i++) {
		if (all->v[i]->state != ATTACHMENT_ATTACHED)
			continue;
		n++;
		n_addresses += all->v[i]->addresses.n;
	}
	/* One piece of memory: the addresses lie behind the pods. */
	ret->pods = calloc(1, n * sizeof(*ret->pods) + n_addresses * sizeof(*addresses) + 1);
	if (!ret->pods)
		return -ENOMEM;
	addresses = (struct address *)(ret->pods + n);
	for (size_t i = 0; i < all->n; i++) {
		const struct attachment *a = all->v[i];

		if (a->state != ATTACHMENT_ATTACHED)
			continue;
		ret->pods[ret->n_pods++] = ipam_kernel_pod(a, addresses);
		addresses += a->addresses.n;
	}
	return 0;
}

/*
 * A block that is being given back holds nobody and may be another's in a moment; one whose key
 * vanished stays until it is known to be lost.
 */
static bool is_routed(const struct ipam *m, const struct own_block *b)
{
	const struct owned *o = ipam_owned_find(m, b->network, &b->prefix);

	return (b->state == BLOCK_OWNED || b->state == BLOCK_CLAIMING) && o && !o->copy.unrouted;
}

static int desire_blocks(const struct ipam *m, struct kernel_wants *ret)
{
	const struct blocks *own = allocator_blocks(m->allocator);

	ret->blocks = calloc(own->n ?: 1, sizeof(*ret->blocks));
	if (!ret->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < own->n; i++) {
		const struct own_block *b = own->v[i];

		if (!is_routed(m, b))
			continue;
		ret->ipv6 = ret->ipv6 || b->prefix.address.family == AF_INET6;
		ret->blocks[ret->n_blocks++] = (struct kernel_block){
			.block = b->prefix,
			.no_blackhole = b->prefix.length == address_bits(&b->prefix.address),
		};
	}
	return 0;
}

int ipam_routed_blocks(struct ipam *m, struct prefixes *ret)
{
	const struct blocks *own = allocator_blocks(m->allocator);
	struct prefix *v = calloc(own->n ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < own->n; i++)
		if (is_routed(m, own->v[i]))
			v[n++] = own->v[i]->prefix;
	*ret = (struct prefixes){ v, n };
	return 0;
}

int ipam_desire(struct ipam *m, struct kernel_wants *ret)
{
	int r = ipam_configure(m);

	*ret = (struct kernel_wants){ 0 };
	r = r ?: desire_pods(allocator_attachments(m->allocator), ret);
	r = r ?: desire_blocks(m, ret);
	if (r < 0) {
		free(TAKE(ret->pods));
		free(TAKE(ret->blocks));
		return r;
	}
	ret->export_table = m->inputs.export_table;
	return 0;
}

/* --- prefixes of pools ---------------------------------------------------------------------- */

int ipam_pool_prefixes(const struct ipam *m, struct prefix **ret, size_t *ret_n)
{
	const struct pool_views *views = allocator_pools(m->allocator);
	struct prefix *v = calloc(views->n ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < views->n; i++)
		if (views->v[i].pool)
			v[n++] = views->v[i].cidr;
	*ret = v;
	*ret_n = n;
	return 0;
}

int ipam_extent_prefixes(const struct ipam *m, struct prefix **ret, size_t *ret_n)
{
	const struct inputs *in = &m->inputs;
	struct prefix *pools = NULL, *v;
	size_t n;
	int r = ipam_pool_prefixes(m, &pools, &n);

	if (r < 0)
		return r;
	v = reallocarray(pools, n + in->n_extents + 1, sizeof(*v));
	if (!v) {
		free(pools);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->n_extents; i++)
		v[n++] = in->extents[i]->cidr;
	*ret = v;
	*ret_n = n;
	return 0;
}

/* --- the firewall --------------------------------------------------------------------------- */

/*
 * Prefixes that are inside, and those whose traffic is masqueraded when it leaves. A pool that was
 * edited or has vanished counts as it is really cut: by its extent, and by the files of our own
 * blocks, which remember what their pool said last.
 */
static void add(struct firewall_wants *w, const struct prefix *p, bool nat)
{
	w->pools.v[w->pools.n++] = *p;
	if (nat)
		w->nat.v[w->nat.n++] = *p;
}

static const struct pool *pool_named(const struct inputs *in, const char *name)
{
	for (size_t i = 0; i < in->n_pools; i++)
		if (strcmp(in->views[i].name, name) == 0)
			return in->views[i].pool;
	return NULL;
}

static void add_extent(const struct inputs *in, const struct extent *e, struct firewall_wants *w)
{
	const struct pool *pool = pool_named(in, e->pool);

	if (pool ? pool->routed : !ipam_unrouted_at_first(e->network))
		add(w, &e->cidr, pool && pool->nat_outgoing);
}

int ipam_desire_firewall(struct ipam *m, struct firewall_wants *ret)
{
	const struct inputs *in = &m->inputs;
	int r = ipam_configure(m);
	size_t room = in->n_pools + in->n_extents + m->owned.n + 1;
	struct firewall_wants w = {
		.nat.v = r < 0 ? NULL : calloc(room, sizeof(struct prefix)),
		.pools.v = r < 0 ? NULL : calloc(room, sizeof(struct prefix)),
	};

	if (!w.nat.v || !w.pools.v) {
		free(w.nat.v);
		free(w.pools.v);
		return r ?: -ENOMEM;
	}
	for (size_t i = 0; i < in->n_pools; i++) {
		const struct pool *pool = in->views[i].pool;

		if (pool && pool->routed)
			add(&w, &pool->cidr, pool->nat_outgoing);
	}
	for (size_t i = 0; i < in->n_extents; i++)
		add_extent(in, in->extents[i], &w);
	for (size_t i = 0; i < m->owned.n; i++) {
		const struct block_copy *copy = &m->owned.v[i]->copy;

		/* Blocks are many; those of a known pool say nothing new. */
		if (!copy->unrouted && !pool_named(in, copy->pool))
			add(&w, &copy->cidr, copy->nat);
	}
	ret->nat = w.nat;
	ret->pools = w.pools;
	return 0;
}
