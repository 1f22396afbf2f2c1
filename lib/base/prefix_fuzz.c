/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text for the parsers, and as numbers for the arithmetic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/auto.h"
#include "lib/base/prefix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static void check_address(const char *text)
{
	char printed[ADDRESS_TEXT], again[ADDRESS_TEXT];
	struct address a, b;

	if (address_parse(text, &a) < 0)
		return;
	address_print(&a, printed);
	MUST(address_parse(printed, &b) == 0);
	MUST(memcmp(&a, &b, sizeof(a)) == 0);
	MUST(strcmp(address_print(&b, again), printed) == 0);
	/* IPv4 has one notation. */
	MUST(a.family == AF_INET6 || strcmp(printed, text) == 0);
}

static void check_forms(const struct prefix *p)
{
	char slash[PREFIX_TEXT], key[PREFIX_TEXT], again[PREFIX_TEXT];
	struct prefix masked = prefix_mask(p), b;

	MUST(prefix_parse_host(prefix_print(p, slash), &b) == 0);
	MUST(prefix_compare(p, &b) == 0);
	MUST(strcmp(prefix_print(&b, again), slash) == 0);
	MUST((prefix_parse(slash, &b) == 0) == !prefix_has_host_bits(p));

	MUST(prefix_parse(prefix_print(&masked, slash), &b) == 0);
	MUST(prefix_compare(&masked, &b) == 0);
	MUST(prefix_parse_key(prefix_print_key(&masked, key), &b) == 0);
	MUST(prefix_compare(&masked, &b) == 0);
	*strchr(slash, '/') = '-';
	MUST(strcmp(slash, key) == 0);
}

static void check_prefix(const char *text)
{
	char printed[PREFIX_TEXT];
	struct prefix p;

	if (prefix_parse_host(text, &p) == 0)
		check_forms(&p);
	if (prefix_parse(text, &p) == 0) {
		MUST(!prefix_has_host_bits(&p));
		check_forms(&p);
	}
	if (prefix_parse_key(text, &p) == 0) {
		MUST(strcmp(prefix_print_key(&p, printed), text) == 0);
		check_forms(&p);
	}
}

static void check_nth(const struct prefix *p, address_count n)
{
	struct address first = prefix_first(p), a, b;
	address_count size = prefix_size(p), index;

	MUST((prefix_nth(p, n, &a) == 0) == (size == 0 || n < size));
	n = size ? n % size : n;
	MUST(prefix_nth(p, n, &a) == 0);
	MUST(prefix_contains(p, &a));
	MUST(prefix_index(p, &a, &index) == 0 && index == n);
	MUST(address_distance(&first, &a, &index) == 0 && index == n);
	MUST(address_add(&first, n, &b) == 0 && address_compare(&a, &b) == 0);
}

static void check_block(const struct prefix *pool, uint8_t length, address_count n)
{
	address_count count = prefix_block_count(pool, length), index;
	struct block_iter it = block_iter(pool, length, n);
	struct prefix block, walked;
	struct address last;

	n = count ? n % count : n;
	MUST(prefix_nth_block(pool, length, n, &block) == 0);
	MUST(!prefix_has_host_bits(&block) && prefix_contains_prefix(pool, &block));
	last = prefix_last(&block);
	MUST(prefix_block_index(pool, length, &last, &index) == 0 && index == n);

	for (unsigned i = 0; i < 4 && block_next(&it, &walked); i++) {
		MUST(i == 0 || !prefix_overlaps(&block, &walked));
		MUST(i > 0 || prefix_compare(&block, &walked) == 0);
		MUST(prefix_contains_prefix(pool, &walked));
	}
}

/* By the edges of both, which is another way to the same answer. */
static void check_pair(const struct prefix *a, const struct prefix *b)
{
	struct address a_first = prefix_first(a), a_last = prefix_last(a);
	struct address b_first = prefix_first(b), b_last = prefix_last(b);
	bool apart = a_first.family != b_first.family || address_compare(&a_last, &b_first) < 0 ||
		     address_compare(&b_last, &a_first) < 0;

	MUST(prefix_overlaps(a, b) == !apart);
	MUST(prefix_overlaps(b, a) == !apart);
	MUST(prefix_contains_prefix(a, b) ==
	     (prefix_contains(a, &b_first) && prefix_contains(a, &b_last)));
}

static struct prefix take_prefix(const uint8_t *data)
{
	struct prefix p = { .address.family = data[0] & 1 ? AF_INET6 : AF_INET };

	memcpy(p.address.bytes, data + 2, address_bits(&p.address) / 8);
	p.length = (uint8_t)(data[1] % (address_bits(&p.address) + 1));
	return p;
}

static void check_numbers(const uint8_t *data)
{
	struct prefix a = take_prefix(data), b = take_prefix(data + 18);
	unsigned cuts = address_bits(&a.address) - a.length + 1;
	address_count n;

	memcpy(&n, data + 36, sizeof(n));
	check_forms(&a);
	check_nth(&a, n);
	check_block(&a, (uint8_t)(a.length + data[52] % cuts), n);
	check_pair(&a, &b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(free) char *text = strndup((const char *)data, size);

	MUST(text);
	check_address(text);
	check_prefix(text);
	if (size >= 53)
		check_numbers(data);
	return 0;
}
