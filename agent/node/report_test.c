/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/node/report.h"
#include "lib/store/fake_time.h"

#define KEY      "/roost/v1/status/node/n1"
#define NODE_KEY "/roost/v1/node/n1"

struct world {
	struct store *store;
	struct fake_time time;
	struct report *report;
	const char *text;
	char trouble[256];
	bool stopped;
};

static int build(char **ret, void *arg)
{
	struct world *w = arg;

	*ret = strdup(w->text);
	return *ret ? 0 : -ENOMEM;
}

static void on_trouble(const char *text, void *arg)
{
	struct world *w = arg;

	snprintf(w->trouble, sizeof(w->trouble), "%s", text);
}

static void on_stopped(void *arg)
{
	((struct world *)arg)->stopped = true;
}

/* Registered, as far as report knows, under what stands in etcd. */
static void set_fence(struct world *w)
{
	const struct store_kv *kv = store_fake_get(w->store, NODE_KEY);

	report_set_fence(w->report, kv ? kv->create_revision : 0);
}

static struct world world;
static int fresh(void **state)
{
	struct world *w = &world;

	*w = (struct world){ .store = store_fake_new(), .time = FAKE_TIME, .text = "one" };
	const struct report_options options = { .store = w->store,
						.timers = &w->time.base,
						.key = KEY,
						.node_key = NODE_KEY,
						.build = build,
						.trouble = on_trouble,
						.arg = w };

	*state = w;
	store_fake_put(w->store, NODE_KEY, "{}");
	return report_new(&options, &w->report);
}

static int done(void **state)
{
	struct world *w = *state;

	report_free(w->report);
	store_free(w->store);
	return 0;
}

static void nothing(const struct store_reply *reply, void *arg)
{
}

static void revoke_by_hand(struct world *w)
{
	assert_int_equal(
		store_lease_revoke(w->store, report_lease(w->report), 0, nothing, NULL, NULL), 0);
	store_fake_run(w->store);
}

static void wait_s(struct world *w, unsigned seconds)
{
	fake_time_pass(&w->time, w->store, seconds);
}

static void expect(struct world *w, const char *value)
{
	const struct store_kv *kv = store_fake_get(w->store, KEY);

	if (!value) {
		assert_null(kv);
		return;
	}
	assert_non_null(kv);
	assert_string_equal(kv->value, value);
	assert_int_equal(kv->lease, report_lease(w->report));
	assert_true(kv->lease != 0);
}

static int64_t version(struct world *w)
{
	return store_fake_get(w->store, KEY)->version;
}

static void nothing_is_written_without_a_fence(void **state)
{
	struct world *w = *state;

	report_changed(w->report);
	wait_s(w, 30);
	expect(w, NULL);
	assert_int_equal(store_fake_stats(w->store).leases, 0);
}

static void the_record_is_written_on_a_lease_once_there_is_a_fence(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 1);
	expect(w, "one");
}

static void the_lease_is_kept_for_ever(void **state)
{
	struct world *w = *state;
	int64_t lease;

	set_fence(w);
	wait_s(w, 1);
	lease = report_lease(w->report);
	wait_s(w, 3600);
	expect(w, "one");
	assert_int_equal(report_lease(w->report), lease);
	assert_int_equal(version(w), 1);
}

static void an_idle_agent_wakes_a_few_times_a_minute(void **state)
{
	struct world *w = *state;
	unsigned wakes = 0, leases;

	set_fence(w);
	wait_s(w, 60);
	leases = store_fake_stats(w->store).leases;
	for (int i = 0; i < 600; i++) {
		wakes += timers_wake(&w->time.base) <= w->time.ms + 1000;
		wait_s(w, 1);
	}
	assert_in_range(wakes, 20, 30);
	assert_in_range(store_fake_stats(w->store).leases - leases, 20, 30);
}

static void it_is_written_at_most_every_5_s_and_the_last_text_wins(void **state)
{
	struct world *w = *state;
	static const char *const texts[] = { "a", "b", "c", "d" };

	set_fence(w);
	wait_s(w, 10);
	for (int i = 0; i < 60; i++) {
		w->text = texts[i % 4];
		report_changed(w->report);
		wait_s(w, 1);
	}
	assert_in_range(version(w), 1 + 60 / 7, 1 + 60 / 5 + 1);
	wait_s(w, 8);
	expect(w, "d");
}

