/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/fixture_test.h"

#include <errno.h>

#define WAIT                                                                                       \
	(struct assign_options)                                                                    \
	{                                                                                          \
		.may_claim = true                                                                  \
	}
#define NOW                                                                                        \
	(struct assign_options)                                                                    \
	{                                                                                          \
		.may_claim = false                                                                 \
	}

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

#define ADD(container, want) assert_string_equal(world_add(&w, container), want)
#define ASSIGN(container, fields, options, want)                                                   \
	assert_string_equal(world_assign(&w, container, fields, options), want)
#define DEL(container, want) assert_string_equal(world_del(&w, container), want)
#define SHOW(want)           assert_string_equal(world_show(&w), want)

/* --- assign and release --------------------------------------------------------------------- */

static void without_a_block_one_is_asked_for(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	ADD("c1", "need web /26 for request: 0-3");
	SHOW("");
}

static void the_same_attachment_gets_the_same_address(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.64/26");
	ADD("c1", "new 10.1.0.64/32 web");
	ADD("c1", "existing 10.1.0.64/32 web");
	ADD("c2", "new 10.1.0.65/32 web");
	SHOW("10.1.0.64/26 web owned used 2 free 62 resting 0\n"
	     "c1: 10.1.0.64\nc2: 10.1.0.65\n");
	DEL("c1", "10.1.0.64");
	DEL("c1", "");
	SHOW("10.1.0.64/26 web owned used 1 free 62 resting 1\nc2: 10.1.0.65\n");
}

static void the_address_released_longest_ago_comes_next(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/30\"}");
	world_block(&w, "web", "10.1.0.0/30");
	for (const char *const *c = (const char *const[]){ "a", "b", "c", "d", NULL }; *c; c++)
		world_add(&w, *c);
	DEL("b", "10.1.0.1");
	w.now += SECONDS(1);
	DEL("a", "10.1.0.0");
	w.now += SECONDS(60);
	ADD("e", "new 10.1.0.1/32 web");
	ADD("f", "new 10.1.0.0/32 web");
}

static void a_resting_address_is_given_only_when_nothing_else_is_left(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/29\",\"blockSize\":30}");
	world_block(&w, "web", "10.1.0.0/30");
	for (const char *const *c = (const char *const[]){ "a", "b", "c", "d", NULL }; *c; c++)
		world_add(&w, *c);
	DEL("c", "10.1.0.2");
	ADD("e", "need web /30 for request: 1-1");
	ASSIGN("e", "", NOW, "new 10.1.0.2/32 web");
	DEL("e", "10.1.0.2");
	allocator_pool_full(w.a, "web", w.now + 1);
	ADD("f", "new 10.1.0.2/32 web");
	DEL("f", "10.1.0.2");
	w.now += SECONDS(60);
	ADD("g", "new 10.1.0.2/32 web");
}

static void a_pool_that_is_all_ours_and_full_says_its_name_and_size(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/31\"}");
	world_block(&w, "web", "10.1.0.0/31");
	ADD("a", "new 10.1.0.0/32 web");
	ADD("b", "new 10.1.0.1/32 web");
	ADD("c", "100: no address is free: pool web (10.1.0.0/31, 2 addresses) is full");
	DEL("a", "10.1.0.0");
	ADD("c", "new 10.1.0.0/32 web");
}

static void etcd_away_is_another_error_than_a_full_pool(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"maxBlocksPerNode\":1}");
	ASSIGN("a", "", ((struct assign_options){ .why_not = "etcd is away" }),
	       "11: no address is free here in pool web (10.1.0.0/24, 256 addresses), and no block "
	       "can be claimed: etcd is away");
	ASSIGN("a", "", NOW,
	       "100: no address is free: pool web (10.1.0.0/24, 256 addresses) is full (at most 1 "
	       "blocks for each node)");
}

static void no_more_than_max_blocks_per_node_are_claimed(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":32,\"maxBlocksPerNode\":1}");
	world_block(&w, "web", "10.1.0.9/32");
	ADD("a", "new 10.1.0.9/32 web");
	ADD("b", "100: no address is free: pool web (10.1.0.0/24, 256 addresses) is full (at most "
		 "1 blocks for each node)");
}

