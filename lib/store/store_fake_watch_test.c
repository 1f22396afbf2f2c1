/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"

/* --- what the watcher hears, as text -------------------------------------------------------- */

static char story[8192];

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void say(const char *fmt, ...)
{
	size_t n = strlen(story);
	va_list ap;

	if (n) {
		story[n++] = ' ';
		story[n] = '\0';
	}
	va_start(ap, fmt);
	vsnprintf(story + n, sizeof(story) - n, fmt, ap);
	va_end(ap);
}

static void expect(const char *want)
{
	assert_string_equal(story, want);
	story[0] = '\0';
}

static void on_put(const struct store_kv *kv, void *arg)
{
	say("+%s=%s@%lld", kv->key, kv->value, (long long)kv->mod_revision);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	say("-%s@%lld", key, (long long)revision);
}

static void on_in_sync(int64_t revision, void *arg)
{
	say("sync@%lld", (long long)revision);
}

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	say("[%s]", store_notice_name(notice));
}

static void on_reply(const struct store_reply *reply, void *arg)
{
	say("reply@%lld", (long long)reply->revision);
}

static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };

static struct store_watch *watch(struct store *s, const char *key, const char *range_end)
{
	struct store_watch *w = NULL;

	assert_int_equal(store_watch(s, key, range_end, &handlers, NULL, &w), 0);
	return w;
}

/* Two keys, listed, followed. */
static struct store *watched(void)
{
	struct store *s = store_fake_new();

	story[0] = '\0';
	store_on_notice(s, on_notice, NULL);
	store_fake_put(s, "/p/a", "1");
	store_fake_put(s, "/p/b", "2");
	watch(s, "/p/", "/p0");
	expect("");
	store_fake_run(s);
	expect("+/p/a=1@2 +/p/b=2@3 sync@3 [watching]");
	return s;
}

/* --- following ------------------------------------------------------------------------------ */

/* What a watch has still to see is kept, everything else goes: a daemon runs for months. */
static void history_is_trimmed_to_what_watches_need(void **unused)
{
	AUTO(store_free) struct store *s = watched();
	struct memory *m = (struct memory *)s;

	for (int i = 0; i < 1000; i++) {
		store_fake_put(s, "/q", "not watched");
		store_fake_run(s);
		memory_trim(m);
		assert_true(m->own.history.n < 100);
	}
	store_fake_follow(s, false);
	store_fake_run(s);
	for (int i = 0; i < 200; i++)
		store_fake_put(s, "/p/b", "4");
	memory_trim(m);
	assert_true(m->own.history.n >= 200);
	story[0] = '\0';
	store_fake_put(s, "/p/a", "5");
	store_fake_follow(s, true);
	store_fake_run(s);
	assert_non_null(strstr(story, "+/p/b=4@1004 +/p/b=4@1005"));
	assert_non_null(strstr(story, "+/p/a=5@1204"));
	memory_trim(m);
	assert_int_equal(m->own.history.n, 0);
}

static void events_follow_the_list_in_order(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_put(s, "/p/c", "3");
	store_fake_put(s, "/q", "not watched");
	store_fake_delete(s, "/p/a", NULL);
	store_fake_put(s, "/p/b", "4");
	expect("");
	assert_int_equal(store_fake_run(s), 3);
	expect("+/p/c=3@4 -/p/a@6 +/p/b=4@7");
}

static void changes_of_one_txn_come_in_one_step(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_delete(s, "/p/", "/p0");
	store_fake_put(s, "/p/c", "3");
	assert_true(store_fake_step(s));
	expect("-/p/a@4 -/p/b@4");
	store_fake_run(s);
	expect("+/p/c=3@5");
}

static void one_key_can_be_watched_and_an_empty_range(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();

	story[0] = '\0';
	watch(s, "config", NULL);
	store_fake_run(s);
	expect("sync@1");
	store_fake_put(s, "config2", "x");
	store_fake_put(s, "config", "y");
	store_fake_run(s);
	expect("+config=y@3");
}

static void a_change_between_watch_and_list_is_told_once(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();

	story[0] = '\0';
	store_fake_set_page(s, 1);
	store_fake_put(s, "a", "1");
	store_fake_put(s, "b", "1");
	watch(s, "a", "z");
	store_fake_put(s, "a", "2");
	store_fake_step(s);
	expect("+a=2@4");
	/* Between the pages: not in the list, so it follows as events. */
	store_fake_put(s, "a", "3");
	store_fake_put(s, "c", "1");
	store_fake_run(s);
	expect("+b=1@3 sync@4 +a=3@5 +c=1@6");
}

