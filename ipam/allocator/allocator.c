/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the allocator holds (pools, blocks, attachments) and which blocks it wants or can spare.
 * Requests are in assign.c.
 */
#include "ipam/allocator/allocator_state.h"

#include <errno.h>
#include <string.h>

#define SECOND 1000000000LL

/* --- the table of blocks -------------------------------------------------------------------- */

const char *block_state_name(enum block_state state)
{
	static const char *const names[] = { "claiming", "owned", "releasing", "lost" };

	return names[state];
}

static void block_free(struct own_block *b)
{
	stock_done(&b->stock);
	free(b);
}
AUTO_DEFINE(struct own_block *, block_free)

static void blocks_done(struct blocks *b)
{
	for (size_t i = 0; i < b->n; i++)
		block_free(b->v[i]);
	array_done(b);
}

/* By network, then by first address: blocks of one network do not overlap. The first not before. */
static size_t place(const struct blocks *b, const char *network, const struct address *address)
{
	return array_place(b->v, b->n, x,
			   strcmp((*x)->network, network)
				   ?: address_compare(&(*x)->prefix.address, address));
}

static struct own_block *overlapping(const struct blocks *b, size_t i, const char *network,
				     const struct prefix *prefix)
{
	for (size_t j = i ? i - 1 : 0; j < b->n && j <= i; j++)
		if (strcmp(b->v[j]->network, network) == 0 &&
		    prefix_overlaps(&b->v[j]->prefix, prefix))
			return b->v[j];
	return NULL;
}

/* 0; -EEXIST: it overlaps one that is there (*ret is that one); -ENOMEM. */
static int blocks_add(struct blocks *b, const char *network, const char *pool,
		      const struct prefix *prefix, int64_t now, struct own_block **ret)
{
	AUTO(block_free) struct own_block *block = NULL;
	size_t i = place(b, network, &prefix->address);
	struct own_block *there = overlapping(b, i, network, prefix);

	if (there) {
		*ret = there;
		return -EEXIST;
	}
	block = calloc(1, sizeof(*block));
	if (!block || array_reserve(b, 1) < 0 || stock_init(&block->stock, prefix) < 0)
		return -ENOMEM;
	snprintf(block->network, sizeof(block->network), "%s", network);
	snprintf(block->pool, sizeof(block->pool), "%s", pool);
	block->prefix = *prefix;
	block->empty_since = now;
	block->state = BLOCK_OWNED;
	*array_insert(b, i) = *ret = TAKE(block);
	return 0;
}

static void blocks_remove(struct blocks *b, struct own_block *block)
{
	array_remove(b, place(b, block->network, &block->prefix.address));
	block_free(block);
}

struct own_block *blocks_with(const struct blocks *b, const char *network,
			      const struct address *address)
{
	const struct prefix one = prefix_of(address, (uint8_t)address_bits(address));

	return overlapping(b, place(b, network, address), network, &one);
}

static struct own_block *blocks_find(const struct blocks *b, const char *network,
				     const struct prefix *prefix)
{
	struct own_block *block = blocks_with(b, network, &prefix->address);

	return block && prefix_compare(&block->prefix, prefix) == 0 ? block : NULL;
}

/* --- life, pools ---------------------------------------------------------------------------- */

struct allocator *allocator_new(void)
{
	return calloc(1, sizeof(struct allocator));
}

void allocator_free(struct allocator *a)
{
	if (!a)
		return;
	pool_views_done(&a->views);
	blocks_done(&a->blocks);
	attachments_done(&a->table);
	free(a);
}

int allocator_configure(struct allocator *a, const struct pools_input *in)
{
	struct pool_views views;

	if (pools_view(in, &views) < 0)
		return -ENOMEM;
	/* That a pool was full is not unlearned because another one changed. */
	for (size_t i = 0; i < views.n; i++) {
		const struct pool_view *old = pool_views_find(&a->views, views.v[i].name);

		if (old)
			views.v[i].full_until = old->full_until;
	}
	pool_views_done(&a->views);
	a->views = views;
	a->extents = in->extents;
	a->n_extents = in->n_extents;
	return 0;
}

const struct pool_views *allocator_pools(const struct allocator *a)
{
	return &a->views;
}

void allocator_pool_full(struct allocator *a, const char *pool, int64_t until)
{
	struct pool_view *v = pool_views_find(&a->views, pool);

	if (v)
		v->full_until = until;
}

