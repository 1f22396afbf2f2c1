/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims and releases of a block, as the allocator makes them, while replies
 * are lost and stopped members wake at the worst moment.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"

#define NODE  "node/n1"
#define BLOCK "block/b1"
#define INDEX "host/n1/block/b1"

/* --- claims and releases -------------------------------------------------------------------- */

struct request {
	struct store_compare compares[2];
	struct store_op ops[2];
	struct store_txn txn;
	size_t fence, witness;
};

static void fill(struct request *q, size_t n_compares, size_t fence)
{
	q->txn = (struct store_txn){
		.compares = q->compares, .n_compares = n_compares, .success = q->ops, .n_success = 2
	};
	q->fence = fence;
	q->witness = 0;
}

/* The block must be absent, and our own record as we know it. */
static void make_claim(struct request *q, const char *block, const char *index, const char *node,
		       int64_t node_revision, const char *token)
{
	q->compares[0] = (struct store_compare){ .key = block, .target = STORE_VERSION };
	q->compares[1] = (struct store_compare){ .key = node,
						 .target = STORE_MOD_REVISION,
						 .number = node_revision };
	q->ops[0] = (struct store_op){ STORE_PUT, .key = block, .value = token,
				       .value_len = strlen(token) };
	q->ops[1] = (struct store_op){ STORE_PUT, .key = index };
	fill(q, 2, 1);
}

static void make_release(struct request *q, const char *block, const char *index, int64_t revision)
{
	q->compares[0] = (struct store_compare){ .key = block,
						 .target = STORE_MOD_REVISION,
						 .number = revision };
	q->ops[0] = (struct store_op){ STORE_DELETE, .key = block };
	q->ops[1] = (struct store_op){ STORE_DELETE, .key = index };
	fill(q, 1, 0);
}

static struct request claim(const struct store *s, const char *token)
{
	const struct store_kv *node = store_fake_get(s, NODE);
	static struct request q; /* compares and ops are pointed to */

	make_claim(&q, BLOCK, INDEX, NODE, node->mod_revision, token);
	return q;
}

static struct request release(const struct store *s)
{
	const struct store_kv *block = store_fake_get(s, BLOCK);
	static struct request q;

	make_release(&q, BLOCK, INDEX, block->mod_revision);
	return q;
}

/* --- outcomes as text ----------------------------------------------------------------------- */

static char story[1024];
static struct store_call *call;

static void on_settled(const struct store_settled *settled, void *arg)
{
	size_t n = strlen(story);

	n += (size_t)snprintf(story + n, sizeof(story) - n, "%s",
			      store_outcome_name(settled->outcome));
	if (settled->reply->err)
		n += (size_t)snprintf(story + n, sizeof(story) - n, " %s",
				      strerrorname_np(-settled->reply->err));
	if (settled->was_lost && settled->outcome != STORE_UNSETTLED)
		snprintf(story + n, sizeof(story) - n, ", lost, witness %s, fence %lld",
			 settled->witness ? settled->witness->value : "-",
			 (long long)settled->fence_revision);
	/* Too late, and harmless. */
	store_cancel(call);
	call = NULL;
}

static void expect(const char *want)
{
	assert_string_equal(story, want);
	story[0] = '\0';
}

static void start(struct store *s, struct request q)
{
	assert_int_equal(store_txn_settled(s, &q.txn, q.fence, q.witness, on_settled, NULL, &call),
			 0);
}

/* Our node is there; the next revision is 3. */
static struct store *fresh(void)
{
	struct store *s = store_fake_new();

	story[0] = '\0';
	store_fake_put(s, NODE, "n1");
	return s;
}

static struct store *with_block(void)
{
	struct store *s = fresh();

	store_fake_put(s, BLOCK, "t1");
	store_fake_put(s, INDEX, "");
	return s;
}

static bool has(const struct store *s, const char *key)
{
	return store_fake_get(s, key) != NULL;
}

static void lose(struct store *s, enum store_fake_fate fate)
{
	store_fake_next(s, STORE_FAKE_WRITE, NULL, 1, fate);
}

/* --- no loss -------------------------------------------------------------------------------- */

static void without_a_loss_the_reply_is_the_answer(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	start(s, claim(s, "t1"));
	expect("");
	store_fake_run(s);
	expect("applied");
	assert_true(has(s, BLOCK));
	start(s, claim(s, "t2"));
	store_fake_run(s);
	expect("refused");
	start(s, release(s));
	store_fake_run(s);
	expect("applied");
	assert_false(has(s, BLOCK));
	/* Nobody raised the fence for nothing. */
	assert_int_equal(store_fake_get(s, NODE)->version, 1);
	assert_int_equal(store_fake_stats(s).txns, 3);
}

