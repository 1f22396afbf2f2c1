/* SPDX-License-Identifier: Apache-2.0 */
/* Registration while etcd misbehaves: lost replies, late writes, outages, other clusters. */
#include <errno.h>

#include "agent/node/register_world.h"

#define N_FATES 3
static const enum store_fake_fate fates[N_FATES] = { STORE_FAKE_LOSE_REPLY, STORE_FAKE_LOSE_REQUEST,
						     STORE_FAKE_LATE };

/* Whatever became of the reply: registered once, with the fence that stands in etcd. */
static void fate_of_the_create(enum store_fake_fate fate)
{
	struct world w;
	struct agent a;

	world_open(&w);
	store_fake_next(w.store, STORE_FAKE_WRITE, NODE_KEY, 1, fate);
	agent_start(&w, &a, "m1", "b1", "1");
	fake_time_pass(&w.time, w.store, 5);
	expect(&w, "m1 registered\n");
	expect_record(&w, "m1", "b1");
	/* The stopped member wakes: its copy finds the compare broken. */
	store_fake_wake(w.store);
	store_fake_run(w.store);
	expect(&w, "");
	assert_int_equal(register_fence(a.registration)->mod_revision,
			 store_fake_get(w.store, NODE_KEY)->mod_revision);
	agent_stop(&a);
	world_close(&w);
}

static void a_lost_reply_to_the_create_leaves_no_doubt(void **unused)
{
	for (size_t i = 0; i < N_FATES; i++)
		fate_of_the_create(fates[i]);
}

static void fate_of_the_update(enum store_fake_fate fate)
{
	struct world w;
	struct agent a;
	int64_t created;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	created = create_revision(&w);
	agent_stop(&a);
	w.story[0] = '\0';
	store_fake_next(w.store, STORE_FAKE_WRITE, NODE_KEY, 1, fate);
	agent_start(&w, &a, "m1", "b2", "2");
	fake_time_pass(&w.time, w.store, 5);
	expect(&w, "m1 registered\n");
	store_fake_wake(w.store);
	store_fake_run(w.store);
	expect(&w, "");
	expect_record(&w, "m1", "b2");
	assert_int_equal(create_revision(&w), created);
	agent_stop(&a);
	world_close(&w);
}

static void a_lost_reply_to_the_update_leaves_no_doubt(void **unused)
{
	for (size_t i = 0; i < N_FATES; i++)
		fate_of_the_update(fates[i]);
}

/* Both halves of taking over, each with each fate. */
static void fate_of_the_take_over(enum store_fake_fate first, enum store_fake_fate second)
{
	struct world w;
	struct agent a, b;
	int64_t created;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	created = create_revision(&w);
	agent_stop(&a);
	w.story[0] = '\0';
	store_fake_next(w.store, STORE_FAKE_WRITE, NODE_KEY, 1, first);
	store_fake_next(w.store, STORE_FAKE_WRITE, NODE_KEY, 1, second);
	agent_start(&w, &b, "m2", "b7", "2");
	fake_time_pass(&w.time, w.store, 3640);
	expect(&w, "m2 registered\n");
	assert_int_equal(store_fake_faults_left(w.store), 0);
	store_fake_wake(w.store);
	store_fake_run(w.store);
	expect(&w, "");
	expect_record(&w, "m2", "b7");
	assert_true(create_revision(&w) > created);
	agent_stop(&b);
	world_close(&w);
}

static void lost_replies_in_both_halves_of_a_take_over_leave_no_doubt(void **unused)
{
	for (size_t i = 0; i < N_FATES; i++)
		for (size_t j = 0; j < N_FATES; j++)
			fate_of_the_take_over(fates[i], fates[j]);
}

/* The old process's create, applied after the new process has registered and lost its record. */
static void a_late_create_of_a_dead_process_is_recognised(void **unused)
{
	struct world w;
	struct agent a, b;

	world_open(&w);
	store_fake_next(w.store, STORE_FAKE_WRITE, NODE_KEY, 1, STORE_FAKE_LATE);
	agent_start(&w, &a, "m1", "b1", "1");
	/* Read, then sent; it stops before it hears of it. */
	for (int i = 0; i < 8 && store_fake_faults_left(w.store); i++)
		store_fake_step(w.store);
	agent_stop(&a);
	agent_start(&w, &b, "m1", "b1", "2");
	store_fake_run(w.store);
	store_fake_delete(w.store, NODE_KEY, NULL);
	assert_true(store_fake_wake(w.store) > 0);
	fake_time_pass(&w.time, w.store, 5);
	assert_non_null(register_fence(b.registration));
	assert_non_null(strstr(store_fake_get(w.store, NODE_KEY)->value, "02:45:02Z"));
	assert_int_equal(register_fence(b.registration)->mod_revision,
			 store_fake_get(w.store, NODE_KEY)->mod_revision);
	agent_stop(&b);
	world_close(&w);
}

static void an_outage_leaves_the_registration_as_it_is(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	store_fake_connect(w.store, false);
	fake_time_pass(&w.time, w.store, 600);
	assert_non_null(register_fence(a.registration));
	store_fake_connect(w.store, true);
	fake_time_pass(&w.time, w.store, 5);
	expect(&w, "m1 registered\n");
	agent_stop(&a);
	world_close(&w);
}

static void an_agent_started_in_an_outage_registers_when_etcd_is_back(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	store_fake_connect(w.store, false);
	agent_start(&w, &a, "m1", "b1", "1");
	fake_time_pass(&w.time, w.store, 60);
	expect(&w, "");
	store_fake_connect(w.store, true);
	fake_time_pass(&w.time, w.store, 1);
	expect(&w, "m1 registered\n");
	agent_stop(&a);
	world_close(&w);
}

