/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/kernel_view.h"

#include "agent/kernel/kernel_view_parts.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* --- order ---------------------------------------------------------------------------------- */

static int by_index(const void *a, const void *b)
{
	uint32_t x = ((const struct held_link *)a)->link.index;
	uint32_t y = ((const struct held_link *)b)->link.index;

	return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct held_link *)a)->link.name,
		      ((const struct held_link *)b)->link.name);
}

static int by_route_key(const void *a, const void *b)
{
	return kroute_compare_key(&((const struct held_route *)a)->route,
				  &((const struct held_route *)b)->route);
}

static int by_neighbour_key(const void *a, const void *b)
{
	return kneighbour_compare_key(&((const struct held_neighbour *)a)->neighbour,
				      &((const struct held_neighbour *)b)->neighbour);
}

static void *found(void *node)
{
	return node ? *(void **)node : NULL;
}

struct held_link *kernel_view_link(const struct kernel_view *v, uint32_t index)
{
	struct held_link key = { .link.index = index };

	return found(tfind(&key, &v->links_by_index, by_index));
}

struct held_link *kernel_view_link_named(const struct kernel_view *v, const char *name)
{
	struct held_link key = { 0 };

	if (strlen(name) >= sizeof(key.link.name))
		return NULL;
	strcpy(key.link.name, name);
	return found(tfind(&key, &v->links_by_name, by_name));
}

struct held_route *kernel_view_routes(const struct kernel_view *v, const struct kroute *key)
{
	struct held_route k = { .route = *key };

	return found(tfind(&k, &v->routes, by_route_key));
}

struct held_route *kernel_view_route(const struct kernel_view *v, const struct kroute *exact)
{
	struct held_route *r = kernel_view_routes(v, exact);

	while (r && kroute_compare(&r->route, exact) != 0)
		r = r->next;
	return r;
}

struct held_neighbour *kernel_view_neighbour(const struct kernel_view *v,
					     const struct kneighbour *key)
{
	struct held_neighbour k = { .neighbour = *key };

	return found(tfind(&k, &v->neighbours, by_neighbour_key));
}

/* --- walks ---------------------------------------------------------------------------------- */

struct walk {
	void (*fn)(void *element, void *arg);
	void *arg;
};

static void visit(const void *node, VISIT order, void *arg)
{
	const struct walk *w = arg;

	if (order == postorder || order == leaf)
		w->fn(*(void *const *)node, w->arg);
}

struct route_walk {
	held_route_fn *fn;
	void *arg;
};

static void visit_chain(void *element, void *arg)
{
	const struct route_walk *w = arg;

	for (struct held_route *r = element; r; r = r->next)
		w->fn(r, w->arg);
}

void kernel_view_each_route(const struct kernel_view *v, held_route_fn *fn, void *arg)
{
	struct route_walk inner = { fn, arg };
	struct walk w = { visit_chain, &inner };

	twalk_r(v->routes, visit, &w);
}

struct neighbour_walk {
	held_neighbour_fn *fn;
	void *arg;
};

static void visit_neighbour(void *element, void *arg)
{
	const struct neighbour_walk *w = arg;

	w->fn(element, w->arg);
}

void kernel_view_each_neighbour(const struct kernel_view *v, held_neighbour_fn *fn, void *arg)
{
	struct neighbour_walk inner = { fn, arg };
	struct walk w = { visit_neighbour, &inner };

	twalk_r(v->neighbours, visit, &w);
}

struct link_walk {
	held_link_fn *fn;
	void *arg;
};

static void visit_link(void *element, void *arg)
{
	const struct link_walk *w = arg;

	w->fn(element, w->arg);
}

void kernel_view_each_link(const struct kernel_view *v, held_link_fn *fn, void *arg)
{
	struct link_walk inner = { fn, arg };
	struct walk w = { visit_link, &inner };

	twalk_r(v->links_by_index, visit, &w);
}

/* --- routes --------------------------------------------------------------------------------- */

static void set_held(size_t *count, struct holding *h, bool held)
{
	*count += held;
	*count -= h->held;
	h->held = held;
}

static void set_route_held(struct kernel_view *v, struct held_route *r, bool held)
{
	v->statics += held != r->h.held && r->route.protocol == static_route_protocol;
	set_held(&v->n_routes, &r->h, held);
}