static void both_families_or_none(void **unused)
{
	world_pool(&w, "four", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(&w, "six", "{\"cidr\":\"fd00:1::/120\"}");
	ADD("a", "need four /26 for request: 0-3, need six /122 for request: 0-3");
	world_block(&w, "four", "10.1.0.0/26");
	ADD("a", "need six /122 for request: 0-3");
	SHOW("10.1.0.0/26 four owned used 0 free 64 resting 0\n");
	world_block(&w, "six", "fd00:1::40/122");
	ADD("a", "new 10.1.0.0/32 four fd00:1::40/128 six");
	DEL("a", "10.1.0.0 fd00:1::40");
}

static void one_full_family_refuses_the_other_too(void **unused)
{
	world_pool(&w, "four", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(&w, "six", "{\"cidr\":\"fd00:1::/128\"}");
	world_block(&w, "four", "10.1.0.0/26");
	world_block(&w, "six", "fd00:1::/128");
	ADD("a", "new 10.1.0.0/32 four fd00:1::/128 six");
	ADD("b", "100: no address is free: pool six (fd00:1::/128, 1 address) is full");
	SHOW("10.1.0.0/26 four owned used 1 free 63 resting 0\n"
	     "fd00:1::/128 six owned used 1 free 0 resting 0\na: 10.1.0.0 fd00:1::\n");
}

static void undo_leaves_no_trace(void **unused)
{
	const struct attachment_key key = { "pods", "c", "eth0" };

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/31\"}");
	world_block(&w, "web", "10.1.0.0/31");
	ADD("c", "new 10.1.0.0/32 web");
	allocator_undo(w.a, &key, w.now);
	SHOW("10.1.0.0/31 web owned used 0 free 2 resting 0\n");
	ADD("a", "new 10.1.0.0/32 web");
	ADD("b", "new 10.1.0.1/32 web");
	DEL("a", "10.1.0.0");
	w.now += SECONDS(5);
	DEL("b", "10.1.0.1");
	w.now += SECONDS(56);
	/* .0 has rested 61 s, .1 only 56 s: what is undone is still the oldest. */
	ADD("c", "new 10.1.0.0/32 web");
	allocator_undo(w.a, &key, w.now);
	SHOW("10.1.0.0/31 web owned used 0 free 1 resting 1\n");
	ADD("d", "new 10.1.0.0/32 web");
}

static void an_attachment_being_released_makes_its_add_wait(void **unused)
{
	const struct attachment_key key = { "pods", "c", "eth0" };

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	world_add(&w, "c");
	assert_int_equal(allocator_set_state(w.a, &key, ATTACHMENT_RELEASING), 0);
	ADD("c", "wait");
	DEL("c", "10.1.0.0");
	ADD("c", "new 10.1.0.1/32 web");
}

static void the_fullest_block_gives_first_so_that_others_empty(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.128/26");
	ADD("a", "new 10.1.0.128/32 web");
	world_block(&w, "web", "10.1.0.0/26");
	ADD("b", "new 10.1.0.129/32 web");
}

static void only_owned_blocks_give_addresses(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block_state(&w, "default", "web", "10.1.0.0/26", BLOCK_CLAIMING);
	world_block_state(&w, "default", "web", "10.1.0.64/26", BLOCK_RELEASING);
	world_block_state(&w, "default", "web", "10.1.0.128/26", BLOCK_LOST);
	ADD("a", "need web /26 for request: 3-3");
	ASSIGN("a", "", NOW,
	       "100: no address is free: pool web (10.1.0.0/24, 256 addresses) is full");
	world_block_state(&w, "default", "web", "10.1.0.0/26", BLOCK_OWNED);
	ADD("a", "new 10.1.0.0/32 web");
}

static void the_next_pool_by_name_serves_when_the_first_is_full(void **unused)
{
	world_pool(&w, "b", "{\"cidr\":\"10.2.0.0/24\"}");
	world_pool(&w, "a", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "b", "10.2.0.0/26");
	ADD("x", "need a /26 for request: 0-3");
	allocator_pool_full(w.a, "a", w.now + SECONDS(1));
	ADD("x", "new 10.2.0.0/32 b");
	w.now += SECONDS(1);
	ADD("y", "need a /26 for request: 0-3");
}

/* --- limits --------------------------------------------------------------------------------- */

static void what_a_pool_excludes_is_never_given(void **unused)
{
	world_pool(&w, "web",
		   "{\"cidr\":\"10.1.0.0/24\",\"rangeStart\":\"10.1.0.2\",\"rangeEnd\":"
		   "\"10.1.0.70\",\"exclude\":[\"10.1.0.3\",\"10.1.0.4/30\"],\"gateway\":\"10.1.0."
		   "8\"}");
	ADD("a", "need web /26 for request: 0-1");
	world_block(&w, "web", "10.1.0.0/26");
	ADD("a", "new 10.1.0.2/32 web");
	ADD("b", "new 10.1.0.9/32 web");
	SHOW("10.1.0.0/26 web owned used 2 free 54 resting 0\na: 10.1.0.2\nb: 10.1.0.9\n");
	ASSIGN("c", ",\"addresses\":[\"10.1.0.3\"]", WAIT,
	       "102: 10.1.0.3 is excluded from pool web or by the request");
}

static void reserved_edges_are_those_of_the_pool_not_of_the_block(void **unused)
{
	world_pool(&w, "lan", "{\"cidr\":\"10.1.0.0/25\",\"prefix\":\"pool\"}");
	world_block(&w, "lan", "10.1.0.0/26");
	SHOW("10.1.0.0/26 lan owned used 0 free 63 resting 0\n");
	ADD("a", "new 10.1.0.1/25 lan");
	world_block(&w, "lan", "10.1.0.64/26");
	ASSIGN("b", ",\"addresses\":[\"10.1.0.64\"]", WAIT, "new 10.1.0.64/25 lan");
	ASSIGN("c", ",\"addresses\":[\"10.1.0.127\"]", WAIT,
	       "102: 10.1.0.127 is excluded from pool lan or by the request");
}

static void the_limits_of_a_request_bind_only_it(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	ASSIGN("a", ",\"exclude\":[\"10.1.0.0/28\"]", WAIT, "new 10.1.0.16/32 web");
	ADD("b", "new 10.1.0.0/32 web");
	ASSIGN("c", ",\"exclude\":[\"10.1.0.0/26\",\"10.1.0.192/26\"]", WAIT,
	       "need web /26 for request: 1-2");
	ASSIGN("c", ",\"exclude\":[\"10.1.0.0/24\"]", WAIT,
	       "100: no address is free within the limits of the request: pool web (10.1.0.0/24, "
	       "256 addresses) is full");
}

static void a_block_of_a_whole_64_costs_nothing(void **unused)
{
	world_pool(&w, "six", "{\"cidr\":\"fd00:1::/48\",\"blockSize\":64}");
	world_block(&w, "six", "fd00:1:0:7::/64");
	ADD("a", "new fd00:1:0:7::/128 six");
	ASSIGN("b", ",\"addresses\":[\"fd00:1:0:7:ffff:ffff:ffff:ffff\"]", WAIT,
	       "new fd00:1:0:7:ffff:ffff:ffff:ffff/128 six");
	ASSIGN("c", ",\"exclude\":[\"fd00:1:0:7::/65\"]", WAIT, "new fd00:1:0:7:8000::/128 six");
	assert_int_equal(allocator_pool_counts(w.a, "six", w.now).addresses.free, UINT64_MAX - 2);
}

/* --- requested addresses -------------------------------------------------------------------- */

static void a_requested_address_is_given_if_free_even_when_resting(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	ASSIGN("a", ",\"addresses\":[\"10.1.0.7\"],\"namespace\":\"prod\",\"pod\":\"db-0\"", WAIT,
	       "new 10.1.0.7/32 web");
	ASSIGN("b", ",\"addresses\":[\"10.1.0.7\"]", WAIT,
	       "102: 10.1.0.7 is in use by eth0 of container a (prod/db-0)");
	DEL("a", "10.1.0.7");
	ASSIGN("b", ",\"addresses\":[\"10.1.0.7\"]", WAIT, "new 10.1.0.7/32 web");
}

static struct attachment *made(const char *container, const char *network, const char *address);

static void a_requested_address_that_is_held_outside_of_our_blocks_is_in_use(void **unused)
{
	struct err err;

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	assert_int_equal(allocator_restore(w.a, made("c", "default", "10.1.0.7"), &err), 0);
	ASSIGN("b", ",\"addresses\":[\"10.1.0.7\"]", WAIT,
	       "102: 10.1.0.7 is in use by eth0 of container c");
}

static void a_requested_address_elsewhere_needs_just_its_block(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":32}");
	ASSIGN("a", ",\"addresses\":[\"10.1.0.7\"]", WAIT, "need web /32 for request only: 7-7");
	ASSIGN("a", ",\"addresses\":[\"10.1.0.7\"]", NOW,
	       "102: 10.1.0.7 is not in a block of this node, and its block cannot be claimed");
	ASSIGN("a", ",\"addresses\":[\"10.9.0.7\"]", WAIT,
	       "102: 10.9.0.7 lies in none of the pools");
	world_block(&w, "web", "10.1.0.7/32");
	ASSIGN("a", ",\"addresses\":[\"10.1.0.7\"]", WAIT, "new 10.1.0.7/32 web");
	ASSIGN("b", ",\"addresses\":[\"10.1.0.8\",\"10.1.0.9\"]", WAIT,
	       "7: more than one address is asked for in pool web");
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":32,\"disabled\":true}");
	ASSIGN("b", ",\"addresses\":[\"10.1.0.8\"]", WAIT,
	       "102: 10.1.0.8 cannot be given: pool web is disabled");
}

