/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipam/allocator/candidates.h"

#define NODES  5000
#define BLOCKS 16384

static struct spans usable;

static int open_usable(void **unused)
{
	return spans_add(&usable, (struct span){ 0, BLOCKS - 1 });
}

static int close_usable(void **unused)
{
	spans_done(&usable);
	return 0;
}

static struct candidates of_node(unsigned i, const char *network)
{
	char node[32];

	snprintf(node, sizeof(node), "node-%04u", i);
	return candidates(&usable, node, network, "pods");
}

static uint64_t next_random(uint64_t *seed)
{
	/* SplitMix64. */
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void shuffle(unsigned *v, size_t n, uint64_t *seed)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = next_random(seed) % i;
		unsigned t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}

/* What claims need; a list of what is taken counts as a transaction too. */
struct claimant {
	struct candidates c;
	unsigned misses;
	bool done;
};

static size_t list_taken(const bool *taken, uint32_t *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (taken[i])
			ret[n++] = i;
	return n;
}

/* One try as the claim code makes it; the number of requests to etcd. The list is from before
 * this round, as it would be for who starts at the same moment. */
static unsigned try_once(struct claimant *x, bool *taken, const uint32_t *listed, size_t n_listed,
			 uint64_t *seed)
{
	unsigned cost = 1;
	address_count b;

	if (x->misses < CANDIDATE_TRIES) {
		assert_true(candidate_next(&x->c, &b));
	} else {
		assert_int_equal(candidate_free(&usable, listed, n_listed, next_random(seed), &b),
				 0);
		cost++;
	}
	if (taken[b]) {
		x->misses++;
		return cost;
	}
	taken[b] = x->done = true;
	return cost;
}

/* at_once: all that have none yet try, then all of those again; else one after the other. */
static double requests_per_block(const char *network, bool at_once, uint64_t seed)
{
	static struct claimant nodes[NODES];
	static unsigned order[NODES];
	static uint32_t listed[BLOCKS];
	static bool taken[BLOCKS];
	unsigned requests = 0, done = 0;

	memset(taken, 0, sizeof(taken));
	for (unsigned i = 0; i < NODES; i++) {
		nodes[i] = (struct claimant){ .c = of_node(i + 1, network) };
		order[i] = i;
	}
	while (done < NODES) {
		size_t n = list_taken(taken, listed);

		shuffle(order, NODES, &seed);
		for (unsigned i = 0; i < NODES; i++) {
			struct claimant *x = &nodes[order[i]];

			while (!x->done) {
				if (!at_once && x->misses >= CANDIDATE_TRIES)
					n = list_taken(taken, listed);
				requests += try_once(x, taken, listed, n, &seed);
				if (at_once)
					break;
			}
		}
		done = 0;
		for (unsigned i = 0; i < NODES; i++)
			done += nodes[i].done;
	}
	return (double)requests / NODES;
}

static void five_thousand_nodes_seldom_meet(void **unused)
{
	char network[16];
	double worst = 0;

	for (unsigned i = 0; i < 10; i++) {
		double one, round;

		snprintf(network, sizeof(network), "net%u", i);
		one = requests_per_block(network, false, i + 1);
		round = requests_per_block(network, true, i + 1);
		worst = one > worst ? one : worst;
		worst = round > worst ? round : worst;
	}
	print_message("requests per block claimed, worst of 20 runs: %.3f\n", worst);
	assert_true(worst <= 1.3);
}

static void each_sequence_visits_every_block_once(void **unused)
{
	static const unsigned sizes[] = { 1, 2, 3, 6, 64, 97, 1000, 1024 };

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct spans s = { 0 };
		struct candidates c;
		unsigned seen[3100] = { 0 }, n = 0;
		address_count b;

		/* In two pieces, as exclusions leave them. */
		spans_add(&s, (struct span){ 5, 5 + sizes[k] - 1 });
		spans_add(&s, (struct span){ 2000, 2000 + sizes[k] - 1 });
		c = candidates(&s, "n1", "default", "web");
		while (candidate_next(&c, &b)) {
			assert_true(spans_contain(&s, b));
			seen[b]++;
			n++;
		}
		assert_int_equal(n, 2 * sizes[k]);
		for (unsigned i = 0; i < 3100; i++)
			assert_true(seen[i] <= 1);
		spans_done(&s);
	}
}

static void without_blocks_there_is_no_candidate(void **unused)
{
	const struct spans none = { 0 };
	struct candidates c = candidates(&none, "n1", "default", "web");
	address_count b;

	assert_false(candidate_next(&c, &b));
	assert_int_equal(candidate_free(&none, NULL, 0, 1, &b), -ENOSPC);
}

static void a_free_block_is_found_among_many_taken(void **unused)
{
	const uint32_t most = 1U << 20;
	uint32_t *taken = malloc(most * sizeof(*taken));
	struct spans all = { 0 };
	address_count b;
	unsigned low = 0;

	assert_non_null(taken);
	spans_add(&all, (struct span){ 0, most - 1 });
	for (uint32_t i = 0; i < most; i++)
		taken[i] = most - 1 - i;
	assert_int_equal(candidate_free(&all, taken, most, 7, &b), -ENOSPC);
	taken[10] = taken[20] = taken[30] = 5; /* twice, and three are free */
	for (uint64_t r = 0; r < 300; r++) {
		assert_int_equal(candidate_free(&all, taken, most, r, &b), 0);
		assert_true(b == most - 11 || b == most - 21 || b == most - 31);
		low += b == most - 31;
	}
	assert_int_equal(low, 100);
	/* What is not usable is not given, taken or not. */
	spans_remove(&all, (struct span){ 0, most - 12 });
	assert_int_equal(candidate_free(&all, taken, most, 12345, &b), 0);
	assert_int_equal(b, most - 11);
	/* The very last one. */
	assert_int_equal(candidate_free(&all, taken + 1, 1, 9, &b), 0);
	assert_int_equal(b, most - 1);
	spans_done(&all);
	free(taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(five_thousand_nodes_seldom_meet),
		cmocka_unit_test(each_sequence_visits_every_block_once),
		cmocka_unit_test(without_blocks_there_is_no_candidate),
		cmocka_unit_test(a_free_block_is_found_among_many_taken),
	};

	return cmocka_run_group_tests(tests, open_usable, close_usable);
}
