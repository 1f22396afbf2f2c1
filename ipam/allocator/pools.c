/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipam/allocator/ranges.h"

static int by_name(const void *x, const void *y)
{
	const struct pool_view *a = x, *b = y;

	return strcmp(a->name, b->name);
}

void pool_views_done(struct pool_views *views)
{
	for (size_t i = 0; i < views->n; i++) {
		spans_done(&views->v[i].allowed);
		spans_done(&views->v[i].usable);
	}
	free(views->v);
	*views = (struct pool_views){ 0 };
}

struct pool_view *pool_views_find(const struct pool_views *views, const char *name)
{
	return array_find(views->v, views->n, x, strcmp(x->name, name));
}

bool pool_view_serves(const struct pool_view *v)
{
	return v->pool && !v->wrong.text[0] && !v->pool->disabled && v->selected;
}

int pool_view_check(const struct pool_view *v, struct err *err)
{
	if (v->wrong.text[0])
		return err_set(err, -EPERM, "pool %s is not used: %s", v->name, v->wrong.text);
	if (v->pool->disabled)
		return err_set(err, -EPERM, "pool %s is disabled", v->name);
	if (!v->selected)
		return err_set(err, -EPERM, "pool %s is not for this node: nodeSelector is %s",
			       v->name, v->pool->node_selector.text);
	return 0;
}

const char *pool_view_show(const struct pool_view *v, char *text)
{
	const unsigned bits = address_bits(&v->cidr.address) - v->cidr.length;
	char cidr[PREFIX_TEXT];

	prefix_print(&v->cidr, cidr);
	/* "18446744073709551616" has 20 digits; more is shown as a power of two. */
	if (bits < 64)
		snprintf(text, POOL_SHOW_TEXT, "pool %s (%s, %llu address%s)", v->name, cidr,
			 1ULL << bits, bits ? "es" : "");
	else
		snprintf(text, POOL_SHOW_TEXT, "pool %s (%s, 2^%u addresses)", v->name, cidr, bits);
	return text;
}

/* --- what may be given ---------------------------------------------------------------------- */

static int remove_address(struct spans *s, const struct address *a)
{
	const address_count n = number_of(a);

	return spans_remove(s, (struct span){ n, n });
}

int exclude_prefixes(struct spans *s, const struct prefixes *exclude, sa_family_t family)
{
	for (size_t i = 0; i < exclude->n; i++)
		if (exclude->v[i].address.family == family &&
		    spans_remove(s, span_of(&exclude->v[i])) < 0)
			return -ENOMEM;
	return 0;
}

static struct span given_range(const struct pool *pool, const struct prefix *cidr)
{
	const struct address first = prefix_first(&pool->cidr), last = prefix_last(&pool->cidr);

	/* The default is the whole pool, which is the whole extent where that is another. */
	if (address_compare(&pool->range_start, &first) == 0 &&
	    address_compare(&pool->range_end, &last) == 0)
		return span_of(cidr);
	return (struct span){ number_of(&pool->range_start), number_of(&pool->range_end) };
}

static int remove_edges(const struct prefix *cidr, struct spans *s)
{
	const struct address first = prefix_first(cidr), last = prefix_last(cidr);

	/* As with point-to-point links: of two addresses or one, none can be spared. */
	if (address_bits(&first) - cidr->length < 2)
		return 0;
	return remove_address(s, &first) < 0 || remove_address(s, &last) < 0 ? -ENOMEM : 0;
}

