/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"

static char story[4096];

static void expect(const char *want)
{
	assert_string_equal(story, want);
	story[0] = '\0';
}

/* arg: a name for the call */
static void on_reply(const struct store_reply *reply, void *arg)
{
	size_t n = strlen(story);
	const char *name = arg;

	if (reply->err)
		snprintf(story + n, sizeof(story) - n, "%s: %s%s\n", name,
			 strerrorname_np(-reply->err), reply->unknown ? " unknown" : "");
	else
		snprintf(story + n, sizeof(story) - n, "%s: ok at %lld%s\n", name,
			 (long long)reply->revision, reply->more ? " more" : "");
}

static struct store *fresh(void)
{
	story[0] = '\0';
	return store_fake_new();
}

static char put_name[] = "put", get_name[] = "get", list_name[] = "list", lease_name[] = "lease";

static struct store_call *put(struct store *s, const char *key, uint32_t timeout)
{
	struct store_call *call = NULL;

	assert_int_equal(store_put(s, key, "1", 0, timeout, on_reply, put_name, &call), 0);
	return call;
}

static void get(struct store *s, const char *key, uint32_t timeout)
{
	assert_int_equal(store_get(s, key, timeout, on_reply, get_name, NULL), 0);
}

/* Absent, then made: what must not be sent twice. */
static void create(struct store *s, const char *key, uint32_t timeout)
{
	const struct store_compare absent = { .key = key, .target = STORE_VERSION };
	const struct store_op op = { STORE_PUT, .key = key };
	const struct store_txn txn = {
		.compares = &absent, .n_compares = 1, .success = &op, .n_success = 1
	};

	assert_int_equal(store_txn(s, &txn, timeout, on_reply, put_name, NULL), 0);
}

static bool has(const struct store *s, const char *key)
{
	return store_fake_get(s, key) != NULL;
}

/* --- errors --------------------------------------------------------------------------------- */

static void the_next_n_calls_fail_and_change_nothing(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_fail_next(s, STORE_FAKE_ANY, NULL, 2, -EACCES);
	put(s, "a", 0);
	get(s, "a", 0);
	put(s, "b", 0);
	store_fake_run(s);
	expect("put: EACCES\nget: EACCES\nput: ok at 2\n");
	assert_false(has(s, "a"));
	assert_int_equal(store_fake_stats(s).txns, 1);
}

static void a_fault_meets_only_its_kind(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_fail_next(s, STORE_FAKE_LIST, NULL, 1, -EIO);
	store_fake_fail_next(s, STORE_FAKE_READ, NULL, 1, -EAGAIN);
	store_fake_fail_next(s, STORE_FAKE_LEASE, NULL, 1, -ENOSPC);
	assert_int_equal(store_fake_faults_left(s), 3);
	put(s, "a", 0);
	get(s, "a", 0);
	store_list(s, "a", "b", 0, on_reply, list_name, NULL);
	store_lease_grant(s, 1, 10, 0, on_reply, lease_name, NULL);
	store_fake_run(s);
	expect("put: ok at 2\nget: EAGAIN\nlist: EIO\nlease: ENOSPC\n");
	assert_int_equal(store_fake_faults_left(s), 0);
}

static void a_fault_meets_only_its_keys(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_fail_next(s, STORE_FAKE_ANY, "block/", 2, -EIO);
	put(s, "node/a", 0);
	put(s, "block/a", 0);
	store_list(s, "block/", "block0", 0, on_reply, list_name, NULL);
	store_list(s, "node/", "node0", 0, on_reply, list_name, NULL);
	store_fake_run(s);
	expect("put: ok at 2\nput: EIO\nlist: EIO\nlist: ok at 2\n");
	assert_true(has(s, "node/a"));
}

static void faults_are_a_script(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_WRITE, NULL, 2, STORE_FAKE_PASS);
	store_fake_fail_next(s, STORE_FAKE_WRITE, NULL, 1, -EIO);
	store_fake_next(s, STORE_FAKE_WRITE, NULL, 1, STORE_FAKE_LOSE_REPLY);
	for (const char *k = "abcde"; *k; k++) {
		put(s, (char[]){ *k, '\0' }, 0);
		store_fake_run(s);
	}
	expect("put: ok at 2\nput: ok at 3\nput: EIO\nput: ETIMEDOUT unknown\nput: ok at 5\n");
}

static void faults_can_be_forgotten(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_fail_next(s, STORE_FAKE_ANY, "a", 2, -EIO);
	store_fake_forget_faults(s);
	put(s, "a", 0);
	store_fake_run(s);
	expect("put: ok at 2\n");
}

