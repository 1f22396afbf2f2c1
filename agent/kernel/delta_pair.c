/* SPDX-License-Identifier: Apache-2.0 */
/* What should be beside what is: one walk, since both are in the order of the same keys. */
#include <errno.h>
#include <stdlib.h>

#include "agent/kernel/delta_kernel_parts.h"

struct pairing {
	struct paired *to;
	size_t finger;
};

static void pair_route(struct held_route *r, void *arg)
{
	struct pairing *p = arg;
	struct paired *to = p->to;

	if (desired_route_at(to->desired, &p->finger, &r->route) && !to->routes[p->finger])
		to->routes[p->finger] = r;
}

static void pair_neighbour(struct held_neighbour *n, void *arg)
{
	struct pairing *p = arg;
	struct paired *to = p->to;

	if (desired_neighbour_at(to->desired, &p->finger, &n->neighbour))
		to->neighbours[p->finger] = n;
}

int pair_held(const struct desired *d, const struct kernel_view *view, struct paired *ret)
{
	struct pairing routes = { .to = ret }, neighbours = { .to = ret };

	/* One more, because a set may be empty. */
	ret->desired = d;
	ret->routes = calloc(d->n_routes + 1, sizeof(*ret->routes));
	ret->neighbours = calloc(d->n_neighbours + 1, sizeof(*ret->neighbours));
	if (!ret->routes || !ret->neighbours)
		return -ENOMEM;
	kernel_view_each_route(view, pair_route, &routes);
	kernel_view_each_neighbour(view, pair_neighbour, &neighbours);
	return 0;
}

void paired_done(struct paired *p)
{
	free(p->routes);
	free(p->neighbours);
	*p = (struct paired){ 0 };
}