static int find_allowed(struct pool_view *v)
{
	const struct pool *pool = v->pool;
	const sa_family_t family = v->cidr.address.family;
	AUTO_DONE(spans_done) struct spans range = { 0 }, whole = { 0 };
	const struct span given = given_range(pool, &v->cidr);

	/* The other family's numbers mean nothing here: a pool made anew over an old extent. */
	if (pool->cidr.address.family == family && spans_add(&range, given) < 0)
		return -ENOMEM;
	if (spans_add(&whole, span_of(&v->cidr)) < 0 ||
	    spans_intersect(&range, &whole, &v->allowed) < 0)
		return -ENOMEM;
	if (exclude_prefixes(&v->allowed, &pool->exclude, family) < 0)
		return -ENOMEM;
	if (pool->reserve_edges && remove_edges(&v->cidr, &v->allowed) < 0)
		return -ENOMEM;
	if (pool->gateway.family == family && remove_address(&v->allowed, &pool->gateway) < 0)
		return -ENOMEM;
	return 0;
}

int blocks_of_addresses(const struct spans *addresses, const struct prefix *cidr,
			uint8_t block_size, struct spans *ret)
{
	const address_count base = span_of(cidr).first;
	const unsigned shift = address_bits(&cidr->address) - block_size;
	struct spans blocks = { 0 };

	for (size_t i = 0; i < addresses->n; i++) {
		const address_count first = addresses->v[i].first - base;
		const address_count last = addresses->v[i].last - base;
		/* ::/0 in one block: shifting by all 128 bits is not defined. */
		struct span span = shift < 128 ? (struct span){ first >> shift, last >> shift }
					       : (struct span){ 0, 0 };

		if (spans_add(&blocks, span) < 0) {
			spans_done(&blocks);
			return -ENOMEM;
		}
	}
	spans_done(ret);
	*ret = blocks;
	return 0;
}

/*
 * Where the node has ranges of its own in this pool, only blocks that lie in them can be claimed. A
 * range that is smaller than a block would be shared with the next node: nothing is claimed for it.
 */
static int keep_to_pod_cidrs(const struct prefixes *cidrs, struct pool_view *v)
{
	AUTO_DONE(spans_done) struct spans own = { 0 }, blocks = { 0 };
	bool any = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < cidrs->n; i++) {
		const struct prefix *p = &cidrs->v[i];
		char text[PREFIX_TEXT];

		if (!prefix_contains_prefix(&v->cidr, p))
			continue;
		any = true;
		if (p->length <= v->block_size)
			r = spans_add(&own, span_of(p));
		else
			err_set(&v->note, 0,
				"pool %s: this node's pod CIDR %s is smaller than a block (/%u): "
				"no "
				"block is claimed for it; the pool needs blockSize=%u or more",
				v->name, prefix_print(p, text), v->block_size, p->length);
	}
	if (r < 0 || !any)
		return r;
	r = blocks_of_addresses(&own, &v->cidr, v->block_size, &blocks);
	return r ?: spans_intersect(&v->usable, &blocks, &v->usable);
}

/* --- one pool ------------------------------------------------------------------------------- */

static const struct extent *find_extent(const struct pools_input *in, const struct pool *pool)
{
	for (size_t i = 0; i < in->n_extents; i++)
		if (strcmp(in->extents[i]->pool, pool->name) == 0 &&
		    strcmp(in->extents[i]->network, pool->network) == 0)
			return in->extents[i];
	return NULL;
}

static int view_one(const struct pools_input *in, const struct pool_input *from,
		    struct pool_view *v)
{
	const struct pool *pool = from->pool;

	*v = (struct pool_view){ .name = from->name, .pool = pool, .created = from->created };
	if (!pool) {
		err_set(&v->wrong, 0, "%s", from->invalid ?: "its record is not valid");
		return 0;
	}
	v->network = pool->network;
	v->extent = find_extent(in, pool);
	v->cidr = v->extent ? v->extent->cidr : pool->cidr;
	v->block_size = (uint8_t)(v->extent ? v->extent->block_size : pool->block_size);
	v->selected = selector_selects(pool->node_selector.parsed, &in->labels, in->node);
	if (find_allowed(v) < 0)
		return -ENOMEM;
	if (v->extent)
		pool_differs_from_extent(pool, v->extent, &v->note);
	if (blocks_of_addresses(&v->allowed, &v->cidr, v->block_size, &v->usable) < 0)
		return -ENOMEM;
	return strcmp(v->network, "default") == 0 ? keep_to_pod_cidrs(&in->pod_cidrs, v) : 0;
}

