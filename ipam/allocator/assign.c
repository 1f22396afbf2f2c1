/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign: all that a request wants is taken, or nothing.
 *
 *   request -> find_wants: pools and limits for each address -> serve_want: an address, or what is
 *   missing -> finish: the attachment
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ipam/allocator/allocator_state.h"

/* One address that a request wants. */
struct want {
	const struct pool_view **pools; /* in this order */
	size_t n_pools;
	const struct address *address;     /* exactly this, or NULL */
	const struct range_request *range; /* or NULL */
	struct range_plan plan;            /* with a range */
	bool limited;
	struct spans limits; /* if limited: nothing else will do */
};

struct wants {
	struct want *v;
	size_t n;
};

/* An address that goes back unless all can be had. */
struct taken {
	struct own_block *block;
	const struct pool_view *view;
	address_count number;
	int64_t was;
};

struct step {
	struct allocator *a;
	const struct assign_request *request;
	const struct assign_options *options;
	int64_t now;
	struct assign_result *result;
	struct wants wants;
	struct taken *taken; /* one for each want that is served */
	size_t n_taken;
};

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

static PRINTF_LIKE(3, 4) int refuse(struct assign_result *result, enum cni_code code,
				    const char *fmt, ...)
{
	va_list args;

	result->verdict = ASSIGN_REFUSED;
	result->code = code;
	va_start(args, fmt);
	vsnprintf(result->why.text, sizeof(result->why.text), fmt, args);
	va_end(args);
	return -EPERM;
}

static void wants_done(struct wants *wants)
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
	return exclude_prefixes(s, &r->exclude, r->range.address.family);
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
	return exclude_prefixes(&w->limits, exclude, family);
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
			return refuse(result, CNI_CODE_ADDRESS_IN_USE,
				      "%s lies in none of the ranges", address_print(a, text));
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
		return refuse(result, CNI_CODE_NO_ADDRESS, "%s", err.text);
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
		return refuse(result, CNI_CODE_ADDRESS_IN_USE, "%s lies in none of the pools%s",
			      text, request->pools.n ? " that were asked for" : "");
	if (pool_view_check(v, &err) < 0 ||
	    pool_fence_check(&a->views, v, request->namespace, &err) < 0)
		return refuse(result, CNI_CODE_ADDRESS_IN_USE, "%s cannot be given: %s", text,
			      err.text);
	for (struct want *other = wants->v; other < w; other++)
		if (other->n_pools && other->pools[0] == v)
			return refuse(result, CNI_CODE_CONFIG,
				      "more than one address is asked for in pool %s", v->name);
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
		return refuse(result, CNI_CODE_NO_ADDRESS, "%s", err.text);
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

static int find_wants(const struct allocator *a, const struct assign_request *request,
		      struct wants *ret, struct assign_result *result)
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

/* --- one want ------------------------------------------------------------------------------- */

static int take(struct step *s, struct own_block *b, const struct pool_view *v,
		address_count number)
{
	struct taken t = { .block = b, .view = v, .number = number };
	int r = stock_take(&b->stock, number, &t.was);

	if (r == 0)
		s->taken[s->n_taken++] = t;
	return r;
}

/* --- a block that must be claimed first ----------------------------------------------------- */

static bool is_needed(const struct assign_result *result, const struct pool_view *v)
{
	for (size_t i = 0; i < result->n_needs; i++)
		if (strcmp(result->needs[i].pool, v->name) == 0)
			return true;
	return false;
}

/*
 * 1: the caller is asked for a block (or could be, were it not for the options: *barred).
 * 0: there is none to claim. -ENOMEM.
 */
static int ask_for_block(struct step *s, const struct pool_view *v, const struct want *w,
			 bool *barred)
{
	struct assign_result *result = s->result;
	struct block_need need;
	int r;

	if (v->full_until > s->now)
		return 0;
	r = need_block(s->a, v, w->limited ? &w->limits : NULL, NEED_REQUEST, &need);
	if (r <= 0)
		return r;
	if (!s->options->may_claim || is_needed(result, v) || result->n_needs == ASSIGN_NEEDS) {
		*barred = !s->options->may_claim;
		block_need_done(&need);
		return !*barred;
	}
	result->needs[result->n_needs++] = need;
	return 1;
}

/* --- any address ---------------------------------------------------------------------------- */

