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

/* "web low-water: 1-3" */
static const char *claims(void)
{
	struct block_need needs[4];
	int n = allocator_claims_wanted(w.a, w.now, needs, ARRAY_SIZE(needs));
	size_t len = 0;

	assert_true(n >= 0);
	w.text[0] = '\0';
	for (int i = 0; i < n; i++) {
		len += (size_t)snprintf(w.text + len, sizeof(w.text) - len,
					"%s%s %s:", i ? ", " : "", needs[i].pool,
					needs[i].reason == NEED_LOW_WATER ? "low-water"
									  : "preallocate");
		len += show_spans(&needs[i].usable, w.text + len, sizeof(w.text) - len);
		block_need_done(&needs[i]);
	}
	return w.text;
}

/* All that go, one after the other. */
static const char *given_back(const char *asked_network)
{
	const struct texts asked = { &asked_network, asked_network ? 1 : 0 };
	const struct own_block *b;
	char out[1024] = "";
	size_t n = 0;

	while ((b = allocator_give_back(w.a, &asked, w.now))) {
		char p[PREFIX_TEXT];

		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s", n ? " " : "",
				      prefix_print(&b->prefix, p));
		world_block_state(&w, b->network, b->pool, p, BLOCK_RELEASING);
	}
	snprintf(w.text, sizeof(w.text), "%s", out);
	return w.text;
}

static void fill(unsigned n)
{
	static unsigned next;
	char name[16];

	for (; n > 0; n--) {
		snprintf(name, sizeof(name), "f%u", next++);
		assert_memory_equal(world_add(&w, name), "new", 3);
	}
}

static void the_next_block_is_wanted_below_a_quarter(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	assert_string_equal(claims(), "");
	world_block(&w, "web", "10.1.0.0/26");
	fill(48);
	assert_string_equal(claims(), "");
	fill(1);
	assert_string_equal(claims(), "web low-water: 1-3");
	/* One whose claim is not settled is on its way. */
	world_block_state(&w, "default", "web", "10.1.0.64/26", BLOCK_CLAIMING);
	assert_string_equal(claims(), "");
	world_block_state(&w, "default", "web", "10.1.0.64/26", BLOCK_LOST);
	assert_string_equal(claims(), "web low-water: 2-3");
	allocator_pool_full(w.a, "web", w.now + 1);
	assert_string_equal(claims(), "");
	world_pool(&w, "other", "{\"cidr\":\"10.2.0.0/24\"}");
	assert_string_equal(claims(), "");
	w.now++;
	assert_string_equal(claims(), "web low-water: 2-3");
}

static void resting_addresses_are_not_free(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/28\",\"blockSize\":30}");
	world_block(&w, "web", "10.1.0.0/30");
	fill(3);
	world_add(&w, "x");
	world_del(&w, "x");
	assert_string_equal(claims(), "web low-water: 1-3");
	w.now += SECONDS(60);
	assert_string_equal(claims(), "");
}

static void single_addresses_are_neither_claimed_ahead_nor_kept(void **unused)
{
	world_pool(&w, "fix", "{\"cidr\":\"10.1.0.0/24\",\"blockSize\":32}");
	world_block(&w, "fix", "10.1.0.7/32");
	fill(1);
	assert_string_equal(claims(), "");
	world_block(&w, "fix", "10.1.0.8/32");
	w.now += SECONDS(59);
	assert_string_equal(given_back(NULL), "");
	w.now += SECONDS(1);
	assert_string_equal(given_back(NULL), "10.1.0.8/32");
}

static void preallocated_blocks_are_wanted_from_the_start(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"preallocate\":2}");
	assert_string_equal(claims(), "web preallocate: 0-3");
	world_block(&w, "web", "10.1.0.0/26");
	assert_string_equal(claims(), "web preallocate: 1-3");
	world_block(&w, "web", "10.1.0.192/26");
	assert_string_equal(claims(), "");
	world_pool(&w, "web",
		   "{\"cidr\":\"10.1.0.0/24\",\"preallocate\":3,\"nodeSelector\":\"zone == 'a'\"}");
	assert_string_equal(claims(), "");
}

