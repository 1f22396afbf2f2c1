/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/fake_time.h"

#define P      "/roost/v1/"
#define STATUS P "status/static-route/"
#define REST   5000

struct world {
	struct store *store;
	struct fake_time time;
	struct records *records;
	struct static_entries entries;
	struct static_report *report;
	struct fence fence;
	unsigned read, over;
	char trouble[256];
};

static const struct fence *fence(void *arg)
{
	struct world *w = arg;

	return w->fence.create_revision ? &w->fence : NULL;
}

static void on_read(void *arg)
{
	((struct world *)arg)->read++;
}

static void on_over(struct static_entry *e, void *arg)
{
	struct world *w = arg;

	w->over++;
	static_drop(&w->entries, e);
}

static void on_trouble(const char *text, void *arg)
{
	struct world *w = arg;

	snprintf(w->trouble, sizeof(w->trouble), "%s", text);
}

static int set_up(void **state)
{
	static struct world world;
	struct world *w = &world;

	*w = (struct world){ .store = store_fake_new(), .time = FAKE_TIME };
	const struct static_report_options o = { .store = w->store,
						 .timers = &w->time.base,
						 .prefix = P,
						 .node = "n1",
						 .rest = REST,
						 .entries = &w->entries,
						 .fence = fence,
						 .read = on_read,
						 .over = on_over,
						 .trouble = on_trouble,
						 .arg = w };

	*state = w;
	if (records_new(&(struct records_options){ .prefix = P, .node = "n1" }, &w->records) < 0)
		return -1;
	w->fence = (struct fence){ P "node/n1", store_fake_put(w->store, P "node/n1", "{}"), 0 };
	return static_report_new(&o, &w->report);
}

static int tear_down(void **state)
{
	struct world *w = *state;

	static_report_free(w->report);
	static_entries_done(&w->entries);
	records_free(w->records);
	store_free(w->store);
	return 0;
}

/* A record as etcd has it. */
static struct static_entry *record(struct world *w, const char *name, const char *json)
{
	char full[KEY_FULL_TEXT];
	struct static_entry *e = NULL;
	const char *key = full + strlen(P);

	snprintf(full, sizeof(full), P "static-route/%s", name);
	store_fake_put(w->store, full, json);
	assert_int_equal(records_put(w->records, key, json, strlen(json), 1), 0);
	assert_int_equal(static_take(&w->entries, key, store_fake_get(w->store, full),
				     records_entry(w->records, KEY_STATIC_ROUTE, name), &e),
			 0);
	return e;
}

static void status(struct static_entry *e, const char *text)
{
	free(e->status);
	e->status = text ? strdup(text) : NULL;
}

static void kick(struct world *w)
{
	static_report_kick(w->report);
	store_fake_run(w->store);
}

static void wait_s(struct world *w, unsigned seconds)
{
	fake_time_pass(&w->time, w->store, seconds);
}

#define expect(w, text) expect_at(w, text, __LINE__)
static void expect_at(struct world *w, const char *text, int line)
{
	AUTO(free) char *got = store_fake_dump(w->store, STATUS, P "status/static-route0");

	if (strcmp(got, text) != 0)
		fail_msg("line %d:\n%swanted:\n%s", line, got, text);
}

static void what_stands_there_is_read_before_anything_is_written(void **state)
{
	struct world *w = *state;
	struct static_entry *a = record(w, "a", "{\"subnet\":\"10.9.0.0/16\"}");

	store_fake_put(w->store, STATUS "a/n1", "{\"error\":\"one\"}");
	store_fake_put(w->store, STATUS "a/n2", "{}");
	a->unread = true;
	status(a, "{\"error\":\"two\"}");
	static_report_kick(w->report);
	assert_true(static_report_reading(w->report));
	store_fake_run(w->store);
	assert_false(static_report_reading(w->report));
	assert_int_equal(w->read, 1);
	expect(w, STATUS "a/n1={\"error\":\"two\"}\n" STATUS "a/n2={}\n");
}

static void the_same_is_not_written_again_and_another_only_after_a_rest(void **state)
{
	struct world *w = *state;
	struct static_entry *a = record(w, "a", "{\"subnet\":\"10.9.0.0/16\"}");
	int64_t revision;

	status(a, "1");
	kick(w);
	expect(w, STATUS "a/n1=1\n");
	revision = store_fake_revision(w->store);
	wait_s(w, 20);
	kick(w);
	assert_int_equal(store_fake_revision(w->store), revision);
	for (int i = 0; i < 10; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", 10 + i);
		status(a, text);
		kick(w);
	}
	expect(w, STATUS "a/n1=10\n");
	wait_s(w, REST / 1000 + 2);
	expect(w, STATUS "a/n1=19\n");
	/* What is to go goes at once. */
	status(a, NULL);
	kick(w);
	expect(w, "");
}

