/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"

/* --- the pool that is made ------------------------------------------------------------------ */

/* "10.5.0.0-16", "fd00-1---64": what a name may hold of a prefix. */
static const char *print_range(const struct prefix *p, char *text)
{
	prefix_print_key(p, text);
	for (char *c = text; *c; c++)
		if (*c == ':')
			*c = '-';
	return text;
}

static void print_name(const char *network, const struct prefix *p, char *text)
{
	char range[PREFIX_TEXT], hash[HASH_TEXT];
	int room = NAME_TEXT - 1 - 1 - (int)strlen(print_range(p, range));

	if ((int)strlen(network) <= room)
		snprintf(text, NAME_TEXT, "%.*s-%s", room, network, range);
	else
		snprintf(text, NAME_TEXT, "%.*s-%.8s-%s", room - 9, network,
			 hash_print(HASH_TEXTS(network), hash), range);
}

static uint32_t usual_size(const struct prefix *p)
{
	uint32_t size = p->address.family == AF_INET ? 26 : 122;

	if (size > p->length + (uint32_t)POOL_BLOCKS_MAX_BITS)
		size = p->length + (uint32_t)POOL_BLOCKS_MAX_BITS;
	return size > p->length ? size : p->length;
}

static struct range_pool recipe(const struct range_request *range, const struct prefix *part)
{
	uint32_t size = range->slice_size;
	struct range_pool p = { .cidr = *part,
				.reserve_edges = part->length == range->range.length };

	/* A part of a grown range may be smaller than a slice. */
	if (size == 0)
		size = usual_size(part);
	p.block_size = size > part->length ? size : part->length;
	snprintf(p.network, sizeof(p.network), "%s", range->network);
	print_name(range->network, part, p.name);
	return p;
}

struct pool range_pool_record(const struct range_pool *p)
{
	return (struct pool){
		.name = p->name,
		.network = p->network,
		.cidr = p->cidr,
		.block_size = p->block_size,
		.prefix = POOL_PREFIX_POOL,
		.range_start = prefix_first(&p->cidr),
		.range_end = prefix_last(&p->cidr),
		.reserve_edges = p->reserve_edges,
		.announce = true,
		.cooldown_seconds = 60,
		.priority = POOL_PRIORITY,
		.origin = RANGE_ORIGIN,
	};
}

/* --- what lies there already ---------------------------------------------------------------- */

/* A pool, or an extent whose pool record is gone. */
struct part {
	struct prefix cidr;
	const struct pool_view *view;
	const struct extent *extent; /* without a view */
};

struct parts {
	struct part *v;
	size_t n;
};

static int by_cidr(const void *x, const void *y)
{
	const struct part *a = x, *b = y;

	return prefix_compare(&a->cidr, &b->cidr);
}

static bool counts(const struct pool_view *v)
{
	return v->pool && !v->wrong.text[0];
}

static bool is_orphan(const struct pool_views *views, const struct extent *e)
{
	const struct pool_view *v = pool_views_find(views, e->pool);

	return !v || v->extent != e;
}

