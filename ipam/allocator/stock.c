/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/stock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stock_init(struct stock *s, const struct prefix *block)
{
	*s = (struct stock){ .block = prefix_mask(block) };
	return spans_add(&s->fresh, span_of(block));
}

void stock_done(struct stock *s)
{
	spans_done(&s->fresh);
	array_done(&s->released);
	array_done(&s->used);
}

/* --- used ----------------------------------------------------------------------------------- */

static size_t used_from(const struct stock *s, address_count number)
{
	return array_place(s->used.v, s->used.n, x, (*x > number) - (*x < number));
}

bool stock_used(const struct stock *s, address_count number)
{
	return array_find(s->used.v, s->used.n, x, (*x > number) - (*x < number));
}

/*
 * Room for one more in use, and for all of those to come back: as released ones, or as intervals
 * of their own. So no later step can fail.
 */
static int make_room(struct stock *s)
{
	const size_t known = s->used.n + s->released.n + 1;

	if (spans_reserve(&s->fresh, known + 2) < 0 ||
	    array_reserve(&s->released, known - s->released.n) < 0)
		return -ENOMEM;
	return array_reserve(&s->used, 1);
}

/* --- released ------------------------------------------------------------------------------- */

static void add_released(struct stock *s, address_count number, int64_t at)
{
	size_t i = s->released.n;

	/* Nearly always the newest; after an undo it gets its old place back. */
	while (i > 0 && s->released.v[i - 1].at > at)
		i--;
	*array_insert(&s->released, i) = (struct released){ .number = number, .at = at };
}

/* --- take and put --------------------------------------------------------------------------- */

int stock_take(struct stock *s, address_count number, int64_t *at)
{
	size_t i = 0;

	if (stock_used(s, number))
		return -EBUSY;
	if (make_room(s) < 0)
		return -ENOMEM;
	if (spans_contain(&s->fresh, number)) {
		spans_remove(&s->fresh, (struct span){ number, number });
		*at = NEVER_USED;
	} else {
		/* From the oldest: that is the one that is usually taken. */
		while (i < s->released.n && s->released.v[i].number != number)
			i++;
		if (i == s->released.n)
			return -ERANGE;
		*at = s->released.v[i].at;
		array_remove(&s->released, i);
	}
	*array_insert(&s->used, used_from(s, number)) = number;
	return 0;
}

bool stock_put(struct stock *s, address_count number, int64_t at)
{
	if (!stock_used(s, number))
		return false;
	array_remove(&s->used, used_from(s, number));
	if (at == NEVER_USED)
		spans_add(&s->fresh, (struct span){ number, number });
	else
		add_released(s, number, at);
	return true;
}

void stock_forget(struct stock *s, int64_t rested_before)
{
	size_t n = 0;

	while (s->released.n - n > STOCK_REMEMBERED && s->released.v[n].at <= rested_before) {
		const address_count number = s->released.v[n].number;

		spans_add(&s->fresh, (struct span){ number, number });
		n++;
	}
	s->released.n -= n;
	if (n)
		memmove(s->released.v, s->released.v + n, s->released.n * sizeof(*s->released.v));
}

/* --- pick and count ------------------------------------------------------------------------- */

enum pick stock_pick(const struct stock *s, const struct spans *allowed, int64_t rested_before,
		     address_count *ret, int64_t *at)
{
	if (spans_first_common(&s->fresh, allowed, ret)) {
		*at = NEVER_USED;
		return PICK_FREE;
	}
	for (size_t i = 0; i < s->released.n; i++) {
		if (!spans_contain(allowed, s->released.v[i].number))
			continue;
		*ret = s->released.v[i].number;
		*at = s->released.v[i].at;
		return *at <= rested_before ? PICK_FREE : PICK_RESTING;
	}
	return PICK_NONE;
}

struct address_counts stock_count(const struct stock *s, const struct spans *allowed,
				  int64_t rested_before)
{
	struct address_counts c = { .used = s->used.n,
				    .free = spans_common_size(&s->fresh, allowed) };

	for (size_t i = 0; i < s->released.n; i++) {
		if (!spans_contain(allowed, s->released.v[i].number))
			continue;
		if (s->released.v[i].at <= rested_before)
			c.free++;
		else
			c.resting++;
	}
	return c;
}
