/* SPDX-License-Identifier: Apache-2.0 */
/* Registration in whole situations; lost replies and other misfortunes: register_trouble_test.c. */
#include <errno.h>

#include "agent/node/register_world.h"

static void a_fresh_node_is_created(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	assert_null(register_fence(a.registration));
	assert_string_equal(register_reason(a.registration), "waiting for etcd's answer");
	store_fake_run(w.store);
	expect(&w, "m1 registered\n");
	assert_string_equal(store_fake_get(w.store, NODE_KEY)->value,
			    "{\"ipv4\":\"10.0.0.1/24\",\"machine\":\"m1\",\"boot\":\"b1\","
			    "\"reclaimAfter\":3600,\"agent\":{\"version\":\"0.1.0\",\"started\":"
			    "\"2026-11-16T02:45:01Z\"}}");
	assert_string_equal(register_reason(a.registration), "");
	agent_stop(&a);
	world_close(&w);
}

/* Over leases the answer to the first write is the proof: a second round must not void it. */
static void a_round_that_is_begun_again_loses_nothing_more(void **unused)
{
	const struct node_vtep vtep = { .mac = { { 2, 0, 0, 0, 0, 1 } } };
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	while (!a.lost)
		assert_true(store_fake_step(w.store));
	assert_int_equal(register_set_vtep(a.registration, &vtep), 0);
	store_fake_run(w.store);
	expect(&w, "m1 registered\n");
	assert_int_equal(a.lost, 1);
	store_fake_delete(w.store, NODE_KEY, NULL);
	store_fake_run(w.store);
	assert_int_equal(a.lost, 2);
	agent_stop(&a);
	world_close(&w);
}

static void an_agent_that_is_restarted_keeps_the_create_revision(void **unused)
{
	struct world w;
	struct agent a;
	int64_t created, modified;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	created = create_revision(&w);
	modified = store_fake_get(w.store, NODE_KEY)->mod_revision;
	agent_stop(&a);
	agent_start(&w, &a, "m1", "b1", "2");
	store_fake_run(w.store);
	expect(&w, "m1 registered\nm1 registered\n");
	assert_int_equal(create_revision(&w), created);
	/* What the old process still had under way compares this. */
	assert_true(store_fake_get(w.store, NODE_KEY)->mod_revision > modified);
	agent_stop(&a);
	world_close(&w);
}

/* Even if not one byte differs: what the old process has under way must not apply any more. */
static void a_restart_within_the_same_second_raises_the_fence_too(void **unused)
{
	struct world w;
	struct agent a;
	int64_t modified;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	modified = store_fake_get(w.store, NODE_KEY)->mod_revision;
	agent_stop(&a);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	expect(&w, "m1 registered\nm1 registered\n");
	assert_true(store_fake_get(w.store, NODE_KEY)->mod_revision > modified);
	agent_stop(&a);
	world_close(&w);
}

static void a_rebooted_machine_registers_at_once_though_its_old_status_lives(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	agent_stop(&a);
	store_fake_put(w.store, STATUS_KEY, "{}");
	agent_start(&w, &a, "m1", "b2", "2");
	store_fake_run(w.store);
	expect(&w, "m1 registered\nm1 registered\n");
	expect_record(&w, "m1", "b2");
	agent_stop(&a);
	world_close(&w);
}

static void another_machine_that_lives_is_not_displaced(void **unused)
{
	struct world w;
	struct agent a, b;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	store_fake_put(w.store, STATUS_KEY, "{}");
	agent_start(&w, &b, "m2", "b7", "2");
	fake_time_pass(&w.time, w.store, 60);
	expect(&w, "m1 registered\n");
	expect_record(&w, "m1", "b1");
	assert_null(register_fence(b.registration));
	assert_string_equal(
		register_reason(b.registration),
		"the name n1 belongs to machine m1 at 10.0.0.1, which is alive; this is "
		"machine m2 at 10.0.0.2");
	assert_string_equal(
		health_reason(b.health, "registration"),
		"the name n1 belongs to machine m1 at 10.0.0.1, which is alive; this is "
		"machine m2 at 10.0.0.2; asking again every 15 s");
	agent_stop(&a);
	agent_stop(&b);
	world_close(&w);
}

