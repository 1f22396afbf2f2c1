/* SPDX-License-Identifier: Apache-2.0 */
/* The fake's etcd: each expectation here is what a real etcd does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"

/* --- replies as text ------------------------------------------------------------------------ */

static char story[4096];

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void say(const char *fmt, ...)
{
	size_t n = strlen(story);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(story + n, sizeof(story) - n, fmt, ap);
	va_end(ap);
}

static void expect(const char *want)
{
	assert_string_equal(story, want);
	story[0] = '\0';
}

static void say_op(const struct store_op_reply *op)
{
	if (op->kind == STORE_PUT)
		say(" put");
	else if (op->kind == STORE_DELETE)
		say(" deleted %lld", (long long)op->count);
	else
		say(" of %lld:", (long long)op->count);
	for (size_t i = 0; i < op->n; i++)
		say(" %s=%s", op->kvs[i].key, op->kvs[i].value);
}

static void on_reply(const struct store_reply *reply, void *arg)
{
	if (reply->err) {
		say("error %s%s: %s\n", strerrorname_np(-reply->err),
		    reply->unknown ? " unknown" : "", reply->text);
		return;
	}
	say("%s at %lld", reply->succeeded ? "yes" : "no", (long long)reply->revision);
	for (size_t i = 0; i < reply->n_ops; i++)
		say_op(&reply->ops[i]);
	say("%s\n", reply->more ? " more" : "");
}

static void on_lease(const struct store_reply *reply, void *arg)
{
	if (reply->err)
		say("error %s: %s\n", strerrorname_np(-reply->err), reply->text);
	else
		say("lease %lld ttl %lld\n", (long long)reply->lease, (long long)reply->ttl);
}

/* --- requests in short ---------------------------------------------------------------------- */

#define PUT(k, v)                                                                                  \
	{                                                                                          \
		.kind = STORE_PUT, .key = (k), .value = (v), .value_len = strlen(v)                \
	}
#define DELETE(k)                                                                                  \
	{                                                                                          \
		.kind = STORE_DELETE, .key = (k)                                                   \
	}
#define GET(k)                                                                                     \
	{                                                                                          \
		.kind = STORE_GET, .key = (k)                                                      \
	}
#define GETS(k, e)                                                                                 \
	{                                                                                          \
		.kind = STORE_GET, .key = (k), .range_end = (e)                                    \
	}
#define OPS(...)                                                                                   \
	((struct store_op[]){ __VA_ARGS__ }),                                                      \
		sizeof((struct store_op[]){ __VA_ARGS__ }) / sizeof(struct store_op)

static void run_txn(struct store *s, const struct store_compare *compares, size_t n_compares,
		    const struct store_op *success, size_t n_success,
		    const struct store_op *failure, size_t n_failure)
{
	const struct store_txn txn = { .compares = compares,
				       .n_compares = n_compares,
				       .success = success,
				       .n_success = n_success,
				       .failure = failure,
				       .n_failure = n_failure };

	assert_int_equal(store_txn(s, &txn, 0, on_reply, NULL, NULL), 0);
	store_fake_run(s);
}

static void run_ops(struct store *s, const struct store_op *ops, size_t n)
{
	run_txn(s, NULL, 0, ops, n, NULL, 0);
}

static bool holds(struct store *s, struct store_compare compare)
{
	bool yes;

	run_txn(s, &compare, 1, NULL, 0, NULL, 0);
	yes = strncmp(story, "yes", 3) == 0;
	story[0] = '\0';
	return yes;
}

static struct store *fresh(void)
{
	story[0] = '\0';
	return store_fake_new();
}

static void expect_kv(const struct store *s, const char *key, int64_t create, int64_t mod,
		      int64_t version, int64_t lease)
{
	const struct store_kv *kv = store_fake_get(s, key);

	assert_non_null(kv);
	assert_int_equal(kv->create_revision, create);
	assert_int_equal(kv->mod_revision, mod);
	assert_int_equal(kv->version, version);
	assert_int_equal(kv->lease, lease);
}

