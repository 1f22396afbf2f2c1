/* SPDX-License-Identifier: Apache-2.0 */
/* The node's own addresses: those of all links but the pods'. There are few. */
#include <errno.h>
#include <stdlib.h>

#include "agent/kernel/kernel_view_parts.h"

static bool is_same(const struct node_address *a, const struct node_address *b)
{
	return a->link == b->link && address_compare(&a->local, &b->local) == 0 &&
	       prefix_compare(&a->subnet, &b->subnet) == 0;
}

struct node_address *kernel_view_address(const struct kernel_view *v,
					 const struct node_address *key)
{
	for (size_t i = 0; i < v->n_addresses; i++)
		if (is_same(&v->addresses[i], key))
			return &v->addresses[i];
	return NULL;
}

int kernel_view_put_address(struct kernel_view *v, const struct node_address *address)
{
	struct node_address *a = kernel_view_address(v, address), *grown;

	if (!a) {
		grown = reallocarray(v->addresses, v->n_addresses + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		v->addresses = grown;
		a = &grown[v->n_addresses++];
		*a = *address;
	}
	a->seen = v->generation;
	return 0;
}

void kernel_view_drop_address(struct kernel_view *v, const struct node_address *key)
{
	struct node_address *a = kernel_view_address(v, key);

	if (a)
		*a = v->addresses[--v->n_addresses];
}
