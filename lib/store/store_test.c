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
#include "lib/store/store_ops.h"

/* --- ranges --------------------------------------------------------------------------------- */

static void expect_end(const char *prefix, const char *want)
{
	AUTO(free) char *end = store_prefix_end(prefix);

	assert_non_null(end);
	assert_string_equal(end, want);
}

static void the_end_of_a_prefix_is_its_last_byte_plus_one(void **unused)
{
	expect_end("/r/", "/r0");
	expect_end("a", "b");
	expect_end("/roost/v1/node/n1/", "/roost/v1/node/n10");
	expect_end("\x7f", "\x80");
}

static void a_byte_that_cannot_be_raised_falls_away(void **unused)
{
	expect_end("a\xff", "b");
	expect_end("a\xff\xff", "b");
	expect_end("a\xff"
		   "b",
		   "a\xff"
		   "c");
	expect_end("a\xfe", "a\xff");
}

static void nothing_ends_what_has_no_end(void **unused)
{
	expect_end("", "");
	expect_end("\xff\xff", "");
}

/* --- names ---------------------------------------------------------------------------------- */

static void every_outcome_and_every_notice_has_its_own_name(void **unused)
{
	assert_string_equal(store_outcome_name(STORE_APPLIED), "applied");
	assert_string_equal(store_outcome_name(STORE_REFUSED), "refused");
	assert_string_equal(store_outcome_name(STORE_UNSETTLED), "unsettled");
	assert_string_equal(store_notice_name(STORE_WATCHING), "watching");
	assert_string_equal(store_notice_name(STORE_TROUBLE), "trouble");
	assert_string_equal(store_notice_name(STORE_CLUSTER_CHANGED), "cluster-changed");
	assert_string_equal(store_notice_name(STORE_REVISION_WENT_BACK), "revision-went-back");
}

/* --- what reaches the maker ----------------------------------------------------------------- */

struct spy {
	struct store base;
	unsigned calls;
	uint32_t timeout_ms;
	int64_t lease, ttl;
	enum store_lease_verb verb;
	bool repeatable;
	enum store_op_kind kind;
	char value[16];
};

static int spy_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	struct spy *spy = (struct spy *)s;

	spy->calls++;
	spy->timeout_ms = timeout_ms;
	spy->repeatable = txn->repeatable;
	spy->kind = txn->n_success ? txn->success[0].kind : STORE_GET;
	spy->lease = txn->n_success ? txn->success[0].lease : 0;
	snprintf(spy->value, sizeof(spy->value), "%.*s",
		 txn->n_success ? (int)txn->success[0].value_len : 0,
		 txn->n_success && txn->success[0].value ? txn->success[0].value : "");
	return 0;
}

static int spy_lease(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
		     uint32_t timeout_ms, store_reply_fn *fn, void *arg,
		     struct store_call **ret_call)
{
	struct spy *spy = (struct spy *)s;

	spy->calls++;
	spy->verb = verb;
	spy->lease = id;
	spy->ttl = ttl;
	spy->timeout_ms = timeout_ms;
	return 0;
}

static const struct store_ops spy_ops = { .txn = spy_txn, .lease = spy_lease };

static void without_a_time_limit_of_its_own_a_call_gets_eight_seconds(void **unused)
{
	struct spy spy = { .base.ops = &spy_ops };

	assert_int_equal(store_get(&spy.base, "a", 0, NULL, NULL, NULL), 0);
	assert_int_equal(spy.timeout_ms, 8000);
	assert_int_equal(store_get(&spy.base, "a", 10, NULL, NULL, NULL), 0);
	assert_int_equal(spy.timeout_ms, 10);
	assert_int_equal(store_get(&spy.base, "a", STORE_FOREVER, NULL, NULL, NULL), 0);
	assert_int_equal(spy.timeout_ms, STORE_FOREVER);
	assert_int_equal(store_lease_revoke(&spy.base, 7, 0, NULL, NULL, NULL), 0);
	assert_int_equal(spy.timeout_ms, 8000);
}