static void expect_all(const struct store *s, const char *want)
{
	AUTO(free) char *got = store_fake_dump(s, "!", "~");

	assert_string_equal(got, want);
}

/* --- revisions ------------------------------------------------------------------------------ */

static void each_change_has_a_revision_of_its_own(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	assert_int_equal(store_fake_revision(s), 1);
	assert_int_equal(store_fake_put(s, "a", "1"), 2);
	assert_int_equal(store_fake_put(s, "b", "1"), 3);
	assert_int_equal(store_fake_put(s, "a", "2"), 4);
	expect_kv(s, "a", 2, 4, 2, 0);
	expect_kv(s, "b", 3, 3, 1, 0);
}

static void a_key_made_anew_starts_again(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "a", "1");
	store_fake_put(s, "a", "2");
	assert_int_equal(store_fake_delete(s, "a", NULL), 4);
	assert_null(store_fake_get(s, "a"));
	store_fake_put(s, "a", "3");
	expect_kv(s, "a", 5, 5, 1, 0);
}

static void all_changes_of_a_txn_share_one_revision(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "c", "1");
	run_ops(s, OPS(PUT("a", "1"), PUT("b", "2"), DELETE("c")));
	expect("yes at 3 put put deleted 1\n");
	expect_kv(s, "a", 3, 3, 1, 0);
	expect_kv(s, "b", 3, 3, 1, 0);
}

static void a_txn_that_changes_nothing_raises_nothing(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "a", "1");
	run_ops(s, OPS(GET("a"), DELETE("b")));
	expect("yes at 2 of 1: a=1 deleted 0\n");
	assert_int_equal(store_fake_delete(s, "b", NULL), 2);
}

static void a_read_in_a_txn_sees_what_came_before_it(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	run_ops(s, OPS(GET("a"), PUT("a", "1"), GET("a"), DELETE("b")));
	expect("yes at 2 of 0: put of 1: a=1 deleted 0\n");
}

/* --- reading -------------------------------------------------------------------------------- */

static struct store *with_four(void)
{
	struct store *s = fresh();

	store_fake_put(s, "/p/b", "1");
	store_fake_put(s, "/p/d", "2");
	store_fake_put(s, "/p/a", "3");
	store_fake_put(s, "/q", "4");
	return s;
}

static void a_range_goes_by_key_and_excludes_its_end(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	run_ops(s, OPS(GETS("/p/", "/p0"), GETS("/p/b", "/q"), GET("/p/"), GETS("/q", "/p/")));
	expect("yes at 5 of 3: /p/a=3 /p/b=1 /p/d=2 of 2: /p/b=1 /p/d=2 of 0: of 0:\n");
}

static void the_limit_limits_keys_and_not_the_count(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	run_ops(s, OPS({ STORE_GET, .key = "/p/", .range_end = "/p0", .limit = 2 },
		       { STORE_GET, .key = "/p/", .range_end = "/p0", .limit = 3 }));
	expect("yes at 5 of 3: /p/a=3 /p/b=1 of 3: /p/a=3 /p/b=1 /p/d=2\n");
}

static void keys_or_just_their_number_can_be_asked_for(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	run_ops(s, OPS({ STORE_GET, .key = "/p/", .range_end = "/p0", .keys_only = true },
		       { STORE_GET, .key = "/p/", .range_end = "/p0", .count_only = true }));
	expect("yes at 5 of 3: /p/a= /p/b= /p/d= of 3:\n");
}

static void the_newest_come_first_before_the_limit_counts(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	store_fake_put(s, "/p/b", "5");
	run_ops(s, OPS({ STORE_GET, .key = "/p/", .range_end = "/p0", .newest_first = true,
			 .limit = 2 }));
	expect("yes at 6 of 3: /p/b=5 /p/a=3\n");
}

static void values_may_hold_any_byte(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_op put = { STORE_PUT, .key = "a", .value = "x\0y", .value_len = 3 };

	run_ops(s, &put, 1);
	assert_int_equal(store_fake_get(s, "a")->value_len, 3);
	assert_memory_equal(store_fake_get(s, "a")->value, "x\0y", 4);
	assert_true(
		holds(s, (struct store_compare){ .key = "a", .value = "x\0y", .value_len = 3 }));
	assert_false(holds(s, (struct store_compare){ .key = "a", .value = "x", .value_len = 1 }));
}