static void an_empty_block_goes_after_its_cooldown_if_enough_stays(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	world_block(&w, "web", "10.1.0.64/26");
	world_block(&w, "web", "10.1.0.128/26");
	fill(33);
	assert_int_equal(allocator_give_back_time(w.a, w.now), w.now + SECONDS(60));
	w.now += SECONDS(60);
	assert_int_equal(allocator_give_back_time(w.a, w.now), INT64_MAX);
	/* 31 free without both, and 32 must stay. */
	assert_string_equal(given_back(NULL), "10.1.0.128/26");
}

static void the_last_block_stays(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	world_block(&w, "web", "10.1.0.64/26");
	w.now += SECONDS(3600);
	assert_string_equal(given_back(NULL), "10.1.0.64/26");
}

static void preallocated_blocks_stay(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"preallocate\":2}");
	world_block(&w, "web", "10.1.0.0/26");
	world_block(&w, "web", "10.1.0.64/26");
	world_block(&w, "web", "10.1.0.128/26");
	w.now += SECONDS(3600);
	assert_string_equal(given_back(NULL), "10.1.0.128/26");
	assert_string_equal(given_back("default"), "");
	world_block(&w, "web", "10.1.0.128/26");
	assert_string_equal(given_back("default"), "10.1.0.128/26");
}

static void when_asked_all_empty_ones_go(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	world_block(&w, "web", "10.1.0.64/26");
	w.now += SECONDS(60);
	assert_string_equal(given_back("default"), "10.1.0.64/26 10.1.0.0/26");
}

static void a_block_goes_only_when_it_has_been_empty_for_its_cooldown(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	world_add(&w, "a");
	w.now += SECONDS(3600);
	world_del(&w, "a");
	w.now += SECONDS(59);
	assert_string_equal(given_back("default"), "");
	w.now += SECONDS(1);
	assert_string_equal(given_back("default"), "10.1.0.0/26");
}

static void a_block_in_use_never_goes(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	fill(1);
	world_block(&w, "web", "10.1.0.64/26");
	world_pool(&w, "web", NULL);
	w.now += SECONDS(3600);
	assert_string_equal(given_back("default"), "10.1.0.64/26");
}

static void a_pool_that_is_gone_or_not_for_us_keeps_nothing(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	w.now += SECONDS(3600);
	assert_string_equal(given_back(NULL), "");
	/* A record that is broken is no command. */
	world_pool(&w, "web", "{\"cidr\":17}");
	assert_string_equal(given_back("default"), "");
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"disabled\":true}");
	assert_string_equal(given_back(NULL), "");
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"nodeSelector\":\"has(x)\"}");
	assert_string_equal(given_back(NULL), "10.1.0.0/26");
	world_block(&w, "web", "10.1.0.0/26");
	world_pool(&w, "web", NULL);
	assert_string_equal(given_back(NULL), "10.1.0.0/26");
}

static void a_lost_block_is_forgotten_when_empty(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\"}");
	world_block(&w, "web", "10.1.0.0/26");
	world_add(&w, "a");
	world_block_state(&w, "default", "web", "10.1.0.0/26", BLOCK_LOST);
	assert_null(allocator_block_forgotten(w.a));
	assert_string_equal(given_back("default"), "");
	world_del(&w, "a");
	assert_non_null(allocator_block_forgotten(w.a));
}

static void a_disabled_pool_neither_gives_nor_claims(void **unused)
{
	world_pool(&w, "web", "{\"cidr\":\"10.1.0.0/24\",\"disabled\":true,\"preallocate\":1}");
	assert_string_equal(claims(), "");
	world_block(&w, "web", "10.1.0.0/26");
	assert_string_equal(world_add(&w, "a"), "100: no pool fits: pool web is disabled");
	assert_string_equal(world_show(&w), "10.1.0.0/26 web owned used 0 free 0 resting 0\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(the_next_block_is_wanted_below_a_quarter),
		TEST(resting_addresses_are_not_free),
		TEST(single_addresses_are_neither_claimed_ahead_nor_kept),
		TEST(preallocated_blocks_are_wanted_from_the_start),
		TEST(an_empty_block_goes_after_its_cooldown_if_enough_stays),
		TEST(the_last_block_stays),
		TEST(preallocated_blocks_stay),
		TEST(when_asked_all_empty_ones_go),
		TEST(a_block_goes_only_when_it_has_been_empty_for_its_cooldown),
		TEST(a_block_in_use_never_goes),
		TEST(a_pool_that_is_gone_or_not_for_us_keeps_nothing),
		TEST(a_lost_block_is_forgotten_when_empty),
		TEST(a_disabled_pool_neither_gives_nor_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