static void what_etcd_refuses_for_good_is_refused_with_the_error(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_fail_next(s, STORE_FAKE_WRITE, NULL, 1, -EACCES);
	start(s, claim(s, "t1"));
	store_fake_run(s);
	expect("refused EACCES");
	assert_int_equal(store_fake_get(s, NODE)->version, 1);
}

static void trouble_before_it_was_sent_is_waited_out(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_fake_fail_next(s, STORE_FAKE_WRITE, NULL, 3, -EAGAIN);
	store_fake_connect(s, false);
	start(s, claim(s, "t1"));
	store_fake_run(s);
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("applied");
}

/* --- a claim whose reply is lost ------------------------------------------------------------ */

static void a_claim_lost_and_applied_is_settled_as_applied(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	lose(s, STORE_FAKE_LOSE_REPLY);
	start(s, claim(s, "t1"));
	store_fake_run(s);
	expect("applied, lost, witness t1, fence 4");
	assert_int_equal(store_fake_get(s, NODE)->mod_revision, 4);
	assert_string_equal(store_fake_get(s, NODE)->value, "n1");
}

static void a_claim_lost_and_not_applied_is_settled_as_refused(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	lose(s, STORE_FAKE_LOSE_REQUEST);
	start(s, claim(s, "t1"));
	store_fake_run(s);
	expect("refused, lost, witness -, fence 3");
	assert_false(has(s, BLOCK));
}

static void a_late_claim_changes_nothing_any_more(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	lose(s, STORE_FAKE_LATE);
	start(s, claim(s, "t1"));
	store_fake_run(s);
	expect("refused, lost, witness -, fence 3");
	assert_int_equal(store_fake_wake(s), 1);
	assert_false(has(s, BLOCK));
	assert_false(has(s, INDEX));
}

/* Wakes the member just before the given txn. */
static void wake_before(struct store *s, const struct store_txn *txn, void *arg)
{
	unsigned *countdown = arg;

	if (*countdown && --*countdown == 0)
		store_fake_wake(s);
}

static void a_claim_that_comes_late_but_before_the_fence_counts(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	unsigned countdown = 1;

	lose(s, STORE_FAKE_LATE);
	start(s, claim(s, "t1"));
	store_fake_before_txn(s, wake_before, &countdown);
	store_fake_run(s);
	expect("applied, lost, witness t1, fence 4");
}

static void a_claim_that_somebody_else_won_is_refused(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	lose(s, STORE_FAKE_LATE);
	start(s, claim(s, "t1"));
	store_fake_put(s, BLOCK, "theirs");
	store_fake_run(s);
	expect("refused, lost, witness theirs, fence 4");
	store_fake_wake(s);
	assert_string_equal(store_fake_get(s, BLOCK)->value, "theirs");
}

static void a_claim_whose_block_looks_nearly_like_ours_is_refused(void **unused)
{
	static const char *const others[] = { "t", "t12", "u1", "" };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		AUTO(store_free) struct store *s = fresh();

		lose(s, STORE_FAKE_LOSE_REQUEST);
		start(s, claim(s, "t1"));
		store_fake_put(s, BLOCK, others[i]);
		store_fake_run(s);
		assert_int_equal(strncmp(story, "refused", 7), 0);
	}
}

/* --- a release whose reply is lost ---------------------------------------------------------- */

static void a_release_lost_and_applied_is_settled_as_applied(void **unused)
{
	AUTO(store_free) struct store *s = with_block();

	lose(s, STORE_FAKE_LOSE_REPLY);
	start(s, release(s));
	store_fake_run(s);
	expect("applied, lost, witness -, fence 0");
	assert_false(has(s, INDEX));
}

static void a_release_lost_and_not_applied_is_settled_as_refused(void **unused)
{
	AUTO(store_free) struct store *s = with_block();

	lose(s, STORE_FAKE_LOSE_REQUEST);
	start(s, release(s));
	store_fake_run(s);
	expect("refused, lost, witness t1, fence 5");
	assert_int_equal(store_fake_get(s, BLOCK)->create_revision, 3);
}

static void a_late_release_changes_nothing_any_more(void **unused)
{
	AUTO(store_free) struct store *s = with_block();

	lose(s, STORE_FAKE_LATE);
	start(s, release(s));
	store_fake_run(s);
	expect("refused, lost, witness t1, fence 5");
	assert_int_equal(store_fake_wake(s), 1);
	assert_string_equal(store_fake_get(s, BLOCK)->value, "t1");
	assert_true(has(s, INDEX));
}