/* --- compares ------------------------------------------------------------------------------- */

static void numbers_compare_in_all_four_ways(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	static const bool want[4][3] = {
		/* number is less, the same, more than what is there */
		[STORE_EQUAL] = { false, true, false },
		[STORE_NOT_EQUAL] = { true, false, true },
		[STORE_GREATER] = { true, false, false },
		[STORE_LESS] = { false, false, true },
	};
	int64_t there[] = { [STORE_VERSION] = 3,
			    [STORE_CREATE_REVISION] = 2,
			    [STORE_MOD_REVISION] = 4,
			    [STORE_LEASE] = 77 };

	store_fake_put(s, "a", "1");
	store_fake_put(s, "a", "2");
	assert_int_equal(store_lease_grant(s, 77, 60, 0, on_lease, NULL, NULL), 0);
	store_fake_run(s);
	store_fake_put_leased(s, "a", "3", 77);
	expect_kv(s, "a", 2, 4, 3, 77);
	for (enum store_target t = STORE_VERSION; t <= STORE_LEASE; t++)
		for (enum store_relation r = STORE_EQUAL; r <= STORE_LESS; r++)
			for (int i = 0; i < 3; i++)
				assert_int_equal(
					holds(s,
					      (struct store_compare){ .key = "a",
								      .target = t,
								      .relation = r,
								      .number = there[t] + i - 1 }),
					want[r][i]);
}

static void values_compare_in_all_four_ways(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	static const char *const values[] = { "a", "b", "ba" };
	static const bool want[4][3] = {
		[STORE_EQUAL] = { false, true, false },
		[STORE_NOT_EQUAL] = { true, false, true },
		[STORE_GREATER] = { true, false, false },
		[STORE_LESS] = { false, false, true },
	};

	store_fake_put(s, "k", "b");
	for (enum store_relation r = STORE_EQUAL; r <= STORE_LESS; r++)
		for (int i = 0; i < 3; i++)
			assert_int_equal(
				holds(s, (struct store_compare){ .key = "k",
								 .target = STORE_VALUE,
								 .relation = r,
								 .value = values[i],
								 .value_len = strlen(values[i]) }),
				want[r][i]);
}

static void no_value_compare_holds_for_an_absent_key(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	for (enum store_relation r = STORE_EQUAL; r <= STORE_LESS; r++) {
		assert_false(holds(s, (struct store_compare){ .key = "k", .relation = r }));
		assert_false(holds(
			s, (struct store_compare){ .key = "k", .range_end = "l", .relation = r }));
	}
}

static void an_absent_key_has_the_number_zero_for_everything(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	for (enum store_target t = STORE_VERSION; t <= STORE_LEASE; t++) {
		assert_true(holds(s, (struct store_compare){ .key = "k", .target = t }));
		assert_false(
			holds(s, (struct store_compare){ .key = "k", .target = t, .number = 1 }));
		/* So has an empty range. */
		assert_true(holds(
			s, (struct store_compare){ .key = "k", .range_end = "l", .target = t }));
	}
}

static void a_range_compare_must_hold_for_every_key(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	struct store_compare older = { .key = "/p/",
				       .range_end = "/p0",
				       .target = STORE_CREATE_REVISION,
				       .relation = STORE_LESS,
				       .number = 4 };

	store_fake_put(s, "/p/a", "1");
	store_fake_put(s, "/p/b", "1");
	assert_true(holds(s, older));
	store_fake_put(s, "/q", "1");
	assert_true(holds(s, older));
	store_fake_put(s, "/p/aa", "1");
	assert_false(holds(s, older));
}