/* --- lost replies --------------------------------------------------------------------------- */

static void a_lost_reply_leaves_what_was_applied(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_LOSE_REPLY);
	put(s, "a", 0);
	store_fake_run(s);
	expect("put: ETIMEDOUT unknown\n");
	assert_true(has(s, "a"));
}

static void a_lost_request_leaves_nothing_ever(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_LOSE_REQUEST);
	put(s, "a", 0);
	store_fake_run(s);
	expect("put: ETIMEDOUT unknown\n");
	assert_int_equal(store_fake_wake(s), 0);
	assert_false(has(s, "a"));
}

static void a_late_request_is_applied_when_the_member_wakes(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 2, STORE_FAKE_LATE);
	put(s, "a", 0);
	create(s, "b", 0);
	store_fake_run(s);
	expect("put: ETIMEDOUT unknown\nput: ETIMEDOUT unknown\n");
	assert_false(has(s, "a"));
	store_fake_put(s, "b", "in the meantime");
	assert_int_equal(store_fake_stats(s).late, 2);
	assert_int_equal(store_fake_wake(s), 2);
	assert_true(has(s, "a"));
	/* Its compares are looked at only then. */
	assert_string_equal(store_fake_get(s, "b")->value, "in the meantime");
	assert_int_equal(store_fake_wake(s), 0);
	expect("");
}

static void a_lost_read_is_not_unknown(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 2, STORE_FAKE_LATE);
	get(s, "a", 0);
	store_list(s, "a", "b", 0, on_reply, list_name, NULL);
	store_fake_run(s);
	expect("get: ETIMEDOUT\nlist: ETIMEDOUT\n");
	assert_int_equal(store_fake_wake(s), 0);
}

static void what_may_be_repeated_for_ever_is_sent_again(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 2, STORE_FAKE_LOSE_REPLY);
	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_LATE);
	store_fake_fail_next(s, STORE_FAKE_ANY, NULL, 1, -EAGAIN);
	put(s, "a", STORE_FOREVER);
	store_fake_run(s);
	expect("put: ok at 4\n");
	assert_int_equal(store_fake_get(s, "a")->version, 3);
	store_fake_wake(s);
	assert_int_equal(store_fake_get(s, "a")->version, 4);
}

static void what_may_not_be_repeated_is_told_unknown(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	/* Errors that say "not done" are no reason to give up, a loss is. */
	store_fake_fail_next(s, STORE_FAKE_ANY, NULL, 2, -EAGAIN);
	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_LOSE_REPLY);
	create(s, "a", STORE_FOREVER);
	store_fake_run(s);
	expect("put: ETIMEDOUT unknown\n");
	assert_true(has(s, "a"));
}

static void an_error_that_will_not_pass_ends_all_but_persistent_calls(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_op op = { STORE_PUT, .key = "b" };
	const struct store_txn txn = {
		.success = &op, .n_success = 1, .repeatable = true, .persistent = true
	};

	store_fake_fail_next(s, STORE_FAKE_ANY, NULL, 1, -EACCES);
	put(s, "a", STORE_FOREVER);
	store_fake_run(s);
	expect("put: EACCES\n");
	store_fake_fail_next(s, STORE_FAKE_ANY, NULL, 3, -EACCES);
	assert_int_equal(store_txn(s, &txn, STORE_FOREVER, on_reply, put_name, NULL), 0);
	store_fake_run(s);
	expect("put: ok at 2\n");
}

static void a_grant_sent_again_finds_its_own_lease(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_LEASE, NULL, 1, STORE_FAKE_LOSE_REPLY);
	store_lease_grant(s, 7, 10, STORE_FOREVER, on_reply, lease_name, NULL);
	store_fake_run(s);
	expect("lease: ok at 0\n");
	store_lease_grant(s, 7, 10, STORE_FOREVER, on_reply, lease_name, NULL);
	store_fake_run(s);
	expect("lease: EEXIST\n");
}

static void a_lost_page_is_asked_for_again(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "a", "1");
	store_fake_put(s, "b", "1");
	store_fake_set_page(s, 1);
	store_fake_next(s, STORE_FAKE_LIST, NULL, 1, STORE_FAKE_LOSE_REPLY);
	store_fake_next(s, STORE_FAKE_LIST, NULL, 1, STORE_FAKE_PASS);
	store_fake_next(s, STORE_FAKE_LIST, NULL, 1, STORE_FAKE_LOSE_REPLY);
	store_list(s, "a", "z", STORE_FOREVER, on_reply, list_name, NULL);
	store_fake_run(s);
	expect("list: ok at 3 more\nlist: ok at 3\n");
}