static void a_release_whose_block_is_claimed_again_already_was_applied(void **unused)
{
	AUTO(store_free) struct store *s = with_block();

	lose(s, STORE_FAKE_LOSE_REPLY);
	start(s, release(s));
	store_fake_step(s);
	assert_false(has(s, BLOCK));
	store_fake_put(s, BLOCK, "theirs");
	store_fake_run(s);
	expect("applied, lost, witness theirs, fence 6");
	assert_int_equal(store_fake_get(s, BLOCK)->version, 1);
}

static void a_release_whose_block_was_merely_touched_was_not_applied(void **unused)
{
	AUTO(store_free) struct store *s = with_block();

	lose(s, STORE_FAKE_LATE);
	start(s, release(s));
	store_fake_put(s, BLOCK, "t1, touched");
	store_fake_run(s);
	expect("refused, lost, witness t1, touched, fence 5");
	store_fake_wake(s);
	assert_true(has(s, BLOCK));
}

static void a_change_of_ones_own_key_is_settled_by_its_value(void **unused)
{
	static const enum store_fake_fate fates[] = { STORE_FAKE_LOSE_REPLY, STORE_FAKE_LATE };
	static const char *const want[] = { "applied, lost, witness t2, fence 5",
					    "refused, lost, witness t1, fence 5" };

	for (size_t i = 0; i < ARRAY_SIZE(fates); i++) {
		AUTO(store_free) struct store *s = with_block();
		struct request q = release(s);

		q.ops[0] = (struct store_op){ STORE_PUT, .key = BLOCK, .value = "t2",
					      .value_len = 2 };
		q.txn.compares = q.compares;
		q.txn.success = q.ops;
		q.txn.n_success = 1;
		lose(s, fates[i]);
		start(s, q);
		store_fake_run(s);
		expect(want[i]);
		store_fake_wake(s);
		assert_string_equal(store_fake_get(s, BLOCK)->value, i ? "t1" : "t2");
	}
}

static void a_value_written_a_second_time_is_not_taken_for_the_first(void **unused)
{
	AUTO(store_free) struct store *s = with_block();
	struct request q = release(s);

	q.ops[0] = (struct store_op){ STORE_PUT, .key = BLOCK, .value = "t1", .value_len = 2 };
	q.txn.compares = q.compares;
	q.txn.success = q.ops;
	q.txn.n_success = 1;
	lose(s, STORE_FAKE_LATE);
	start(s, q);
	store_fake_run(s);
	expect("refused, lost, witness t1, fence 5");
}

/* --- the fence ------------------------------------------------------------------------------ */

static void a_fence_raised_by_somebody_else_serves_as_well(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	lose(s, STORE_FAKE_LOSE_REPLY);
	start(s, claim(s, "t1"));
	store_fake_step(s);
	store_fake_put(s, NODE, "n1 again");
	store_fake_run(s);
	expect("applied, lost, witness t1, fence 4");
	assert_string_equal(store_fake_get(s, NODE)->value, "n1 again");
	assert_int_equal(store_fake_revision(s), 4);
}

static void a_fence_that_is_gone_serves_as_well(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	lose(s, STORE_FAKE_LATE);
	start(s, claim(s, "t1"));
	store_fake_step(s);
	store_fake_delete(s, NODE, NULL);
	store_fake_run(s);
	expect("refused, lost, witness -, fence 0");
	store_fake_put(s, NODE, "n1 again");
	store_fake_wake(s);
	assert_false(has(s, BLOCK));
	assert_true(has(s, NODE));
}

static void on_granted(const struct store_reply *reply, void *arg)
{
	assert_int_equal(reply->err, 0);
}

static void a_raised_fence_keeps_its_value_and_its_lease(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	store_lease_grant(s, 7, 60, 0, on_granted, NULL, NULL);
	store_fake_run(s);
	store_fake_put_leased(s, NODE, "leased", 7);
	lose(s, STORE_FAKE_LOSE_REQUEST);
	start(s, claim(s, "t1"));
	store_fake_run(s);
	expect("refused, lost, witness -, fence 4");
	assert_string_equal(store_fake_get(s, NODE)->value, "leased");
	assert_int_equal(store_fake_get(s, NODE)->lease, 7);
}