static void many_go_in_few_transactions(void **state)
{
	struct world *w = *state;
	int64_t before;

	for (int i = 0; i < 250; i++) {
		char name[16];

		snprintf(name, sizeof(name), "r%d", i);
		status(record(w, name, "{\"subnet\":\"10.9.0.0/16\"}"), "1");
	}
	before = store_fake_revision(w->store);
	kick(w);
	assert_int_equal(store_fake_revision(w->store), before + 3);
}

static void without_the_name_nothing_is_written(void **state)
{
	struct world *w = *state;
	struct static_entry *a = record(w, "a", "{\"subnet\":\"10.9.0.0/16\"}");

	status(a, "1");
	/* Somebody else is called n1 by now, which the watch has yet to tell. */
	store_fake_delete(w->store, P "node/n1", NULL);
	store_fake_put(w->store, P "node/n1", "{}");
	kick(w);
	expect(w, "");
	w->fence.create_revision = 0;
	kick(w);
	wait_s(w, 30);
	expect(w, "");
	w->fence.create_revision = store_fake_get(w->store, P "node/n1")->create_revision;
	kick(w);
	expect(w, STATUS "a/n1=1\n");
}

static void a_failure_is_told_and_tried_again(void **state)
{
	struct world *w = *state;

	status(record(w, "a", "{\"subnet\":\"10.9.0.0/16\"}"), "1");
	store_fake_fail_next(w->store, STORE_FAKE_WRITE, NULL, 1, -ENOSPC);
	kick(w);
	expect(w, "");
	assert_string_not_equal(w->trouble, "");
	wait_s(w, 8);
	expect(w, STATUS "a/n1=1\n");
	assert_string_equal(w->trouble, "");
}

static void what_etcd_refuses_is_tried_ever_more_slowly(void **state)
{
	struct world *w = *state;
	unsigned before;

	status(record(w, "a", "{\"subnet\":\"10.9.0.0/16\"}"), "1");
	store_fake_fail_next(w->store, STORE_FAKE_WRITE, NULL, 1000, -EACCES);
	before = store_fake_faults_left(w->store);
	kick(w);
	wait_s(w, 300);
	assert_in_range(before - store_fake_faults_left(w->store), 10, 30);
	store_fake_forget_faults(w->store);
	static_report_retry(w->report);
	wait_s(w, 1);
	expect(w, STATUS "a/n1=1\n");
	assert_string_equal(w->trouble, "");
}

#define DELETING "{\"subnet\":\"10.9.0.0/16\",\"deleting\":\"2026-11-17T12:00:00Z\"}"

static void the_last_status_takes_the_record_with_it(void **state)
{
	struct world *w = *state;
	struct static_entry *a = record(w, "a", DELETING);

	store_fake_put(w->store, STATUS "a/n1", "1");
	store_fake_put(w->store, STATUS "a/n2", "1");
	a->unread = true;
	kick(w);
	expect(w, STATUS "a/n2=1\n");
	assert_non_null(store_fake_get(w->store, P "static-route/a"));
	/* The other one goes: asked again, after a while. */
	store_fake_delete(w->store, STATUS "a/n2", NULL);
	wait_s(w, 60);
	assert_null(store_fake_get(w->store, P "static-route/a"));
}

static void a_record_that_is_another_by_now_is_not_removed(void **state)
{
	struct world *w = *state;

	record(w, "a", DELETING);
	store_fake_put(w->store, P "static-route/a", "{\"subnet\":\"10.9.0.0/16\"}");
	wait_s(w, 60);
	kick(w);
	wait_s(w, 60);
	assert_non_null(store_fake_get(w->store, P "static-route/a"));
}

static void what_etcd_lost_is_not_spoken_of(void **state)
{
	struct world *w = *state;
	struct static_entry *a = record(w, "a", "{\"subnet\":\"10.9.0.0/16\"}");

	status(a, "1");
	kick(w);
	a->life = STATIC_LOST;
	static_report_forget(w->report);
	store_fake_delete(w->store, STATUS "a/n1", NULL);
	kick(w);
	expect(w, "");
	assert_false(static_report_reading(w->report));
	a->life = STATIC_GONE;
	a->unread = false;
	status(a, NULL);
	kick(w);
	assert_int_equal(w->over, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_stands_there_is_read_before_anything_is_written),
		CASE(the_same_is_not_written_again_and_another_only_after_a_rest),
		CASE(many_go_in_few_transactions),
		CASE(without_the_name_nothing_is_written),
		CASE(a_failure_is_told_and_tried_again),
		CASE(what_etcd_refuses_is_tried_ever_more_slowly),
		CASE(the_last_status_takes_the_record_with_it),
		CASE(a_record_that_is_another_by_now_is_not_removed),
		CASE(what_etcd_lost_is_not_spoken_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