void kernel_view_end_conflict(struct kernel_view *v, struct held_route *r)
{
	v->statics += r->stranger && r->route.protocol == static_route_protocol;
	v->n_conflicts -= r->stranger != NULL;
	free(r->stranger);
	r->stranger = NULL;
}

int kernel_view_put_route(struct kernel_view *v, const struct kroute *route,
			  struct held_route **ret)
{
	struct held_route *r = kernel_view_route(v, route), *first;

	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return -ENOMEM;
		r->route = *route;
		first = kernel_view_routes(v, route);
		if (first) {
			r->next = first->next;
			first->next = r;
		} else if (!tsearch(r, &v->routes, by_route_key)) {
			free(r);
			return -ENOMEM;
		}
	}
	set_route_held(v, r, true);
	r->h.seen = v->generation;
	kernel_view_end_conflict(v, r);
	if (ret)
		*ret = r;
	return 0;
}

/* The tree knows the first of a chain alone. */
static void unchain(struct kernel_view *v, struct held_route *r)
{
	void *node = tfind(r, &v->routes, by_route_key);
	struct held_route *first = found(node);

	if (first == r && r->next)
		*(struct held_route **)node = r->next;
	else if (first == r)
		tdelete(r, &v->routes, by_route_key);
	else if (first)
		for (struct held_route *p = first; p; p = p->next)
			if (p->next == r)
				p->next = r->next;
	kernel_view_end_conflict(v, r);
	free(r);
}

void kernel_view_drop_route(struct kernel_view *v, const struct kroute *route)
{
	struct held_route *r = kernel_view_route(v, route);

	if (!r)
		return;
	set_route_held(v, r, false);
	unchain(v, r);
}

int kernel_view_replace_route(struct kernel_view *v, const struct kroute *route,
			      struct held_route **ret)
{
	struct held_route *next;

	for (struct held_route *r = kernel_view_routes(v, route); r; r = next) {
		next = r->next;
		if (r->h.held && kroute_compare(&r->route, route) != 0)
			kernel_view_drop_route(v, &r->route);
	}
	return kernel_view_put_route(v, route, ret);
}

void kernel_view_lose_route(struct kernel_view *v, struct held_route *r)
{
	set_route_held(v, r, false);
	if (!r->h.confirmed && !r->stranger)
		unchain(v, r);
}

int kernel_view_conflict(struct kernel_view *v, const struct kroute *route,
			 const struct kroute *stranger)
{
	struct kroute *copy = malloc(sizeof(*copy));
	struct held_route *r = NULL;

	if (!copy || kernel_view_put_route(v, route, &r) < 0) {
		free(copy);
		return -ENOMEM;
	}
	*copy = *stranger;
	set_route_held(v, r, false);
	r->stranger = copy;
	v->n_conflicts++;
	v->statics += route->protocol == static_route_protocol;
	/* When the way is free again, putting it there repairs nothing. */
	r->h.confirmed = false;
	return 0;
}

static void retry_conflict(struct held_route *r, void *arg)
{
	kernel_view_end_conflict(arg, r);
}

void kernel_view_retry_conflicts(struct kernel_view *v)
{
	kernel_view_each_route(v, retry_conflict, v);
}

/* --- ways ----------------------------------------------------------------------------------- */

const struct route_lookup *kernel_view_lookup(const struct kernel_view *v, const struct address *to)
{
	if (v->lookups_of != v->ways + v->statics)
		return NULL;
	for (size_t i = 0; i < v->n_lookups; i++)
		if (address_compare(&v->lookups[i].to, to) == 0)
			return &v->lookups[i];
	return NULL;
}

