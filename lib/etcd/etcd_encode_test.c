/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The order of fields is ours; that etcd understands them is for test_store_live.py to prove. */
static void expect(char *text, const char *want)
{
	AUTO(free) char *owned = text;

	assert_non_null(owned);
	assert_string_equal(owned, want);
}

static void a_range_says_only_what_it_must(void **unused)
{
	struct etcd_range key = { .key = "/a", .key_len = 2 };
	struct etcd_range all = {
		.key = "/a/\0", /* the next page: after a key "/a/" */
		.key_len = 4,
		.range_end = "/a0",
		.limit = 5000,
		.revision = 9007199254740993,
		.keys_only = true,
		.serializable = true,
	};
	struct etcd_range bytes = { .key = "\xff\0\x01", .key_len = 3 };

	expect(etcd_encode_range(&key), "{\"key\":\"L2E=\"}");
	expect(etcd_encode_range(&all),
	       "{\"key\":\"L2EvAA==\",\"range_end\":\"L2Ew\",\"limit\":\"5000\","
	       "\"revision\":\"9007199254740993\",\"keys_only\":true,\"serializable\":true}");
	expect(etcd_encode_range(&bytes), "{\"key\":\"/wAB\"}");
}

static void an_empty_transaction_is_an_empty_object(void **unused)
{
	expect(etcd_encode_txn(&(struct store_txn){ 0 }), "{}");
}