static void one_compare_that_fails_takes_the_failure_branch(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_compare compares[] = {
		{ .key = "a", .target = STORE_VERSION, .number = 1 },
		{ .key = "b", .target = STORE_VERSION, .number = 1 },
	};

	store_fake_put(s, "a", "1");
	run_txn(s, compares, 2, OPS(PUT("c", "yes")), OPS(PUT("c", "no"), GET("a")));
	expect("no at 3 put of 1: a=1\n");
	store_fake_put(s, "b", "1");
	run_txn(s, compares, 2, OPS(PUT("c", "yes")), OPS(PUT("c", "no"), GET("a")));
	expect("yes at 5 put\n");
	expect_all(s, "a=1\nb=1\nc=yes\n");
}

/* --- puts that keep ------------------------------------------------------------------------- */

static void a_put_may_raise_the_revision_alone(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_lease_grant(s, 7, 60, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	store_fake_put_leased(s, "a", "1", 7);
	story[0] = '\0';
	run_ops(s, OPS({ STORE_PUT, .key = "a", .keep_value = true, .keep_lease = true }));
	expect("yes at 3 put\n");
	assert_string_equal(store_fake_get(s, "a")->value, "1");
	expect_kv(s, "a", 2, 3, 2, 7);
	run_ops(s,
		OPS({ STORE_PUT, .key = "a", .value = "2", .value_len = 1, .keep_lease = true }));
	assert_string_equal(store_fake_get(s, "a")->value, "2");
	expect_kv(s, "a", 2, 4, 3, 7);
}

static void a_plain_put_detaches_the_lease(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_lease_grant(s, 7, 60, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	store_fake_put_leased(s, "a", "1", 7);
	run_ops(s, OPS({ STORE_PUT, .key = "a", .keep_value = true }));
	expect_kv(s, "a", 2, 3, 2, 0);
}

static void nothing_to_keep_refuses_the_whole_txn(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "a", "1");
	run_ops(s, OPS(DELETE("a"), PUT("b", "1"), { STORE_PUT, .key = "c", .keep_value = true }));
	expect("error EINVAL: key not found\n");
	run_ops(s, OPS(PUT("b", "1"), { STORE_PUT, .key = "c", .keep_lease = true }));
	expect("error EINVAL: key not found\n");
	expect_all(s, "a=1\n");
	assert_int_equal(store_fake_revision(s), 2);
}

static void only_the_branch_taken_needs_something_to_keep(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_compare absent = { .key = "a", .target = STORE_VERSION };

	run_txn(s, &absent, 1, OPS(PUT("a", "1")),
		OPS({ STORE_PUT, .key = "c", .keep_value = true }));
	expect("yes at 2 put\n");
}

/* --- what etcd does not take ---------------------------------------------------------------- */

static void no_key_is_put_twice_or_put_and_deleted(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_op range = { STORE_DELETE, .key = "a", .range_end = "c" };
	const char *want = "error EINVAL: duplicate key given in txn request\n";

	run_ops(s, OPS(PUT("a", "1"), PUT("a", "1")));
	expect(want);
	run_ops(s, OPS(PUT("a", "1"), GET("a"), DELETE("a")));
	expect(want);
	run_ops(s, OPS(DELETE("a"), PUT("a", "1")));
	expect(want);
	run_ops(s, OPS(range, PUT("b", "1")));
	expect(want);
	run_txn(s, NULL, 0, OPS(PUT("x", "1")), OPS(PUT("b", "1"), PUT("b", "2")));
	expect(want);
	assert_int_equal(store_fake_revision(s), 1);
}

static void deletes_may_overlap_and_branches_may_repeat(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_op range = { STORE_DELETE, .key = "a", .range_end = "c" };

	store_fake_put(s, "a", "1");
	store_fake_put(s, "b", "1");
	run_txn(s, NULL, 0, OPS(DELETE("a"), range, PUT("c", "1")), OPS(PUT("c", "1")));
	expect("yes at 4 deleted 1 deleted 1 put\n");
}

static void a_key_is_needed(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_compare nothing = { .key = "", .target = STORE_VERSION };

	run_ops(s, OPS(GET("")));
	expect("error EINVAL: key is not provided\n");
	run_txn(s, &nothing, 1, NULL, 0, NULL, 0);
	expect("error EINVAL: key is not provided\n");
}

static void a_value_beside_the_one_to_keep_is_ignored_a_lease_is_not(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "a", "1");
	run_ops(s,
		OPS({ STORE_PUT, .key = "a", .value = "x", .value_len = 1, .keep_value = true }));
	expect("yes at 3 put\n");
	expect_all(s, "a=1\n");
	run_ops(s, OPS({ STORE_PUT, .key = "a", .lease = 7, .keep_lease = true }));
	expect("error EINVAL: lease is provided\n");
}

