/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/auto.h"
#include "lib/base/prefix.h"

#define ALL_ONES (~(address_count)0)
#define LAST6    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"

static struct address A(const char *text) {
	struct address a;

	if (address_parse(text, &a) < 0)
		fail_msg("not an address: %s", text);
	return a;
}

/* Host bits are kept, for the tests that want them. */
static struct prefix
P(const char *text) {
	struct prefix p;

	if (prefix_parse_host(text, &p) < 0)
		fail_msg("not a prefix: %s", text);
	return p;
}

static void
expect_address(struct address a, const char *want)
{
	char text[ADDRESS_TEXT];

	assert_string_equal(address_print(&a, text), want);
}

static void expect_prefix(struct prefix p, const char *want)
{
	char text[PREFIX_TEXT];

	assert_string_equal(prefix_print(&p, text), want);
}

/* --- text ----------------------------------------------------------------------------------- */

static void addresses_print_as_they_were_typed(void **unused)
{
	const char *const texts[] = {
		"0.0.0.0",     "10.1.0.64", "255.255.255.255",  "::",           "::1",
		"fd00:1::40",  LAST6,       "::ffff:192.0.2.1", "64:ff9b::1:2", "1:0:0:2::3",
		"2001:db8::1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		expect_address(A(texts[i]), texts[i]);
}

static void any_form_of_ipv6_is_read_and_the_canonical_one_printed(void **unused)
{
	expect_address(A("FD00:1::ABCD"), "fd00:1::abcd");
	expect_address(A("fd00:0001:0:0:0:0:0:40"), "fd00:1::40");
	expect_address(A("0:0:0:0:0:0:0:0"), "::");
	expect_address(A("64:ff9b::0.1.0.2"), "64:ff9b::1:2");
	expect_prefix(P("FD00:0:0:1::/64"), "fd00:0:0:1::/64");
}

static void ipv4_mapped_ipv6_stays_ipv6(void **unused)
{
	struct address mapped = A("::FFFF:C000:0201"), plain = A("192.0.2.1");

	assert_int_equal(mapped.family, AF_INET6);
	expect_address(mapped, "::ffff:192.0.2.1");
	assert_int_equal(address_compare(&mapped, &(struct address[]){ A("::ffff:192.0.2.1") }[0]),
			 0);
	assert_int_not_equal(address_compare(&mapped, &plain), 0);
	expect_prefix(P("::ffff:192.0.2.0/120"), "::ffff:192.0.2.0/120");
}

static void the_longest_texts_fit_their_buffers(void **unused)
{
	/* Nothing prints longer than this; what is typed may be. */
	expect_prefix(P(LAST6 "/128"), LAST6 "/128");
	expect_prefix(P("0000:0000:0000:0000:0000:ffff:255.255.255.255/128"),
		      "::ffff:255.255.255.255/128");
}

static void loose_notations_of_addresses_are_refused(void **unused)
{
	const char *const texts[] = {
		"",           " ",
		"10",         "10.1",
		"10.1.2",     "010.0.0.1",
		"10.0.0.01",  "10.0.0.00",
		"0x0a.0.0.1", "10.0.0.256",
		"10.0.0.1 ",  " 10.0.0.1",
		"10.0.0.1\n", "10.0.0.1.",
		"10.0.0.1.2", "10..0.1",
		"+10.0.0.1",  "10.0.0.-1",
		"167772161",  "10.0.0.1/32",
		"fe80::1%lo", "fe80::1%1",
		"::1 ",       " ::1",
		":",          ":::",
		"1::2::3",    "1:2:3:4",
		"12345::",    "g::",
		"[::1]",      "::010.0.0.1",
		"::1.2.3",    "1:2:3:4:5:6:7:8:9",
		"::1/128",    "localhost",
	};
	struct address a;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (address_parse(texts[i], &a) != -EINVAL)
			fail_msg("accepted: \"%s\"", texts[i]);
}

static void loose_notations_of_prefixes_are_refused(void **unused)
{
	const char *const texts[] = {
		"",
		"/",
		"10.0.0.0",
		"10.0.0.0/",
		"/8",
		"10.0.0.0/33",
		"::/129",
		"10.0.0.0/08",
		"10.0.0.0/00",
		"10.0.0.0/+8",
		"10.0.0.0/-8",
		"10.0.0.0/ 8",
		"10.0.0.0/8 ",
		"10.0.0.0 /8",
		" 10.0.0.0/8",
		"10.0.0.0/8a",
		"10.0.0.0/0x8",
		"10.0.0.0/8/8",
		"10.0.0.0//8",
		"10/8",
		"10.0.0.0-8",
		"fe80::%lo/64",
		"10.0.0.0/255.0.0.0",
		"10.0.0.0/4294967304",
		"10.0.0.0/18446744073709551624",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/0",
	};
	struct prefix p;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (prefix_parse(texts[i], &p) != -EINVAL)
			fail_msg("accepted: \"%s\"", texts[i]);
		if (prefix_parse_host(texts[i], &p) != -EINVAL)
			fail_msg("accepted with host bits: \"%s\"", texts[i]);
	}
}