/* --- what is found at start ----------------------------------------------------------------- */

static struct attachment *made(const char *container, const char *network, const char *address)
{
	struct held_address held = {
		.address = address_from(address), .length = 32, .pool = "web", .network = network
	};
	const struct attachment like = { .network = "pods",
					 .container = container,
					 .interface = "eth0",
					 .addresses = { &held, 1 } };
	struct attachment *x = attachment_copy(&like);

	assert_non_null(x);
	return x;
}

static void what_is_in_use_is_found_whatever_comes_first(void **unused)
{
	const struct address routed = address_from("10.1.0.1"), keyed = address_from("10.1.0.2");
	const struct address_record record = { .container = "d",
					       .interface = "eth0",
					       .pool = "web",
					       .namespace = "prod",
					       .pod = "db",
					       .link = "",
					       .netns = "" };
	struct err err;

	for (int blocks_first = 0; blocks_first < 2; blocks_first++) {
		if (blocks_first) {
			world_close(&w);
			world_open(&w);
			world_block(&w, "web", "10.1.0.0/26");
		}
		assert_int_equal(allocator_restore(w.a, made("c", "default", "10.1.0.0"), &err), 0);
		assert_int_equal(allocator_mark(w.a, "", &routed, NULL, w.now), 1);
		assert_int_equal(allocator_mark(w.a, "", &routed, NULL, w.now), 0);
		assert_int_equal(allocator_mark(w.a, "default", &keyed, &record, w.now), 1);
		world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
		if (!blocks_first)
			world_block(&w, "web", "10.1.0.0/26");
		SHOW("10.1.0.0/26 web owned used 3 free 61 resting 0\n"
		     "10.1.0.1: 10.1.0.1\nc: 10.1.0.0\nd: 10.1.0.2\n");
		ADD("e", "new 10.1.0.3/32 web");
		ADD("c", "existing 10.1.0.0/32 web");
		DEL("c", "10.1.0.0");
	}
}