static void an_equal_text_is_not_written_again(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 1);
	for (int i = 0; i < 60; i++) {
		report_changed(w->report);
		wait_s(w, 1);
	}
	assert_int_equal(version(w), 1);
}

static void a_change_after_a_rest_is_written_at_once(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 30);
	w->text = "two";
	report_changed(w->report);
	store_fake_run(w->store);
	expect(w, "two");
}

static void after_an_outage_longer_than_the_lease_it_is_granted_anew(void **state)
{
	struct world *w = *state;
	int64_t lease;

	set_fence(w);
	wait_s(w, 1);
	lease = report_lease(w->report);
	store_fake_connect(w->store, false);
	wait_s(w, 300);
	assert_string_not_equal(w->trouble, "");
	expect(w, NULL);
	store_fake_connect(w->store, true);
	report_kick(w->report);
	wait_s(w, 2);
	expect(w, "one");
	assert_true(report_lease(w->report) != lease);
	assert_string_equal(w->trouble, "");
}

static void it_recovers_from_an_outage_without_being_told(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 1);
	store_fake_connect(w->store, false);
	wait_s(w, 300);
	store_fake_connect(w->store, true);
	wait_s(w, 20);
	expect(w, "one");
}

/* The lease is kept meanwhile: without it the name would be free. */
static void what_etcd_refuses_is_tried_ever_more_slowly(void **state)
{
	struct world *w = *state;
	unsigned before;

	set_fence(w);
	wait_s(w, 10);
	store_fake_fail_next(w->store, STORE_FAKE_WRITE, KEY, 1000, -ENOSPC);
	before = store_fake_faults_left(w->store);
	w->text = "two";
	report_changed(w->report);
	wait_s(w, 300);
	assert_in_range(before - store_fake_faults_left(w->store), 10, 30);
	expect(w, "one");
	assert_string_not_equal(w->trouble, "");
	store_fake_forget_faults(w->store);
	report_retry(w->report);
	wait_s(w, 1);
	expect(w, "two");
	assert_string_equal(w->trouble, "");
	/* Quick again. */
	wait_s(w, 10);
	store_fake_fail_next(w->store, STORE_FAKE_WRITE, KEY, 1, -ENOSPC);
	w->text = "three";
	report_changed(w->report);
	wait_s(w, 3);
	expect(w, "three");
}

static void a_lease_that_vanished_is_replaced(void **state)
{
	struct world *w = *state;
	int64_t lease;

	set_fence(w);
	wait_s(w, 1);
	lease = report_lease(w->report);
	revoke_by_hand(w);
	expect(w, NULL);
	wait_s(w, 30);
	expect(w, "one");
	assert_true(report_lease(w->report) != lease);
}

static void a_lease_found_gone_by_a_write_is_replaced_at_once(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 10);
	revoke_by_hand(w);
	w->text = "two";
	report_changed(w->report);
	wait_s(w, 1);
	expect(w, "two");
}

static void who_lost_the_name_cannot_speak_in_it(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 10);
	/* Another machine takes over and writes its own; we have not heard of it yet. */
	store_fake_delete(w->store, NODE_KEY, NULL);
	store_fake_put(w->store, NODE_KEY, "{other}");
	store_fake_put(w->store, KEY, "theirs");
	w->text = "two";
	report_changed(w->report);
	wait_s(w, 60);
	assert_string_equal(store_fake_get(w->store, KEY)->value, "theirs");
	assert_int_equal(report_lease(w->report), 0);
}

static void without_a_fence_the_lease_is_given_up_after_10_s(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 1);
	report_set_fence(w->report, 0);
	wait_s(w, 8);
	expect(w, "one");
	wait_s(w, 6);
	expect(w, NULL);
	assert_int_equal(report_lease(w->report), 0);
	set_fence(w);
	wait_s(w, 1);
	expect(w, "one");
}