static void the_refused_one_asks_seldom_and_takes_over_once_the_other_is_silent(void **unused)
{
	struct world w;
	struct agent a, b;
	unsigned before;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	agent_stop(&a);
	store_fake_put(w.store, STATUS_KEY, "{}");
	agent_start(&w, &b, "m2", "b7", "2");
	store_fake_run(w.store);
	before = store_fake_stats(w.store).txns;
	fake_time_pass(&w.time, w.store, 60);
	assert_in_range(store_fake_stats(w.store).txns - before, 3, 4);
	store_fake_delete(w.store, STATUS_KEY, NULL);
	/* As long as the record promises, and not a moment less. */
	fake_time_pass(&w.time, w.store, 3600);
	expect(&w, "m1 registered\n");
	assert_non_null(strstr(register_reason(b.registration), "roostctl node delete n1 --now"));
	fake_time_pass(&w.time, w.store, 32);
	expect(&w, "m2 registered\n");
	assert_null(health_reason(b.health, "registration"));
	agent_stop(&b);
	world_close(&w);
}

static void the_refused_one_does_not_wait_when_the_others_record_is_deleted(void **unused)
{
	struct world w;
	struct agent b;

	world_open(&w);
	store_fake_put(w.store, NODE_KEY, "{\"ipv4\":\"10.0.0.1/24\",\"machine\":\"m1\"}");
	store_fake_put(w.store, STATUS_KEY, "{}");
	agent_start(&w, &b, "m2", "b7", "2");
	store_fake_run(w.store);
	expect(&w, "");
	store_fake_delete(w.store, NODE_KEY, NULL);
	store_fake_run(w.store);
	expect(&w, "m2 registered\n");
	agent_stop(&b);
	world_close(&w);
}

static void taking_over_changes_the_create_revision(void **unused)
{
	struct world w;
	struct agent a, b;
	int64_t created;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	created = create_revision(&w);
	agent_stop(&a);
	agent_start(&w, &b, "m2", "b7", "2");
	fake_time_pass(&w.time, w.store, 3632);
	expect(&w, "m1 registered\nm2 registered\n");
	expect_record(&w, "m2", "b7");
	assert_true(create_revision(&w) > created);
	agent_stop(&b);
	world_close(&w);
}

/* Its status comes back between the reading and the first half of taking over. */
static void wake_the_other(struct store *s, const struct store_txn *txn, void *arg)
{
	bool *done = arg;

	if (*done || txn->n_compares != 4)
		return;
	*done = true;
	store_fake_put(s, STATUS_KEY, "{}");
}

static void one_that_comes_back_just_in_time_keeps_its_name(void **unused)
{
	struct world w;
	struct agent a, b;
	bool woken = false;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	agent_stop(&a);
	store_fake_before_txn(w.store, wake_the_other, &woken);
	agent_start(&w, &b, "m2", "b7", "2");
	fake_time_pass(&w.time, w.store, 3632);
	assert_true(woken);
	expect(&w, "m1 registered\n");
	expect_record(&w, "m1", "b1");
	agent_stop(&b);
	world_close(&w);
}

static void a_record_deleted_by_hand_is_made_anew(void **unused)
{
	struct world w;
	struct agent a;
	int64_t created;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	created = create_revision(&w);
	store_fake_delete(w.store, NODE_KEY, NULL);
	store_fake_run(w.store);
	expect(&w, "m1 registered\n"
		   "m1 lost: the node record is gone from etcd; registering again\n"
		   "m1 registered\n");
	assert_true(create_revision(&w) > created);
	agent_stop(&a);
	world_close(&w);
}

static void a_record_edited_by_hand_is_written_back_but_no_faster_than_every_5_s(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	w.story[0] = '\0';
	store_fake_put(w.store, NODE_KEY, "{not even JSON");
	store_fake_run(w.store);
	expect(&w, "m1 registered\n");
	expect_record(&w, "m1", "b1");
	store_fake_put(w.store, NODE_KEY, "{}");
	store_fake_run(w.store);
	assert_null(register_fence(a.registration));
	assert_string_equal(store_fake_get(w.store, NODE_KEY)->value, "{}");
	fake_time_pass(&w.time, w.store, 7);
	expect(&w, "m1 registered\n");
	expect_record(&w, "m1", "b1");
	agent_stop(&a);
	world_close(&w);
}

