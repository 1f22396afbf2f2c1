/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools as the firewall sees them: prefixes that are inside, and those whose traffic is masqueraded
 * when it leaves. A pool that was edited or has vanished counts as it is really cut: by its
 * extent, and by the files of our own blocks, which remember what their pool said last.
 */
#include "agent/addresses/ipam_parts.h"

#include <errno.h>
#include <string.h>

static void add(struct firewall_wants *w, const struct prefix *p, bool nat)
{
	w->pools.v[w->pools.n++] = *p;
	if (nat)
		w->nat.v[w->nat.n++] = *p;
	w->check_sources = w->check_sources || p->address.family == AF_INET6;
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
	size_t room = in->n_pools + in->n_extents + m->n_owned + 1;
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
	for (size_t i = 0; i < m->n_owned; i++) {
		const struct block_copy *copy = &m->owned[i]->copy;

		/* Blocks are many; those of a known pool say nothing new. */
		if (!copy->unrouted && !pool_named(in, copy->pool))
			add(&w, &copy->cidr, copy->nat);
	}
	*ret = w;
	return 0;
}
