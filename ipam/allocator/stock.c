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
	free(s->released);
	free(s->used);
	*s = (struct stock){ 0 };
}

/* --- used ----------------------------------------------------------------------------------- */

static size_t used_from(const struct stock *s, address_count number)
{
	size_t low = 0, high = s->n_used;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->used[mid] < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool stock_used(const struct stock *s, address_count number)
{
	size_t i = used_from(s, number);

	return i < s->n_used && s->used[i] == number;
}

/*
 * Room for one more in use, and for all of those to come back: as released ones, or as intervals
 * of their own. So no later step can fail.
 */
static int make_room(struct stock *s)
{
	const size_t known = s->n_used + s->n_released + 1;
	void *v;

	if (spans_reserve(&s->fresh, known + 2) < 0)
		return -ENOMEM;
	if (known > s->released_room) {
		v = realloc(s->released, 2 * known * sizeof(*s->released));
		if (!v)
			return -ENOMEM;
		s->released = v;
		s->released_room = 2 * known;
	}
	if (s->n_used == s->used_room) {
		v = realloc(s->used, 2 * (s->n_used + 1) * sizeof(*s->used));
		if (!v)
			return -ENOMEM;
		s->used = v;
		s->used_room = 2 * (s->n_used + 1);
	}
	return 0;
}

/* --- released ------------------------------------------------------------------------------- */

static bool find_released(const struct stock *s, address_count number, size_t *ret)
{
	/* From the oldest: that is the one that is usually taken. */
	for (size_t i = 0; i < s->n_released; i++)
		if (s->released[i].number == number) {
			*ret = i;
			return true;
		}
	return false;
}

static void drop_released(struct stock *s, size_t i)
{
	s->n_released--;
	memmove(s->released + i, s->released + i + 1, (s->n_released - i) * sizeof(*s->released));
}

static void add_released(struct stock *s, address_count number, int64_t at)
{
	size_t i = s->n_released;

	/* Nearly always the newest; after an undo it gets its old place back. */
	while (i > 0 && s->released[i - 1].at > at)
		i--;
	memmove(s->released + i + 1, s->released + i, (s->n_released - i) * sizeof(*s->released));
	s->released[i] = (struct released){ number, at };
	s->n_released++;
}

/* --- take and put --------------------------------------------------------------------------- */

int stock_take(struct stock *s, address_count number, int64_t *at)
{
	size_t i = used_from(s, number), j;

	if (i < s->n_used && s->used[i] == number)
		return -EBUSY;
	if (make_room(s) < 0)
		return -ENOMEM;
	if (spans_contain(&s->fresh, number)) {
		spans_remove(&s->fresh, (struct span){ number, number });
		*at = NEVER_USED;
	} else if (find_released(s, number, &j)) {
		*at = s->released[j].at;
		drop_released(s, j);
	} else {
		return -ERANGE;
	}
	memmove(s->used + i + 1, s->used + i, (s->n_used - i) * sizeof(*s->used));
	s->used[i] = number;
	s->n_used++;
	return 0;
}

bool stock_put(struct stock *s, address_count number, int64_t at)
{
	size_t i = used_from(s, number);

	if (i == s->n_used || s->used[i] != number)
		return false;
	s->n_used--;
	memmove(s->used + i, s->used + i + 1, (s->n_used - i) * sizeof(*s->used));
	if (at == NEVER_USED)
		spans_add(&s->fresh, (struct span){ number, number });
	else
		add_released(s, number, at);
	return true;
}

void stock_forget(struct stock *s, int64_t rested_before)
{
	size_t n = 0;

	while (s->n_released - n > STOCK_REMEMBERED && s->released[n].at <= rested_before) {
		const address_count number = s->released[n].number;

		spans_add(&s->fresh, (struct span){ number, number });
		n++;
	}
	s->n_released -= n;
	if (n)
		memmove(s->released, s->released + n, s->n_released * sizeof(*s->released));
}

/* --- pick and count ------------------------------------------------------------------------- */

enum pick stock_pick(const struct stock *s, const struct spans *allowed, int64_t rested_before,
		     address_count *ret, int64_t *at)
{
	if (spans_first_common(&s->fresh, allowed, ret)) {
		*at = NEVER_USED;
		return PICK_FREE;
	}
	for (size_t i = 0; i < s->n_released; i++) {
		if (!spans_contain(allowed, s->released[i].number))
			continue;
		*ret = s->released[i].number;
		*at = s->released[i].at;
		return *at <= rested_before ? PICK_FREE : PICK_RESTING;
	}
	return PICK_NONE;
}

struct address_counts stock_count(const struct stock *s, const struct spans *allowed,
				  int64_t rested_before)
{
	struct address_counts c = { .used = s->n_used,
				    .free = spans_common_size(&s->fresh, allowed) };

	for (size_t i = 0; i < s->n_released; i++) {
		if (!spans_contain(allowed, s->released[i].number))
			continue;
		if (s->released[i].at <= rested_before)
			c.free++;
		else
			c.resting++;
	}
	return c;
}