static void compares_name_target_relation_and_number(void **unused)
{
	const struct {
		struct store_compare compare;
		const char *want;
	} cases[] = {
		{ { .key = "a", .target = STORE_VALUE, .value = "x", .value_len = 1 },
		  "\"target\":\"VALUE\",\"result\":\"EQUAL\",\"key\":\"YQ==\",\"value\":\"eA==\"" },
		{ { .key = "a", .target = STORE_VALUE, .relation = STORE_NOT_EQUAL, .value = "" },
		  "\"target\":\"VALUE\",\"result\":\"NOT_EQUAL\",\"key\":\"YQ==\",\"value\":\"\"" },
		{ { .key = "a", .target = STORE_VALUE, .value = "\0\xff", .value_len = 2 },
		  "\"target\":\"VALUE\",\"result\":\"EQUAL\",\"key\":\"YQ==\",\"value\":\"AP8=\"" },
		{ { .key = "a", .target = STORE_VERSION, .relation = STORE_GREATER, .number = 2 },
		  "\"target\":\"VERSION\",\"result\":\"GREATER\",\"key\":\"YQ==\",\"version\":"
		  "\"2\"" },
		/* "absent": a zero must be said, or a misread of the target would go unnoticed */
		{ { .key = "a", .target = STORE_CREATE_REVISION },
		  "\"target\":\"CREATE\",\"result\":\"EQUAL\",\"key\":\"YQ==\","
		  "\"create_revision\":\"0\"" },
		{ { .key = "a",
		    .target = STORE_MOD_REVISION,
		    .relation = STORE_LESS,
		    .number = INT64_MAX },
		  "\"target\":\"MOD\",\"result\":\"LESS\",\"key\":\"YQ==\","
		  "\"mod_revision\":\"9223372036854775807\"" },
		{ { .key = "a", .range_end = "b", .target = STORE_LEASE, .number = 7 },
		  "\"target\":\"LEASE\",\"result\":\"EQUAL\",\"key\":\"YQ==\",\"range_end\":\"Yg=="
		  "\","
		  "\"lease\":\"7\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct store_txn txn = { .compares = &cases[i].compare, .n_compares = 1 };
		AUTO(free) char *want = NULL;

		assert_true(asprintf(&want, "{\"compare\":[{%s}]}", cases[i].want) > 0);
		expect(etcd_encode_txn(&txn), want);
	}
}

static void operations_say_only_what_they_must(void **unused)
{
	const struct {
		struct store_op op;
		const char *want;
	} cases[] = {
		{ { .kind = STORE_GET, .key = "a" }, "\"request_range\":{\"key\":\"YQ==\"}" },
		{ { .kind = STORE_GET,
		    .key = "a",
		    .range_end = "b",
		    .limit = 3,
		    .keys_only = true,
		    .newest_first = true },
		  "\"request_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"limit\":\"3\","
		  "\"keys_only\":true,\"sort_target\":\"MOD\",\"sort_order\":\"DESCEND\"}" },
		{ { .kind = STORE_GET, .key = "a", .range_end = "b", .count_only = true },
		  "\"request_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"count_only\":"
		  "true}" },
		{ { .kind = STORE_PUT, .key = "a", .value = "xy", .value_len = 2 },
		  "\"request_put\":{\"key\":\"YQ==\",\"value\":\"eHk=\"}" },
		{ { .kind = STORE_PUT, .key = "a", .value = "", .lease = 7 },
		  "\"request_put\":{\"key\":\"YQ==\",\"value\":\"\",\"lease\":\"7\"}" },
		{ { .kind = STORE_PUT,
		    .key = "a",
		    .value = "x",
		    .value_len = 1,
		    .keep_lease = true },
		  "\"request_put\":{\"key\":\"YQ==\",\"value\":\"eA==\",\"ignore_lease\":true}" },
		/* etcd refuses a value together with ignore_value */
		{ { .kind = STORE_PUT, .key = "a", .keep_value = true, .keep_lease = true },
		  "\"request_put\":{\"key\":\"YQ==\",\"ignore_value\":true,\"ignore_lease\":"
		  "true}" },
		{ { .kind = STORE_DELETE, .key = "a" },
		  "\"request_delete_range\":{\"key\":\"YQ==\"}" },
		{ { .kind = STORE_DELETE, .key = "a", .range_end = "b" },
		  "\"request_delete_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\"}" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct store_txn yes = { .success = &cases[i].op, .n_success = 1 };
		struct store_txn no = { .failure = &cases[i].op, .n_failure = 1 };
		AUTO(free) char *want_yes = NULL, *want_no = NULL;

		assert_true(asprintf(&want_yes, "{\"success\":[{%s}]}", cases[i].want) > 0);
		assert_true(asprintf(&want_no, "{\"failure\":[{%s}]}", cases[i].want) > 0);
		expect(etcd_encode_txn(&yes), want_yes);
		expect(etcd_encode_txn(&no), want_no);
	}
}

static void a_transaction_keeps_the_order_of_its_parts(void **unused)
{
	const struct store_compare compares[] = {
		{ .key = "b", .target = STORE_VERSION, .number = 1 },
		{ .key = "a", .target = STORE_VERSION, .number = 2 },
	};
	const struct store_op success[] = {
		{ .kind = STORE_DELETE, .key = "b" },
		{ .kind = STORE_GET, .key = "a" },
	};
	const struct store_op failure[] = { { .kind = STORE_GET, .key = "c" } };
	struct store_txn txn = { compares, 2, success, failure, 2, 1, false, false };

	expect(etcd_encode_txn(&txn),
	       "{\"compare\":["
	       "{\"target\":\"VERSION\",\"result\":\"EQUAL\",\"key\":\"Yg==\",\"version\":\"1\"},"
	       "{\"target\":\"VERSION\",\"result\":\"EQUAL\",\"key\":\"YQ==\",\"version\":\"2\"}],"
	       "\"success\":[{\"request_delete_range\":{\"key\":\"Yg==\"}},"
	       "{\"request_range\":{\"key\":\"YQ==\"}}],"
	       "\"failure\":[{\"request_range\":{\"key\":\"Yw==\"}}]}");
}

static void leases_have_capital_letters(void **unused)
{
	expect(etcd_encode_grant(777, 20), "{\"ID\":\"777\",\"TTL\":\"20\"}");
	expect(etcd_encode_grant(INT64_MAX, 1), "{\"ID\":\"9223372036854775807\",\"TTL\":\"1\"}");
	expect(etcd_encode_lease(777), "{\"ID\":\"777\"}");
}

static void a_login_survives_odd_passwords(void **unused)
{
	expect(etcd_encode_login("roost", "secret"),
	       "{\"name\":\"roost\",\"password\":\"secret\"}");
	expect(etcd_encode_login("r", "\"\\\n\t/ä"),
	       "{\"name\":\"r\",\"password\":\"\\\"\\\\\\n\\t/ä\"}");
	expect(etcd_encode_login("r", ""), "{\"name\":\"r\",\"password\":\"\"}");
}

static void a_watch_asks_for_fragments_and_progress(void **unused)
{
	expect(etcd_encode_watch(5, "/r/", "/r0", 122),
	       "{\"create_request\":{\"watch_id\":\"5\",\"key\":\"L3Iv\",\"range_end\":\"L3Iw\","
	       "\"start_revision\":\"122\",\"fragment\":true,\"progress_notify\":true}}");
	expect(etcd_encode_watch(1, "k", NULL, 1),
	       "{\"create_request\":{\"watch_id\":\"1\",\"key\":\"aw==\","
	       "\"start_revision\":\"1\",\"fragment\":true,\"progress_notify\":true}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_says_only_what_it_must),
		cmocka_unit_test(an_empty_transaction_is_an_empty_object),
		cmocka_unit_test(compares_name_target_relation_and_number),
		cmocka_unit_test(operations_say_only_what_they_must),
		cmocka_unit_test(a_transaction_keeps_the_order_of_its_parts),
		cmocka_unit_test(leases_have_capital_letters),
		cmocka_unit_test(a_login_survives_odd_passwords),
		cmocka_unit_test(a_watch_asks_for_fragments_and_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