static void two_watches_are_followed_each_for_itself(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	watch(s, "/p/b", NULL);
	store_fake_put(s, "/p/b", "3");
	store_fake_run(s);
	expect("+/p/b=3@4 sync@4 +/p/b=3@4");
	assert_int_equal(store_fake_stats(s).watches, 2);
}

static void ones_own_event_may_come_before_or_after_the_reply(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_put(s, "/p/b", "3", 0, 0, on_reply, NULL, NULL);
	store_fake_run(s);
	expect("+/p/b=3@4 reply@4");
	store_fake_replies_first(s, true);
	store_put(s, "/p/b", "4", 0, 0, on_reply, NULL, NULL);
	store_fake_run(s);
	expect("reply@5 +/p/b=4@5");
}

static void a_lease_that_runs_out_is_an_event(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_lease_grant(s, 7, 10, 0, on_reply, NULL, NULL);
	store_fake_run(s);
	store_fake_put_leased(s, "/p/l", "1", 7);
	store_fake_advance(s, 10);
	store_fake_run(s);
	expect("reply@3 +/p/l=1@4 -/p/l@5");
}

static void leases_that_run_out_together_do_so_in_their_order(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_lease_grant(s, 7, 30, 0, on_reply, NULL, NULL);
	store_lease_grant(s, 8, 10, 0, on_reply, NULL, NULL);
	store_lease_grant(s, 6, 10, 0, on_reply, NULL, NULL);
	store_fake_run(s);
	for (int64_t id = 6; id <= 8; id++)
		store_fake_put_leased(s, (char[]){ '/', 'p', '/', (char)('0' + id), '\0' }, "", id);
	store_fake_run(s);
	story[0] = '\0';
	store_fake_advance(s, 100);
	store_fake_run(s);
	expect("-/p/6@7 -/p/8@8 -/p/7@9");
}

static void a_late_write_is_an_event(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_LATE);
	store_put(s, "/p/b", "3", 0, 0, on_reply, NULL, NULL);
	store_fake_run(s);
	expect("reply@0");
	store_fake_wake(s);
	store_fake_run(s);
	expect("+/p/b=3@4");
}

/* --- unwatching ----------------------------------------------------------------------------- */

static void after_unwatch_nothing_comes(void **unused)
{
	AUTO(store_free) struct store *s = watched();
	struct store_watch *w = watch(s, "/p/a", NULL);

	store_unwatch(w);
	store_fake_run(s);
	w = watch(s, "/p/a", NULL);
	store_fake_run(s);
	expect("+/p/a=1@2 sync@3");
	store_fake_put(s, "/p/a", "3");
	store_unwatch(w);
	store_fake_run(s);
	expect("+/p/a=3@4");
	assert_int_equal(store_fake_stats(s).watches, 1);
}

static struct store_watch *own;

static void on_put_unwatch(const struct store_kv *kv, void *arg)
{
	on_put(kv, arg);
	store_unwatch(own);
}

static void a_watch_may_end_itself_in_any_callback(void **unused)
{
	static const struct store_watch_handlers ending = { on_put_unwatch, on_deleted,
							    on_in_sync };
	AUTO(store_free) struct store *s = watched();

	assert_int_equal(store_watch(s, "/p/", "/p0", &ending, NULL, &own), 0);
	store_fake_run(s);
	expect("+/p/a=1@2");
	assert_int_equal(store_watch(s, "/q", NULL, &ending, NULL, &own), 0);
	store_fake_run(s);
	expect("sync@3");
	store_fake_put(s, "/q", "1");
	store_fake_run(s);
	expect("+/q=1@4");
	assert_int_equal(store_fake_stats(s).watches, 1);
}

static void handlers_are_optional(void **unused)
{
	AUTO(store_free) struct store *s = watched();
	const struct store_watch_handlers none = { 0 };
	struct store_watch *w;

	store_watch(s, "/p/", "/p0", &none, NULL, &w);
	store_fake_run(s);
	store_fake_delete(s, "/p/", "/p0");
	store_fake_run(s);
	expect("-/p/a@4 -/p/b@4");
}

/* --- cuts ----------------------------------------------------------------------------------- */

static void after_a_cut_the_watch_goes_on_where_it_was(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_connect(s, false);
	store_fake_put(s, "/p/c", "3");
	store_fake_delete(s, "/p/a", NULL);
	store_fake_put(s, "/p/a", "5");
	store_fake_run(s);
	expect("[trouble]");
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("[watching] +/p/c=3@4 -/p/a@5 +/p/a=5@6");
}

