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
	free(t->v);
	free(t->held);
	*t = (struct attachments){ 0 };
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
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (compare_key(t->v[mid], key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct attachment *attachments_find(const struct attachments *t, const struct attachment_key *key)
{
	size_t i = key_place(t, key);

	return i < t->n && compare_key(t->v[i], key) == 0 ? t->v[i] : NULL;
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
	size_t low = 0, high = t->n_held;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (compare_holding(&t->held[mid], h) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t attachments_from(const struct attachments *t, const struct address *address)
{
	size_t low = 0, high = t->n_held;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (address_compare(&held_of(&t->held[mid])->address, address) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct holding *attachments_holder(const struct attachments *t, const char *network,
					 const struct address *address)
{
	for (size_t i = attachments_from(t, address); i < t->n_held; i++) {
		const struct held_address *h = held_of(&t->held[i]);

		if (address_compare(&h->address, address) != 0)
			break;
		if (networks_meet(h->network, network))
			return &t->held[i];
	}
	return NULL;
}

/* --- both ----------------------------------------------------------------------------------- */

static int make_room(struct attachments *t, size_t addresses)
{
	void *v;

	if (t->n == t->room) {
		v = realloc(t->v, 2 * (t->n + 8) * sizeof(struct attachment *));
		if (!v)
			return -ENOMEM;
		t->v = v;
		t->room = 2 * (t->n + 8);
	}
	if (t->n_held + addresses > t->held_room) {
		size_t room = 2 * (t->n_held + addresses);

		v = realloc(t->held, room * sizeof(*t->held));
		if (!v)
			return -ENOMEM;
		t->held = v;
		t->held_room = room;
	}
	return 0;
}

int attachments_add(struct attachments *t, struct attachment *a)
{
	const struct attachment_key key = attachment_key(a);
	size_t i = key_place(t, &key);

	if (i < t->n && compare_key(t->v[i], &key) == 0)
		return -EEXIST;
	if (make_room(t, a->addresses.n) < 0)
		return -ENOMEM;
	memmove(t->v + i + 1, t->v + i, (t->n - i) * sizeof(struct attachment *));
	t->v[i] = a;
	t->n++;
	for (size_t j = 0; j < a->addresses.n; j++) {
		const struct holding h = { a, j };
		size_t at = holding_place(t, &h);

		memmove(t->held + at + 1, t->held + at, (t->n_held - at) * sizeof(h));
		t->held[at] = h;
		t->n_held++;
	}
	return 0;
}

void attachments_remove(struct attachments *t, struct attachment *a)
{
	const struct attachment_key key = attachment_key(a);
	size_t i = key_place(t, &key);

	t->n--;
	memmove(t->v + i, t->v + i + 1, (t->n - i) * sizeof(struct attachment *));
	for (size_t j = 0; j < a->addresses.n; j++) {
		size_t at = holding_place(t, &(struct holding){ a, j });

		t->n_held--;
		memmove(t->held + at, t->held + at + 1, (t->n_held - at) * sizeof(*t->held));
	}
}