int kernel_view_put_lookup(struct kernel_view *v, const struct route_lookup *lookup)
{
	struct route_lookup *grown;

	if (v->lookups_of != v->ways + v->statics) {
		v->n_lookups = 0;
		v->lookups_of = v->ways + v->statics;
	}
	grown = reallocarray(v->lookups, v->n_lookups + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	v->lookups = grown;
	grown[v->n_lookups++] = *lookup;
	return 0;
}

/* --- neighbours ----------------------------------------------------------------------------- */

static size_t *count_of(struct kernel_view *v, const struct held_neighbour *n)
{
	return n->neighbour.fdb ? &v->n_fdb : &v->n_neighbours;
}

int kernel_view_put_neighbour(struct kernel_view *v, const struct kneighbour *neighbour,
			      struct held_neighbour **ret)
{
	struct held_neighbour *n = kernel_view_neighbour(v, neighbour);

	if (!n) {
		n = calloc(1, sizeof(*n));
		if (!n)
			return -ENOMEM;
		n->neighbour = *neighbour;
		if (!tsearch(n, &v->neighbours, by_neighbour_key)) {
			free(n);
			return -ENOMEM;
		}
	}
	n->neighbour = *neighbour;
	set_held(count_of(v, n), &n->h, true);
	n->h.seen = v->generation;
	if (ret)
		*ret = n;
	return 0;
}

void kernel_view_drop_neighbour(struct kernel_view *v, const struct kneighbour *key)
{
	struct held_neighbour *n = kernel_view_neighbour(v, key);

	if (!n)
		return;
	set_held(count_of(v, n), &n->h, false);
	tdelete(n, &v->neighbours, by_neighbour_key);
	free(n);
}

void kernel_view_lose_neighbour(struct kernel_view *v, struct held_neighbour *n)
{
	set_held(count_of(v, n), &n->h, false);
	if (!n->h.confirmed)
		kernel_view_drop_neighbour(v, &n->neighbour);
}

/* --- links ---------------------------------------------------------------------------------- */

static void tell_gone(struct kernel_view *v, const char *name)
{
	char(*grown)[IF_NAME_TEXT] = reallocarray(v->gone, v->n_gone + 1, sizeof(*grown));

	/* Without memory for it the next full compare of whoever asks has to find out. */
	if (!grown)
		return;
	v->gone = grown;
	memcpy(v->gone[v->n_gone++], name, IF_NAME_TEXT);
}

/* Two may bear one name for a moment, in the order in which a rename and a new one are told. */
static void unname(struct kernel_view *v, struct held_link *l)
{
	void *node = tfind(l, &v->links_by_name, by_name);

	if (found(node) == l)
		tdelete(l, &v->links_by_name, by_name);
}

static int name(struct kernel_view *v, struct held_link *l)
{
	void *node = tsearch(l, &v->links_by_name, by_name);

	if (!node)
		return -ENOMEM;
	*(struct held_link **)node = l;
	return 0;
}

void kernel_view_drop_link(struct kernel_view *v, uint32_t index)
{
	struct held_link *l = kernel_view_link(v, index);

	if (!l)
		return;
	if (l->pod) {
		v->n_pod_links--;
		tell_gone(v, l->link.name);
	}
	v->news |= l->tunnel;
	v->links_lost = true;
	unname(v, l);
	tdelete(l, &v->links_by_index, by_index);
	free(l);
}

int kernel_view_rename_link(struct kernel_view *v, struct held_link *l, const char *to)
{
	unname(v, l);
	if (l->pod)
		tell_gone(v, l->link.name);
	memcpy(l->link.name, to, sizeof(l->link.name));
	return name(v, l);
}

struct held_link *kernel_view_new_link(struct kernel_view *v, const struct klink *link)
{
	struct held_link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->link = *link;
	if (!tsearch(l, &v->links_by_index, by_index)) {
		free(l);
		return NULL;
	}
	if (name(v, l) < 0) {
		tdelete(l, &v->links_by_index, by_index);
		free(l);
		return NULL;
	}
	l->h.held = true;
	return l;
}

/* --- the end --------------------------------------------------------------------------------- */

static void free_chain(void *element)
{
	struct held_route *r = element, *next;

	for (; r; r = next) {
		next = r->next;
		free(r->stranger);
		free(r);
	}
}

static void keep(void *element)
{
}

void kernel_view_done(struct kernel_view *v)
{
	tdestroy(v->links_by_name, keep);
	tdestroy(v->links_by_index, free);
	tdestroy(v->routes, free_chain);
	tdestroy(v->neighbours, free);
	free(v->addresses);
	free(v->lookups);
	free(v->gateways.v);
	free(v->gone);
	*v = (struct kernel_view){ 0 };
}