/* --- conflicts between them ----------------------------------------------------------------- */

/* The pool as it counts: one whose extent differs claims only what the extent says. */
static struct pool as_cut(const struct pool_view *v)
{
	return (struct pool){ .name = v->name, .network = v->network, .cidr = v->cidr };
}

static bool is_older(const struct pool_view *a, const struct pool_view *b)
{
	if (!a->extent != !b->extent)
		return a->extent;
	if (a->created != b->created)
		return a->created < b->created;
	return strcmp(a->name, b->name) < 0;
}

static void find_conflict(const struct pools_input *in, const struct pool_views *views,
			  struct pool_view *v)
{
	const struct pool self = as_cut(v);

	/* With an extent of its own it was checked when that was made, and nobody can undo it. */
	for (size_t i = 0; !v->extent && i < in->n_extents; i++)
		if (pool_conflicts_extent(&self, in->extents[i], &v->wrong) < 0)
			return;
	for (size_t i = 0; i < views->n; i++) {
		const struct pool_view *other = &views->v[i];
		const struct pool their = as_cut(other);

		if (other->pool && other != v && is_older(other, v) && !other->wrong.text[0] &&
		    pool_conflicts_pool(&self, &their, &v->wrong) < 0)
			return;
	}
}

/* From the oldest on: one that is out itself keeps nobody else out. */
static int find_conflicts(const struct pools_input *in, struct pool_views *views)
{
	AUTO(free) struct pool_view **order = calloc(views->n ?: 1, sizeof(struct pool_view *));
	size_t n = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < views->n; i++) {
		size_t at = n;

		if (!views->v[i].pool)
			continue;
		for (; at > 0 && is_older(&views->v[i], order[at - 1]); at--)
			order[at] = order[at - 1];
		order[at] = &views->v[i];
		n++;
	}
	for (size_t i = 0; i < n; i++)
		find_conflict(in, views, order[i]);
	return 0;
}

int pools_view(const struct pools_input *in, struct pool_views *ret)
{
	struct pool_views views = { .v = calloc(in->n_pools ?: 1, sizeof(*views.v)) };
	int r = views.v ? 0 : -ENOMEM;

	while (r == 0 && views.n < in->n_pools) {
		views.n++;
		r = view_one(in, &in->pools[views.n - 1], &views.v[views.n - 1]);
	}
	if (r == 0) {
		qsort(views.v, views.n, sizeof(*views.v), by_name);
		r = find_conflicts(in, &views);
	}
	if (r < 0) {
		pool_views_done(&views);
		return r;
	}
	*ret = views;
	return 0;
}

/* --- the choice ----------------------------------------------------------------------------- */

void choices_done(struct choices *c)
{
	free(c->ipv4.v);
	free(c->ipv6.v);
	*c = (struct choices){ 0 };
}

static struct choice *choice_of(struct choices *c, const struct pool_view *v)
{
	return v->cidr.address.family == AF_INET ? &c->ipv4 : &c->ipv6;
}

static bool matches(const struct texts *patterns, const char *namespace)
{
	for (size_t i = 0; i < patterns->n; i++) {
		const char *pattern = patterns->v[i];
		size_t len = strlen(pattern);

		if (len && pattern[len - 1] == '*' ? strncmp(pattern, namespace, len - 1) == 0
						   : strcmp(pattern, namespace) == 0)
			return true;
	}
	return false;
}

