/* SPDX-License-Identifier: Apache-2.0 */
/* What a request wants: for each address the pools that may give it, and its limits. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ipam/allocator/allocator_parts.h"

int assign_refuse(struct assign_result *result, enum cni_code code, const char *fmt, ...)
{
	va_list args;

	result->verdict = ASSIGN_REFUSED;
	result->code = code;
	va_start(args, fmt);
	vsnprintf(result->why.text, sizeof(result->why.text), fmt, args);
	va_end(args);
	return -EPERM;
}

void wants_done(struct wants *wants)
{
	for (size_t i = 0; i < wants->n; i++) {
		free(wants->v[i].pools);
		range_plan_done(&wants->v[i].plan);
		spans_done(&wants->v[i].limits);
	}
	free(wants->v);
	*wants = (struct wants){ 0 };
}

/* --- limits that bind this request only ----------------------------------------------------- */

static int remove_all(struct spans *s, const struct prefixes *exclude, sa_family_t family)
{
	for (size_t i = 0; i < exclude->n; i++)
		if (exclude->v[i].address.family == family &&
		    spans_remove(s, span_of(&exclude->v[i])) < 0)
			return -ENOMEM;
	return 0;
}

static int remove_one(struct spans *s, address_count n)
{
	return spans_remove(s, (struct span){ n, n });
}

/* Start to end, without the range's own first and last address (unless it has but two). */
static int limit_to_range(struct spans *s, const struct range_request *r)
{
	const struct span whole = span_of(&r->range);
	const struct span span = { r->start.family ? number_of(&r->start) : whole.first,
				   r->end.family ? number_of(&r->end) : whole.last };

	if (spans_add(s, span) < 0)
		return -ENOMEM;
	if (whole.last - whole.first > 1 &&
	    (remove_one(s, whole.first) < 0 || remove_one(s, whole.last) < 0))
		return -ENOMEM;
	if (r->gateway.family && remove_one(s, number_of(&r->gateway)) < 0)
		return -ENOMEM;
	return remove_all(s, &r->exclude, r->range.address.family);
}

static int set_limits(struct want *w, sa_family_t family, const struct prefixes *exclude)
{
	const struct prefix all = { .address.family = family };

	if (!w->range && exclude->n == 0)
		return 0;
	w->limited = true;
	if (w->range ? limit_to_range(&w->limits, w->range) < 0
		     : spans_add(&w->limits, span_of(&all)) < 0)
		return -ENOMEM;
	return remove_all(&w->limits, exclude, family);
}

/* --- from ranges ---------------------------------------------------------------------------- */

/* Each requested address goes to the first range that has it and no other address yet. */
static int match_addresses(const struct assign_request *request, struct wants *wants,
			   struct assign_result *result)
{
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < request->addresses.n; i++) {
		const struct address *a = &request->addresses.v[i];
		struct want *w = wants->v;

		while (w < wants->v + wants->n &&
		       (w->address || !prefix_contains(&w->range->range, a)))
			w++;
		if (w == wants->v + wants->n)
			return assign_refuse(result, CNI_CODE_ADDRESS_IN_USE,
					     "%s lies in none of the ranges",
					     address_print(a, text));
		w->address = a;
	}
	return 0;
}

static int plan_range(const struct allocator *a, struct want *w, struct assign_result *result)
{
	struct err err;
	int r = range_plan(&a->views, a->extents, a->n_extents, w->range, w->address, &w->plan,
			   &err);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return assign_refuse(result, CNI_CODE_NO_ADDRESS, "%s", err.text);
	if (w->plan.note.text[0])
		result->note = w->plan.note;
	w->pools = TAKE(w->plan.pools);
	w->n_pools = w->plan.n_pools;
	return 0;
}

static int wants_of_ranges(const struct allocator *a, const struct assign_request *request,
			   struct wants *wants, struct assign_result *result)
{
	int r;

