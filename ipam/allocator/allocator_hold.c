/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds what: release, undo, restore, marks. */
#include <errno.h>
#include <string.h>

#include "ipam/allocator/allocator_parts.h"

/* --- addresses in blocks -------------------------------------------------------------------- */

/* The next block from *i on in which the address may lie; NULL at the end. */
static struct own_block *next_block(const struct allocator *a, const char *network,
				    const struct address *address, size_t *i)
{
	/* One network: at most one block. Any network: look at all of them. */
	if (network[0])
		return (*i)++ == 0 ? blocks_with(&a->blocks, network, address) : NULL;
	while (*i < a->blocks.n) {
		struct own_block *b = a->blocks.v[(*i)++];

		if (prefix_contains(&b->prefix, address))
			return b;
	}
	return NULL;
}

int use_address(struct allocator *a, const char *network, const struct address *address,
		int64_t *was)
{
	struct own_block *b;
	size_t i = 0;

	*was = NEVER_USED;
	while ((b = next_block(a, network, address, &i)))
		if (stock_take(&b->stock, number_of(address), was) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

void free_address(struct allocator *a, const char *network, const struct address *address,
		  int64_t at, int64_t now)
{
	struct own_block *b;
	size_t i = 0;

	while ((b = next_block(a, network, address, &i))) {
		if (attachments_holder(&a->table, b->network, address))
			continue;
		stock_put(&b->stock, number_of(address), at);
		stock_forget(&b->stock, rested_before(view_of_block(a, b), now));
		if (b->stock.n_used == 0)
			b->empty_since = now;
	}
}

/* --- release, undo -------------------------------------------------------------------------- */

static struct attachment *find(const struct allocator *a, const struct attachment_key *key)
{
	const struct attachment_key mark = { "", key->container, key->interface };

	return attachments_find(&a->table, key) ?: attachments_find(&a->table, &mark);
}

const struct attachment *allocator_find(const struct allocator *a, const struct attachment_key *key)
{
	return find(a, key);
}

const struct attachments *allocator_attachments(const struct allocator *a)
{
	return &a->table;
}

struct attachment *allocator_release(struct allocator *a, const struct attachment_key *key,
				     int64_t now)
{
	struct attachment *x = find(a, key);

	if (!x)
		return NULL;
	attachments_remove(&a->table, x);
	for (size_t i = 0; i < x->addresses.n; i++)
		free_address(a, x->addresses.v[i].network, &x->addresses.v[i].address, now, now);
	return x;
}

void allocator_undo(struct allocator *a, const struct attachment_key *key, int64_t now)
{
	struct attachment *x = attachments_find(&a->table, key);

	if (!x)
		return;
	attachments_remove(&a->table, x);
	for (size_t i = x->addresses.n; i-- > 0;) {
		const struct held_address *h = &x->addresses.v[i];

		free_address(a, h->network, &h->address, h->was, now);
	}
	attachment_free(x);
}

/* --- changes -------------------------------------------------------------------------------- */

int allocator_set_state(struct allocator *a, const struct attachment_key *key,
			enum attachment_state state)
{
	struct attachment *x = find(a, key);

	if (!x)
		return -ENOENT;
	x->state = state;
	return 0;
}

static void set_text(const char **at, char *text)
{
	free((char *)(uintptr_t)*at);
	*at = text;
}

int allocator_set_attached(struct allocator *a, const struct attachment_key *key,
			   const struct attached *told)
{
	AUTO(free) char *new_link = strdup(told->link), *new_netns = strdup(told->netns);
	struct attachment *x = find(a, key);

	if (!x)
		return -ENOENT;
	if (!new_link || !new_netns)
		return -ENOMEM;
	set_text(&x->link, TAKE(new_link));
	set_text(&x->netns, TAKE(new_netns));
	x->netns_inode = told->netns_inode;
	x->mac = told->mac;
	x->route_localnet = told->route_localnet;
	x->state = ATTACHMENT_ATTACHED;
	x->suspected_since = 0;
	return 0;
}

void allocator_set_suspected(struct allocator *a, const struct attachment_key *key, int64_t since)
{
	struct attachment *x = find(a, key);

	if (x)
		x->suspected_since = since;
}

/* --- marks and restored ones ---------------------------------------------------------------- */

/* Somebody holds the address under his own name now. The stock does not change. */
static void unmark(struct allocator *a, const struct held_address *held)
{
	for (;;) {
		struct attachment *mark = NULL;
		size_t at = 0;

		for (size_t i = attachments_from(&a->table, &held->address);
		     i < a->table.n_held && !mark; i++) {
			const struct holding *h = &a->table.held[i];
			const struct held_address *other = &h->attachment->addresses.v[h->index];

			if (address_compare(&other->address, &held->address) != 0)
				break;
			if (attachment_is_mark(h->attachment) &&
			    networks_meet(other->network, held->network)) {
				mark = h->attachment;
				at = h->index;
			}
		}
		if (!mark)
			return;
		attachments_remove(&a->table, mark);
		free((char *)(uintptr_t)mark->addresses.v[at].pool);
		free((char *)(uintptr_t)mark->addresses.v[at].network);
		mark->addresses.v[at] = mark->addresses.v[--mark->addresses.n];
		/* Its room is still there, so this cannot fail. */
		if (mark->addresses.n == 0 || attachments_add(&a->table, mark) < 0)
			attachment_free(mark);
	}
}

static int use_all(struct allocator *a, struct attachment *x)
{
	for (size_t i = 0; i < x->addresses.n; i++) {
		struct held_address *h = &x->addresses.v[i];

		if (use_address(a, h->network, &h->address, &h->was) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Into the table and in use, or neither. */
static int hold(struct allocator *a, struct attachment *x)
{
	int r = attachments_add(&a->table, x);

	if (r < 0)
		return r;
	if (use_all(a, x) == 0)
		return 0;
	attachments_remove(&a->table, x);
	for (size_t i = 0; i < x->addresses.n; i++)
		free_address(a, x->addresses.v[i].network, &x->addresses.v[i].address, NEVER_USED,
			     0);
	return -ENOMEM;
}

static int find_rival(const struct allocator *a, const struct attachment *x, struct err *err)
{
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < x->addresses.n; i++) {
		const struct held_address *h = &x->addresses.v[i];
		const struct holding *other = attachments_holder(&a->table, h->network,
								 &h->address);

		if (!other || attachment_is_mark(other->attachment))
			continue;
		err_set(err, 0, "%s is held by %s of container %s and by %s of container %s",
			address_print(&h->address, text), other->attachment->interface,
			other->attachment->container, x->interface, x->container);
		return 1;
	}
	return 0;
}

int allocator_restore(struct allocator *a, struct attachment *attachment, struct err *err)
{
	int rival = find_rival(a, attachment, err);
	int r = hold(a, attachment);

	if (r < 0)
		return r;
	for (size_t i = 0; i < attachment->addresses.n; i++)
		unmark(a, &attachment->addresses.v[i]);
	return rival;
}

static struct attachment *new_mark(const struct attachment *old, struct held_address held,
				   const char *container, const char *interface,
				   const struct address_record *record, int64_t now)
{
	AUTO(free) struct held_address *all = NULL;
	struct attachment like = {
		.container = container,
		.interface = interface,
		.namespace = record ? record->namespace : "",
		.pod = record ? record->pod : "",
		.netns = record ? record->netns : "",
		.link = record ? record->link : "",
		.reserved = record && record->reserved,
		.assigned = (uint64_t)now,
		.state = ATTACHMENT_ATTACHED,
	};
	const size_t n = old ? old->addresses.n : 0;

	all = calloc(n + 1, sizeof(*all));
	if (!all)
		return NULL;
	if (old) {
		like.assigned = old->assigned;
		like.suspected_since = old->suspected_since;
		memcpy(all, old->addresses.v, n * sizeof(*all));
	}
	all[n] = held;
	like.addresses = (struct held_addresses){ all, n + 1 };
	return attachment_copy(&like);
}

/* Takes *mark; of its addresses only held is new. */
static int replace_mark(struct allocator *a, struct attachment *old, struct attachment **mark,
			const struct held_address *held)
{
	int64_t was;
	int r = use_address(a, held->network, &held->address, &was);

	if (r == 0) {
		if (old)
			attachments_remove(&a->table, old);
		r = attachments_add(&a->table, *mark);
		if (r < 0 && old)
			attachments_add(&a->table, old); /* its room is still there */
	}
	if (r < 0) {
		free_address(a, held->network, &held->address, NEVER_USED, 0);
		return -ENOMEM;
	}
	attachment_free(old);
	*mark = NULL;
	return 1;
}

int allocator_mark(struct allocator *a, const char *network, const struct address *address,
		   const struct address_record *record, int64_t now)
{
	const bool named = record && record->container[0] && record->interface[0];
	AUTO(attachment_free) struct attachment *mark = NULL;
	char text[ADDRESS_TEXT];
	const struct attachment_key key = { "",
					    named ? record->container
						  : address_print(address, text),
					    named ? record->interface : "" };
	struct attachment *old = attachments_find(&a->table, &key);
	const struct held_address held = { .address = *address,
					   .length = address_bits(address),
					   .pool = record ? record->pool : "",
					   .network = network };

	if (attachments_holder(&a->table, network, address))
		return 0;
	mark = new_mark(old, held, key.container, key.interface, record, now);
	if (!mark)
		return -ENOMEM;
	return replace_mark(a, old, &mark, &held);
}
