/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/fixture_test.h"

#include <errno.h>

static struct world w;

static int open_world(void **unused)
{
	world_open(&w);
	return 0;
}

static int close_world(void **unused)
{
	world_close(&w);
	return 0;
}

static const struct assign_options may = { .may_claim = true };

#define RANGE(container, range, want)                                                              \
	assert_string_equal(world_assign(&w, container, ",\"ranges\":[" range "]", may), want)

/* As the agent would: put the record, get it back from the watch. */
static void make(const char *name, const char *network, const char *cidr, uint32_t size, bool edges)
{
	struct range_pool p = { .cidr = prefix_from(cidr),
				.block_size = size,
				.reserve_edges = edges };
	AUTO(free) char *json = NULL;
	struct pool record;

	snprintf(p.name, sizeof(p.name), "%s", name);
	snprintf(p.network, sizeof(p.network), "%s", network);
	record = range_pool_record(&p);
	assert_int_equal(pool_encode(&record, &json), 0);
	world_pool(&w, name, json);
	assert_non_null(w.input[world_place(&w, name)].pool);
}

static void a_range_becomes_a_pool_of_its_network(void **unused)
{
	RANGE("a", "{\"range\":\"10.5.3.7/16\",\"network\":\"storage\"}",
	      "make storage-10.5.0.0-16: 10.5.0.0/16 in /26");
	RANGE("a", "{\"range\":\"10.5.0.0/16\"}", "make default-10.5.0.0-16: 10.5.0.0/16 in /26");
	RANGE("a", "{\"range\":\"10.5.0.0/16\",\"sliceSize\":22}",
	      "make default-10.5.0.0-16: 10.5.0.0/16 in /22");
	RANGE("a", "{\"range\":\"10.5.0.0/28\"}", "make default-10.5.0.0-28: 10.5.0.0/28 in /28");
	RANGE("a", "{\"range\":\"fd00:1::/108\"}",
	      "make default-fd00-1---108: fd00:1::/108 in /122");
	/* At most 2^20 blocks. */
	RANGE("a", "{\"range\":\"fd00:1::/64\"}", "make default-fd00-1---64: fd00:1::/64 in /84");
}

static void a_long_name_is_cut_and_hashed(void **unused)
{
	struct err err;
	const char *name;

	world_assign(&w, "a",
		     ",\"ranges\":[{\"range\":\"fd00:1111:2222:3333:4444:5555:6666:7777/128\","
		     "\"network\":\"a-rather-long-name-of-a-network-for-storage\"}]",
		     may);
	name = w.text + strlen("make ");
	*strchr(w.text, ':') = '\0';
	assert_int_equal(name_check(name, &err), 0);
	assert_memory_equal(name, "a-rather-l-", 11);
	assert_int_equal(strlen(name), 63);
}

static void the_record_of_a_range_is_what_the_design_says(void **unused)
{
	const struct range_pool p = { "storage-10.5.0.0-16", "storage", prefix_from("10.5.0.0/16"),
				      26, true };
	struct pool record = range_pool_record(&p);
	AUTO(free) char *json = NULL;

	assert_int_equal(pool_encode(&record, &json), 0);
	assert_string_equal(json, "{\"cidr\":\"10.5.0.0/16\",\"network\":\"storage\",\"prefix\":"
				  "\"pool\",\"origin\":\"ipam-config\"}");
}

static void the_result_carries_the_length_of_the_range(void **unused)
{
	make("storage-10.5.0.0-16", "storage", "10.5.0.0/16", 26, true);
	RANGE("a", "{\"range\":\"10.5.0.0/16\",\"network\":\"storage\"}",
	      "need storage-10.5.0.0-16 /26 for request: 0-1023");
	world_block_state(&w, "storage", "storage-10.5.0.0-16", "10.5.0.0/26", BLOCK_OWNED);
	RANGE("a", "{\"range\":\"10.5.0.0/16\",\"network\":\"storage\",\"gateway\":\"10.5.0.1\"}",
	      "new 10.5.0.2/16 storage-10.5.0.0-16");
}

static void limits_of_a_range_choose_block_and_address(void **unused)
{
	make("default-10.5.0.0-16", "default", "10.5.0.0/16", 26, true);
	world_block(&w, "default-10.5.0.0-16", "10.5.0.0/26");
	RANGE("a", "{\"range\":\"10.5.0.0/16\",\"start\":\"10.5.1.0\",\"end\":\"10.5.1.130\"}",
	      "need default-10.5.0.0-16 /26 for request: 4-6");
	RANGE("a",
	      "{\"range\":\"10.5.0.0/16\",\"start\":\"10.5.0.10\",\"exclude\":[\"10.5.0.8/29\"]}",
	      "new 10.5.0.16/16 default-10.5.0.0-16");
}