static int find_parts(const struct pool_views *views, const struct extent *const *extents,
		      size_t n_extents, const struct range_request *range, struct parts *ret)
{
	ret->v = calloc(views->n + n_extents + 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	for (size_t i = 0; i < views->n; i++) {
		const struct pool_view *v = &views->v[i];

		if (counts(v) && strcmp(v->network, range->network) == 0 &&
		    prefix_overlaps(&v->cidr, &range->range))
			ret->v[ret->n++] = (struct part){ v->cidr, v, NULL };
	}
	for (size_t i = 0; i < n_extents; i++) {
		const struct extent *e = extents[i];

		if (strcmp(e->network, range->network) == 0 && is_orphan(views, e) &&
		    prefix_overlaps(&e->cidr, &range->range))
			ret->v[ret->n++] = (struct part){ e->cidr, NULL, e };
	}
	qsort(ret->v, ret->n, sizeof(*ret->v), by_cidr);
	return 0;
}

static const char *part_name(const struct part *p)
{
	return p->view ? p->view->name : p->extent->pool;
}

static int refuse_size(const struct range_request *range, const struct part *p, struct err *err)
{
	char asked[PREFIX_TEXT], live[PREFIX_TEXT];

	return err_set(err, -EEXIST,
		       "range %s on network %s does not fit pool %s (%s), which is there already: "
		       "another size of a live range is refused",
		       prefix_print(&range->range, asked), range->network, part_name(p),
		       prefix_print(&p->cidr, live));
}

/* One part that is just the range. */
static int check_slices(const struct range_request *range, const struct part *p, struct err *note,
			struct err *err)
{
	const uint32_t size = p->view ? p->view->block_size : p->extent->block_size;

	if (range->slice_size == 0 || range->slice_size == size)
		return 0;
	if (size != usual_size(&p->cidr))
		return err_set(err, -EEXIST,
			       "slices of /%u do not fit pool %s, which is cut into /%u: another "
			       "size of a live range is refused",
			       range->slice_size, part_name(p), size);
	err_set(note, 0,
		"pool %s keeps its blocks of /%u: slices of /%u were asked for when it was there "
		"already",
		part_name(p), size, range->slice_size);
	return 0;
}

static int check_parts(const struct range_request *range, const struct parts *parts,
		       struct err *note, struct err *err)
{
	if (parts->n == 1 && prefix_compare(&parts->v[0].cidr, &range->range) == 0)
		return check_slices(range, &parts->v[0], note, err);
	for (size_t i = 0; i < parts->n; i++) {
		const struct part *p = &parts->v[i];

		/* Grown over a pool that an operator made for something else? */
		if (p->cidr.length <= range->range.length ||
		    (p->view && strcmp(p->view->pool->origin, RANGE_ORIGIN) != 0))
			return refuse_size(range, p, err);
	}
	return 0;
}

/* --- what is missing ------------------------------------------------------------------------ */

static bool is_free(const struct parts *parts, const struct prefix *p)
{
	for (size_t i = 0; i < parts->n; i++)
		if (prefix_overlaps(&parts->v[i].cidr, p))
			return false;
	return true;
}

/*
 * The largest prefix around the address that no part touches. These prefixes are the same for
 * everybody who sees the same parts, and making one changes none of the others.
 */
static struct prefix free_part(const struct range_request *range, const struct parts *parts,
			       const struct address *a)
{
	struct prefix p = prefix_of(a, range->range.length);

	while (!is_free(parts, &p))
		p = prefix_of(a, (uint8_t)(p.length + 1));
	return p;
}

/* The wanted address, or the first one that lies in no part; -ENOENT if there is none. */
static int find_gap(const struct range_request *range, const struct parts *parts,
		    const struct address *wanted, struct address *ret)
{
	AUTO_DONE(spans_done) struct spans left = { 0 };

	if (spans_add(&left, span_of(&range->range)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < parts->n; i++)
		if (spans_remove(&left, span_of(&parts->v[i].cidr)) < 0)
			return -ENOMEM;
	if (wanted && !spans_contain(&left, number_of(wanted)))
		return -ENOENT;
	if (left.n == 0)
		return -ENOENT;
	*ret = wanted ? *wanted : address_of(range->range.address.family, left.v[0].first);
	return 0;
}

static int check_name(const struct pool_views *views, const struct range_pool *make,
		      struct err *err)
{
	const struct pool_view *v = pool_views_find(views, make->name);
	char cidr[PREFIX_TEXT];

	if (!v)
		return 0;
	return err_set(err, -EEXIST, "range %s on network %s needs the name %s, but that pool %s%s",
		       prefix_print(&make->cidr, cidr), make->network, make->name,
		       v->wrong.text[0] ? "is not used: " : "is another one", v->wrong.text);
}

/* The pool of an extent is made again just as it is cut, or else a gap is filled. */
static int plan_more(const struct pool_views *views, const struct range_request *range,
		     const struct parts *parts, const struct address *wanted,
		     struct range_plan *plan, struct err *err)
{
	struct address gap;
	int r;

	for (size_t i = 0; i < parts->n && !plan->more; i++) {
		const struct part *p = &parts->v[i];

		if (p->view || (wanted && !prefix_contains(&p->cidr, wanted)))
			continue;
		plan->more = true;
		plan->make = recipe(range, &p->cidr);
		plan->make.block_size = p->extent->block_size;
		snprintf(plan->make.name, sizeof(plan->make.name), "%s", p->extent->pool);
	}
	if (!plan->more) {
		const int found = find_gap(range, parts, wanted, &gap);

		if (found == -ENOENT)
			return 0;
		if (found < 0)
			return found;
		const struct prefix part = free_part(range, parts, &gap);

		plan->more = true;
		plan->make = recipe(range, &part);
	}
	r = check_name(views, &plan->make, err);
	/* What serves already goes on serving. */
	if (r < 0 && plan->n_pools) {
		plan->more = false;
		err_set(&plan->note, 0, "%s", err ? err->text : "");
		r = 0;
	}
	return r;
}

/* --- the plan ------------------------------------------------------------------------------- */

void range_plan_done(struct range_plan *plan)
{
	free(plan->pools);
	*plan = (struct range_plan){ 0 };
}

/* All of it is there, and none serves. */
static int refuse_idle(const struct parts *parts, const struct address *wanted, struct err *err)
{
	for (size_t i = 0; i < parts->n; i++) {
		const struct part *p = &parts->v[i];

		if (p->view && (!wanted || prefix_contains(&p->cidr, wanted)) &&
		    pool_view_check(p->view, err) < 0)
			return -EEXIST;
	}
	return err_set(err, -EEXIST, "no pool of this range serves");
}

static int make_plan(const struct pool_views *views, const struct range_request *range,
		     const struct parts *parts, const struct address *wanted,
		     struct range_plan *plan, struct err *err)
{
	int r = check_parts(range, parts, &plan->note, err);

	if (r < 0)
		return r;
	plan->pools = calloc(parts->n + 1, sizeof(const struct pool_view *));
	if (!plan->pools)
		return -ENOMEM;
	for (size_t i = 0; i < parts->n; i++)
		if (parts->v[i].view && pool_view_serves(parts->v[i].view))
			plan->pools[plan->n_pools++] = parts->v[i].view;
	r = plan_more(views, range, parts, wanted, plan, err);
	if (r < 0 || plan->n_pools || plan->more)
		return r;
	return refuse_idle(parts, wanted, err);
}

int range_plan(const struct pool_views *views, const struct extent *const *extents,
	       size_t n_extents, const struct range_request *range, const struct address *wanted,
	       struct range_plan *ret, struct err *err)
{
	struct range_plan plan = { 0 };
	struct parts parts = { 0 };
	int r = find_parts(views, extents, n_extents, range, &parts);

	if (r == 0)
		r = make_plan(views, range, &parts, wanted, &plan, err);
	free(parts.v);
	if (r < 0) {
		range_plan_done(&plan);
		return r;
	}
	*ret = plan;
	return 0;
}
