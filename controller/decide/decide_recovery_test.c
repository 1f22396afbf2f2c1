/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_recovery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Two mirrors: as it was when etcd went back, and as it is now. */
static struct mirror before, now;
static struct memory_of_blocks memory;
static int64_t revision;
static bool waited;

static void put(struct mirror *m, const char *key, const char *value)
{
	struct store_kv kv = { .key = key,
			       .value = value,
			       .value_len = strlen(value),
			       .create_revision = revision + 1,
			       .mod_revision = revision + 1 };

	revision++;
	assert_int_equal(mirror_put(m, key, &kv), 0);
	m->revision = revision;
}

static void node(struct mirror *m, const char *name, const char *recovery, bool alive)
{
	char key[64], value[128];

	snprintf(key, sizeof(key), "node/%s", name);
	snprintf(value, sizeof(value),
		 "{\"ipv4\":\"192.0.2.1/24\",\"reclaimAfter\":900,\"recovery\":\"%s\"}", recovery);
	put(m, key, value);
	snprintf(key, sizeof(key), "status/node/%s", name);
	if (alive)
		put(m, key, "{}");
}

static int set_up(void **unused)
{
	revision = 0;
	waited = false;
	/* n1 and n2 live, n3 is silent; each has a block. */
	node(&before, "n1", "", true);
	node(&before, "n2", "", true);
	node(&before, "n3", "", false);
	put(&before, "block/default/10.1.0.0-28", "{\"node\":\"n1\",\"pool\":\"web\"}");
	put(&before, "block/default/10.1.0.16-28", "{\"node\":\"n2\",\"pool\":\"web\"}");
	put(&before, "block/default/10.1.0.32-28", "{\"node\":\"n3\",\"pool\":\"web\"}");
	assert_int_equal(memory_of_blocks_take(&memory, &before), 0);
	revision = 0;
	return 0;
}

static int tear_down(void **unused)
{
	mirror_done(&before);
	mirror_done(&now);
	memory_of_blocks_done(&memory);
	return 0;
}

static void expect(const char *state, const char *plan)
{
	AUTO_DONE(plans_done) struct plans plans = { 0 };
	struct err why = { "" };
	enum recovery_state s = recovery_plan(&memory, &now, waited, &plans, &why);
	AUTO(free) char *text = plans_print(&plans);

	assert_string_equal(recovery_state_name(s), state);
	assert_string_equal(text, plan);
	if (s != RECOVERY_STATE_NONE)
		assert_non_null(strstr(why.text, "recovery r1"));
}

#define SILENT "{\"ipv4\":\"192.0.2.1/24\",\"reclaimAfter\":900,\"recovery\":\"\"}"
#define OPEN   "{\"id\":\"r1\",\"longest\":900,\"revision\":5}"

static void without_a_record_there_is_nothing_to_do(void **unused)
{
	expect("none", "");
	put(&now, "recovery", "{\"id\":\"r1\",\"done\":true}");
	expect("none", "");
}

static void it_waits_for_the_living(void **unused)
{
	put(&now, "recovery", OPEN);
	expect("waiting", "");
	node(&now, "n1", "r1", true);
	expect("waiting", "");
	node(&now, "n2", "r0", true);
	expect("waiting", "");
	/* Also for one that nobody knew before. */
	node(&now, "n2", "r1", true);
	node(&now, "n9", "", true);
	expect("waiting", "");
}

static void blocks_of_the_silent_are_written_again_and_then_it_ends(void **unused)
{
	put(&now, "recovery", OPEN); /* 1 */
	node(&now, "n1", "r1", true);
	node(&now, "n2", "r1", true);
	node(&now, "n3", "", false);
	expect("writing", "block/default/10.1.0.32-28:\n"
			  "if block/default/10.1.0.32-28 absent\n"
			  "put block/default/10.1.0.32-28 "
			  "{\"node\":\"n3\",\"pool\":\"web\",\"recovery\":\"r1\"}\n"
			  "put host/n3/ipv4/block/default/10.1.0.32-28 {\"pool\":\"web\"}\n");
	put(&now, "block/default/10.1.0.32-28", "{\"node\":\"n3\",\"pool\":\"web\"}");
	expect("ending",
	       "recovery:\n"
	       "if recovery = 1\n"
	       "put recovery {\"id\":\"r1\",\"longest\":900,\"revision\":5,\"done\":true}\n");
}