static void a_mark_is_released_or_adopted_by_its_container(void **unused)
{
	const struct address a = address_from("10.1.0.5"), b = address_from("fd00::5");
	const struct address_record record = { .container = "d",
					       .interface = "eth0",
					       .pool = "web",
					       .namespace = "prod",
					       .pod = "db",
					       .link = "",
					       .netns = "" };

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"prefix\":\"pool\"}");
	world_block(&w, "web", "10.1.0.0/26");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(allocator_mark(w.a, "default", &a, &record, w.now), 1);
		assert_int_equal(allocator_mark(w.a, "default", &b, &record, w.now), 1);
		if (i)
			ADD("d", "existing 10.1.0.5/24 web fd00::5/128 web");
		DEL("d", "10.1.0.5 fd00::5");
		SHOW("10.1.0.0/26 web owned used 0 free 62 resting 1\n");
	}
}

/* A node's own address comes back after a boot by its key, to whom it belongs. */
static void a_reserved_address_outlives_its_file(void **unused)
{
	const struct address a = address_from("10.1.0.5");
	const struct address_record record = { .container = "tunnel",
					       .interface = "ipv4",
					       .pool = "web",
					       .namespace = "",
					       .pod = "",
					       .link = "",
					       .netns = "",
					       .reserved = true };
	const struct assign_request request = { .network = "roost",
						.container = "tunnel",
						.interface = "ipv4",
						.netns = "",
						.namespace = "",
						.pod = "",
						.uid = "",
						.reserved = true };
	struct assign_result result;

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	assert_int_equal(allocator_mark(w.a, "default", &a, &record, w.now), 1);
	assert_int_equal(
		allocator_assign(w.a, &request, &(struct assign_options){ 0 }, w.now, &result), 0);
	assert_int_equal(result.verdict, ASSIGN_DONE);
	assert_true(result.changed);
	assert_true(result.attachment->reserved);
	assert_false(attachment_is_mark(result.attachment));
	assert_int_equal(result.attachment->state, ATTACHMENT_ASSIGNED);
	assert_int_equal(address_compare(&result.attachment->addresses.v[0].address, &a), 0);
	assert_true(gc_keeps(&(struct gc_request){ .network = "roost" }, result.attachment));
}

