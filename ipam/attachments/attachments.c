/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/attachments/attachments.h"

#include <errno.h>
#include <string.h>

struct attachment_key attachment_key(const struct attachment *a)
{
	return (struct attachment_key){ a->network, a->container, a->interface };
}

bool attachment_is_mark(const struct attachment *a)
{
	return a->network[0] == '\0';
}

bool networks_meet(const char *a, const char *b)
{
	return !a[0] || !b[0] || strcmp(a, b) == 0;
}

void attachments_done(struct attachments *t)
{
	for (size_t i = 0; i < t->n; i++)
		attachment_free(t->v[i]);
	array_done(&t->held);
	array_done(t);
}

/* --- by key --------------------------------------------------------------------------------- */

/* The container first: it differs most. Nobody depends on the order. */
static int compare_key(const struct attachment *a, const struct attachment_key *key)
{
	int r = strcmp(a->container, key->container);

	if (r == 0)
		r = strcmp(a->interface, key->interface);
	return r ?: strcmp(a->network, key->network);
}

static size_t key_place(const struct attachments *t, const struct attachment_key *key)
{
	return array_place(t->v, t->n, x, compare_key(*x, key));
}

struct attachment *attachments_find(const struct attachments *t, const struct attachment_key *key)
{
	struct attachment **a = array_find(t->v, t->n, x, compare_key(*x, key));

	return a ? *a : NULL;
}

/* --- by address ----------------------------------------------------------------------------- */

static const struct held_address *held_of(const struct holding *h)
{
	return &h->attachment->addresses.v[h->index];
}

static int compare_holding(const struct holding *x, const struct holding *y)
{
	const struct held_address *a = held_of(x), *b = held_of(y);
	int r = address_compare(&a->address, &b->address);

	if (r == 0)
		r = strcmp(a->network, b->network);
	if (r == 0 && x->attachment != y->attachment)
		r = (uintptr_t)x->attachment < (uintptr_t)y->attachment ? -1 : 1;
	return r ?: (x->index > y->index) - (x->index < y->index);
}

static size_t holding_place(const struct attachments *t, const struct holding *h)
{
	return array_place(t->held.v, t->held.n, x, compare_holding(x, h));
}

size_t attachments_from(const struct attachments *t, const struct address *address)
{
	return array_place(t->held.v, t->held.n, x, address_compare(&held_of(x)->address, address));
}

const struct holding *attachments_holder(const struct attachments *t, const char *network,
					 const struct address *address)
{
	for (size_t i = attachments_from(t, address); i < t->held.n; i++) {
		const struct held_address *h = held_of(&t->held.v[i]);

		if (address_compare(&h->address, address) != 0)
			break;
		if (networks_meet(h->network, network))
			return &t->held.v[i];
	}
	return NULL;
}

/* --- both ----------------------------------------------------------------------------------- */

int attachments_add(struct attachments *t, struct attachment *a)
{
	const struct attachment_key key = attachment_key(a);
	size_t i = key_place(t, &key);

	if (i < t->n && compare_key(t->v[i], &key) == 0)
		return -EEXIST;
	if (array_reserve(t, 1) < 0 || array_reserve(&t->held, a->addresses.n) < 0)
		return -ENOMEM;
	*array_insert(t, i) = a;
	for (size_t j = 0; j < a->addresses.n; j++) {
		const struct holding h = { .attachment = a, .index = j };

		*array_insert(&t->held, holding_place(t, &h)) = h;
	}
	return 0;
}

void attachments_remove(struct attachments *t, struct attachment *a)
{
	const struct attachment_key key = attachment_key(a);

	array_remove(t, key_place(t, &key));
	for (size_t j = 0; j < a->addresses.n; j++)
		array_remove(&t->held,
			     holding_place(t, &(struct holding){ .attachment = a, .index = j }));
}