static void a_hundred_and_twenty_eight_operations_are_the_limit(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	struct store_op ops[STORE_TXN_MAX + 1];
	char keys[STORE_TXN_MAX + 1][16];
	struct store_txn txn = { .success = ops, .n_success = STORE_TXN_MAX };

	for (int i = 0; i <= STORE_TXN_MAX; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%d", i);
		ops[i] = (struct store_op)PUT(keys[i], "1");
	}
	assert_int_equal(store_txn(s, &txn, 0, on_reply, NULL, NULL), 0);
	txn.n_success++;
	assert_int_equal(store_txn(s, &txn, 0, on_reply, NULL, NULL), -EINVAL);
	store_fake_run(s);
	assert_non_null(store_fake_get(s, "k127"));
	assert_null(store_fake_get(s, "k128"));
}

/* --- deleting ------------------------------------------------------------------------------- */

static void a_range_is_deleted_in_one_revision(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	run_ops(s, OPS({ STORE_DELETE, .key = "/p/", .range_end = "/p0" }));
	expect("yes at 6 deleted 3\n");
	expect_all(s, "/q=4\n");
}

/* --- lists ---------------------------------------------------------------------------------- */

static void a_list_comes_page_by_page_at_one_revision(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	store_fake_set_page(s, 2);
	assert_int_equal(store_list(s, "/p/", "/r", 0, on_reply, NULL, NULL), 0);
	store_fake_step(s);
	store_fake_step(s);
	expect("no at 5 of 4: /p/a=3 /p/b=1 more\n");
	store_fake_put(s, "/p/c", "new");
	store_fake_delete(s, "/p/d", NULL);
	store_fake_run(s);
	expect("no at 5 of 2: /p/d=2 /q=4\n");
}

static void a_page_that_is_just_full_is_the_last(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	store_fake_set_page(s, 4);
	store_list(s, "/", "0", 0, on_reply, NULL, NULL);
	store_list(s, "/x", "0", 0, on_reply, NULL, NULL);
	store_fake_run(s);
	expect("no at 5 of 4: /p/a=3 /p/b=1 /p/d=2 /q=4\nno at 5 of 0:\n");
}

static void a_list_overtaken_by_compaction_is_stale(void **unused)
{
	AUTO(store_free) struct store *s = with_four();

	store_fake_set_page(s, 2);
	store_list(s, "/p/", "/r", 0, on_reply, NULL, NULL);
	store_fake_step(s);
	store_fake_step(s);
	store_fake_compact(s); /* just the list's own revision is still there */
	store_fake_put(s, "/p/c", "new");
	store_fake_compact(s);
	store_fake_run(s);
	expect("no at 5 of 4: /p/a=3 /p/b=1 more\n"
	       "error ESTALE: required revision has been compacted\n");
}

struct cancelling {
	struct store_call *call;
	unsigned pages;
};

static void on_page_cancel(const struct store_reply *reply, void *arg)
{
	struct cancelling *c = arg;

	c->pages++;
	store_cancel(c->call);
}

static void a_list_may_be_cancelled_from_its_own_page(void **unused)
{
	AUTO(store_free) struct store *s = with_four();
	struct cancelling c = { 0 };

	store_fake_set_page(s, 1);
	store_list(s, "/", "0", 0, on_page_cancel, &c, &c.call);
	store_fake_run(s);
	assert_int_equal(c.pages, 1);
	assert_int_equal(store_fake_stats(s).calls, 0);
}

/* --- leases --------------------------------------------------------------------------------- */