	for (size_t i = 0; i < request->ranges.n; i++)
		wants->v[wants->n++].range = &request->ranges.v[i];
	r = match_addresses(request, wants, result);
	for (size_t i = 0; r == 0 && i < wants->n; i++) {
		r = plan_range(a, &wants->v[i], result);
		if (r == 0)
			r = set_limits(&wants->v[i], wants->v[i].range->range.address.family,
				       &request->exclude);
	}
	return r;
}

/* --- from addresses ------------------------------------------------------------------------- */

/* The named pools, or any on network "default": of one network only one has the address. */
static const struct pool_view *pool_with(const struct allocator *a,
					 const struct assign_request *request,
					 const struct address *address)
{
	for (size_t i = 0; i < request->pools.n; i++) {
		const struct pool_view *v = pool_views_find(&a->views, request->pools.v[i]);

		if (v && v->pool && prefix_contains(&v->cidr, address))
			return v;
	}
	for (size_t i = 0; request->pools.n == 0 && i < a->views.n; i++) {
		const struct pool_view *v = &a->views.v[i];

		if (v->pool && !v->wrong.text[0] && strcmp(v->network, "default") == 0 &&
		    prefix_contains(&v->cidr, address))
			return v;
	}
	return NULL;
}

static int want_address(const struct allocator *a, const struct assign_request *request,
			const struct address *address, struct wants *wants,
			struct assign_result *result)
{
	struct want *w = &wants->v[wants->n++];
	const struct pool_view *v = pool_with(a, request, address);
	char text[ADDRESS_TEXT];
	struct err err;

	address_print(address, text);
	if (!v)
		return assign_refuse(result, CNI_CODE_ADDRESS_IN_USE,
				     "%s lies in none of the pools%s", text,
				     request->pools.n ? " that were asked for" : "");
	if (pool_view_check(v, &err) < 0)
		return assign_refuse(result, CNI_CODE_ADDRESS_IN_USE, "%s cannot be given: %s",
				     text, err.text);
	for (struct want *other = wants->v; other < w; other++)
		if (other->n_pools && other->pools[0] == v)
			return assign_refuse(result, CNI_CODE_CONFIG,
					     "more than one address is asked for in pool %s",
					     v->name);
	w->pools = malloc(sizeof(const struct pool_view *));
	if (!w->pools)
		return -ENOMEM;
	w->pools[w->n_pools++] = v;
	w->address = address;
	return set_limits(w, address->family, &request->exclude);
}

static int wants_of_addresses(const struct allocator *a, const struct assign_request *request,
			      struct wants *wants, struct assign_result *result)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < request->addresses.n; i++)
		r = want_address(a, request, &request->addresses.v[i], wants, result);
	return r;
}

/* --- from pools ----------------------------------------------------------------------------- */

static int wants_of_pools(const struct allocator *a, const struct assign_request *request,
			  struct wants *wants, struct assign_result *result)
{
	struct choices c;
	struct err err;
	int r = choose_pools(&a->views, &request->pools, request->namespace, &c, &err);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return assign_refuse(result, CNI_CODE_NO_ADDRESS, "%s", err.text);
	for (size_t i = 0; i < 2; i++) {
		struct choice *choice = i ? &c.ipv6 : &c.ipv4;
		struct want *w = &wants->v[wants->n];

		if (choice->n == 0)
			continue;
		wants->n++;
		w->n_pools = choice->n;
		w->pools = TAKE(choice->v);
		if (set_limits(w, i ? AF_INET6 : AF_INET, &request->exclude) < 0)
			r = -ENOMEM;
	}
	choices_done(&c);
	return r;
}

int find_wants(const struct allocator *a, const struct assign_request *request, struct wants *ret,
	       struct assign_result *result)
{
	ret->n = 0;
	ret->v = calloc(request->ranges.n + request->addresses.n + 2, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	if (request->ranges.n)
		return wants_of_ranges(a, request, ret, result);
	if (request->addresses.n)
		return wants_of_addresses(a, request, ret, result);
	return wants_of_pools(a, request, ret, result);
}