static void the_same_range_on_two_networks_is_two_pools(void **unused)
{
	make("one-10.5.0.0-24", "one", "10.5.0.0/24", 26, true);
	world_block_state(&w, "one", "one-10.5.0.0-24", "10.5.0.0/26", BLOCK_OWNED);
	RANGE("a", "{\"range\":\"10.5.0.0/24\",\"network\":\"two\"}",
	      "make two-10.5.0.0-24: 10.5.0.0/24 in /26");
	make("two-10.5.0.0-24", "two", "10.5.0.0/24", 26, true);
	world_block_state(&w, "two", "two-10.5.0.0-24", "10.5.0.0/26", BLOCK_OWNED);
	RANGE("a",
	      "{\"range\":\"10.5.0.0/24\",\"network\":\"one\"},"
	      "{\"range\":\"10.5.0.0/24\",\"network\":\"two\"}",
	      "new 10.5.0.1/24 one-10.5.0.0-24 10.5.0.1/24 two-10.5.0.0-24");
}

static void one_range_asked_for_twice_gives_two_addresses(void **unused)
{
	make("default-10.5.0.0-24", "default", "10.5.0.0/24", 26, true);
	world_block(&w, "default-10.5.0.0-24", "10.5.0.0/26");
	RANGE("a", "{\"range\":\"10.5.0.0/24\"},{\"range\":\"10.5.0.0/24\"}",
	      "new 10.5.0.1/24 default-10.5.0.0-24 10.5.0.2/24 default-10.5.0.0-24");
}

static void another_size_of_a_live_range_is_refused(void **unused)
{
	make("default-10.5.0.0-16", "default", "10.5.0.0/16", 22, true);
	RANGE("a", "{\"range\":\"10.5.0.0/24\"}",
	      "100: range 10.5.0.0/24 on network default does not fit pool default-10.5.0.0-16 "
	      "(10.5.0.0/16), which is there already: another size of a live range is refused");
	RANGE("a", "{\"range\":\"10.5.0.0/16\",\"sliceSize\":24}",
	      "100: slices of /24 do not fit pool default-10.5.0.0-16, which is cut into /22: "
	      "another size of a live range is refused");
	/* An operator's pool is not grown over, but may be named by its range. */
	world_pool(&w, "ops", "{\"cidr\":\"10.9.0.0/24\"}");
	RANGE("a", "{\"range\":\"10.9.0.0/16\"}",
	      "100: range 10.9.0.0/16 on network default does not fit pool ops (10.9.0.0/24), "
	      "which "
	      "is there already: another size of a live range is refused");
	RANGE("a", "{\"range\":\"10.9.0.0/24\"}", "need ops /26 for request: 0-3");
}

static void a_slice_size_added_later_leaves_the_cut_as_it_is(void **unused)
{
	make("default-10.5.0.0-16", "default", "10.5.0.0/16", 26, true);
	RANGE("a", "{\"range\":\"10.5.0.0/16\",\"sliceSize\":24}",
	      "need default-10.5.0.0-16 /26 for request: 0-1023");
}

static void a_grown_range_keeps_its_old_part_and_makes_the_others_when_needed(void **unused)
{
	make("default-10.5.0.0-30", "default", "10.5.0.0/30", 30, true);
	world_extent(&w, "extent/default/default-10.5.0.0-30",
		     "{\"cidr\":\"10.5.0.0/30\",\"blockSize\":30}");
	world_block(&w, "default-10.5.0.0-30", "10.5.0.0/30");
	RANGE("a", "{\"range\":\"10.5.0.0/28\"}", "new 10.5.0.1/28 default-10.5.0.0-30");
	RANGE("b", "{\"range\":\"10.5.0.0/28\"}", "new 10.5.0.2/28 default-10.5.0.0-30");
	RANGE("c", "{\"range\":\"10.5.0.0/28\"}",
	      "make default-10.5.0.4-30: 10.5.0.4/30 in /30 (part)");
	make("default-10.5.0.4-30", "default", "10.5.0.4/30", 30, false);
	RANGE("c", "{\"range\":\"10.5.0.0/28\"}", "need default-10.5.0.4-30 /30 for request: 0-0");
	world_block(&w, "default-10.5.0.4-30", "10.5.0.4/30");
	RANGE("c", "{\"range\":\"10.5.0.0/28\"}", "new 10.5.0.4/28 default-10.5.0.4-30");
	/* A wanted address makes just its own part. */
	assert_string_equal(world_assign(&w, "d",
					 ",\"ranges\":[{\"range\":\"10.5.0.0/28\"}],\"addresses\":["
					 "\"10.5.0.9\"]",
					 may),
			    "make default-10.5.0.8-29: 10.5.0.8/29 in /29 (part)");
	assert_string_equal(world_assign(&w, "d",
					 ",\"ranges\":[{\"range\":\"10.5.0.0/28\"}],\"addresses\":["
					 "\"10.5.0.6\"]",
					 may),
			    "new 10.5.0.6/28 default-10.5.0.4-30");
	/* The edges are those of the range that was asked for. */
	assert_string_equal(
		world_assign(
			&w, "e",
			",\"ranges\":[{\"range\":\"10.5.0.0/29\"}],\"addresses\":[\"10.5.0.7\"]",
			may),
		"102: 10.5.0.7 is excluded from pool default-10.5.0.4-30 or by the request");
	/* The old wording goes on. */
	RANGE("f", "{\"range\":\"10.5.0.0/30\"}",
	      "100: no address is free within the limits of the request: pool default-10.5.0.0-30 "
	      "(10.5.0.0/30, 4 addresses) is full");
}