static void shorthands_are_repeatable_txns_of_one_operation(void **unused)
{
	struct spy spy = { .base.ops = &spy_ops };

	assert_int_equal(store_put(&spy.base, "a", "value", 7, 0, NULL, NULL, NULL), 0);
	assert_true(spy.repeatable);
	assert_int_equal(spy.kind, STORE_PUT);
	assert_int_equal(spy.lease, 7);
	assert_string_equal(spy.value, "value");
	assert_int_equal(store_delete(&spy.base, "a", "b", 0, NULL, NULL, NULL), 0);
	assert_true(spy.repeatable);
	assert_int_equal(spy.kind, STORE_DELETE);
}

static void a_txn_beyond_etcds_limits_is_refused_at_once(void **unused)
{
	struct store_compare compares[STORE_TXN_MAX + 1] = { 0 };
	struct store_op ops[STORE_TXN_MAX + 1] = { 0 };
	const size_t max = STORE_TXN_MAX;
	struct spy spy = { .base.ops = &spy_ops };
	const struct store_txn full = { compares, max, ops, ops, max, max, false, false };
	struct store_txn txn = full;

	assert_int_equal(store_txn(&spy.base, &txn, 0, NULL, NULL, NULL), 0);
	txn.n_compares++;
	assert_int_equal(store_txn(&spy.base, &txn, 0, NULL, NULL, NULL), -EINVAL);
	txn = full;
	txn.n_success++;
	assert_int_equal(store_txn(&spy.base, &txn, 0, NULL, NULL, NULL), -EINVAL);
	txn = full;
	txn.n_failure++;
	assert_int_equal(store_txn(&spy.base, &txn, 0, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(spy.calls, 1);
}

/* --- leases --------------------------------------------------------------------------------- */

static void a_lease_gets_the_id_it_was_given(void **unused)
{
	struct spy spy = { .base.ops = &spy_ops };

	assert_int_equal(store_lease_grant(&spy.base, 777, 60, 0, NULL, NULL, NULL), 0);
	assert_int_equal(spy.verb, STORE_LEASE_GRANT);
	assert_int_equal(spy.lease, 777);
	assert_int_equal(spy.ttl, 60);
	assert_int_equal(store_lease_keepalive(&spy.base, 777, 0, NULL, NULL, NULL), 0);
	assert_int_equal(spy.verb, STORE_LEASE_KEEPALIVE);
	assert_int_equal(spy.lease, 777);
}

static void without_one_the_id_is_chosen_positive_and_never_the_same(void **unused)
{
	struct spy spy = { .base.ops = &spy_ops };
	int64_t ids[64];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		assert_int_equal(store_lease_grant(&spy.base, 0, 60, 0, NULL, NULL, NULL), 0);
		assert_true(spy.lease > 0);
		ids[i] = spy.lease;
		for (size_t k = 0; k < i; k++)
			assert_true(ids[k] != ids[i]);
	}
}

/* --- nothing where there is nothing --------------------------------------------------------- */

static void nothing_can_be_cancelled_unwatched_and_freed(void **unused)
{
	store_cancel(NULL);
	store_unwatch(NULL);
	store_free(NULL);
}

static void a_notice_without_a_listener_is_dropped(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();

	store_notify(s, STORE_TROUBLE, "%s", "nobody hears");
}

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	snprintf(arg, 64, "%s: %s", store_notice_name(notice), text);
}

static void a_notice_reaches_its_listener(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	char text[64] = "";

	store_on_notice(s, on_notice, text);
	store_notify(s, STORE_TROUBLE, "for %d s", 3);
	assert_string_equal(text, "trouble: for 3 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_prefix_is_its_last_byte_plus_one),
		cmocka_unit_test(a_byte_that_cannot_be_raised_falls_away),
		cmocka_unit_test(nothing_ends_what_has_no_end),
		cmocka_unit_test(every_outcome_and_every_notice_has_its_own_name),
		cmocka_unit_test(without_a_time_limit_of_its_own_a_call_gets_eight_seconds),
		cmocka_unit_test(shorthands_are_repeatable_txns_of_one_operation),
		cmocka_unit_test(a_txn_beyond_etcds_limits_is_refused_at_once),
		cmocka_unit_test(a_lease_gets_the_id_it_was_given),
		cmocka_unit_test(without_one_the_id_is_chosen_positive_and_never_the_same),
		cmocka_unit_test(nothing_can_be_cancelled_unwatched_and_freed),
		cmocka_unit_test(a_notice_without_a_listener_is_dropped),
		cmocka_unit_test(a_notice_reaches_its_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