struct find {
	enum pick pick;
	struct own_block *block;
	const struct pool_view *view;
	address_count number;
	int64_t at;
};

/*
 * A free one comes from the fullest block, so that others empty and can be given back; if all
 * are resting, the one released longest ago.
 */
static bool is_better(const struct find *x, const struct find *than)
{
	if (x->pick != than->pick)
		return x->pick > than->pick;
	if (x->pick == PICK_FREE)
		return x->block->stock.used.n > than->block->stock.used.n;
	return x->pick == PICK_RESTING && x->at < than->at;
}

static struct find find_in_pool(const struct step *s, const struct pool_view *v,
				const struct spans *allowed)
{
	const struct blocks *blocks = &s->a->blocks;
	struct find best = { .view = v };

	for (size_t i = 0; i < blocks->n; i++) {
		struct find f = { .view = v, .block = blocks->v[i] };

		if (f.block->state != BLOCK_OWNED || !block_serves(f.block, v))
			continue;
		f.pick = stock_pick(&f.block->stock, allowed, rested_before(v, s->now), &f.number,
				    &f.at);
		if (is_better(&f, &best))
			best = f;
	}
	return best;
}

static int find_limited(const struct step *s, const struct pool_view *v, const struct want *w,
			struct find *ret)
{
	AUTO_DONE(spans_done) struct spans both = { 0 };

	if (!w->limited) {
		*ret = find_in_pool(s, v, &v->allowed);
		return 0;
	}
	if (spans_intersect(&v->allowed, &w->limits, &both) < 0)
		return -ENOMEM;
	*ret = find_in_pool(s, v, &both);
	return 0;
}

/* "pool a (10.1.0.0/24, 256 addresses), pool b (...)" */
static void show_pools(const struct want *w, char *text, size_t room)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < w->n_pools && n < room; i++) {
		char one[POOL_SHOW_TEXT];

		n += (size_t)snprintf(text + n, room - n, "%s%s", i ? ", " : "",
				      pool_view_show(w->pools[i], one));
	}
}

static int refuse_full(struct step *s, const struct want *w, bool barred)
{
	const char *limits = w->limited ? " within the limits of the request" : "";
	char pools[380], most[64] = "";

	show_pools(w, pools, sizeof(pools));
	if (barred && s->options->why_not)
		return refuse(s->result, CNI_CODE_TRY_AGAIN,
			      "no address is free%s here in %s, and no block can be claimed: %s",
			      limits, pools, s->options->why_not);
	if (w->n_pools == 1 && w->pools[0]->pool->max_blocks_per_node)
		snprintf(most, sizeof(most), " (at most %u blocks for each node)",
			 w->pools[0]->pool->max_blocks_per_node);
	return refuse(s->result, CNI_CODE_NO_ADDRESS, "no address is free%s: %s %s full%s", limits,
		      pools, w->n_pools == 1 ? "is" : "are", most);
}

/* The range has parts that nobody has needed so far. */
static int ask_for_pool(struct step *s, const struct want *w)
{
	if (s->result->make.name[0] == '\0')
		s->result->make = w->plan.make;
	return 0;
}

static int serve_any(struct step *s, const struct want *w)
{
	struct find resting = { 0 };
	bool barred = false;

	for (size_t i = 0; i < w->n_pools; i++) {
		const struct pool_view *v = w->pools[i];
		struct find f;
		int r = find_limited(s, v, w, &f);

		if (r < 0)
			return r;
		if (f.pick == PICK_FREE)
			return take(s, f.block, v, f.number);
		r = ask_for_block(s, v, w, &barred);
		if (r != 0)
			return r < 0 ? r : 0;
		if (f.pick == PICK_RESTING && resting.pick == PICK_NONE)
			resting = f;
	}
	if (w->plan.more && s->options->may_claim)
		return ask_for_pool(s, w);
	if (resting.pick == PICK_RESTING)
		return take(s, resting.block, resting.view, resting.number);
	return refuse_full(s, w, barred || w->plan.more);
}

/* --- a certain address ---------------------------------------------------------------------- */