static void a_restored_owner_gives_way_to_a_silent_one(void **unused)
{
	put(&now, "recovery", OPEN);
	node(&now, "n1", "r1", true);                                                  /* 2, 3 */
	node(&now, "n2", "r1", true);                                                  /* 4, 5 */
	put(&now, "block/default/10.1.0.32-28", "{\"node\":\"n1\",\"pool\":\"web\"}"); /* 6 */
	node(&now, "n3", "", false);
	expect("writing", "block/default/10.1.0.32-28:\n"
			  "if block/default/10.1.0.32-28 = 6\n"
			  "put block/default/10.1.0.32-28 "
			  "{\"node\":\"n3\",\"pool\":\"web\",\"recovery\":\"r1\"}\n"
			  "put host/n3/ipv4/block/default/10.1.0.32-28 {\"pool\":\"web\"}\n"
			  "delete host/n1/ipv4/block/default/10.1.0.32-28\n");
	/* Not where a node claimed it again in this recovery: then it uses it. */
	put(&now, "block/default/10.1.0.32-28", "{\"node\":\"n1\",\"recovery\":\"r1\"}");
	expect("ending",
	       "recovery:\n"
	       "if recovery = 1\n"
	       "put recovery {\"id\":\"r1\",\"longest\":900,\"revision\":5,\"done\":true}\n");
}

static void a_silent_node_has_its_record_again(void **unused)
{
	put(&now, "recovery", OPEN);
	node(&now, "n1", "r1", true);                                                  /* 2, 3 */
	node(&now, "n2", "r1", true);                                                  /* 4, 5 */
	put(&now, "block/default/10.1.0.32-28", "{\"node\":\"n3\",\"pool\":\"web\"}"); /* 6 */
	expect("writing", "node/n3:\n"
			  "if node/n3 absent\n"
			  "put node/n3 " SILENT "\n");
	/* Another machine that took the name meanwhile: it has to wait. */
	put(&now, "node/n3",
	    "{\"ipv4\":\"192.0.2.9/24\",\"reclaimAfter\":900,\"recovery\":\"r1\"}"); /* 7 */
	expect("writing", "node/n3:\n"
			  "if node/n3 = 7\n"
			  "put node/n3 " SILENT "\n");
	put(&now, "node/n3", SILENT);
	expect("ending",
	       "recovery:\n"
	       "if recovery = 1\n"
	       "put recovery {\"id\":\"r1\",\"longest\":900,\"revision\":5,\"done\":true}\n");
}

#define HOLDER "{\"ipv4\":\"192.0.2.5/32\",\"machine\":\"lease\",\"boot\":\"lease\""

/* Its record says that it has spoken: so it comes with all that it holds. */
static void a_holder_of_leases_is_written_again_as_a_whole(void **unused)
{
	const char *leased =
		"{\"node\":\"lease-192.0.2.5\",\"lease\":{\"publicIP\":\"192.0.2.5\"}}";

	put(&before, "node/lease-192.0.2.5", HOLDER "}");
	put(&before, "block/default/10.1.0.48-28", leased);
	put(&before, "block/default/10.1.0.64-28", leased);
	assert_int_equal(memory_of_blocks_take(&memory, &before), 0);
	revision = 0;
	put(&now, "recovery", "{\"id\":\"r1\",\"longest\":900,\"revision\":1}");
	node(&now, "n1", "r1", true);
	node(&now, "n2", "r1", true);
	node(&now, "n3", "r1", false);
	expect("writing", "node/lease-192.0.2.5:\n"
			  "if node/lease-192.0.2.5 absent\n"
			  "if block/default/10.1.0.48-28 absent\n"
			  "if block/default/10.1.0.64-28 absent\n"
			  "put node/lease-192.0.2.5 " HOLDER ",\"recovery\":\"r1\"}\n"
			  "put block/default/10.1.0.48-28 "
			  "{\"node\":\"lease-192.0.2.5\",\"recovery\":\"r1\",\"lease\":{"
			  "\"publicIP\":\"192.0.2.5\"}}\n"
			  "put host/lease-192.0.2.5/ipv4/block/default/10.1.0.48-28 {}\n"
			  "put block/default/10.1.0.64-28 "
			  "{\"node\":\"lease-192.0.2.5\",\"recovery\":\"r1\",\"lease\":{"
			  "\"publicIP\":\"192.0.2.5\"}}\n"
			  "put host/lease-192.0.2.5/ipv4/block/default/10.1.0.64-28 {}\n");
}