static void a_fencing_write_of_our_own_moves_just_the_fence(void **unused)
{
	struct world w;
	struct agent a;
	AUTO(free) char *value = NULL;
	int64_t revision;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	expect(&w, "m1 registered\n");
	value = strdup(store_fake_get(w.store, NODE_KEY)->value);
	revision = store_fake_put(w.store, NODE_KEY, value);
	store_fake_run(w.store);
	expect(&w, "");
	assert_int_equal(register_fence(a.registration)->mod_revision, revision);
	register_raised(a.registration, revision);
	assert_non_null(register_fence(a.registration));
	agent_stop(&a);
	world_close(&w);
}

static void a_raised_fence_is_read_before_it_is_believed(void **unused)
{
	struct world w;
	struct agent a;
	AUTO(free) char *value = NULL;
	int64_t revision;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	w.story[0] = '\0';
	store_fake_follow(w.store, false);
	value = strdup(store_fake_get(w.store, NODE_KEY)->value);
	revision = store_fake_put(w.store, NODE_KEY, value);
	register_raised(a.registration, revision);
	assert_null(register_fence(a.registration));
	store_fake_run(w.store);
	expect(&w, "m1 registered\n");
	assert_int_equal(register_fence(a.registration)->mod_revision, revision);

	/* The other way: who raised it is one who took the name over. */
	revision = store_fake_put(w.store, NODE_KEY,
				  "{\"ipv4\":\"10.0.0.2/24\",\"machine\":\"m2\",\"boot\":\"b7\"}");
	store_fake_put(w.store, STATUS_KEY, "{}");
	register_raised(a.registration, revision);
	store_fake_run(w.store);
	assert_null(register_fence(a.registration));
	expect(&w,
	       "m1 lost: the name n1 belongs to machine m2 at 10.0.0.2, which is alive; this is "
	       "machine m1 at 10.0.0.1\n");
	store_fake_follow(w.store, true);
	agent_stop(&a);
	world_close(&w);
}

static void of_two_clones_the_displaced_one_waits_instead_of_fighting(void **unused)
{
	struct world w;
	struct agent a, b;
	const char *why =
		"the name n1 is also used by an agent at 10.0.0.1, which is alive, with the "
		"same machine id m1 (a copied image?) and boot b2; this one is at 10.0.0.1, "
		"boot b1";
	int64_t revision;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	agent_start(&w, &b, "m1", "b2", "2");
	store_fake_put(w.store, STATUS_KEY, "{}");
	store_fake_run(w.store);
	expect(&w, "m1 registered\nm1 lost: another agent has registered this node's name\n"
		   "m1 registered\n");
	assert_string_equal(register_reason(a.registration), why);
	revision = store_fake_revision(w.store);
	fake_time_pass(&w.time, w.store, 120);
	assert_int_equal(store_fake_revision(w.store), revision);
	expect_record(&w, "m1", "b2");
	assert_non_null(register_fence(b.registration));
	agent_stop(&a);
	agent_stop(&b);
	world_close(&w);
}

static void a_removed_node_registers_and_is_told(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	store_fake_put(w.store, REMOVED_KEY,
		       "{\"by\":\"roostctl\",\"when\":\"2026-11-16T02:45:55Z\"}");
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	assert_non_null(strstr(w.story, "m1 registered\n"));
	assert_non_null(strstr(w.story, "m1 removed\n"));
	w.story[0] = '\0';
	assert_true(register_removed(a.registration));
	assert_string_equal(
		health_reason(a.health, "removed"),
		"this node was removed (by roostctl, 2026-11-16T02:45:55Z): it gives no "
		"new addresses and gives back what no pod uses; delete the key "
		"/roost/v1/removed/n1 to have it back");
	assert_non_null(store_fake_get(w.store, REMOVED_KEY));

	store_fake_put(w.store, REMOVED_KEY, "{\"when\":7}");
	store_fake_run(w.store);
	expect(&w, "");
	assert_true(register_removed(a.registration));
	store_fake_delete(w.store, REMOVED_KEY, NULL);
	store_fake_run(w.store);
	expect(&w, "m1 no longer removed\n");
	assert_null(health_reason(a.health, "removed"));
	agent_stop(&a);
	world_close(&w);
}

