/* SPDX-License-Identifier: Apache-2.0 */
/* One want of a request: an address is taken for it, or it is found what is missing. */
#include <errno.h>
#include <string.h>

#include "ipam/allocator/allocator_parts.h"

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
		return x->block->stock.n_used > than->block->stock.n_used;
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
		return assign_refuse(
			s->result, CNI_CODE_TRY_AGAIN,
			"no address is free%s here in %s, and no block can be claimed: %s", limits,
			pools, s->options->why_not);
	if (w->n_pools == 1 && w->pools[0]->pool->max_blocks_per_node)
		snprintf(most, sizeof(most), " (at most %u blocks for each node)",
			 w->pools[0]->pool->max_blocks_per_node);
	return assign_refuse(s->result, CNI_CODE_NO_ADDRESS, "no address is free%s: %s %s full%s",
			     limits, pools, w->n_pools == 1 ? "is" : "are", most);
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
		return assign_refuse(s->result, CNI_CODE_ADDRESS_IN_USE, "%s is in use", text);
	if (attachment_is_mark(h->attachment) && !h->attachment->interface[0])
		return assign_refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
				     "%s is in use: there is a route to it", text);
	if (!h->attachment->pod[0])
		return assign_refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
				     "%s is in use by %s of container %s", text,
				     h->attachment->interface, h->attachment->container);
	return assign_refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
			     "%s is in use by %s of container %s (%s/%s)", text,
			     h->attachment->interface, h->attachment->container,
			     h->attachment->namespace, h->attachment->pod);
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
		return assign_refuse(s->result, CNI_CODE_TRY_AGAIN,
				     "%s is not in a block of this node: %s", text,
				     s->options->why_not);
	if (r == 0)
		return assign_refuse(
			s->result, CNI_CODE_ADDRESS_IN_USE,
			"%s is not in a block of this node, and its block cannot be claimed", text);
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
		return assign_refuse(s->result, CNI_CODE_ADDRESS_IN_USE,
				     "%s is excluded from pool %s or by the request", text,
				     v->name);
	if (attachments_holder(&s->a->table, v->network, w->address))
		return refuse_held(s, v, w->address);
	if (!b)
		return need_certain_block(s, v, w);
	if (b->state != BLOCK_OWNED || !block_serves(b, v))
		return assign_refuse(s->result,
				     b->state == BLOCK_LOST ? CNI_CODE_ADDRESS_IN_USE
							    : CNI_CODE_TRY_AGAIN,
				     "%s cannot be given: its block is %s in pool %s", text,
				     block_state_name(b->state), b->pool);
	r = take(s, b, v, n);
	return r == -EBUSY ? refuse_held(s, v, w->address) : r;
}

/* --- either --------------------------------------------------------------------------------- */

int serve_want(struct step *s, struct want *w)
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
	return assign_refuse(s->result,
			     s->options->why_not ? CNI_CODE_TRY_AGAIN : CNI_CODE_ADDRESS_IN_USE,
			     "the pool of the requested address cannot be made%s%s",
			     s->options->why_not ? ": " : "", s->options->why_not ?: "");
}