static void host_bits_are_kept_only_where_asked_for(void **unused)
{
	struct prefix p;

	assert_int_equal(prefix_parse("192.0.2.7/24", &p), -EINVAL);
	assert_int_equal(prefix_parse("0.0.0.1/0", &p), -EINVAL);
	assert_int_equal(prefix_parse("fd00::1/127", &p), -EINVAL);
	assert_int_equal(prefix_parse("192.0.2.7/32", &p), 0);
	assert_int_equal(prefix_parse("fd00::1/128", &p), 0);
	assert_int_equal(prefix_parse("0.0.0.0/0", &p), 0);
	assert_int_equal(prefix_parse("::/0", &p), 0);

	p = P("192.0.2.7/24");
	assert_true(prefix_has_host_bits(&p));
	expect_prefix(p, "192.0.2.7/24");
	expect_prefix(prefix_mask(&p), "192.0.2.0/24");
	p = prefix_mask(&p);
	assert_false(prefix_has_host_bits(&p));
}

static void keys_are_prefixes_with_a_dash(void **unused)
{
	const char *const keys[] = { "10.1.0.64-26",   "0.0.0.0-0",  "10.1.0.7-32",         "::-0",
				     "fd00:1::40-122", LAST6 "-128", "::ffff:192.0.2.0-120" };
	char text[PREFIX_TEXT];
	struct prefix p;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_int_equal(prefix_parse_key(keys[i], &p), 0);
		assert_string_equal(prefix_print_key(&p, text), keys[i]);
	}
}

static void a_prefix_has_one_key_only(void **unused)
{
	const char *const texts[] = {
		"FD00:1::40-122",    "fd00:1:0::40-122",     "fd00:0001::40-122",
		"0:0:0:0:0:0:0:0-0", "::ffff:c000:0200-120", "::0-0",
		"10.1.0.65-26",      "10.1.0.64/26",         "10.1.0.64-026",
		"10.1.0.64",         "10.1.0.64-",           "10.1.0.64-26-1",
		"fd00:1::41-122",
	};
	struct prefix p;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (prefix_parse_key(texts[i], &p) != -EINVAL)
			fail_msg("accepted: \"%s\"", texts[i]);
}

static void what_cannot_be_read_leaves_the_result_alone(void **unused)
{
	struct prefix p = P("10.0.0.0/8");
	struct address a = A("10.0.0.1");
	address_count n = 7;

	assert_int_equal(address_parse("10.0.0.999", &a), -EINVAL);
	assert_int_equal(address_add(&a, ALL_ONES, &a), -ERANGE);
	expect_address(a, "10.0.0.1");
	assert_int_equal(prefix_parse("192.0.2.7/24", &p), -EINVAL);
	assert_int_equal(prefix_parse_host("192.0.2.7/33", &p), -EINVAL);
	assert_int_equal(prefix_parse_key("192.0.2.7-24", &p), -EINVAL);
	assert_int_equal(prefix_nth_block(&p, 24, 65536, &p), -ERANGE);
	expect_prefix(p, "10.0.0.0/8");
	assert_int_equal(prefix_index(&p, &(struct address[]){ A("11.0.0.0") }[0], &n), -ERANGE);
	assert_true(n == 7);
}

