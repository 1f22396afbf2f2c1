/* SPDX-License-Identifier: Apache-2.0 */
/* assign: all that a request wants is taken, or nothing. */
#include <errno.h>
#include <string.h>

#include "ipam/allocator/allocator_parts.h"

void block_need_done(struct block_need *need)
{
	spans_done(&need->usable);
}

void assign_result_done(struct assign_result *result)
{
	for (size_t i = 0; i < result->n_needs; i++)
		block_need_done(&result->needs[i]);
	result->n_needs = 0;
}

static void put_back(struct step *s)
{
	while (s->n_taken > 0) {
		const struct taken *t = &s->taken[--s->n_taken];

		stock_put(&t->block->stock, t->number, t->was);
	}
}

/* --- all that is wanted --------------------------------------------------------------------- */

/* What the CNI result says of it, beside the address itself. */
static void set_shape(struct held_address *h, const struct range_request *range,
		      const struct pool_view *v)
{
	h->length = address_bits(&h->address);
	if (v) {
		h->gateway = v->pool->gateway;
		if (v->pool->prefix == POOL_PREFIX_POOL)
			h->length = v->cidr.length;
	}
	if (range) {
		h->length = range->range.length;
		if (range->gateway.family)
			h->gateway = range->gateway;
	}
}

static struct held_address held_of(const struct want *w, const struct taken *t)
{
	const struct pool_view *v = t->view;
	struct held_address h = { .address = address_of(v->cidr.address.family, t->number),
				  .pool = v->name,
				  .network = v->network,
				  .was = t->was };

	set_shape(&h, w->range, v);
	return h;
}

static int finish(struct step *s)
{
	const struct assign_request *q = s->request;
	AUTO(free) struct held_address *v = calloc(s->n_taken ?: 1, sizeof(*v));
	AUTO(attachment_free) struct attachment *x = NULL;
	struct attachment like = {
		.network = q->network,
		.container = q->container,
		.interface = q->interface,
		.namespace = q->namespace,
		.pod = q->pod,
		.uid = q->uid,
		.netns = q->netns,
		.netns_inode = q->netns_inode,
		.reserved = q->reserved,
		.ipam = "roost-ipam",
		.assigned = (uint64_t)s->now,
	};
	int r;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_taken; i++)
		v[i] = held_of(&s->wants.v[i], &s->taken[i]);
	like.addresses = (struct held_addresses){ v, s->n_taken };
	x = attachment_copy(&like);
	r = x ? attachments_add(&s->a->table, x) : -ENOMEM;
	if (r < 0)
		return r;
	s->result->verdict = ASSIGN_DONE;
	s->result->changed = true;
	s->result->attachment = TAKE(x);
	return 0;
}

static int serve_all(struct step *s)
{
	int r = find_wants(s->a, s->request, &s->wants, s->result);

	if (r != 0)
		return r;
	s->taken = calloc(s->wants.n, sizeof(*s->taken));
	if (!s->taken)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < s->wants.n; i++)
		r = serve_want(s, &s->wants.v[i]);
	if (r < 0)
		return r;
	/* As long as one is missing, none is taken. */
	if (s->n_taken == s->wants.n)
		return finish(s);
	s->result->verdict = s->result->make.name[0] ? ASSIGN_NEED_POOL : ASSIGN_NEED_BLOCK;
	return 0;
}

/* --- there already -------------------------------------------------------------------------- */

static void shape_mark(const struct allocator *a, const struct assign_request *q,
		       struct attachment *x)
{
	for (size_t i = 0; i < x->addresses.n; i++) {
		struct held_address *h = &x->addresses.v[i];
		const struct pool_view *v = pool_views_find(&a->views, h->pool);
		const struct range_request *range = NULL;

		for (size_t j = 0; j < q->ranges.n && !range; j++)
			if (prefix_contains(&q->ranges.v[j].range, &h->address))
				range = &q->ranges.v[j];
		set_shape(h, range,
			  v && v->pool && prefix_contains(&v->cidr, &h->address) ? v : NULL);
	}
}

/* A mark of this container and interface: now it is known to which network it belongs. */
static int adopt(struct allocator *a, const struct assign_request *q, struct attachment *mark,
		 struct assign_result *result)
{
	struct attachment like = *mark;
	struct attachment *x;

	like.network = q->network;
	like.namespace = q->namespace[0] ? q->namespace : mark->namespace;
	like.pod = q->pod[0] ? q->pod : mark->pod;
	like.uid = q->uid;
	like.reserved = q->reserved;
	if (q->reserved)
		like.state = ATTACHMENT_ASSIGNED; /* it has no link */
	like.ipam = "roost-ipam";
	if (q->netns[0]) {
		like.netns = q->netns;
		like.netns_inode = q->netns_inode;
	}
	x = attachment_copy(&like);
	if (!x)
		return -ENOMEM;
	shape_mark(a, q, x);
	attachments_remove(&a->table, mark);
	attachments_add(&a->table, x); /* in the room of the other: cannot fail */
	attachment_free(mark);
	result->attachment = x;
	result->changed = true;
	return 0;
}

static int repeat(struct allocator *a, const struct assign_request *q, struct attachment *x,
		  struct assign_result *result)
{
	if (x->state == ATTACHMENT_RELEASING) {
		result->verdict = ASSIGN_WAIT;
		return 0;
	}
	result->verdict = ASSIGN_DONE;
	result->existing = true;
	result->attachment = x;
	return attachment_is_mark(x) ? adopt(a, q, x, result) : 0;
}

int allocator_assign(struct allocator *a, const struct assign_request *request,
		     const struct assign_options *options, int64_t now, struct assign_result *ret)
{
	const struct attachment_key key = assign_request_key(request);
	const struct attachment_key mark = { "", key.container, key.interface };
	struct attachment *x = attachments_find(&a->table, &key)
				       ?: attachments_find(&a->table, &mark);
	struct step s = { a, request, options, now, ret, { 0 }, NULL, 0 };
	int r;

	*ret = (struct assign_result){ 0 };
	if (x)
		return repeat(a, request, x, ret);
	r = serve_all(&s);
	if (r < 0 || ret->verdict != ASSIGN_DONE)
		put_back(&s);
	if (r < 0 || ret->verdict != ASSIGN_NEED_BLOCK)
		assign_result_done(ret);
	wants_done(&s.wants);
	free(s.taken);
	return r == -EPERM ? 0 : r;
}