/* Before anything else: a pool that is edited meanwhile must not be cut otherwise. */
static void vanished_extents_are_written_again(void **unused)
{
	put(&before, "extent/default/web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":28}");
	assert_int_equal(memory_of_blocks_take(&memory, &before), 0);
	revision = 0;
	put(&now, "recovery", "{\"id\":\"r1\",\"longest\":900,\"revision\":1}");
	expect("waiting", "extent/default/web:\n"
			  "if extent/default/web absent\n"
			  "put extent/default/web {\"cidr\":\"10.1.0.0/16\",\"blockSize\":28}\n");
	put(&now, "extent/default/web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":26}");
	expect("waiting", "");
}

static void another_machine_does_not_speak_for_one_that_lived(void **unused)
{
	put(&now, "recovery", OPEN);
	node(&now, "n1", "r1", true);
	node(&now, "n2", "r1", true);
	node(&now, "n3", "", false);
	put(&now, "node/n2",
	    "{\"ipv4\":\"192.0.2.9/24\",\"reclaimAfter\":900,\"recovery\":\"r1\"}");
	expect("waiting", "");
}

static void who_knows_less_than_a_node_leaves_it_to_the_agents(void **unused)
{
	put(&now, "recovery", "{\"id\":\"r1\",\"revision\":5000}");
	node(&now, "n1", "r1", true);
	node(&now, "n2", "r1", true);
	expect("agents", "");
	memory_of_blocks_done(&memory);
	put(&now, "recovery", OPEN); /* 6 */
	expect("agents", "");
	/* Until the longest promise has passed. */
	waited = true;
	expect("ending",
	       "recovery:\n"
	       "if recovery = 6\n"
	       "put recovery {\"id\":\"r1\",\"longest\":900,\"revision\":5,\"done\":true}\n");
}

static void it_opens_one_that_names_the_longest_promise(void **unused)
{
	AUTO_DONE(plans_done) struct plans plans = { 0 };
	AUTO(free) char *text = NULL;

	recovery_begin(&memory, &now, "r7", 3, 600, "2026-11-16T02:45:55Z", &plans);
	text = plans_print(&plans);
	assert_string_equal(text, "recovery:\n"
				  "if recovery absent\n"
				  "put recovery "
				  "{\"id\":\"r7\",\"by\":\"controller\",\"number\":3,\"began\":"
				  "\"2026-11-16T02:45:55Z\",\"longest\":900,\"revision\":8}\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(without_a_record_there_is_nothing_to_do),
		TEST(it_waits_for_the_living),
		TEST(blocks_of_the_silent_are_written_again_and_then_it_ends),
		TEST(a_restored_owner_gives_way_to_a_silent_one),
		TEST(a_silent_node_has_its_record_again),
		TEST(a_holder_of_leases_is_written_again_as_a_whole),
		TEST(vanished_extents_are_written_again),
		TEST(another_machine_does_not_speak_for_one_that_lived),
		TEST(who_knows_less_than_a_node_leaves_it_to_the_agents),
		TEST(it_opens_one_that_names_the_longest_promise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