static void equal_ipv4_addresses_are_equal_memory(void **unused)
{
	struct prefix pool = P("10.0.0.0/8"), block;
	struct address parsed = A("10.0.0.64"), made;

	memset(&made, 0xff, sizeof(made));
	assert_int_equal(prefix_nth(&pool, 64, &made), 0);
	assert_memory_equal(&made, &parsed, sizeof(made));
	assert_int_equal(prefix_nth_block(&pool, 26, 1, &block), 0);
	assert_memory_equal(&block.address, &parsed, sizeof(parsed));
}

/* --- addresses ------------------------------------------------------------------------------ */

static void addresses_sort_by_family_then_number(void **unused)
{
	const char *const sorted[] = { "0.0.0.0",         "9.255.0.0",       "10.0.0.1", "10.0.0.2",
				       "128.0.0.0",       "255.255.255.255", "::",       "::1",
				       "::ffff:10.0.0.1", "fd00::",          LAST6 };

	for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sorted); k++) {
			struct address a = A(sorted[i]), b = A(sorted[k]);
			int r = address_compare(&a, &b);

			assert_int_equal((r > 0) - (r < 0), (i > k) - (i < k));
		}
}

static void adding_carries_across_bytes(void **unused)
{
	struct address a = A("10.0.255.255"), b = A("fd00::ffff:ffff:ffff:ffff");

	assert_int_equal(address_add(&a, 1, &a), 0);
	expect_address(a, "10.1.0.0");
	assert_int_equal(address_add(&b, 1, &b), 0);
	expect_address(b, "fd00:0:0:1::");
}

static void adding_stops_at_the_last_address(void **unused)
{
	struct address last4 = A("255.255.255.255"), zero4 = A("0.0.0.0"), a;
	struct address last6 = A(LAST6), zero6 = A("::");

	assert_int_equal(address_add(&last4, 0, &a), 0);
	assert_int_equal(address_add(&last4, 1, &a), -ERANGE);
	assert_int_equal(address_add(&zero4, UINT32_MAX, &a), 0);
	expect_address(a, "255.255.255.255");
	assert_int_equal(address_add(&zero4, (address_count)UINT32_MAX + 1, &a), -ERANGE);
	assert_int_equal(address_add(&zero4, ALL_ONES, &a), -ERANGE);

	assert_int_equal(address_add(&last6, 0, &a), 0);
	assert_int_equal(address_add(&last6, 1, &a), -ERANGE);
	assert_int_equal(address_add(&last6, ALL_ONES, &a), -ERANGE);
	assert_int_equal(address_add(&zero6, ALL_ONES, &a), 0);
	expect_address(a, LAST6);
}

static void distance_is_what_was_added(void **unused)
{
	struct address a = A("10.0.0.250"), b = A("10.0.1.4"), zero = A("::"), last = A(LAST6);
	address_count n;

	assert_int_equal(address_distance(&a, &b, &n), 0);
	assert_true(n == 10);
	assert_int_equal(address_distance(&a, &a, &n), 0);
	assert_true(n == 0);
	assert_int_equal(address_distance(&zero, &last, &n), 0);
	assert_true(n == ALL_ONES);
}

static void there_is_no_distance_backwards_or_between_families(void **unused)
{
	struct address a = A("10.0.0.1"), b = A("10.0.0.2"), c = A("::ffff:10.0.0.9");
	address_count n;

	assert_int_equal(address_distance(&b, &a, &n), -ERANGE);
	assert_int_equal(address_distance(&a, &c, &n), -ERANGE);
	assert_int_equal(address_distance(&c, &a, &n), -ERANGE);
}