static void keys_of_a_lease_go_with_it_in_one_revision(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_lease_grant(s, 7, 10, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	expect("lease 7 ttl 10\n");
	store_fake_put_leased(s, "a", "1", 7);
	store_fake_put(s, "b", "1");
	store_fake_put_leased(s, "c", "1", 7);
	store_fake_put_leased(s, "d", "1", 7);
	store_fake_put(s, "d", "mine"); /* detached */
	store_fake_advance(s, 9);
	assert_int_equal(store_fake_revision(s), 6);
	store_fake_advance(s, 1);
	assert_int_equal(store_fake_revision(s), 7);
	expect_all(s, "b=1\nd=mine\n");
}

static void a_lease_kept_alive_starts_over(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_lease_grant(s, 7, 10, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	store_fake_put_leased(s, "a", "1", 7);
	store_fake_advance(s, 9);
	store_lease_keepalive(s, 7, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	expect("lease 7 ttl 10\nlease 7 ttl 10\n");
	store_fake_advance(s, 9);
	expect_all(s, "a=1\n");
	store_fake_advance(s, 1);
	expect_all(s, "");
	store_lease_keepalive(s, 7, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	expect("lease 7 ttl 0\n"); /* gone is told without an error */
}

static void a_lease_is_revoked_once_and_granted_once(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_lease_grant(s, 7, 1, 0, on_lease, NULL, NULL); /* etcd's least is 2 s */
	store_lease_grant(s, 7, 10, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	expect("lease 7 ttl 2\nerror EEXIST: lease already exists\n");
	store_fake_put_leased(s, "a", "1", 7);
	store_lease_revoke(s, 7, 0, on_lease, NULL, NULL);
	store_lease_revoke(s, 7, 0, on_lease, NULL, NULL);
	store_fake_run(s);
	expect("lease 0 ttl 0\nerror ENOENT: requested lease not found\n");
	expect_all(s, "");
}

static void a_put_needs_its_lease(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	run_ops(s, OPS(PUT("b", "1"), { STORE_PUT, .key = "a", .lease = 7 }));
	expect("error ENOENT: requested lease not found\n");
	expect_all(s, "");
}

static void leases_run_out_in_their_order(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	for (int64_t id = 1; id <= 3; id++)
		store_lease_grant(s, id, 10 * (4 - id), 0, on_lease, NULL, NULL);
	store_fake_run(s);
	store_fake_put_leased(s, "a", "1", 1);
	store_fake_put_leased(s, "b", "1", 2);
	store_fake_put_leased(s, "c", "1", 3);
	store_fake_advance(s, 15);
	expect_all(s, "a=1\nb=1\n");
	store_fake_advance(s, 100);
	expect_all(s, "");
	assert_int_equal(store_fake_revision(s), 7);
}

/* --- steps ---------------------------------------------------------------------------------- */

static void nothing_is_called_back_from_the_starting_call(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_put(s, "a", "1", 0, 0, on_reply, NULL, NULL);
	assert_null(store_fake_get(s, "a"));
	expect("");
	assert_true(store_fake_step(s));
	assert_non_null(store_fake_get(s, "a"));
	expect("");
	assert_true(store_fake_step(s));
	expect("yes at 2 put\n");
	assert_false(store_fake_step(s));
}

static void inputs_are_copied(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	char key[] = "a", value[] = "1";

	store_put(s, key, value, 0, 0, on_reply, NULL, NULL);
	key[0] = 'b';
	value[0] = '2';
	store_fake_run(s);
	expect_all(s, "a=1\n");
}

static void calls_are_worked_off_in_their_order(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_put(s, "a", "1", 0, 0, on_reply, NULL, NULL);
	store_get(s, "a", 0, on_reply, NULL, NULL);
	store_delete(s, "a", NULL, 0, on_reply, NULL, NULL);
	store_get(s, "a", 0, on_reply, NULL, NULL);
	store_fake_run(s);
	expect("yes at 2 put\nyes at 2 of 1: a=1\nyes at 3 deleted 1\nyes at 3 of 0:\n");
}

static void write_in_between(struct store *s, const struct store_txn *txn, void *arg)
{
	unsigned *times = arg;

	assert_string_equal(txn->success[0].key, "a");
	if ((*times)++ == 0)
		store_fake_put(s, "a", "somebody else's");
}

static void another_writer_may_come_first(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct store_compare absent = { .key = "a", .target = STORE_VERSION };
	unsigned times = 0;

	store_fake_before_txn(s, write_in_between, &times);
	run_txn(s, &absent, 1, OPS(PUT("a", "mine")), OPS(GET("a")));
	expect("no at 2 of 1: a=somebody else's\n");
	assert_int_equal(times, 1);
	assert_int_equal(store_fake_stats(s).txns, 1);
}

static void history_tells_what_ever_stood_there(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_put(s, "a", "1");
	store_fake_put(s, "a", "2");
	store_fake_delete(s, "a", NULL);
	assert_true(store_fake_ever(s, "a", "1"));
	assert_true(store_fake_ever(s, "a", "2"));
	assert_false(store_fake_ever(s, "a", "3"));
	assert_false(store_fake_ever(s, "b", "1"));
	assert_false(store_fake_ever(s, "a", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_change_has_a_revision_of_its_own),
		cmocka_unit_test(a_key_made_anew_starts_again),
		cmocka_unit_test(all_changes_of_a_txn_share_one_revision),
		cmocka_unit_test(a_txn_that_changes_nothing_raises_nothing),
		cmocka_unit_test(a_read_in_a_txn_sees_what_came_before_it),
		cmocka_unit_test(a_range_goes_by_key_and_excludes_its_end),
		cmocka_unit_test(the_limit_limits_keys_and_not_the_count),
		cmocka_unit_test(keys_or_just_their_number_can_be_asked_for),
		cmocka_unit_test(the_newest_come_first_before_the_limit_counts),
		cmocka_unit_test(values_may_hold_any_byte),
		cmocka_unit_test(numbers_compare_in_all_four_ways),
		cmocka_unit_test(values_compare_in_all_four_ways),
		cmocka_unit_test(no_value_compare_holds_for_an_absent_key),
		cmocka_unit_test(an_absent_key_has_the_number_zero_for_everything),
		cmocka_unit_test(a_range_compare_must_hold_for_every_key),
		cmocka_unit_test(one_compare_that_fails_takes_the_failure_branch),
		cmocka_unit_test(a_put_may_raise_the_revision_alone),
		cmocka_unit_test(a_plain_put_detaches_the_lease),
		cmocka_unit_test(nothing_to_keep_refuses_the_whole_txn),
		cmocka_unit_test(only_the_branch_taken_needs_something_to_keep),
		cmocka_unit_test(no_key_is_put_twice_or_put_and_deleted),
		cmocka_unit_test(deletes_may_overlap_and_branches_may_repeat),
		cmocka_unit_test(a_key_is_needed),
		cmocka_unit_test(a_value_beside_the_one_to_keep_is_ignored_a_lease_is_not),
		cmocka_unit_test(a_hundred_and_twenty_eight_operations_are_the_limit),
		cmocka_unit_test(a_range_is_deleted_in_one_revision),
		cmocka_unit_test(a_list_comes_page_by_page_at_one_revision),
		cmocka_unit_test(a_page_that_is_just_full_is_the_last),
		cmocka_unit_test(a_list_overtaken_by_compaction_is_stale),
		cmocka_unit_test(a_list_may_be_cancelled_from_its_own_page),
		cmocka_unit_test(keys_of_a_lease_go_with_it_in_one_revision),
		cmocka_unit_test(a_lease_kept_alive_starts_over),
		cmocka_unit_test(a_lease_is_revoked_once_and_granted_once),
		cmocka_unit_test(a_put_needs_its_lease),
		cmocka_unit_test(leases_run_out_in_their_order),
		cmocka_unit_test(nothing_is_called_back_from_the_starting_call),
		cmocka_unit_test(inputs_are_copied),
		cmocka_unit_test(calls_are_worked_off_in_their_order),
		cmocka_unit_test(another_writer_may_come_first),
		cmocka_unit_test(history_tells_what_ever_stood_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