/* --- delays --------------------------------------------------------------------------------- */

static void a_held_call_waits_and_others_overtake_it(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_HOLD);
	put(s, "a", 0);
	get(s, "a", 0);
	store_fake_run(s);
	expect("get: ok at 1\n");
	assert_int_equal(store_fake_stats(s).held, 1);
	assert_int_equal(store_fake_release(s), 1);
	store_fake_run(s);
	expect("put: ok at 2\n");
	assert_int_equal(store_fake_release(s), 0);
}

static void a_released_call_may_meet_the_next_fault(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_HOLD);
	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_LOSE_REPLY);
	put(s, "a", 0);
	store_fake_run(s);
	store_fake_release(s);
	store_fake_run(s);
	expect("put: ETIMEDOUT unknown\n");
}

/* --- cancelling and freeing ----------------------------------------------------------------- */

static void what_is_cancelled_may_still_be_applied(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_cancel(put(s, "a", 0));
	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_HOLD);
	struct store_call *held = put(s, "b", 0);
	store_fake_run(s);
	store_cancel(held);
	store_fake_run(s);
	assert_int_equal(store_fake_release(s), 0);
	assert_false(has(s, "a"));
	assert_false(has(s, "b"));
	assert_int_equal(store_fake_wake(s), 2);
	assert_true(has(s, "a"));
	assert_true(has(s, "b"));
	expect("");
}

static void a_call_cancelled_after_it_was_applied_is_silent(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	struct store_call *call = put(s, "a", 0);

	store_fake_step(s);
	assert_true(has(s, "a"));
	store_cancel(call);
	assert_int_equal(store_fake_wake(s), 0);
	assert_int_equal(store_fake_run(s), 0);
	expect("");
	assert_int_equal(store_fake_stats(s).calls, 0);
}

static void what_was_never_sent_is_dropped_when_cancelled(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	struct store_call *call;

	store_fake_connect(s, false);
	call = put(s, "a", STORE_FOREVER);
	store_fake_run(s);
	store_cancel(call);
	store_fake_connect(s, true);
	store_fake_run(s);
	assert_int_equal(store_fake_wake(s), 0);
	assert_false(has(s, "a"));
}

static void on_reply_start_another(const struct store_reply *reply, void *arg)
{
	on_reply(reply, put_name);
	assert_int_equal(store_get(arg, "a", 0, on_reply, get_name, NULL), -ECANCELED);
}

static void freeing_the_store_tells_every_call(void **unused)
{
	struct store *s = fresh();

	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_HOLD);
	put(s, "held", 0);
	put(s, "applied", 0);
	store_fake_step(s);
	store_fake_step(s);
	get(s, "queued", 0);
	store_put(s, "a", "1", 0, 0, on_reply_start_another, s, NULL);
	store_list(s, "a", "b", 0, on_reply, list_name, NULL);
	store_free(s);
	expect("put: ECANCELED unknown\nput: ECANCELED unknown\nget: ECANCELED\n"
	       "put: ECANCELED unknown\nlist: ECANCELED\n");
}

static void what_was_never_sent_is_not_unknown_when_the_store_is_freed(void **unused)
{
	struct store *s = fresh();

	store_fake_connect(s, false);
	put(s, "a", STORE_FOREVER);
	store_fake_run(s);
	store_free(s);
	expect("put: ECANCELED\n");
}

/* --- connection ----------------------------------------------------------------------------- */

static void without_a_connection_calls_fail_or_wait(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_connect(s, false);
	put(s, "a", 0);
	put(s, "b", STORE_FOREVER);
	create(s, "c", STORE_FOREVER);
	store_list(s, "a", "z", STORE_FOREVER, on_reply, list_name, NULL);
	store_fake_run(s);
	expect("put: ENOTCONN\n");
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("put: ok at 2\nput: ok at 3\nlist: ok at 3\n");
	assert_false(has(s, "a"));
}

static void a_connection_that_breaks_takes_the_reply_with_it(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	create(s, "a", STORE_FOREVER);
	put(s, "b", STORE_FOREVER);
	store_fake_step(s);
	store_fake_step(s);
	assert_true(has(s, "a"));
	assert_true(has(s, "b"));
	store_fake_connect(s, false);
	store_fake_run(s);
	expect("put: ENOTCONN unknown\n"); /* the other may be sent again */
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("put: ok at 4\n");
}