static int refuse_held(struct step *s, const struct pool_view *v, const struct address *address)
{
	const struct holding *h = attachments_holder(&s->a->table, v->network, address);
	char text[ADDRESS_TEXT];

	address_print(address, text);
	if (!h)
		return refuse(s->result, CNI_CODE_ADDRESS_IN_USE, "%s is in use", text);
	if (attachment_is_mark(h->attachment) && !h->attachment->interface[0])
		return refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
			      "%s is in use: there is a route to it", text);
	if (!h->attachment->pod[0])
		return refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
			      "%s is in use by %s of container %s", text, h->attachment->interface,
			      h->attachment->container);
	return refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
		      "%s is in use by %s of container %s (%s/%s)", text, h->attachment->interface,
		      h->attachment->container, h->attachment->namespace, h->attachment->pod);
}

static int need_certain_block(struct step *s, const struct pool_view *v, const struct want *w)
{
	const address_count n = number_of(w->address);
	struct spans only = { .v = &(struct span){ n, n }, .n = 1 };
	const struct want narrow = { .limited = true, .limits = only };
	char text[ADDRESS_TEXT];
	bool barred = false;
	struct block_need *need;
	size_t before = s->result->n_needs;
	int r = ask_for_block(s, v, &narrow, &barred);

	if (r < 0)
		return r;
	address_print(w->address, text);
	if (r == 0 && barred && s->options->why_not)
		return refuse(s->result, CNI_CODE_TRY_AGAIN,
			      "%s is not in a block of this node: %s", text, s->options->why_not);
	if (r == 0)
		return refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
			      "%s is not in a block of this node, and its block cannot be claimed",
			      text);
	if (s->result->n_needs > before) {
		need = &s->result->needs[before];
		need->specific = true;
		need->block = prefix_of(w->address, need->block_size);
	}
	return 0;
}

static int serve_certain(struct step *s, const struct want *w)
{
	const struct pool_view *v = w->pools[0];
	const address_count n = number_of(w->address);
	struct own_block *b = blocks_with(&s->a->blocks, v->network, w->address);
	char text[ADDRESS_TEXT];
	int r;

	address_print(w->address, text);
	if (!spans_contain(&v->allowed, n) || (w->limited && !spans_contain(&w->limits, n)))
		return refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
			      "%s is excluded from pool %s or by the request", text, v->name);
	if (attachments_holder(&s->a->table, v->network, w->address))
		return refuse_held(s, v, w->address);
	if (!b)
		return need_certain_block(s, v, w);
	if (b->state != BLOCK_OWNED || !block_serves(b, v))
		return refuse(s->result,
			      b->state == BLOCK_LOST ? CNI_CODE_ADDRESS_IN_USE : CNI_CODE_TRY_AGAIN,
			      "%s cannot be given: its block is %s in pool %s", text,
			      block_state_name(b->state), b->pool);
	r = take(s, b, v, n);
	return r == -EBUSY ? refuse_held(s, v, w->address) : r;
}

/* --- either --------------------------------------------------------------------------------- */

/*
 * Takes an address, or adds to the needs of the result. 0; -ENOMEM; or -EPERM, and the refusal
 * is in the result.
 */
static int serve_want(struct step *s, struct want *w)
{
	if (!w->address)
		return serve_any(s, w);
	/* Of a grown range: the part that has the address, or it must be made. */
	for (size_t i = 0; i < w->n_pools; i++)
		if (prefix_contains(&w->pools[i]->cidr, w->address)) {
			w->pools[0] = w->pools[i];
			return serve_certain(s, w);
		}
	if (w->plan.more && s->options->may_claim)
		return ask_for_pool(s, w);
	return refuse(s->result, s->options->why_not ? CNI_CODE_TRY_AGAIN : CNI_CODE_ADDRESS_IN_USE,
		      "the pool of the requested address cannot be made%s%s",
		      s->options->why_not ? ": " : "", s->options->why_not ?: "");
}

/* --- all of them ---------------------------------------------------------------------------- */

static void put_back(struct step *s)
{
	while (s->n_taken > 0) {
		const struct taken *t = &s->taken[--s->n_taken];

		stock_put(&t->block->stock, t->number, t->was);
	}
}

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
	s->taken = calloc(s->wants.n ?: 1, sizeof(*s->taken));
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
	const struct attachment_key key = request_key(request);
	const struct attachment_key mark = { .network = "",
					     .container = key.container,
					     .interface = key.interface };
	struct attachment *x = attachments_find(&a->table, &key)
				       ?: attachments_find(&a->table, &mark);
	struct step s = {
		.a = a, .request = request, .options = options, .now = now, .result = ret
	};
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