static void a_file_takes_the_place_of_a_mark(void **unused)
{
	const struct address a = address_from("10.1.0.5");
	struct err err;

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	allocator_mark(w.a, "", &a, NULL, w.now);
	assert_int_equal(allocator_restore(w.a, made("c", "default", "10.1.0.5"), &err), 0);
	SHOW("10.1.0.0/26 web owned used 1 free 63 resting 0\nc: 10.1.0.5\n");
	DEL("c", "10.1.0.5");
	SHOW("10.1.0.0/26 web owned used 0 free 63 resting 1\n");
}

static void a_mark_keeps_what_the_file_does_not_name(void **unused)
{
	const struct address a = address_from("10.1.0.5"), b = address_from("10.1.0.6");
	const struct address_record record = { .container = "d",
					       .interface = "eth0",
					       .pool = "web",
					       .namespace = "",
					       .pod = "",
					       .link = "",
					       .netns = "" };
	struct err err;

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	allocator_mark(w.a, "default", &a, &record, w.now);
	allocator_mark(w.a, "default", &b, &record, w.now);
	assert_int_equal(allocator_restore(w.a, made("d", "default", "10.1.0.6"), &err), 0);
	SHOW("10.1.0.0/26 web owned used 2 free 62 resting 0\nd: 10.1.0.5\nd: 10.1.0.6\n");
	/* Asked until nothing is left: first the file's, then the mark's. */
	DEL("d", "10.1.0.6");
	DEL("d", "10.1.0.5");
	DEL("d", "");
}

static void an_address_that_two_files_hold_is_free_when_both_are_gone(void **unused)
{
	struct attachment *twice;
	struct err err;

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	assert_int_equal(allocator_restore(w.a, made("c", "default", "10.1.0.0"), &err), 0);
	assert_int_equal(allocator_restore(w.a, made("d", "default", "10.1.0.0"), &err), 1);
	assert_string_equal(err.text,
			    "10.1.0.0 is held by eth0 of container c and by eth0 of container d");
	twice = made("d", "default", "10.1.0.9");
	assert_int_equal(allocator_restore(w.a, twice, &err), -EEXIST);
	attachment_free(twice);
	DEL("c", "10.1.0.0");
	SHOW("10.1.0.0/26 web owned used 1 free 63 resting 0\nd: 10.1.0.0\n");
	DEL("d", "10.1.0.0");
	SHOW("10.1.0.0/26 web owned used 0 free 63 resting 1\n");
}

static void networks_keep_equal_addresses_apart(void **unused)
{
	struct err err;

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_pool(&w, "lan", "{\"cidr\":\"10.1.0.0/24\",\"network\":\"lan\"}");
	world_block(&w, "web", "10.1.0.0/26");
	world_block_state(&w, "lan", "lan", "10.1.0.0/26", BLOCK_OWNED);
	ADD("a", "new 10.1.0.0/32 web");
	ASSIGN("b", ",\"pools\":[\"lan\"]", WAIT, "new 10.1.0.0/32 lan");
	DEL("a", "10.1.0.0");
	SHOW("10.1.0.0/26 web owned used 0 free 63 resting 1\n"
	     "10.1.0.0/26 lan owned used 1 free 63 resting 0\nb: 10.1.0.0\n");
	/* Of an unknown network: in use in both. */
	assert_int_equal(allocator_restore(w.a, made("c", "", "10.1.0.1"), &err), 0);
	SHOW("10.1.0.0/26 web owned used 1 free 62 resting 1\n"
	     "10.1.0.0/26 lan owned used 2 free 62 resting 0\nb: 10.1.0.0\nc: 10.1.0.1\n");
	DEL("c", "10.1.0.1");
	SHOW("10.1.0.0/26 web owned used 0 free 62 resting 2\n"
	     "10.1.0.0/26 lan owned used 1 free 62 resting 1\nb: 10.1.0.0\n");
}

