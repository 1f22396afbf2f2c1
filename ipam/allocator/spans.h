/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of numbers as sorted intervals: which addresses, which blocks.
 *
 * Pure. A block may be a /64 and a pool may exclude half of it, so nothing here
 * ever walks numbers one by one. A number is an address within its family
 * (number_of()), or a block within its pool. Intervals are inclusive at both
 * ends, which is what lets ::/0 have one; they neither overlap nor touch.
 */
#pragma once

#include "lib/base/prefix.h"

struct span {
	address_count first, last;
};

/* Zeroed: the empty set. */
struct spans {
	struct span *v;
	size_t n, room;
};

address_count number_of(const struct address *a);
struct address address_of(sa_family_t family, address_count number);
struct span span_of(const struct prefix *p);

void spans_done(struct spans *s);

/* All that return int: 0 or -ENOMEM, and then nothing has changed. */
/* After this, spans_add() and spans_remove() cannot fail until n is above room. */
int spans_reserve(struct spans *s, size_t room);
int spans_add(struct spans *s, struct span span);
int spans_remove(struct spans *s, struct span span);
/* *ret is replaced by the common part. */
int spans_intersect(const struct spans *a, const struct spans *b, struct spans *ret);

bool spans_contain(const struct spans *s, address_count number);
bool spans_meet(const struct spans *s, struct span span);
/* The lowest number that is in both. */
bool spans_first_common(const struct spans *a, const struct spans *b, address_count *ret);
/* How many numbers; the 2^128 of ::/0 are told as one less. */
address_count spans_size(const struct spans *s);
address_count spans_common_size(const struct spans *a, const struct spans *b);
/* The n-th number of the set, n < spans_size(). */
address_count spans_nth(const struct spans *s, address_count n);