int pool_fence_check(const struct pool_views *views, const struct pool_view *v,
		     const char *namespace, struct err *err)
{
	if (v->pool->strict)
		return matches(&v->pool->namespaces, namespace)
			       ? 0
			       : err_set(err, -EPERM,
					 "pool %s is strict, and its namespaces do not include "
					 "\"%s\"",
					 v->name, namespace);
	for (size_t i = 0; i < views->n; i++) {
		const struct pool_view *fence = &views->v[i];

		if (fence->pool && fence->pool->strict && strcmp(fence->network, v->network) == 0 &&
		    matches(&fence->pool->namespaces, namespace))
			return err_set(err, -EPERM,
				       "namespace \"%s\" belongs to the strict pool %s, so it "
				       "gets no address of pool %s",
				       namespace, fence->name, v->name);
	}
	return 0;
}

static int choose_named(const struct pool_views *views, const struct texts *named,
			const char *namespace, struct choices *ret, struct err *err)
{
	for (size_t i = 0; i < named->n; i++) {
		const struct pool_view *v = pool_views_find(views, named->v[i]);
		struct choice *c;
		int r;

		if (!v)
			return err_set(err, -ENOENT, "there is no pool %s", named->v[i]);
		r = pool_view_check(v, err) ?: pool_fence_check(views, v, namespace, err);
		if (r < 0)
			return -ENOENT;
		c = choice_of(ret, v);
		c->v[c->n++] = v;
	}
	return 0;
}

/* Pools of secondary networks are only for those who ask for them. */
static bool is_usual(const struct pool_view *v)
{
	return pool_view_serves(v) && strcmp(v->network, "default") == 0 &&
	       strcmp(v->pool->origin, RANGE_ORIGIN) != 0;
}

static int by_order(const void *x, const void *y)
{
	const struct pool_view *const *a = x, *const *b = y;

	return pool_order((*a)->pool, (*b)->pool);
}

/* One family: those whose namespaces match, or else those that name none. */
static void choose_usual(const struct pool_views *views, const char *namespace, sa_family_t family,
			 struct choice *ret)
{
	for (int preferred = 1; preferred >= 0 && ret->n == 0; preferred--)
		for (size_t i = 0; i < views->n; i++) {
			const struct pool_view *v = &views->v[i];

			if (!is_usual(v) || v->cidr.address.family != family ||
			    pool_fence_check(views, v, namespace, NULL) < 0)
				continue;
			if (preferred ? matches(&v->pool->namespaces, namespace)
				      : v->pool->namespaces.n == 0)
				ret->v[ret->n++] = v;
		}
	qsort(ret->v, ret->n, sizeof(*ret->v), by_order);
}

/* Why not: the reason itself when there is but one pool. */
static int none_fits(const struct pool_views *views, const char *namespace, struct err *err)
{
	struct err why;

	if (views->n == 0)
		return err_set(err, -ENOENT, "there is no pool");
	if (views->n == 1 && pool_view_check(&views->v[0], &why) < 0)
		return err_set(err, -ENOENT, "no pool fits: %s", why.text);
	return err_set(err, -ENOENT,
		       "no pool fits: none of %zu is enabled, valid, for this node, on network "
		       "default and for namespace \"%s\"",
		       views->n, namespace);
}

int choose_pools(const struct pool_views *views, const struct texts *named, const char *namespace,
		 struct choices *ret, struct err *err)
{
	const size_t most = (named->n > views->n ? named->n : views->n) + 1;
	struct choices c = { { calloc(most, sizeof(void *)), 0 },
			     { calloc(most, sizeof(void *)), 0 } };
	int r = c.ipv4.v && c.ipv6.v ? 0 : -ENOMEM;

	if (r == 0 && named->n) {
		r = choose_named(views, named, namespace, &c, err);
	} else if (r == 0) {
		choose_usual(views, namespace, AF_INET, &c.ipv4);
		choose_usual(views, namespace, AF_INET6, &c.ipv6);
		if (c.ipv4.n + c.ipv6.n == 0)
			r = none_fits(views, namespace, err);
	}
	if (r < 0) {
		choices_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}