static void a_pool_whose_extent_is_left_is_made_again_as_it_was_cut(void **unused)
{
	world_extent(&w, "extent/default/old", "{\"cidr\":\"10.5.0.0/24\",\"blockSize\":27}");
	RANGE("a", "{\"range\":\"10.5.0.0/24\"}", "make old: 10.5.0.0/24 in /27");
	RANGE("a", "{\"range\":\"10.5.0.0/25\"}",
	      "100: range 10.5.0.0/25 on network default does not fit pool old (10.5.0.0/24), "
	      "which "
	      "is there already: another size of a live range is refused");
	/* The name went to another network meanwhile. */
	world_pool(&w, "old", "{\"cidr\":\"10.5.0.0/24\",\"network\":\"lan\"}");
	RANGE("a", "{\"range\":\"10.5.0.0/24\"}",
	      "100: range 10.5.0.0/24 on network default needs the name old, but that pool is "
	      "another "
	      "one");
}

static void a_name_that_is_taken_is_not_shared(void **unused)
{
	world_pool(&w, "default-10.5.0.0-24", "{\"cidr\":\"10.9.0.0/24\"}");
	RANGE("a", "{\"range\":\"10.5.0.0/24\"}",
	      "100: range 10.5.0.0/24 on network default needs the name default-10.5.0.0-24, but "
	      "that pool is another one");
}

static void a_disabled_pool_of_a_range_gives_nothing(void **unused)
{
	world_pool(&w, "x", "{\"cidr\":\"10.5.0.0/24\",\"disabled\":true}");
	RANGE("a", "{\"range\":\"10.5.0.0/24\"}", "100: pool x is disabled");
}

static void an_address_outside_of_all_ranges_is_refused(void **unused)
{
	assert_string_equal(
		world_assign(
			&w, "d",
			",\"ranges\":[{\"range\":\"10.5.0.0/28\"}],\"addresses\":[\"10.6.0.9\"]",
			may),
		"102: 10.6.0.9 lies in none of the ranges");
}

static void ten_ranges_are_planned_and_given_together(void **unused)
{
	char fields[1024] = ",\"ranges\":[", name[32], cidr[32];
	size_t n = strlen(fields);

	for (int i = 0; i < 10; i++) {
		n += (size_t)snprintf(fields + n, sizeof(fields) - n,
				      "%s{\"range\":\"10.%d.0.0/24\"}", i ? "," : "", i);
		snprintf(name, sizeof(name), "default-10.%d.0.0-24", i);
		snprintf(cidr, sizeof(cidr), "10.%d.0.0/24", i);
		make(name, "default", cidr, 26, true);
	}
	snprintf(fields + n, sizeof(fields) - n, "]");
	for (int i = 0; i < 10; i++) {
		assert_memory_equal(world_assign(&w, "a", fields, may), "need", 4);
		assert_int_equal(allocator_attachments(w.a)->n, 0);
		snprintf(name, sizeof(name), "default-10.%d.0.0-24", i);
		snprintf(cidr, sizeof(cidr), "10.%d.0.0/26", i);
		world_block(&w, name, cidr);
	}
	world_assign(&w, "a", fields, may);
	assert_memory_equal(w.text, "new", 3);
	assert_int_equal(allocator_attachments(w.a)->held.n, 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(a_range_becomes_a_pool_of_its_network),
		TEST(a_long_name_is_cut_and_hashed),
		TEST(the_record_of_a_range_is_what_the_design_says),
		TEST(the_result_carries_the_length_of_the_range),
		TEST(limits_of_a_range_choose_block_and_address),
		TEST(the_same_range_on_two_networks_is_two_pools),
		TEST(one_range_asked_for_twice_gives_two_addresses),
		TEST(another_size_of_a_live_range_is_refused),
		TEST(a_slice_size_added_later_leaves_the_cut_as_it_is),
		TEST(a_grown_range_keeps_its_old_part_and_makes_the_others_when_needed),
		TEST(a_pool_whose_extent_is_left_is_made_again_as_it_was_cut),
		TEST(a_name_that_is_taken_is_not_shared),
		TEST(a_disabled_pool_of_a_range_gives_nothing),
		TEST(an_address_outside_of_all_ranges_is_refused),
		TEST(ten_ranges_are_planned_and_given_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
