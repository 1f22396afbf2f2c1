/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"

#define NUMBER_MAX (~(address_count)0)

address_count number_of(const struct address *a)
{
	size_t bytes = address_bits(a) / 8;
	address_count n = 0;

	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | a->bytes[i];
	return n;
}

struct address address_of(sa_family_t family, address_count number)
{
	struct address a = { .family = family };

	for (size_t i = address_bits(&a) / 8; i-- > 0; number >>= 8)
		a.bytes[i] = (uint8_t)number;
	return a;
}

struct span span_of(const struct prefix *p)
{
	const struct address first = prefix_first(p), last = prefix_last(p);

	return (struct span){ number_of(&first), number_of(&last) };
}

void spans_done(struct spans *s)
{
	array_done(s);
}

int spans_reserve(struct spans *s, size_t room)
{
	return room <= s->n ? 0 : array_reserve(s, room - s->n);
}

/* The first interval that ends at number or after it. */
static size_t from(const struct spans *s, address_count number)
{
	return array_place(s->v, s->n, x, x->last < number ? -1 : 0);
}

/* Intervals i to j (exclusive) become these n; the room is there. */
static void replace(struct spans *s, size_t i, size_t j, const struct span *with, size_t n)
{
	memmove(s->v + i + n, s->v + j, (s->n - j) * sizeof(*s->v));
	if (n)
		memcpy(s->v + i, with, n * sizeof(*s->v));
	s->n = s->n - (j - i) + n;
}

int spans_add(struct spans *s, struct span span)
{
	/* Those that touch are joined too, so look one further at both ends. */
	const address_count before = span.first ? span.first - 1 : 0;
	const address_count after = span.last < NUMBER_MAX ? span.last + 1 : NUMBER_MAX;
	size_t i = from(s, before), j = i;

	if (spans_reserve(s, s->n + 1) < 0)
		return -ENOMEM;
	for (; j < s->n && s->v[j].first <= after; j++) {
		if (s->v[j].first < span.first)
			span.first = s->v[j].first;
		if (s->v[j].last > span.last)
			span.last = s->v[j].last;
	}
	replace(s, i, j, &span, 1);
	return 0;
}

int spans_remove(struct spans *s, struct span span)
{
	size_t i = from(s, span.first), j = i, n = 0;
	struct span rest[2];

	if (spans_reserve(s, s->n + 1) < 0)
		return -ENOMEM;
	while (j < s->n && s->v[j].first <= span.last)
		j++;
	if (i == j)
		return 0;
	if (s->v[i].first < span.first)
		rest[n++] = (struct span){ s->v[i].first, span.first - 1 };
	if (s->v[j - 1].last > span.last)
		rest[n++] = (struct span){ span.last + 1, s->v[j - 1].last };
	replace(s, i, j, rest, n);
	return 0;
}

/* --- two sets side by side ------------------------------------------------------------------ */

struct common {
	const struct spans *a, *b;
	size_t i, j;
};

/* From the start of the shorter set's reach, so that a block costs nothing in a large pool. */
static struct common common_of(const struct spans *a, const struct spans *b)
{
	struct common c = { .a = a, .b = b };

	if (a->n && b->n) {
		c.i = from(a, b->v[0].first);
		c.j = from(b, a->v[0].first);
	}
	return c;
}

static bool common_next(struct common *c, struct span *ret)
{
	while (c->i < c->a->n && c->j < c->b->n) {
		const struct span a = c->a->v[c->i], b = c->b->v[c->j];

		ret->first = a.first > b.first ? a.first : b.first;
		ret->last = a.last < b.last ? a.last : b.last;
		if (a.last < b.last)
			c->i++;
		else
			c->j++;
		if (ret->first <= ret->last)
			return true;
	}
	return false;
}

int spans_intersect(const struct spans *a, const struct spans *b, struct spans *ret)
{
	struct common c = common_of(a, b);
	struct spans result = { 0 };
	struct span span;

	while (common_next(&c, &span))
		if (spans_add(&result, span) < 0) {
			spans_done(&result);
			return -ENOMEM;
		}
	spans_done(ret);
	*ret = result;
	return 0;
}

bool spans_first_common(const struct spans *a, const struct spans *b, address_count *ret)
{
	struct common c = common_of(a, b);
	struct span span;

	if (!common_next(&c, &span))
		return false;
	*ret = span.first;
	return true;
}

static address_count add_size(address_count sum, struct span span)
{
	address_count n = span.last - span.first + 1;

	/* 0 is the whole of ::/0. */
	return n == 0 || sum + n < sum ? NUMBER_MAX : sum + n;
}

address_count spans_common_size(const struct spans *a, const struct spans *b)
{
	struct common c = common_of(a, b);
	address_count sum = 0;
	struct span span;

	while (common_next(&c, &span))
		sum = add_size(sum, span);
	return sum;
}

address_count spans_size(const struct spans *s)
{
	address_count sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum = add_size(sum, s->v[i]);
	return sum;
}

bool spans_meet(const struct spans *s, struct span span)
{
	size_t i = from(s, span.first);

	return i < s->n && s->v[i].first <= span.last;
}

bool spans_contain(const struct spans *s, address_count number)
{
	return spans_meet(s, (struct span){ number, number });
}

address_count spans_nth(const struct spans *s, address_count n)
{
	size_t i = 0;

	for (; i + 1 < s->n && n > s->v[i].last - s->v[i].first; i++)
		n -= s->v[i].last - s->v[i].first + 1;
	return s->n ? s->v[i].first + n : 0;
}