/* --- pools that change under running pods --------------------------------------------------- */

static void a_deleted_pool_takes_nothing_from_running_pods(void **unused)
{
	const struct prefix block = prefix_from("10.1.0.0/26");

	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_extent(&w, "extent/default/web", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":26}");
	world_block(&w, "web", "10.1.0.0/26");
	ADD("a", "new 10.1.0.0/32 web");
	world_pool(&w, "web", NULL);
	ADD("a", "existing 10.1.0.0/32 web");
	ADD("b", "100: there is no pool");
	assert_int_equal(allocator_block_remove(w.a, "default", &block), -EBUSY);
	/* Made anew under another name: the extent keeps it out. */
	world_pool(&w, "www", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":28}");
	ADD("b",
	    "100: no pool fits: pool www is not used: pool www (10.1.0.0/24) overlaps extent of "
	    "pool web (10.1.0.0/24) on network default");
	world_pool(&w, "www", NULL);
	/* Made anew with another cut: the extent rules. */
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":28}");
	ADD("b", "new 10.1.0.1/32 web");
	assert_string_equal(allocator_pools(w.a)->v[0].note.text,
			    "pool web says 10.1.0.0/16 in blocks of /28, but blocks are already "
			    "cut from 10.1.0.0/24 as /26: the edit has no effect until the last of "
			    "them is released");
}

static void overlapping_blocks_are_refused(void **unused)
{
	const struct prefix inner = prefix_from("10.1.0.16/28"), outer = prefix_from("10.1.0.0/24");
	struct err err;

	world_block(&w, "web", "10.1.0.0/26");
	assert_int_equal(allocator_block_set(w.a, "default", "x", &inner, BLOCK_OWNED, w.now, &err),
			 -EEXIST);
	assert_string_equal(err.text, "block 10.1.0.16/28 on network default overlaps 10.1.0.0/26, "
				      "which is here already");
	assert_int_equal(allocator_block_set(w.a, "default", "x", &outer, BLOCK_OWNED, w.now, &err),
			 -EEXIST);
	assert_int_equal(allocator_block_set(w.a, "lan", "x", &outer, BLOCK_OWNED, w.now, &err), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(without_a_block_one_is_asked_for),
		TEST(the_same_attachment_gets_the_same_address),
		TEST(the_address_released_longest_ago_comes_next),
		TEST(a_resting_address_is_given_only_when_nothing_else_is_left),
		TEST(a_pool_that_is_all_ours_and_full_says_its_name_and_size),
		TEST(etcd_away_is_another_error_than_a_full_pool),
		TEST(no_more_than_max_blocks_per_node_are_claimed),
		TEST(both_families_or_none),
		TEST(one_full_family_refuses_the_other_too),
		TEST(undo_leaves_no_trace),
		TEST(an_attachment_being_released_makes_its_add_wait),
		TEST(the_fullest_block_gives_first_so_that_others_empty),
		TEST(only_owned_blocks_give_addresses),
		TEST(the_next_pool_by_name_serves_when_the_first_is_full),
		TEST(what_a_pool_excludes_is_never_given),
		TEST(reserved_edges_are_those_of_the_pool_not_of_the_block),
		TEST(the_limits_of_a_request_bind_only_it),
		TEST(a_block_of_a_whole_64_costs_nothing),
		TEST(a_requested_address_is_given_if_free_even_when_resting),
		TEST(a_requested_address_that_is_held_outside_of_our_blocks_is_in_use),
		TEST(a_requested_address_elsewhere_needs_just_its_block),
		TEST(what_is_in_use_is_found_whatever_comes_first),
		TEST(a_mark_is_released_or_adopted_by_its_container),
		TEST(a_reserved_address_outlives_its_file),
		TEST(a_file_takes_the_place_of_a_mark),
		TEST(a_mark_keeps_what_the_file_does_not_name),
		TEST(an_address_that_two_files_hold_is_free_when_both_are_gone),
		TEST(networks_keep_equal_addresses_apart),
		TEST(a_deleted_pool_takes_nothing_from_running_pods),
		TEST(overlapping_blocks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
