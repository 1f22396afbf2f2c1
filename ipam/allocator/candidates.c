/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/candidates.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/auto.h"
#include "lib/base/hash.h"

static address_count common_divisor(address_count a, address_count b)
{
	while (b) {
		address_count rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

struct candidates candidates(const struct spans *usable, const char *node, const char *network,
			     const char *pool)
{
	const struct hash h = HASH_TEXTS(node, network, pool);
	struct candidates c = { .usable = usable, .count = spans_size(usable) };

	if (c.count == 0)
		return c;
	c.left = c.count;
	c.at = h.low % c.count;
	c.step = 1 + h.high % c.count;
	/* Steps that share a divisor with the number of blocks would not visit them all. */
	while (common_divisor(c.count, c.step) != 1)
		c.step++;
	c.step %= c.count;
	return c;
}

bool candidate_next(struct candidates *c, address_count *ret)
{
	if (c->left == 0)
		return false;
	*ret = spans_nth(c->usable, c->at);
	c->at = (c->at + c->step) % c->count;
	c->left--;
	return true;
}

/* --- when most are taken -------------------------------------------------------------------- */

#define MOST_BLOCKS (1U << 20) /* POOL_BLOCKS_MAX_BITS */
#define WORD_BITS   64

/* The n-th bit that is not set; fewer than n words of it are full. */
static size_t nth_clear(const uint64_t *bits, uint64_t n)
{
	size_t i = 0;
	uint64_t clear;

	for (; n >= (uint64_t)__builtin_popcountll(~bits[i]); i++)
		n -= (uint64_t)__builtin_popcountll(~bits[i]);
	for (clear = ~bits[i]; n > 0; n--)
		clear &= clear - 1;
	return i * WORD_BITS + (size_t)__builtin_ctzll(clear);
}

/* A bit for each block: set if it cannot be had. Returns how many can. */
static size_t mark_taken(const struct spans *usable, const uint32_t *taken, size_t n,
			 uint64_t *bits)
{
	size_t left = 0;

	for (size_t i = 0; i < usable->n; i++)
		for (address_count b = usable->v[i].first;
		     b <= usable->v[i].last && b < MOST_BLOCKS; b++) {
			bits[b / WORD_BITS] &= ~(1ULL << b % WORD_BITS);
			left++;
		}
	for (size_t i = 0; i < n; i++) {
		const uint64_t bit = 1ULL << taken[i] % WORD_BITS;

		if (taken[i] >= MOST_BLOCKS || bits[taken[i] / WORD_BITS] & bit)
			continue;
		bits[taken[i] / WORD_BITS] |= bit;
		left--;
	}
	return left;
}

int candidate_free(const struct spans *usable, const uint32_t *taken, size_t n, uint64_t random,
		   address_count *ret)
{
	AUTO(free) uint64_t *bits = NULL;
	size_t left, words = MOST_BLOCKS / WORD_BITS;

	if (usable->n == 0)
		return -ENOSPC;
	bits = malloc(words * sizeof(*bits));
	if (!bits)
		return -ENOMEM;
	for (size_t i = 0; i < words; i++)
		bits[i] = ~0ULL;
	left = mark_taken(usable, taken, n, bits);
	if (left == 0)
		return -ENOSPC;
	*ret = nth_clear(bits, random % left);
	return 0;
}