static void a_fence_lost_and_found_keeps_the_lease(void **state)
{
	struct world *w = *state;
	int64_t lease;

	set_fence(w);
	wait_s(w, 1);
	lease = report_lease(w->report);
	report_set_fence(w->report, 0);
	store_fake_delete(w->store, NODE_KEY, NULL);
	store_fake_put(w->store, NODE_KEY, "{}");
	set_fence(w);
	wait_s(w, 30);
	expect(w, "one");
	assert_int_equal(report_lease(w->report), lease);
	assert_int_equal(version(w), 2);
}

static void in_an_emptied_etcd_it_is_written_anew(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 10);
	store_fake_wipe(w->store);
	report_set_fence(w->report, 0);
	store_fake_put(w->store, NODE_KEY, "{}");
	set_fence(w);
	wait_s(w, 2);
	expect(w, "one");
}

static void lost_replies_cost_nothing_but_time(void **state)
{
	struct world *w = *state;
	static const enum store_fake_fate fates[] = { STORE_FAKE_LOSE_REPLY,
						      STORE_FAKE_LOSE_REQUEST, STORE_FAKE_LATE };

	set_fence(w);
	for (size_t i = 0; i < ARRAY_SIZE(fates); i++) {
		char text[8];

		snprintf(text, sizeof(text), "t%zu", i);
		w->text = text;
		store_fake_next(w->store, STORE_FAKE_WRITE, NULL, 1, fates[i]);
		store_fake_next(w->store, STORE_FAKE_LEASE, NULL, 1, fates[i]);
		report_changed(w->report);
		wait_s(w, 60);
		assert_int_equal(store_fake_faults_left(w->store), 0);
		store_fake_wake(w->store);
		wait_s(w, 60);
		expect(w, text);
		assert_string_equal(w->trouble, "");
	}
}

static void the_last_word_is_written_and_the_lease_left_to_end(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 1);
	w->text = "stopped";
	report_farewell(w->report, on_stopped, w);
	assert_false(w->stopped);
	store_fake_run(w->store);
	assert_true(w->stopped);
	expect(w, "stopped");
	report_free(TAKE(w->report));
	store_fake_advance(w->store, 61);
	assert_null(store_fake_get(w->store, KEY));
}

static void the_farewell_does_not_wait_for_an_etcd_that_is_away(void **state)
{
	struct world *w = *state;

	set_fence(w);
	wait_s(w, 1);
	store_fake_connect(w->store, false);
	report_farewell(w->report, on_stopped, w);
	wait_s(w, 2);
	assert_true(w->stopped);
}

static void without_a_record_there_is_nothing_to_say(void **state)
{
	struct world *w = *state;

	report_farewell(w->report, on_stopped, w);
	assert_false(w->stopped);
	wait_s(w, 1);
	assert_true(w->stopped);
	expect(w, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_written_without_a_fence),
		CASE(the_record_is_written_on_a_lease_once_there_is_a_fence),
		CASE(the_lease_is_kept_for_ever),
		CASE(an_idle_agent_wakes_a_few_times_a_minute),
		CASE(it_is_written_at_most_every_5_s_and_the_last_text_wins),
		CASE(an_equal_text_is_not_written_again),
		CASE(a_change_after_a_rest_is_written_at_once),
		CASE(after_an_outage_longer_than_the_lease_it_is_granted_anew),
		CASE(it_recovers_from_an_outage_without_being_told),
		CASE(what_etcd_refuses_is_tried_ever_more_slowly),
		CASE(a_lease_that_vanished_is_replaced),
		CASE(a_lease_found_gone_by_a_write_is_replaced_at_once),
		CASE(who_lost_the_name_cannot_speak_in_it),
		CASE(without_a_fence_the_lease_is_given_up_after_10_s),
		CASE(a_fence_lost_and_found_keeps_the_lease),
		CASE(in_an_emptied_etcd_it_is_written_anew),
		CASE(lost_replies_cost_nothing_but_time),
		CASE(the_last_word_is_written_and_the_lease_left_to_end),
		CASE(the_farewell_does_not_wait_for_an_etcd_that_is_away),
		CASE(without_a_record_there_is_nothing_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