static bool record_says(struct world *w, const char *words)
{
	return strstr(store_fake_get(w->store, NODE_KEY)->value, words);
}

/* Whoever is there already reaches this node by it: it is never missing in between. */
static void the_tunnel_comes_and_goes_without_another_registration(void **unused)
{
	struct node_vtep vtep = { .mac = { { 2, 0, 0, 0, 0, 1 } } };
	struct world w;
	struct agent a;
	int64_t created;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	created = create_revision(&w);
	assert_int_equal(address_parse("10.1.0.1", &vtep.ipv4), 0);
	assert_int_equal(register_set_vtep(a.registration, &vtep), 0);
	assert_null(register_fence(a.registration));
	store_fake_run(w.store);
	expect(&w, "m1 registered\nm1 registered\n");
	assert_true(
		record_says(&w, "\"vtep\":{\"mac\":\"02:00:00:00:00:01\",\"ipv4\":\"10.1.0.1\"}"));
	/* The same again is no write. */
	assert_int_equal(register_set_vtep(a.registration, &vtep), 0);
	store_fake_run(w.store);
	expect(&w, "");
	agent_stop(&a);

	agent_start(&w, &a, "m1", "b1", "2");
	store_fake_run(w.store);
	expect(&w, "m1 registered\n");
	assert_true(record_says(&w, "\"ipv4\":\"10.1.0.1\""));
	assert_int_equal(register_set_vtep(a.registration, &(struct node_vtep){ 0 }), 0);
	store_fake_run(w.store);
	expect(&w, "m1 registered\n");
	assert_false(record_says(&w, "vtep"));
	assert_int_equal(create_revision(&w), created);
	agent_stop(&a);
	world_close(&w);
}

/* Another machine's tunnel is not ours. */
static void who_takes_a_name_over_does_not_take_the_tunnel(void **unused)
{
	const struct node_vtep vtep = { .mac = { { 2, 0, 0, 0, 0, 1 } } };
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	/* While the first answer is still awaited. */
	assert_int_equal(register_set_vtep(a.registration, &vtep), 0);
	store_fake_run(w.store);
	assert_true(record_says(&w, "02:00:00:00:00:01"));
	agent_stop(&a);
	agent_start(&w, &a, "m2", "b2", "1");
	fake_time_pass(&w.time, w.store, 3632);
	assert_true(record_says(&w, "\"m2\""));
	assert_false(record_says(&w, "vtep"));
	agent_stop(&a);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_node_is_created),
		cmocka_unit_test(a_round_that_is_begun_again_loses_nothing_more),
		cmocka_unit_test(an_agent_that_is_restarted_keeps_the_create_revision),
		cmocka_unit_test(a_restart_within_the_same_second_raises_the_fence_too),
		cmocka_unit_test(a_rebooted_machine_registers_at_once_though_its_old_status_lives),
		cmocka_unit_test(another_machine_that_lives_is_not_displaced),
		cmocka_unit_test(
			the_refused_one_asks_seldom_and_takes_over_once_the_other_is_silent),
		cmocka_unit_test(the_refused_one_does_not_wait_when_the_others_record_is_deleted),
		cmocka_unit_test(taking_over_changes_the_create_revision),
		cmocka_unit_test(one_that_comes_back_just_in_time_keeps_its_name),
		cmocka_unit_test(a_record_deleted_by_hand_is_made_anew),
		cmocka_unit_test(
			a_record_edited_by_hand_is_written_back_but_no_faster_than_every_5_s),
		cmocka_unit_test(a_fencing_write_of_our_own_moves_just_the_fence),
		cmocka_unit_test(a_raised_fence_is_read_before_it_is_believed),
		cmocka_unit_test(of_two_clones_the_displaced_one_waits_instead_of_fighting),
		cmocka_unit_test(a_removed_node_registers_and_is_told),
		cmocka_unit_test(the_tunnel_comes_and_goes_without_another_registration),
		cmocka_unit_test(who_takes_a_name_over_does_not_take_the_tunnel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