int64_t rested_before(const struct pool_view *view, int64_t now)
{
	return now - (view && view->pool ? view->pool->cooldown_seconds : 60) * SECOND;
}

bool block_serves(const struct own_block *b, const struct pool_view *v)
{
	return strcmp(b->pool, v->name) == 0 && v->pool && strcmp(b->network, v->network) == 0;
}

static const struct pool_view *view_of_block(const struct allocator *a, const struct own_block *b)
{
	const struct pool_view *v = pool_views_find(&a->views, b->pool);

	return v && block_serves(b, v) ? v : NULL;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* What is held already in a block that comes only now. */
static int use_held(struct allocator *a, struct own_block *b)
{
	size_t i = attachments_from(&a->table, &b->prefix.address);

	for (; i < a->table.held.n; i++) {
		const struct holding *h = &a->table.held.v[i];
		const struct held_address *held = &h->attachment->addresses.v[h->index];
		int64_t was;

		if (!prefix_contains(&b->prefix, &held->address))
			break;
		if (networks_meet(held->network, b->network) &&
		    stock_take(&b->stock, number_of(&held->address), &was) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int add_block(struct allocator *a, const char *network, const char *pool,
		     const struct prefix *prefix, int64_t now, struct own_block **ret,
		     struct err *err)
{
	char text[PREFIX_TEXT], other[PREFIX_TEXT];
	int r = blocks_add(&a->blocks, network, pool, prefix, now, ret);

	if (r == -EEXIST)
		return err_set(err, r, "block %s on network %s overlaps %s, which is here already",
			       prefix_print(prefix, text), network,
			       prefix_print(&(*ret)->prefix, other));
	if (r == 0 && use_held(a, *ret) < 0) {
		blocks_remove(&a->blocks, *ret);
		r = -ENOMEM;
	}
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

int allocator_block_set(struct allocator *a, const char *network, const char *pool,
			const struct prefix *block, enum block_state state, int64_t now,
			struct err *err)
{
	struct own_block *b = blocks_find(&a->blocks, network, block);

	if (!b) {
		int r = add_block(a, network, pool, block, now, &b, err);

		if (r < 0)
			return r;
	}
	snprintf(b->pool, sizeof(b->pool), "%s", pool);
	b->state = state;
	return 0;
}

int allocator_block_remove(struct allocator *a, const char *network, const struct prefix *block)
{
	struct own_block *b = blocks_find(&a->blocks, network, block);

	if (!b)
		return -ENOENT;
	if (b->stock.used.n)
		return -EBUSY;
	blocks_remove(&a->blocks, b);
	return 0;
}

const struct own_block *allocator_block(const struct allocator *a, const char *network,
					const struct prefix *block)
{
	return blocks_find(&a->blocks, network, block);
}

const struct blocks *allocator_blocks(const struct allocator *a)
{
	return &a->blocks;
}

/* --- counts --------------------------------------------------------------------------------- */

struct address_counts allocator_block_counts(const struct allocator *a, const struct own_block *b,
					     int64_t now)
{
	static const struct spans nothing;
	const struct pool_view *v = view_of_block(a, b);
	/* Only what can be given is free. */
	const bool gives = v && pool_view_serves(v) && b->state == BLOCK_OWNED;

	return stock_count(&b->stock, gives ? &v->allowed : &nothing, rested_before(v, now));
}

struct pool_counts allocator_pool_counts(const struct allocator *a, const char *pool, int64_t now)
{
	struct pool_counts sum = { 0 };

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];
		struct address_counts c;

		if (strcmp(b->pool, pool) != 0)
			continue;
		c = allocator_block_counts(a, b, now);
		sum.blocks += b->state == BLOCK_OWNED;
		sum.addresses.used += c.used;
		sum.addresses.free += c.free;
		sum.addresses.resting += c.resting;
	}
	return sum;
}

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

static int use_address(struct allocator *a, const char *network, const struct address *address,
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

static void free_address(struct allocator *a, const char *network, const struct address *address,
			 int64_t at, int64_t now)
{
	struct own_block *b;
	size_t i = 0;

	while ((b = next_block(a, network, address, &i))) {
		if (attachments_holder(&a->table, b->network, address))
			continue;
		stock_put(&b->stock, number_of(address), at);
		stock_forget(&b->stock, rested_before(view_of_block(a, b), now));
		if (b->stock.used.n == 0)
			b->empty_since = now;
	}
}

/* --- release, undo -------------------------------------------------------------------------- */

static struct attachment *attachment_of(const struct allocator *a, const struct attachment_key *key)
{
	const struct attachment_key mark = { .network = "",
					     .container = key->container,
					     .interface = key->interface };

	return attachments_find(&a->table, key) ?: attachments_find(&a->table, &mark);
}

const struct attachment *allocator_find(const struct allocator *a, const struct attachment_key *key)
{
	return attachment_of(a, key);
}

const struct attachments *allocator_attachments(const struct allocator *a)
{
	return &a->table;
}

struct attachment *allocator_release(struct allocator *a, const struct attachment_key *key,
				     int64_t now)
{
	struct attachment *x = attachment_of(a, key);

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
	struct attachment *x = attachment_of(a, key);

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
	struct attachment *x = attachment_of(a, key);

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
	struct attachment *x = attachment_of(a, key);

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
		     i < a->table.held.n && !mark; i++) {
			const struct holding *h = &a->table.held.v[i];
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

/* --- claims --------------------------------------------------------------------------------- */

/* Ours, or perhaps ours: all that counts against maxBlocksPerNode. */
static size_t count_blocks(const struct allocator *a, const struct pool_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < a->blocks.n; i++)
		n += a->blocks.v[i]->state != BLOCK_LOST && block_serves(a->blocks.v[i], v);
	return n;
}

/* Numbers of the pool's blocks that this one covers; they need not be cut alike. */
static struct span block_numbers(const struct pool_view *v, const struct prefix *block)
{
	const address_count base = span_of(&v->cidr).first;
	const unsigned shift = address_bits(&v->cidr.address) - v->block_size;
	struct span s = span_of(block);
	const struct span whole = span_of(&v->cidr);

	s.first = (s.first > whole.first ? s.first : whole.first) - base;
	s.last = (s.last < whole.last ? s.last : whole.last) - base;
	return shift < 128 ? (struct span){ s.first >> shift, s.last >> shift }
			   : (struct span){ 0, 0 };
}

static int find_usable(const struct allocator *a, const struct pool_view *v,
		       const struct spans *limits, struct spans *ret)
{
	AUTO_DONE(spans_done) struct spans both = { 0 }, usable = { 0 };
	int r = 0;

	if (limits) {
		r = spans_intersect(&v->allowed, limits, &both);
		if (r == 0)
			r = blocks_of_addresses(&both, &v->cidr, v->block_size, &usable);
		if (r == 0)
			r = spans_intersect(&usable, &v->usable, &usable);
	} else {
		r = spans_intersect(&v->usable, &v->usable, &usable); /* a copy */
	}
	/* What is ours, or was and is lost, cannot be claimed. */
	for (size_t i = 0; r == 0 && i < a->blocks.n; i++)
		if (strcmp(a->blocks.v[i]->network, v->network) == 0 &&
		    prefix_overlaps(&a->blocks.v[i]->prefix, &v->cidr))
			r = spans_remove(&usable, block_numbers(v, &a->blocks.v[i]->prefix));
	if (r < 0)
		return r;
	*ret = usable;
	usable = (struct spans){ 0 };
	return 0;
}

int need_block(const struct allocator *a, const struct pool_view *v, const struct spans *limits,
	       enum need_reason reason, struct block_need *ret)
{
	struct block_need need = {
		.cidr = v->cidr, .block_size = v->block_size, .reason = reason, .whole = !limits
	};

	if (v->pool->max_blocks_per_node && count_blocks(a, v) >= v->pool->max_blocks_per_node)
		return 0;
	if (find_usable(a, v, limits, &need.usable) < 0)
		return -ENOMEM;
	if (need.usable.n == 0) {
		block_need_done(&need);
		return 0;
	}
	snprintf(need.pool, sizeof(need.pool), "%s", v->name);
	snprintf(need.network, sizeof(need.network), "%s", v->network);
	*ret = need;
	return 1;
}

static bool is_single(const struct pool_view *v)
{
	return v->block_size == address_bits(&v->cidr.address);
}

/* How many are free in the pool without this block (or NULL: in all of it). */
static address_count count_free(const struct allocator *a, const struct pool_view *v,
				const struct own_block *without, int64_t now)
{
	address_count sum = 0;

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];

		/* One whose claim is not settled is on its way: do not ask for another. */
		if (b == without || !block_serves(b, v) ||
		    (b->state != BLOCK_OWNED && b->state != BLOCK_CLAIMING))
			continue;
		sum += stock_count(&b->stock, &v->allowed, rested_before(v, now)).free;
	}
	return sum;
}

/* A quarter of a block; 1 for those that are smaller than four. */
static address_count low_water(const struct pool_view *v)
{
	const unsigned bits = address_bits(&v->cidr.address) - v->block_size;

	return bits < 2 ? 1 : (address_count)1 << (bits - 2);
}

static bool wants_claim(const struct allocator *a, const struct pool_view *v, int64_t now,
			enum need_reason *reason)
{
	const size_t n = count_blocks(a, v);

	if (!pool_view_serves(v) || v->full_until > now)
		return false;
	if (n < v->pool->preallocate) {
		*reason = NEED_PREALLOCATE;
		return true;
	}
	if (n == 0 || is_single(v) || count_free(a, v, NULL, now) >= low_water(v))
		return false;
	*reason = NEED_LOW_WATER;
	return true;
}

int allocator_claims_wanted(const struct allocator *a, int64_t now, struct block_need *ret,
			    size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < a->views.n && n < max; i++) {
		const struct pool_view *v = &a->views.v[i];
		enum need_reason reason;
		int r = wants_claim(a, v, now, &reason) ? need_block(a, v, NULL, reason, &ret[n])
							: 0;

		if (r < 0) {
			while (n > 0)
				block_need_done(&ret[--n]);
			return r;
		}
		n += (size_t)r;
	}
	return (int)n;
}

/* --- giving back ---------------------------------------------------------------------------- */

static bool is_asked(const struct texts *asked, const char *network)
{
	for (size_t i = 0; asked && i < asked->n; i++)
		if (strcmp(asked->v[i], network) == 0)
			return true;
	return false;
}

/* Whether the pool can do without this empty block. */
static bool is_surplus(const struct allocator *a, const struct own_block *b,
		       const struct texts *asked, int64_t now)
{
	const struct pool_view *v = pool_views_find(&a->views, b->pool);
	size_t n = 0, keep;

	/* A record that cannot be read is no command; one that is gone, or elsewhere, is. */
	if (v && !v->pool)
		return false;
	if (!v || !block_serves(b, v) || !v->selected)
		return true;
	for (size_t i = 0; i < a->blocks.n; i++)
		n += a->blocks.v[i] != b && a->blocks.v[i]->state == BLOCK_OWNED &&
		     block_serves(a->blocks.v[i], v);
	keep = v->pool->preallocate;
	if (is_single(v) || is_asked(asked, b->network))
		return n >= keep;
	if (keep == 0)
		keep = 1;
	return n >= keep && count_free(a, v, b, now) >= 2 * low_water(v);
}

static bool has_rested(const struct allocator *a, const struct own_block *b, int64_t now)
{
	return b->empty_since <= rested_before(view_of_block(a, b), now);
}

const struct own_block *allocator_give_back(const struct allocator *a, const struct texts *asked,
					    int64_t now)
{
	/* From the end: new ones are taken from the start of the list. */
	for (size_t i = a->blocks.n; i-- > 0;) {
		const struct own_block *b = a->blocks.v[i];

		if (b->state == BLOCK_OWNED && b->stock.used.n == 0 && has_rested(a, b, now) &&
		    is_surplus(a, b, asked, now))
			return b;
	}
	return NULL;
}

bool allocator_can_spare(const struct allocator *a, const struct texts *asked, const char *network,
			 int64_t now)
{
	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];

		if (strcmp(b->network, network) != 0 || b->stock.used.n)
			continue;
		if (b->state == BLOCK_RELEASING ||
		    (b->state == BLOCK_OWNED && is_surplus(a, b, asked, now)))
			return true;
	}
	return false;
}

int64_t allocator_give_back_time(const struct allocator *a, int64_t now)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct own_block *b = a->blocks.v[i];
		const int64_t rest = now - rested_before(view_of_block(a, b), now);

		if (b->state != BLOCK_OWNED || b->stock.used.n || has_rested(a, b, now))
			continue;
		if (b->empty_since + rest < next)
			next = b->empty_since + rest;
	}
	return next;
}

const struct own_block *allocator_block_forgotten(const struct allocator *a)
{
	for (size_t i = 0; i < a->blocks.n; i++)
		if (a->blocks.v[i]->state == BLOCK_LOST && a->blocks.v[i]->stock.used.n == 0)
			return a->blocks.v[i];
	return NULL;
}