static void the_watches_alone_can_be_cut(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_follow(s, false);
	store_put(s, "/p/a", "3", 0, 0, on_reply, NULL, NULL);
	store_fake_run(s);
	expect("[trouble] reply@4");
	store_fake_follow(s, true);
	store_fake_run(s);
	expect("[watching] +/p/a=3@4");
}

static void without_a_connection_nothing_is_listed(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();

	story[0] = '\0';
	store_on_notice(s, on_notice, NULL);
	store_fake_put(s, "a", "1");
	store_fake_connect(s, false);
	watch(s, "a", "z");
	store_fake_run(s);
	expect("[trouble]");
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("+a=1@2 sync@2 [watching]");
}

static void a_list_cut_half_way_begins_again(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();

	story[0] = '\0';
	store_fake_set_page(s, 1);
	for (const char *k = "abc"; *k; k++)
		store_fake_put(s, (char[]){ *k, '\0' }, "1");
	watch(s, "a", "z");
	store_fake_step(s);
	store_fake_step(s);
	expect("+a=1@2 +b=1@3");
	store_fake_connect(s, false);
	store_fake_delete(s, "a", NULL);
	store_fake_run(s);
	store_fake_connect(s, true);
	store_fake_run(s);
	/* What is known already is not told again; what is gone, is. */
	expect("+c=1@4 -a@5 sync@5");
}

static void a_list_that_fails_is_tried_again(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();

	story[0] = '\0';
	store_on_notice(s, on_notice, NULL);
	store_fake_put(s, "a", "1");
	store_fake_next(s, STORE_FAKE_WATCH, "a", 2, STORE_FAKE_LOSE_REQUEST);
	watch(s, "a", "z");
	store_fake_run(s);
	expect("[trouble] +a=1@2 sync@2 [watching]");
}

/* --- compaction ----------------------------------------------------------------------------- */

static void after_a_compaction_the_difference_is_told(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_connect(s, false);
	store_fake_run(s);
	store_fake_put(s, "/p/c", "3");
	store_fake_put(s, "/p/c", "4");
	store_fake_delete(s, "/p/a", NULL);
	store_fake_put(s, "/p/d", "6");
	store_fake_delete(s, "/p/d", NULL);
	store_fake_compact(s);
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("[trouble] [watching] +/p/c=4@5 -/p/a@8 sync@8");
}

static void a_watch_that_has_seen_all_does_not_mind_a_compaction(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_put(s, "/p/a", "3");
	store_fake_put(s, "/q", "4");
	store_fake_run(s);
	expect("+/p/a=3@4");
	store_fake_compact(s);
	store_fake_put(s, "/p/a", "5");
	store_fake_run(s);
	expect("+/p/a=5@6");
}

static void a_list_overtaken_by_compaction_begins_again(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();

	story[0] = '\0';
	store_fake_set_page(s, 1);
	store_fake_put(s, "a", "1");
	store_fake_put(s, "b", "1");
	watch(s, "a", "z");
	store_fake_step(s);
	store_fake_put(s, "b", "2");
	store_fake_compact(s);
	store_fake_run(s);
	expect("+a=1@2 +b=2@4 sync@4");
	assert_int_equal(store_fake_stats(s).watch_pages, 3);
}

static void a_watch_listed_again_tells_only_that_it_is_in_sync(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_relist(s);
	store_fake_run(s);
	expect("sync@3");
}

/* --- another etcd --------------------------------------------------------------------------- */

static void after_a_restore_everything_is_told_anew(void **unused)
{
	AUTO(store_free) struct store *s = watched();
	AUTO(store_fake_snapshot_free) struct store_fake_snapshot *then = store_fake_snapshot(s);

	store_fake_put(s, "/p/b", "3");
	store_fake_put(s, "/p/c", "4");
	store_fake_run(s);
	expect("+/p/b=3@4 +/p/c=4@5");
	store_fake_restore(s, then);
	expect("");
	store_fake_run(s);
	expect("[revision-went-back] +/p/a=1@2 +/p/b=2@3 -/p/c@3 sync@3");
	/* Revisions are used a second time and are news all the same. */
	store_fake_put(s, "/p/b", "other");
	store_fake_run(s);
	expect("+/p/b=other@4");
}

static void after_a_wipe_everything_is_gone(void **unused)
{
	AUTO(store_free) struct store *s = watched();

	store_fake_wipe(s);
	store_fake_put(s, "/p/b", "new");
	store_fake_run(s);
	expect("[cluster-changed] +/p/b=new@2 -/p/a@2 sync@2");
}