static void the_fences_own_reply_may_be_lost_again_and_again(void **unused)
{
	static const enum store_fake_fate fates[] = { STORE_FAKE_LOSE_REPLY,
						      STORE_FAKE_LOSE_REQUEST, STORE_FAKE_LATE };

	/* Every three losses in a row, after each kind of loss of the txn, claim and release. */
	for (int i = 0; i < 3 * 3 * 3 * 3 * 2; i++) {
		bool claiming = i % 2;
		AUTO(store_free) struct store *s = claiming ? fresh() : with_block();
		bool applied = fates[i / 2 % 3] == STORE_FAKE_LOSE_REPLY;

		for (int k = 0, n = i / 2; k < 4; k++, n /= 3)
			lose(s, fates[n % 3]);
		store_fake_fail_next(s, STORE_FAKE_WRITE, NULL, 2, -EACCES);
		start(s, claiming ? claim(s, "t1") : release(s));
		store_fake_run(s);
		assert_int_equal(strncmp(story, applied ? "applied, lost" : "refused, lost", 13),
				 0);
		assert_int_equal(store_fake_faults_left(s), 0);
		assert_int_equal(has(s, BLOCK), applied == claiming);
		store_fake_wake(s);
		assert_int_equal(has(s, BLOCK), applied == claiming);
		assert_int_equal(has(s, INDEX), applied == claiming);
		story[0] = '\0';
	}
}

static void etcd_out_of_reach_delays_the_answer(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	lose(s, STORE_FAKE_LATE);
	start(s, claim(s, "t1"));
	store_fake_step(s);
	store_fake_connect(s, false);
	store_fake_run(s);
	/* The loss is known, the answer is not. */
	expect("");
	store_fake_connect(s, true);
	store_fake_step(s);
	store_fake_connect(s, false);
	store_fake_run(s);
	expect("");
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("refused, lost, witness -, fence 3");
	store_fake_wake(s);
	assert_false(has(s, BLOCK));
}

static void a_connection_that_breaks_is_a_loss(void **unused)
{
	AUTO(store_free) struct store *s = fresh();

	start(s, claim(s, "t1"));
	store_fake_step(s);
	store_fake_connect(s, false);
	store_fake_run(s);
	expect("");
	store_fake_connect(s, true);
	store_fake_run(s);
	expect("applied, lost, witness t1, fence 4");
}

/* --- ending early --------------------------------------------------------------------------- */

/* The txn's reply lost, then the fence's: as many steps as it takes. */
static struct store *in_trouble(void)
{
	struct store *s = fresh();

	lose(s, STORE_FAKE_LOSE_REPLY);
	lose(s, STORE_FAKE_LATE);
	start(s, claim(s, "t1"));
	return s;
}

static unsigned steps_needed(void)
{
	AUTO(store_free) struct store *s = in_trouble();
	unsigned n = store_fake_run(s);

	expect("applied, lost, witness t1, fence 4");
	assert_true(n >= 4);
	return n;
}

static void it_can_be_cancelled_at_every_stage(void **unused)
{
	unsigned n = steps_needed();

	for (unsigned stop = 0; stop < n; stop++) {
		AUTO(store_free) struct store *s = in_trouble();

		for (unsigned i = 0; i < stop; i++)
			store_fake_step(s);
		store_cancel(call);
		call = NULL;
		assert_int_equal(store_fake_stats(s).calls, 0);
		assert_int_equal(store_fake_run(s), 0);
		expect("");
	}
}

static void freed_at_any_stage_it_is_told_as_unsettled(void **unused)
{
	unsigned n = steps_needed();

	for (unsigned stop = 0; stop < n; stop++) {
		struct store *s = in_trouble();

		for (unsigned i = 0; i < stop; i++)
			store_fake_step(s);
		store_free(s);
		expect("unsettled ECANCELED");
	}
}

static void freed_while_etcd_is_out_of_reach_it_is_unsettled(void **unused)
{
	struct store *s = in_trouble();

	store_fake_connect(s, false);
	store_fake_run(s);
	store_free(s);
	expect("unsettled ECANCELED");
	s = in_trouble();
	store_fake_step(s);

	store_fake_connect(s, false);
	store_fake_run(s);
	store_free(s);
	expect("unsettled ECANCELED");
}

/* --- what cannot be settled ----------------------------------------------------------------- */

static void expect_invalid(struct store *s, struct request q)
{
	q.txn.compares = q.compares;
	q.txn.success = q.ops;
	assert_int_equal(store_txn_settled(s, &q.txn, q.fence, q.witness, on_settled, NULL, NULL),
			 -EINVAL);
}