static void special_addresses_are_known_by_their_range(void **unused)
{
	const struct {
		const char *text;
		bool loopback, link_local, multicast, unspecified;
	} cases[] = {
		{ .text = "0.0.0.0", .unspecified = true },
		{ .text = "0.0.0.1" },
		{ .text = "126.255.255.255" },
		{ .text = "127.0.0.0", .loopback = true },
		{ .text = "127.255.255.255", .loopback = true },
		{ .text = "128.0.0.0" },
		{ .text = "169.253.255.255" },
		{ .text = "169.254.0.0", .link_local = true },
		{ .text = "169.254.255.255", .link_local = true },
		{ .text = "169.255.0.0" },
		{ .text = "223.255.255.255" },
		{ .text = "224.0.0.0", .multicast = true },
		{ .text = "239.255.255.255", .multicast = true },
		{ .text = "240.0.0.0" },
		{ .text = "::", .unspecified = true },
		{ .text = "::1", .loopback = true },
		{ .text = "::2" },
		{ .text = "1::1" },
		{ .text = "fe7f:ffff::" },
		{ .text = "fe80::", .link_local = true },
		{ .text = "febf:ffff::", .link_local = true },
		{ .text = "fec0::" },
		{ .text = "feff::" },
		{ .text = "ff00::", .multicast = true },
		{ .text = LAST6, .multicast = true },
		{ .text = "7f00::" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct address a = A(cases[i].text);

		if (address_is_loopback(&a) != cases[i].loopback ||
		    address_is_link_local(&a) != cases[i].link_local ||
		    address_is_multicast(&a) != cases[i].multicast ||
		    address_is_unspecified(&a) != cases[i].unspecified)
			fail_msg("misjudged: %s", cases[i].text);
	}
}

/* --- prefixes ------------------------------------------------------------------------------- */

static void prefixes_sort_by_family_address_and_length(void **unused)
{
	const char *const sorted[] = { "0.0.0.0/0",    "10.0.0.0/8", "10.0.0.0/26", "10.0.0.0/32",
				       "10.0.0.64/26", "::/0",       "::/128",      "fd00::/64" };

	for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sorted); k++) {
			struct prefix a = P(sorted[i]), b = P(sorted[k]);
			int r = prefix_compare(&a, &b);

			assert_int_equal((r > 0) - (r < 0), (i > k) - (i < k));
		}
}