static void a_restore_is_noticed_when_the_connection_is_back(void **unused)
{
	AUTO(store_free) struct store *s = watched();
	AUTO(store_fake_snapshot_free) struct store_fake_snapshot *then = store_fake_snapshot(s);

	store_fake_put(s, "/p/a", "3");
	store_fake_run(s);
	store_fake_connect(s, false);
	store_fake_run(s);
	expect("+/p/a=3@4 [trouble]");
	store_fake_restore(s, then);
	store_fake_run(s);
	expect("");
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("[revision-went-back] +/p/a=1@2 +/p/b=2@3 sync@3 [watching]");
}

/* Nothing but the list tells: the revision is beyond what was known. */
static void a_restore_overtaken_by_writes_is_noticed_by_a_list(void **unused)
{
	AUTO(store_free) struct store *s = watched();
	struct memory *m = (struct memory *)s;
	struct memory_etcd then;

	watch(s, "/q/", "/q0");
	store_fake_run(s);
	expect("sync@3");
	memory_etcd_copy(&then, &m->own);
	store_fake_put(s, "/p/b", "3");
	store_fake_put(s, "/q/a", "4");
	store_fake_run(s);
	expect("+/p/b=3@4 +/q/a=4@5");
	memory_etcd_done(&m->own);
	m->own = then;
	for (int i = 0; i < 3; i++)
		store_fake_put(s, "/p/c", "5");
	store_fake_run(s);
	expect("+/p/c=5@5 +/p/c=5@6");
	store_fake_relist(s);
	store_fake_run(s);
	expect("[revision-went-back] -/q/a@6 sync@6 +/p/a=1@2 +/p/b=2@3 +/p/c=5@6 sync@6");
	store_fake_relist(s);
	store_fake_run(s);
	expect("sync@6 sync@6");
}

struct restoring {
	struct store *store;
	struct store_fake_snapshot *then; /* NULL: it is done */
};

static void restore_once(const struct store_kv *kv, void *arg)
{
	struct restoring *r = arg;
	AUTO(store_fake_snapshot_free) struct store_fake_snapshot *then = TAKE(r->then);

	on_put(kv, NULL);
	if (then)
		store_fake_restore(r->store, then);
}

static void a_restore_while_a_list_is_told_lists_again(void **unused)
{
	static const struct store_watch_handlers restoring = { restore_once, on_deleted,
							       on_in_sync };
	AUTO(store_free) struct store *s = store_fake_new();
	struct restoring r = { .store = s };
	struct store_watch *w;

	story[0] = '\0';
	store_fake_put(s, "a", "1");
	r.then = store_fake_snapshot(s);
	store_fake_put(s, "b", "1");
	store_watch(s, "a", "z", &restoring, &r, &w);
	store_fake_run(s);
	expect("+a=1@2 +b=1@3 +a=1@2 -b@2 sync@2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_follow_the_list_in_order),
		cmocka_unit_test(changes_of_one_txn_come_in_one_step),
		cmocka_unit_test(one_key_can_be_watched_and_an_empty_range),
		cmocka_unit_test(a_change_between_watch_and_list_is_told_once),
		cmocka_unit_test(two_watches_are_followed_each_for_itself),
		cmocka_unit_test(ones_own_event_may_come_before_or_after_the_reply),
		cmocka_unit_test(a_lease_that_runs_out_is_an_event),
		cmocka_unit_test(leases_that_run_out_together_do_so_in_their_order),
		cmocka_unit_test(a_late_write_is_an_event),
		cmocka_unit_test(after_unwatch_nothing_comes),
		cmocka_unit_test(a_watch_may_end_itself_in_any_callback),
		cmocka_unit_test(handlers_are_optional),
		cmocka_unit_test(after_a_cut_the_watch_goes_on_where_it_was),
		cmocka_unit_test(the_watches_alone_can_be_cut),
		cmocka_unit_test(history_is_trimmed_to_what_watches_need),
		cmocka_unit_test(without_a_connection_nothing_is_listed),
		cmocka_unit_test(a_list_cut_half_way_begins_again),
		cmocka_unit_test(a_list_that_fails_is_tried_again),
		cmocka_unit_test(after_a_compaction_the_difference_is_told),
		cmocka_unit_test(a_watch_that_has_seen_all_does_not_mind_a_compaction),
		cmocka_unit_test(a_list_overtaken_by_compaction_begins_again),
		cmocka_unit_test(a_watch_listed_again_tells_only_that_it_is_in_sync),
		cmocka_unit_test(after_a_restore_everything_is_told_anew),
		cmocka_unit_test(after_a_wipe_everything_is_gone),
		cmocka_unit_test(a_restore_is_noticed_when_the_connection_is_back),
		cmocka_unit_test(a_restore_overtaken_by_writes_is_noticed_by_a_list),
		cmocka_unit_test(a_restore_while_a_list_is_told_lists_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