static void a_record_deleted_during_an_outage_is_made_anew_after_it(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	store_fake_connect(w.store, false);
	store_fake_delete(w.store, NODE_KEY, NULL);
	store_fake_compact(w.store);
	fake_time_pass(&w.time, w.store, 10);
	store_fake_connect(w.store, true);
	fake_time_pass(&w.time, w.store, 10);
	expect(&w, "m1 registered\n"
		   "m1 lost: the node record is gone from etcd; registering again\n"
		   "m1 registered\n");
	agent_stop(&a);
	world_close(&w);
}

static void a_restored_etcd_voids_the_fence_until_registered_again(void **unused)
{
	AUTO(store_fake_snapshot_free) struct store_fake_snapshot *old = NULL;
	AUTO(free) char *value = NULL;
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	agent_stop(&a);
	old = store_fake_snapshot(w.store);
	agent_start(&w, &a, "m1", "b2", "2");
	store_fake_run(w.store);
	for (int i = 0; i < 20; i++)
		store_fake_put(w.store, "/other", "x");
	/* Raised there, our key has a revision that etcd will not reach again for long. */
	value = strdup(store_fake_get(w.store, NODE_KEY)->value);
	store_fake_put(w.store, NODE_KEY, value);
	store_fake_run(w.store);
	w.story[0] = '\0';
	store_fake_restore(w.store, old);
	fake_time_pass(&w.time, w.store, 10);
	assert_non_null(strstr(w.story, "m1 lost: "));
	assert_non_null(strstr(w.story, "m1 registered\n"));
	assert_null(strstr(w.story, "stale"));
	expect_record(&w, "m1", "b2");
	assert_int_equal(register_fence(a.registration)->mod_revision,
			 store_fake_get(w.store, NODE_KEY)->mod_revision);
	agent_stop(&a);
	world_close(&w);
}

static void an_emptied_etcd_is_registered_in_anew(void **unused)
{
	struct world w;
	struct agent a;

	world_open(&w);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	w.story[0] = '\0';
	store_fake_wipe(w.store);
	fake_time_pass(&w.time, w.store, 10);
	assert_non_null(strstr(w.story, "m1 lost: "));
	assert_non_null(strstr(w.story, "m1 registered\n"));
	expect_record(&w, "m1", "b1");
	assert_int_equal(register_fence(a.registration)->create_revision, create_revision(&w));
	agent_stop(&a);
	world_close(&w);
}

static void what_etcd_refuses_is_told_and_tried_again_ever_more_slowly(void **unused)
{
	struct world w;
	struct agent a;
	unsigned before;

	world_open(&w);
	store_fake_fail_next(w.store, STORE_FAKE_READ, NODE_KEY, 1000, -EACCES);
	agent_start(&w, &a, "m1", "b1", "1");
	store_fake_run(w.store);
	assert_non_null(strstr(health_reason(a.health, "registration"), "etcd refuses it: "));
	before = store_fake_faults_left(w.store);
	fake_time_pass(&w.time, w.store, 300);
	assert_in_range(before - store_fake_faults_left(w.store), 8, 20);
	store_fake_forget_faults(w.store);
	fake_time_pass(&w.time, w.store, 35);
	expect(&w, "m1 registered\n");
	assert_null(health_reason(a.health, "registration"));
	agent_stop(&a);
	world_close(&w);
}

/* The event of our own write may come before its reply, or long after it. */
static void the_order_of_reply_and_event_does_not_matter(void **unused)
{
	for (int replies_first = 0; replies_first < 2; replies_first++) {
		struct world w;
		struct agent a;

		world_open(&w);
		store_fake_replies_first(w.store, replies_first);
		agent_start(&w, &a, "m1", "b1", "1");
		store_fake_run(w.store);
		agent_stop(&a);
		agent_start(&w, &a, "m1", "b1", "2");
		store_fake_run(w.store);
		expect(&w, "m1 registered\nm1 registered\n");
		agent_stop(&a);
		world_close(&w);
	}
}

/* Somebody deletes the record while the reply to our write is on its way. */
static void a_change_before_the_reply_is_not_overlooked(void **unused)
{
	for (unsigned steps = 0; steps < 12; steps++) {
		struct world w;
		struct agent a;

		world_open(&w);
		agent_start(&w, &a, "m1", "b1", "1");
		for (unsigned i = 0; i < steps; i++)
			store_fake_step(w.store);
		store_fake_delete(w.store, NODE_KEY, NULL);
		fake_time_pass(&w.time, w.store, 3);
		assert_non_null(register_fence(a.registration));
		assert_int_equal(register_fence(a.registration)->create_revision,
				 create_revision(&w));
		assert_null(strstr(w.story, "lost: the node record was made anew"));
		agent_stop(&a);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_reply_to_the_create_leaves_no_doubt),
		cmocka_unit_test(a_lost_reply_to_the_update_leaves_no_doubt),
		cmocka_unit_test(lost_replies_in_both_halves_of_a_take_over_leave_no_doubt),
		cmocka_unit_test(a_late_create_of_a_dead_process_is_recognised),
		cmocka_unit_test(an_outage_leaves_the_registration_as_it_is),
		cmocka_unit_test(an_agent_started_in_an_outage_registers_when_etcd_is_back),
		cmocka_unit_test(a_record_deleted_during_an_outage_is_made_anew_after_it),
		cmocka_unit_test(a_restored_etcd_voids_the_fence_until_registered_again),
		cmocka_unit_test(an_emptied_etcd_is_registered_in_anew),
		cmocka_unit_test(what_etcd_refuses_is_told_and_tried_again_ever_more_slowly),
		cmocka_unit_test(the_order_of_reply_and_event_does_not_matter),
		cmocka_unit_test(a_change_before_the_reply_is_not_overlooked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