static void a_prefix_around_an_address_loses_the_host_bits(void **unused)
{
	struct address a = A("10.1.2.255"), b = A(LAST6);

	expect_prefix(prefix_of(&a, 0), "0.0.0.0/0");
	expect_prefix(prefix_of(&a, 26), "10.1.2.192/26");
	expect_prefix(prefix_of(&a, 32), "10.1.2.255/32");
	expect_prefix(prefix_of(&b, 0), "::/0");
	expect_prefix(prefix_of(&b, 1), "8000::/1");
	expect_prefix(prefix_of(&b, 127), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127");
	expect_prefix(prefix_of(&b, 128), LAST6 "/128");
}

static void expect_range(const char *prefix, const char *first, const char *last,
			 address_count size)
{
	struct prefix p = P(prefix);

	expect_address(prefix_first(&p), first);
	expect_address(prefix_last(&p), last);
	assert_true(prefix_size(&p) == size);
}

static void a_prefix_spans_first_to_last(void **unused)
{
	expect_range("0.0.0.0/0", "0.0.0.0", "255.255.255.255", (address_count)1 << 32);
	expect_range("10.1.0.64/26", "10.1.0.64", "10.1.0.127", 64);
	expect_range("10.1.0.70/26", "10.1.0.64", "10.1.0.127", 64);
	expect_range("10.1.0.64/32", "10.1.0.64", "10.1.0.64", 1);
	expect_range("255.255.255.255/32", "255.255.255.255", "255.255.255.255", 1);
	expect_range("::/1", "::", "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		     (address_count)1 << 127);
	expect_range("fd00::/64", "fd00::", "fd00::ffff:ffff:ffff:ffff", (address_count)1 << 64);
	expect_range(LAST6 "/128", LAST6, LAST6, 1);
}

static void the_size_of_everything_is_written_as_zero(void **unused)
{
	expect_range("::/0", "::", LAST6, 0);
}

static void a_prefix_contains_its_edges_and_not_their_neighbours(void **unused)
{
	const struct {
		const char *prefix, *address;
		bool contains;
	} cases[] = {
		{ "10.1.0.64/26", "10.1.0.63", false },
		{ "10.1.0.64/26", "10.1.0.64", true },
		{ "10.1.0.64/26", "10.1.0.127", true },
		{ "10.1.0.64/26", "10.1.0.128", false },
		{ "10.1.0.70/26", "10.1.0.64", true },
		{ "10.1.0.7/32", "10.1.0.7", true },
		{ "10.1.0.7/32", "10.1.0.6", false },
		{ "0.0.0.0/0", "255.255.255.255", true },
		{ "fd00::/64", "fd00::1", true },
		{ "fd00::/64", "fd00:0:0:1::", false },
		{ "::/0", LAST6, true },
		{ "::1/128", "::1", true },
		{ "::1/128", "::", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prefix p = P(cases[i].prefix);
		struct address a = A(cases[i].address);

		if (prefix_contains(&p, &a) != cases[i].contains)
			fail_msg("%s in %s", cases[i].address, cases[i].prefix);
	}
}

static void prefixes_are_nested_or_apart(void **unused)
{
	struct prefix pool = P("10.1.0.0/16"), block = P("10.1.0.64/26");
	struct prefix head = P("10.1.0.0/26"), other = P("10.2.0.0/26");

	assert_true(prefix_contains_prefix(&pool, &pool));
	assert_true(prefix_contains_prefix(&pool, &block));
	assert_false(prefix_contains_prefix(&block, &pool));
	/* The same first address does not make a small one hold a large one. */
	assert_false(prefix_contains_prefix(&head, &pool));
	assert_false(prefix_contains_prefix(&pool, &other));
	assert_true(prefix_overlaps(&pool, &block));
	assert_true(prefix_overlaps(&block, &pool));
	assert_false(prefix_overlaps(&block, &other));
	assert_false(prefix_overlaps(&other, &pool));
}

static void families_never_contain_or_overlap_each_other(void **unused)
{
	struct prefix all4 = P("0.0.0.0/0"), all6 = P("::/0");
	struct prefix one4 = P("0.0.0.0/32"), mapped = P("::ffff:10.0.0.0/104");
	struct address a4 = A("10.0.0.1"), a6 = A("::ffff:10.0.0.1");
	address_count n;

	assert_false(prefix_contains(&all4, &a6));
	assert_false(prefix_contains(&all6, &a4));
	assert_false(prefix_contains(&mapped, &a4));
	assert_false(prefix_contains_prefix(&all6, &one4));
	assert_false(prefix_contains_prefix(&all4, &mapped));
	assert_false(prefix_overlaps(&all4, &all6));
	assert_false(prefix_overlaps(&all6, &all4));
	assert_int_equal(prefix_index(&all6, &a4, &n), -ERANGE);
	assert_int_equal(prefix_block_index(&all4, 26, &a6, &n), -ERANGE);
}

static void the_nth_address_is_found_and_its_place_again(void **unused)
{
	struct prefix p = P("10.1.0.64/26"), all6 = P("::/0"), single = P("10.0.0.7/32");
	struct address a;
	address_count n;

	assert_int_equal(prefix_nth(&p, 0, &a), 0);
	expect_address(a, "10.1.0.64");
	assert_int_equal(prefix_nth(&p, 63, &a), 0);
	expect_address(a, "10.1.0.127");
	assert_int_equal(prefix_index(&p, &a, &n), 0);
	assert_true(n == 63);
	assert_int_equal(prefix_nth(&p, 64, &a), -ERANGE);
	assert_int_equal(prefix_nth(&p, ALL_ONES, &a), -ERANGE);
	assert_int_equal(prefix_nth(&single, 0, &a), 0);
	assert_int_equal(prefix_nth(&single, 1, &a), -ERANGE);

	assert_int_equal(prefix_nth(&all6, ALL_ONES, &a), 0);
	expect_address(a, LAST6);
	assert_int_equal(prefix_index(&all6, &a, &n), 0);
	assert_true(n == ALL_ONES);
}

static void an_address_outside_has_no_place(void **unused)
{
	struct prefix p = P("10.1.0.64/26");
	struct address below = A("10.1.0.63"), above = A("10.1.0.128");
	address_count n;

	assert_int_equal(prefix_index(&p, &below, &n), -ERANGE);
	assert_int_equal(prefix_index(&p, &above, &n), -ERANGE);
}

/* --- blocks --------------------------------------------------------------------------------- */

static void expect_count(const char *pool, uint8_t block_length, address_count want)
{
	struct prefix p = P(pool);

	assert_true(prefix_block_count(&p, block_length) == want);
}

static void blocks_are_counted_up_to_two_to_the_128(void **unused)
{
	expect_count("10.1.0.0/16", 26, 1024);
	expect_count("10.1.0.0/26", 26, 1);
	expect_count("0.0.0.0/0", 32, (address_count)1 << 32);
	expect_count("10.0.0.7/32", 32, 1);
	expect_count("fd00::/48", 122, (address_count)1 << 74);
	expect_count("::/0", 0, 1);
	expect_count("::/0", 127, (address_count)1 << 127);
	expect_count("::/1", 128, (address_count)1 << 127);
	expect_count("::/0", 128, 0); /* stands for 2^128 */
}

static void a_block_length_out_of_bounds_gives_no_blocks(void **unused)
{
	struct prefix pool = P("10.1.0.0/16"), block;
	struct address a = A("10.1.0.1");
	const uint8_t lengths[] = { 0, 15, 33, 128, 255 };
	address_count n;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct block_iter it = block_iter(&pool, lengths[i], 0);

		assert_true(prefix_block_count(&pool, lengths[i]) == 0);
		assert_int_equal(prefix_nth_block(&pool, lengths[i], 0, &block), -EINVAL);
		assert_int_equal(prefix_block_index(&pool, lengths[i], &a, &n), -EINVAL);
		assert_false(block_next(&it, &block));
	}
}

static void expect_block(const char *pool, uint8_t block_length, address_count n, const char *want)
{
	struct prefix p = P(pool), block;
	struct address last;
	address_count index;

	assert_int_equal(prefix_nth_block(&p, block_length, n, &block), 0);
	expect_prefix(block, want);

	last = prefix_last(&block);
	assert_int_equal(prefix_block_index(&p, block_length, &last, &index), 0);
	assert_true(index == n);
}

static void the_nth_block_is_found_and_its_place_again(void **unused)
{
	expect_block("10.1.0.0/16", 26, 0, "10.1.0.0/26");
	expect_block("10.1.0.0/16", 26, 5, "10.1.1.64/26");
	expect_block("10.1.0.0/16", 26, 1023, "10.1.255.192/26");
	expect_block("10.1.0.0/26", 26, 0, "10.1.0.0/26");
	expect_block("0.0.0.0/0", 32, UINT32_MAX, "255.255.255.255/32");
	expect_block("0.0.0.0/0", 0, 0, "0.0.0.0/0");
	expect_block("fd00::/48", 122, 1, "fd00::40/122");
	expect_block("::/0", 0, 0, "::/0");
	expect_block("::/0", 1, 1, "8000::/1");
	expect_block("::/0", 128, ALL_ONES, LAST6 "/128");
}

static void past_the_last_block_is_out_of_range(void **unused)
{
	struct prefix pool = P("10.1.0.0/16"), all6 = P("::/0"), block;
	struct address outside = A("10.2.0.0");
	address_count n;

	assert_int_equal(prefix_nth_block(&pool, 26, 1024, &block), -ERANGE);
	assert_int_equal(prefix_nth_block(&pool, 26, ALL_ONES, &block), -ERANGE);
	assert_int_equal(prefix_nth_block(&all6, 0, 1, &block), -ERANGE);
	assert_int_equal(prefix_block_index(&pool, 26, &outside, &n), -ERANGE);
}

static void expect_walk(const char *pool, uint8_t block_length, address_count start,
			const char *want)
{
	struct prefix p = P(pool), block;
	struct block_iter it = block_iter(&p, block_length, start);
	char got[256] = "", text[PREFIX_TEXT];

	while (block_next(&it, &block)) {
		strncat(got, prefix_print(&block, text), sizeof(got) - strlen(got) - 1);
		strncat(got, "\n", sizeof(got) - strlen(got) - 1);
	}
	assert_string_equal(got, want);
	assert_false(block_next(&it, &block));
}

static void a_walk_meets_every_block_once_from_any_start(void **unused)
{
	expect_walk("10.0.0.0/24", 26, 0,
		    "10.0.0.0/26\n10.0.0.64/26\n10.0.0.128/26\n10.0.0.192/26\n");
	expect_walk("10.0.0.0/24", 26, 3,
		    "10.0.0.192/26\n10.0.0.0/26\n10.0.0.64/26\n10.0.0.128/26\n");
	expect_walk("fd00::/121", 122, 1, "fd00::40/122\nfd00::/122\n");
	expect_walk("10.0.0.0/26", 26, 0, "10.0.0.0/26\n");
}

static void a_start_past_the_end_counts_around(void **unused)
{
	expect_walk("10.0.0.0/25", 26, 5, "10.0.0.64/26\n10.0.0.0/26\n");
	expect_walk("10.0.0.0/26", 26, ALL_ONES, "10.0.0.0/26\n");
}

static void a_walk_over_all_of_ipv6_wraps_like_any_other(void **unused)
{
	struct prefix all6 = P("::/0"), block;
	struct block_iter it = block_iter(&all6, 128, ALL_ONES);

	assert_true(block_next(&it, &block));
	expect_prefix(block, LAST6 "/128");
	assert_true(block_next(&it, &block));
	expect_prefix(block, "::/128");
	/* The rest would take a while: step to the last of the 2^128. */
	it.next += it.left;
	it.left = 0;
	assert_true(block_next(&it, &block));
	expect_prefix(block, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/128");
	assert_false(block_next(&it, &block));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_print_as_they_were_typed),
		cmocka_unit_test(any_form_of_ipv6_is_read_and_the_canonical_one_printed),
		cmocka_unit_test(ipv4_mapped_ipv6_stays_ipv6),
		cmocka_unit_test(the_longest_texts_fit_their_buffers),
		cmocka_unit_test(loose_notations_of_addresses_are_refused),
		cmocka_unit_test(loose_notations_of_prefixes_are_refused),
		cmocka_unit_test(host_bits_are_kept_only_where_asked_for),
		cmocka_unit_test(keys_are_prefixes_with_a_dash),
		cmocka_unit_test(a_prefix_has_one_key_only),
		cmocka_unit_test(what_cannot_be_read_leaves_the_result_alone),
		cmocka_unit_test(equal_ipv4_addresses_are_equal_memory),
		cmocka_unit_test(addresses_sort_by_family_then_number),
		cmocka_unit_test(adding_carries_across_bytes),
		cmocka_unit_test(adding_stops_at_the_last_address),
		cmocka_unit_test(distance_is_what_was_added),
		cmocka_unit_test(there_is_no_distance_backwards_or_between_families),
		cmocka_unit_test(special_addresses_are_known_by_their_range),
		cmocka_unit_test(prefixes_sort_by_family_address_and_length),
		cmocka_unit_test(a_prefix_around_an_address_loses_the_host_bits),
		cmocka_unit_test(a_prefix_spans_first_to_last),
		cmocka_unit_test(the_size_of_everything_is_written_as_zero),
		cmocka_unit_test(a_prefix_contains_its_edges_and_not_their_neighbours),
		cmocka_unit_test(prefixes_are_nested_or_apart),
		cmocka_unit_test(families_never_contain_or_overlap_each_other),
		cmocka_unit_test(the_nth_address_is_found_and_its_place_again),
		cmocka_unit_test(an_address_outside_has_no_place),
		cmocka_unit_test(blocks_are_counted_up_to_two_to_the_128),
		cmocka_unit_test(a_block_length_out_of_bounds_gives_no_blocks),
		cmocka_unit_test(the_nth_block_is_found_and_its_place_again),
		cmocka_unit_test(past_the_last_block_is_out_of_range),
		cmocka_unit_test(a_walk_meets_every_block_once_from_any_start),
		cmocka_unit_test(a_start_past_the_end_counts_around),
		cmocka_unit_test(a_walk_over_all_of_ipv6_wraps_like_any_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