static void without_a_fence_nothing_is_started(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct request good = claim(s, "t1");
	struct request q = good;

	q.fence = 2;
	expect_invalid(s, q);
	q.fence = 0; /* a version, not a revision */
	expect_invalid(s, q);
	q = good;
	q.compares[1].relation = STORE_NOT_EQUAL;
	expect_invalid(s, q);
	q = good;
	q.compares[1].number = 0; /* a key that is absent cannot be raised */
	expect_invalid(s, q);
	q = good;
	q.compares[1].range_end = "node0";
	expect_invalid(s, q);
	assert_int_equal(store_fake_stats(s).calls, 0);
}

static void without_a_witness_nothing_is_started(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	const struct request good = claim(s, "t1");
	struct request q = good;

	q.witness = 2;
	expect_invalid(s, q);
	q = good;
	q.ops[0].kind = STORE_GET;
	expect_invalid(s, q);
	q = good;
	q.ops[0].keep_value = true;
	expect_invalid(s, q);
	q = good;
	q.ops[0] = (struct store_op){ STORE_DELETE, .key = BLOCK, .range_end = "c" };
	expect_invalid(s, q);
	assert_int_equal(store_fake_stats(s).calls, 0);
}

static void a_delete_must_be_fenced_by_its_own_key(void **unused)
{
	AUTO(store_free) struct store *s = with_block();
	struct request q = claim(s, "t1");

	/* If somebody made the key again, nothing would tell that it was ever gone. */
	q.ops[0] = (struct store_op){ STORE_DELETE, .key = BLOCK };
	expect_invalid(s, q);
}

static void what_the_store_would_send_twice_is_refused(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	struct request q = claim(s, "t1");

	q.txn.repeatable = true;
	expect_invalid(s, q);
	q.txn.repeatable = false;
	q.txn.persistent = true;
	expect_invalid(s, q);
}

static void a_txn_beyond_etcds_limits_leaves_nothing_behind(void **unused)
{
	AUTO(store_free) struct store *s = fresh();
	struct request q = claim(s, "t1");

	q.txn.n_failure = STORE_TXN_MAX + 1;
	expect_invalid(s, q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_loss_the_reply_is_the_answer),
		cmocka_unit_test(what_etcd_refuses_for_good_is_refused_with_the_error),
		cmocka_unit_test(trouble_before_it_was_sent_is_waited_out),
		cmocka_unit_test(a_claim_lost_and_applied_is_settled_as_applied),
		cmocka_unit_test(a_claim_lost_and_not_applied_is_settled_as_refused),
		cmocka_unit_test(a_late_claim_changes_nothing_any_more),
		cmocka_unit_test(a_claim_that_comes_late_but_before_the_fence_counts),
		cmocka_unit_test(a_claim_that_somebody_else_won_is_refused),
		cmocka_unit_test(a_claim_whose_block_looks_nearly_like_ours_is_refused),
		cmocka_unit_test(a_release_lost_and_applied_is_settled_as_applied),
		cmocka_unit_test(a_release_lost_and_not_applied_is_settled_as_refused),
		cmocka_unit_test(a_late_release_changes_nothing_any_more),
		cmocka_unit_test(a_release_whose_block_is_claimed_again_already_was_applied),
		cmocka_unit_test(a_release_whose_block_was_merely_touched_was_not_applied),
		cmocka_unit_test(a_change_of_ones_own_key_is_settled_by_its_value),
		cmocka_unit_test(a_value_written_a_second_time_is_not_taken_for_the_first),
		cmocka_unit_test(a_fence_raised_by_somebody_else_serves_as_well),
		cmocka_unit_test(a_fence_that_is_gone_serves_as_well),
		cmocka_unit_test(a_raised_fence_keeps_its_value_and_its_lease),
		cmocka_unit_test(the_fences_own_reply_may_be_lost_again_and_again),
		cmocka_unit_test(etcd_out_of_reach_delays_the_answer),
		cmocka_unit_test(a_connection_that_breaks_is_a_loss),
		cmocka_unit_test(it_can_be_cancelled_at_every_stage),
		cmocka_unit_test(freed_at_any_stage_it_is_told_as_unsettled),
		cmocka_unit_test(freed_while_etcd_is_out_of_reach_it_is_unsettled),
		cmocka_unit_test(without_a_fence_nothing_is_started),
		cmocka_unit_test(without_a_witness_nothing_is_started),
		cmocka_unit_test(a_delete_must_be_fenced_by_its_own_key),
		cmocka_unit_test(what_the_store_would_send_twice_is_refused),
		cmocka_unit_test(a_txn_beyond_etcds_limits_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