static void a_fault_is_not_spent_without_a_connection(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_fail_next(s, STORE_FAKE_ANY, NULL, 1, -EIO);
	store_fake_connect(s, false);
	put(s, "a", 0);
	store_fake_run(s);
	store_fake_connect(s, true);
	put(s, "a", 0);
	store_fake_run(s);
	expect("put: ENOTCONN\nput: EIO\n");
}

/* --- restored and wiped --------------------------------------------------------------------- */

static void a_restored_etcd_is_what_it_was(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	AUTO(store_fake_snapshot_free) struct store_fake_snapshot *then = NULL;

	store_lease_grant(s, 7, 10, 0, on_reply, lease_name, NULL);
	store_fake_run(s);
	store_fake_put_leased(s, "a", "1", 7);
	then = store_fake_snapshot(s);
	store_fake_put(s, "a", "2");
	store_fake_put(s, "b", "2");
	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_LATE);
	put(s, "c", 0);
	store_fake_run(s);
	store_fake_advance(s, 9);
	store_fake_restore(s, then);
	assert_int_equal(store_fake_revision(s), 2);
	assert_string_equal(store_fake_get(s, "a")->value, "1");
	assert_false(has(s, "b"));
	assert_false(store_fake_ever(s, "b", "2"));
	/* The old members are gone, and what they were asked with them. */
	assert_int_equal(store_fake_wake(s), 0);
	/* Leases begin anew. */
	store_fake_advance(s, 9);
	assert_true(has(s, "a"));
	store_fake_advance(s, 1);
	assert_false(has(s, "a"));
	/* And again: a snapshot outlives its use. */
	store_fake_restore(s, then);
	assert_true(has(s, "a"));
}

static void a_list_across_a_restore_asks_for_the_future(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	AUTO(store_fake_snapshot_free) struct store_fake_snapshot *then = store_fake_snapshot(s);

	store_fake_put(s, "a", "1");
	store_fake_put(s, "b", "1");
	store_fake_set_page(s, 1);
	store_list(s, "a", "z", 0, on_reply, list_name, NULL);
	store_fake_step(s);
	store_fake_step(s);
	store_fake_restore(s, then);
	store_fake_run(s);
	expect("list: ok at 3 more\nlist: ERANGE\n");
}

static void a_wiped_etcd_is_empty(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "a", "1");
	store_fake_wipe(s);
	assert_false(has(s, "a"));
	assert_int_equal(store_fake_revision(s), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_n_calls_fail_and_change_nothing),
		cmocka_unit_test(a_fault_meets_only_its_kind),
		cmocka_unit_test(a_fault_meets_only_its_keys),
		cmocka_unit_test(faults_are_a_script),
		cmocka_unit_test(faults_can_be_forgotten),
		cmocka_unit_test(a_lost_reply_leaves_what_was_applied),
		cmocka_unit_test(a_lost_request_leaves_nothing_ever),
		cmocka_unit_test(a_late_request_is_applied_when_the_member_wakes),
		cmocka_unit_test(a_lost_read_is_not_unknown),
		cmocka_unit_test(what_may_be_repeated_for_ever_is_sent_again),
		cmocka_unit_test(what_may_not_be_repeated_is_told_unknown),
		cmocka_unit_test(an_error_that_will_not_pass_ends_all_but_persistent_calls),
		cmocka_unit_test(a_grant_sent_again_finds_its_own_lease),
		cmocka_unit_test(a_lost_page_is_asked_for_again),
		cmocka_unit_test(a_held_call_waits_and_others_overtake_it),
		cmocka_unit_test(a_released_call_may_meet_the_next_fault),
		cmocka_unit_test(what_is_cancelled_may_still_be_applied),
		cmocka_unit_test(a_call_cancelled_after_it_was_applied_is_silent),
		cmocka_unit_test(what_was_never_sent_is_dropped_when_cancelled),
		cmocka_unit_test(freeing_the_store_tells_every_call),
		cmocka_unit_test(what_was_never_sent_is_not_unknown_when_the_store_is_freed),
		cmocka_unit_test(without_a_connection_calls_fail_or_wait),
		cmocka_unit_test(a_connection_that_breaks_takes_the_reply_with_it),
		cmocka_unit_test(a_fault_is_not_spent_without_a_connection),
		cmocka_unit_test(a_restored_etcd_is_what_it_was),
		cmocka_unit_test(a_list_across_a_restore_asks_for_the_future),
		cmocka_unit_test(a_wiped_etcd_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
