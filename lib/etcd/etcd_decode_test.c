/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/json/json.h"

/* Cluster and member ids are above 2^63 half the time. */
#define HEADER                                                                                     \
	"\"header\":{\"cluster_id\":\"14841639068965178418\",\"member_id\":"                       \
	"\"10276657743932975437\","                                                                \
	"\"revision\":\"5\",\"raft_term\":\"2\"}"

typedef int decode_fn(struct json_object *reply, struct etcd_reply *ret, struct err *err);

static struct json_object *json(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	if (!o)
		fail_msg("the test's own JSON is broken: %s", text);
	return o;
}

/* --- everything as text --------------------------------------------------------------------- */

struct text {
	char v[2048];
	size_t n;
};

static void PRINTF_LIKE(2, 3) say(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	t->n += (size_t)vsnprintf(t->v + t->n, sizeof(t->v) - t->n, fmt, ap);
	va_end(ap);
	assert_true(t->n < sizeof(t->v));
}

static void say_bytes(struct text *t, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (data[i] > ' ' && data[i] < 0x7f)
			say(t, "%c", data[i]);
		else
			say(t, "\\x%02x", (unsigned char)data[i]);
}

static void say_kvs(struct text *t, const struct store_kv *kvs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		say(t, " %s=", kvs[i].key);
		say_bytes(t, kvs[i].value, kvs[i].value_len);
		assert_int_equal(kvs[i].value[kvs[i].value_len], 0);
		say(t, "(%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ")", kvs[i].create_revision,
		    kvs[i].mod_revision, kvs[i].version, kvs[i].lease);
	}
}

static void say_reply(struct text *t, const struct etcd_reply *r)
{
	static const char *const kinds[] = { "get", "put", "delete" };

	say(t, "cluster %" PRIu64 " member %" PRIu64 " revision %" PRId64, r->header.cluster_id,
	    r->header.member_id, r->header.revision);
	if (r->header.raft_term)
		say(t, " term %" PRIu64, r->header.raft_term);
	if (r->succeeded)
		say(t, " succeeded");
	if (r->more)
		say(t, " more");
	if (r->lease || r->ttl)
		say(t, " lease %" PRId64 " ttl %" PRId64, r->lease, r->ttl);
	for (size_t i = 0; i < r->n_ops; i++) {
		const struct store_op_reply *op = &r->ops[i];

		say(t, "\n%s %" PRId64, kinds[op->kind], op->count);
		say_kvs(t, op->kvs, op->n);
		assert_int_equal(op->n, r->kvs[i].n);
		if (r->kvs[i].skipped)
			say(t, " skipped %zu", r->kvs[i].skipped);
		if (r->kvs[i].last_key) {
			say(t, " last ");
			say_bytes(t, r->kvs[i].last_key, r->kvs[i].last_key_len);
		}
	}
}

static void expect(decode_fn *decode, const char *reply, const char *want)
{
	AUTO(json_put) struct json_object *o = json(reply);
	struct etcd_reply r = { 0 };
	struct err err = { "" };
	struct text t = { .n = 0 };

	if (decode(o, &r, &err) != 0)
		fail_msg("%s: %s", reply, err.text);
	say_reply(&t, &r);
	etcd_reply_done(&r);
	assert_string_equal(t.v, want);
}

static void expect_part(const struct err *err, const char *want)
{
	if (strncmp(err->text, "etcd", 4) != 0 || !strstr(err->text, want))
		fail_msg("no %s in: %s", want, err->text);
}

/* Nothing is written on failure, and the field at fault is named. */
static void expect_refusal(decode_fn *decode, const char *reply, const char *want)
{
	AUTO(json_put) struct json_object *o = json(reply);
	struct etcd_reply r = { .ttl = 12345 };
	struct err err = { "" };

	assert_int_equal(decode(o, &r, &err), -EBADMSG);
	expect_part(&err, want);
	assert_int_equal(r.ttl, 12345);
	assert_null(r.ops);
	assert_int_equal(decode(o, &r, NULL), -EBADMSG);
}

#define IDS "cluster 14841639068965178418 member 10276657743932975437 revision 5 term 2"

/* --- ranges --------------------------------------------------------------------------------- */

static void a_range_of_3_4_is_understood(void **unused)
{
	expect(etcd_decode_range,
	       "{" HEADER
	       ",\"kvs\":[{\"key\":\"L2E=\",\"create_revision\":\"2\",\"mod_revision\":\"3\","
	       "\"version\":\"2\",\"value\":\"eA==\",\"lease\":\"777\"},{\"key\":\"L2I=\","
	       "\"create_revision\":\"4\",\"mod_revision\":\"4\",\"version\":\"1\",\"value\":\"eXo="
	       "\"}],"
	       "\"more\":true,\"count\":\"3\"}",
	       IDS " more\nget 3 /a=x(2,3,2,777) /b=yz(4,4,1,0) last /b");
}

static void blanks_and_order_do_not_matter(void **unused)
{
	expect(etcd_decode_range,
	       "{\"count\": \"1\", \"kvs\": [ {\"version\":\"1\", \"value\":\"eA==\", "
	       "\"mod_revision\":\"4\", \"create_revision\":\"4\", \"key\":\"L2E=\"} ], " HEADER
	       "}",
	       IDS "\nget 1 /a=x(4,4,1,0) last /a");
}

static void zero_values_are_absent(void **unused)
{
	expect(etcd_decode_range, "{}", "cluster 0 member 0 revision 0\nget 0");
	expect(etcd_decode_range, "{" HEADER "}", IDS "\nget 0");
	expect(etcd_decode_range, "{" HEADER ",\"count\":\"2\"}", IDS "\nget 2");
	expect(etcd_decode_range,
	       "{" HEADER ",\"kvs\":[{\"key\":\"L2E=\",\"mod_revision\":\"3\"}],\"count\":\"1\"}",
	       IDS "\nget 1 /a=(0,3,0,0) last /a");
	expect(etcd_decode_range, "{" HEADER ",\"kvs\":null,\"count\":null,\"more\":null}",
	       IDS "\nget 0");
}

static void numbers_may_be_numbers(void **unused)
{
	expect(etcd_decode_range,
	       "{\"header\":{\"cluster_id\":14841639068965178418,\"revision\":5},"
	       "\"kvs\":[{\"key\":\"L2E=\",\"mod_revision\":3,\"version\":1}],\"count\":1}",
	       "cluster 14841639068965178418 member 0 revision 5\nget 1 /a=(0,3,1,0) last /a");
}

static void unknown_fields_are_left_alone(void **unused)
{
	expect(etcd_decode_range, "{" HEADER ",\"new\":{\"a\":[1]},\"count\":\"1\"}",
	       IDS "\nget 1");
}

static void values_may_hold_any_byte(void **unused)
{
	expect(etcd_decode_range,
	       "{" HEADER ",\"kvs\":[{\"key\":\"L2E=\",\"value\":\"AP8A\"}],\"count\":\"1\"}",
	       IDS "\nget 1 /a=\\x00\\xff\\x00(0,0,0,0) last /a");
}

static void keys_with_a_nul_are_skipped_but_paged_over(void **unused)
{
	/* "/a", "/\0b", "" */
	expect(etcd_decode_range,
	       "{" HEADER ",\"kvs\":[{\"key\":\"L2E=\",\"mod_revision\":\"2\"},"
	       "{\"key\":\"LwBi\",\"mod_revision\":\"3\",\"value\":\"eA==\"}],\"count\":\"9\","
	       "\"more\":true}",
	       IDS " more\nget 9 /a=(0,2,0,0) skipped 1 last /\\x00b");
	expect(etcd_decode_range,
	       "{" HEADER ",\"kvs\":[{\"key\":\"LwBi\",\"mod_revision\":\"3\",\"lease\":\"9\"},"
	       "{\"key\":\"L2E=\",\"mod_revision\":\"2\"}],\"count\":\"2\"}",
	       IDS "\nget 2 /a=(0,2,0,0) skipped 1 last /a");
	expect(etcd_decode_range, "{" HEADER ",\"kvs\":[{\"mod_revision\":\"2\"}],\"count\":\"1\"}",
	       IDS "\nget 1 skipped 1 last ");
	/* bytes that are no text, but no NUL among them, are a key */
	expect(etcd_decode_range, "{" HEADER ",\"kvs\":[{\"key\":\"L/8=\"}],\"count\":\"1\"}",
	       IDS "\nget 1 /\xff=(0,0,0,0) last /\\xff");
}

static void a_wrong_type_is_named(void **unused)
{
	static const char *const cases[][2] = {
		{ "{\"header\":[]}", "\"header\"" },
		{ "{\"header\":\"x\"}", "\"header\"" },
		{ "{\"header\":{\"revision\":{}}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":\"\"}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":\"12x\"}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":\" 12\"}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":\"+12\"}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":\"-2\"}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":-2}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":1.5}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":true}}", "\"revision\"" },
		{ "{\"header\":{\"raft_term\":\"-1\"}}", "\"raft_term\"" },
		{ "{\"header\":{\"revision\":\"1\\u0000\"}}", "\"revision\"" },
		{ "{\"header\":{\"revision\":\"9223372036854775808\"}}",
		  "\"revision\" is not a number below 2^63" },
		{ "{\"header\":{\"revision\":9223372036854775808}}",
		  "\"revision\" is not a number below 2^63" },
		{ "{\"header\":{\"cluster_id\":\"18446744073709551616\"}}", "\"cluster_id\"" },
		{ "{\"header\":{\"cluster_id\":\"-1\"}}", "\"cluster_id\"" },
		{ "{\"header\":{\"member_id\":[]}}", "\"member_id\"" },
		{ "{\"kvs\":{}}", "\"kvs\"" },
		{ "{\"kvs\":\"\"}", "\"kvs\"" },
		{ "{\"kvs\":[1]}", "\"kvs\" is not a list of objects" },
		{ "{\"kvs\":[null]}", "\"kvs\" is not a list of objects" },
		{ "{\"kvs\":[{\"key\":1}]}", "\"key\"" },
		{ "{\"kvs\":[{\"key\":\"YQ\"}]}", "\"key\" is not base64" },
		{ "{\"kvs\":[{\"key\":\"Y-==\"}]}", "\"key\" is not base64" },
		{ "{\"kvs\":[{\"key\":\"YQ==\"},{\"key\":\"YQ==\",\"value\":[]}]}", "\"value\"" },
		{ "{\"kvs\":[{\"key\":\"YQ==\",\"value\":\"*\"}]}", "\"value\" is not base64" },
		{ "{\"kvs\":[{\"key\":\"YQ==\",\"version\":{}}]}", "\"version\"" },
		{ "{\"kvs\":[{\"key\":\"YQ==\",\"lease\":\"x\"}]}", "\"lease\"" },
		{ "{\"count\":[]}", "\"count\"" },
		{ "{\"more\":\"true\"}", "\"more\"" },
		{ "{\"more\":1}", "\"more\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_refusal(etcd_decode_range, cases[i][0], cases[i][1]);
}

/* A revision of -1 would make a watch start at 0, that is at any time. */
static void minus_one_is_for_watch_ids_alone(void **unused)
{
	expect_refusal(etcd_decode_range, "{\"header\":{\"revision\":\"-1\"}}", "\"revision\"");
	expect_refusal(etcd_decode_range, "{\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":\"-1\"}]}",
		       "\"mod_revision\"");
	expect_refusal(etcd_decode_range, "{\"count\":-1}", "\"count\"");
}

/* --- transactions --------------------------------------------------------------------------- */

static void every_operation_of_a_transaction_has_its_reply(void **unused)
{
	expect(etcd_decode_txn,
	       "{" HEADER ",\"succeeded\":true,\"responses\":["
	       "{\"response_put\":{\"header\":{\"revision\":\"5\"}}},"
	       "{\"response_range\":{\"header\":{\"revision\":\"5\"},\"kvs\":[{\"key\":\"L2E=\","
	       "\"create_revision\":\"2\",\"mod_revision\":\"3\",\"version\":\"2\"}],\"count\":"
	       "\"1\"}},"
	       "{\"response_delete_range\":{\"header\":{\"revision\":\"5\"},\"deleted\":\"4\"}},"
	       "{\"response_delete_range\":{\"header\":{\"revision\":\"5\"}}},"
	       "{\"response_range\":{}}]}",
	       IDS " succeeded\nput 0\nget 1 /a=(2,3,2,0) last /a\ndelete 4\ndelete 0\nget 0");
}

static void compares_that_failed_are_told_by_absence(void **unused)
{
	expect(etcd_decode_txn, "{" HEADER "}", IDS);
	expect(etcd_decode_txn, "{" HEADER ", \"responses\":[]}", IDS);
}

static void a_transaction_that_is_not_understood_is_refused(void **unused)
{
	const char *no_kind = "etcd's reply: an operation of no known kind";

	expect_refusal(etcd_decode_txn, "{}", "etcd's reply to a transaction has no revision");
	expect_refusal(etcd_decode_txn, "{\"succeeded\":true,\"header\":{}}",
		       "etcd's reply to a transaction has no revision");
	expect_refusal(etcd_decode_txn, "{" HEADER ",\"succeeded\":\"true\"}", "\"succeeded\"");
	expect_refusal(etcd_decode_txn, "{" HEADER ",\"responses\":{}}", "\"responses\"");
	expect_refusal(etcd_decode_txn, "{" HEADER ",\"responses\":[[]]}",
		       "\"responses\" is not a list of objects");
	expect_refusal(etcd_decode_txn, "{" HEADER ",\"responses\":[{}]}", no_kind);
	expect_refusal(etcd_decode_txn, "{" HEADER ",\"responses\":[{\"response_txn\":{}}]}",
		       no_kind);
	expect_refusal(etcd_decode_txn, "{" HEADER ",\"responses\":[{\"response_put\":[]}]}",
		       "\"response_put\"");
	expect_refusal(etcd_decode_txn,
		       "{" HEADER
		       ",\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"YQ==\"}]}},"
		       "{\"response_delete_range\":{\"deleted\":\"many\"}}]}",
		       "\"deleted\"");
}

/* --- leases, logins ------------------------------------------------------------------------- */

static void lease_replies_are_understood(void **unused)
{
	expect(etcd_decode_grant, "{" HEADER ",\"ID\":\"777\",\"TTL\":\"20\"}",
	       IDS " lease 777 ttl 20");
	expect(etcd_decode_keepalive, "{\"result\":{" HEADER ",\"ID\":\"777\",\"TTL\":\"20\"}}",
	       IDS " lease 777 ttl 20");
	/* gone: no TTL */
	expect(etcd_decode_keepalive, "{\"result\":{" HEADER ",\"ID\":\"777\"}}",
	       IDS " lease 777 ttl 0");
	expect(etcd_decode_revoke, "{" HEADER "}", IDS);
	expect_refusal(etcd_decode_keepalive, "{}", "etcd's reply to a keep-alive has no result");
	expect_refusal(etcd_decode_keepalive, "{\"result\":[]}", "\"result\"");
	expect_refusal(etcd_decode_grant, "{\"ID\":\"x\"}", "\"ID\"");
	expect_refusal(etcd_decode_keepalive, "{\"result\":{\"TTL\":[]}}", "\"TTL\"");
	expect_refusal(etcd_decode_revoke, "{\"header\":1}", "\"header\"");
}

static void a_token_must_be_fit_for_a_header_line(void **unused)
{
	static const char *const bad[] = { "{}",
					   "{\"token\":\"\"}",
					   "{\"token\":1}",
					   "{\"token\":null}",
					   "{\"token\":\"a\\r\\nX: y\"}",
					   "{\"token\":\"a\\nb\"}" };
	AUTO(json_put)
	struct json_object *good = json("{" HEADER ",\"token\":\"sssvIpwfnLAcWAQH.9\"}");
	const char *token = NULL;

	assert_int_equal(etcd_decode_login(good, &token, NULL), 0);
	assert_string_equal(token, "sssvIpwfnLAcWAQH.9");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(json_put) struct json_object *o = json(bad[i]);
		struct err err = { "" };

		token = "untouched";
		assert_int_equal(etcd_decode_login(o, &token, &err), -EBADMSG);
		assert_string_equal(token, "untouched");
		assert_string_not_equal(err.text, "");
	}
}

/* --- watches -------------------------------------------------------------------------------- */

static void expect_watch(const char *message, const char *want)
{
	AUTO(json_put) struct json_object *o = json(message);
	struct etcd_watch_message m = { 0 };
	struct err err = { "" };
	struct text t = { .n = 0 };

	if (etcd_decode_watch(o, &m, &err) != 0)
		fail_msg("%s: %s", message, err.text);
	say(&t, "id %" PRId64 " revision %" PRId64, m.watch_id, m.header.revision);
	if (m.created)
		say(&t, " created");
	if (m.canceled)
		say(&t, " canceled");
	if (m.fragment)
		say(&t, " fragment");
	if (m.compact_revision)
		say(&t, " compacted %" PRId64, m.compact_revision);
	if (m.cancel_reason)
		say(&t, " (%s)", m.cancel_reason);
	say_kvs(&t, m.kvs.v, m.kvs.n);
	if (m.kvs.skipped)
		say(&t, " skipped %zu", m.kvs.skipped);
	etcd_watch_message_done(&m);
	assert_string_equal(t.v, want);
}

static void expect_watch_refusal(const char *message, int code, const char *want)
{
	AUTO(json_put) struct json_object *o = json(message);
	struct etcd_watch_message m = { .watch_id = 12345 };
	struct err err = { "" };

	assert_int_equal(etcd_decode_watch(o, &m, &err), code);
	expect_part(&err, want);
	assert_int_equal(m.watch_id, 12345);
	assert_null(m.kvs.v);
}

static void messages_about_the_watch_itself(void **unused)
{
	expect_watch("{\"result\":{" HEADER ",\"watch_id\":\"5\",\"created\":true}}",
		     "id 5 revision 5 created");
	expect_watch("{\"result\":{" HEADER ",\"watch_id\":\"3\"}}", "id 3 revision 5");
	expect_watch("{\"result\":{" HEADER "}}", "id 0 revision 5");
	expect_watch("{\"result\":{}}", "id 0 revision 0");
	expect_watch("{\"result\":{\"header\":{\"cluster_id\":\"1\"},\"watch_id\":\"9\","
		     "\"canceled\":true,\"compact_revision\":\"100\"}}",
		     "id 9 revision 0 canceled compacted 100");
	expect_watch("{\"result\":{" HEADER
		     ",\"watch_id\":\"-1\",\"created\":true,\"canceled\":true,"
		     "\"cancel_reason\":\"etcdserver: permission denied\"}}",
		     "id -1 revision 5 created canceled (etcdserver: permission denied)");
	expect_watch("{\"result\":{\"watch_id\":-1,\"canceled\":true}}",
		     "id -1 revision 0 canceled");
}

static void events_of_both_versions(void **unused)
{
	expect_watch("{\"result\":{" HEADER ",\"watch_id\":\"1\",\"events\":["
		     "{\"kv\":{\"key\":\"L2E=\",\"create_revision\":\"4\",\"mod_revision\":\"5\","
		     "\"version\":\"2\",\"value\":\"eA==\",\"lease\":\"7\"}},"
		     "{\"type\":\"DELETE\",\"kv\":{\"key\":\"L2I=\",\"mod_revision\":\"5\"}}]}}",
		     "id 1 revision 5 /a=x(4,5,2,7) /b=(0,5,0,0)");
	expect_watch(
		"{\"result\": {" HEADER ", \"watch_id\": \"1\", \"events\": ["
		"{\"type\": \"PUT\", \"kv\": {\"key\": \"L2E=\", \"mod_revision\": \"5\", "
		"\"version\": \"1\"}, \"prev_kv\": {\"key\": \"L2E=\"}}], \"fragment\": true}}",
		"id 1 revision 5 fragment /a=(0,5,1,0)");
	expect_watch("{\"result\":{" HEADER ",\"watch_id\":\"1\",\"events\":["
		     "{\"kv\":{\"key\":\"LwBi\",\"mod_revision\":\"5\",\"version\":\"1\"}},"
		     "{\"kv\":{\"key\":\"L2E=\",\"mod_revision\":\"5\",\"version\":\"1\"}}]}}",
		     "id 1 revision 5 /a=(0,5,1,0) skipped 1");
	expect_watch("{\"result\":{" HEADER ",\"watch_id\":\"1\",\"events\":[]}}",
		     "id 1 revision 5");
}

static void an_error_in_the_stream_is_in_etcds_words(void **unused)
{
	expect_watch_refusal(
		"{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"transport is "
		"closing\",\"http_status\":\"Service Unavailable\"}}",
		-EPROTO, "etcd ended the stream: transport is closing");
	expect_watch_refusal("{\"error\": {\"code\":14, \"message\":\"etcdserver: no leader\"}}",
			     -EPROTO, "etcd ended the stream: etcdserver: no leader");
	expect_watch_refusal("{\"error\":{}}", -EPROTO,
			     "etcd ended the stream: an error without a message");
	expect_watch_refusal("{\"error\":{\"message\":5}}", -EPROTO,
			     "etcd ended the stream: an error without a message");
	expect_watch_refusal("{\"error\":{\"message\":\"a\"},\"result\":{}}", -EPROTO,
			     "etcd ended the stream: a");
}

/* With a status other than 200 the stream's body is an error as of any other call. */
static void an_error_of_unary_shape_is_in_etcds_words_too(void **unused)
{
	expect_watch_refusal("{\"error\":\"etcdserver: invalid auth token\",\"message\":"
			     "\"etcdserver: invalid auth token\",\"code\":16}",
			     -EPROTO, "etcd ended the stream: etcdserver: invalid auth token");
	expect_watch_refusal("{\"error\":\"etcdserver: invalid auth token\",\"code\":16}", -EPROTO,
			     "etcd ended the stream: etcdserver: invalid auth token");
	expect_watch_refusal("{\"code\":16,\"message\":\"etcdserver: invalid auth token\"}",
			     -EPROTO, "etcd ended the stream: etcdserver: invalid auth token");
}

static void a_message_that_is_not_understood_is_refused(void **unused)
{
	static const char *const cases[][2] = {
		{ "{}", "etcd's stream: neither a result nor an error" },
		{ "{\"result\":null}", "etcd's stream: neither a result nor an error" },
		{ "{\"result\":[]}", "\"result\"" },
		{ "{\"result\":{\"watch_id\":\"-2\"}}", "\"watch_id\"" },
		{ "{\"result\":{\"watch_id\":{}}}", "\"watch_id\"" },
		{ "{\"result\":{\"created\":\"yes\"}}", "\"created\"" },
		{ "{\"result\":{\"canceled\":1}}", "\"canceled\"" },
		{ "{\"result\":{\"fragment\":{}}}", "\"fragment\"" },
		{ "{\"result\":{\"compact_revision\":[]}}", "\"compact_revision\"" },
		{ "{\"result\":{\"cancel_reason\":1}}", "\"cancel_reason\"" },
		{ "{\"result\":{\"events\":{}}}", "\"events\"" },
		{ "{\"result\":{\"events\":[1]}}", "\"events\" is not a list of objects" },
		{ "{\"result\":{\"events\":[{}]}}", "etcd's stream: an event without a key" },
		{ "{\"result\":{\"events\":[{\"kv\":[]}]}}", "\"kv\"" },
		{ "{\"result\":{\"events\":[{\"kv\":{\"version\":\"1\",\"key\":5}}]}}", "\"key\"" },
		{ "{\"result\":{\"events\":[{\"kv\":{\"version\":\"1\",\"key\":\"?\"}}]}}",
		  "\"key\" is not base64" },
		{ "{\"result\":{\"events\":[{\"type\":1,\"kv\":{\"version\":\"1\"}}]}}",
		  "\"type\"" },
		/* type and version must agree, or a deletion would be taken for a put */
		{ "{\"result\":{\"events\":[{\"kv\":{\"key\":\"YQ==\"}}]}}",
		  "etcd's stream: an event of type PUT, version 0" },
		{ "{\"result\":{\"events\":[{\"type\":\"DELETE\",\"kv\":{\"version\":\"3\"}}]}}",
		  "etcd's stream: an event of type DELETE, version 3" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_watch_refusal(cases[i][0], -EBADMSG, cases[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_of_3_4_is_understood),
		cmocka_unit_test(blanks_and_order_do_not_matter),
		cmocka_unit_test(zero_values_are_absent),
		cmocka_unit_test(numbers_may_be_numbers),
		cmocka_unit_test(unknown_fields_are_left_alone),
		cmocka_unit_test(values_may_hold_any_byte),
		cmocka_unit_test(keys_with_a_nul_are_skipped_but_paged_over),
		cmocka_unit_test(a_wrong_type_is_named),
		cmocka_unit_test(minus_one_is_for_watch_ids_alone),
		cmocka_unit_test(every_operation_of_a_transaction_has_its_reply),
		cmocka_unit_test(compares_that_failed_are_told_by_absence),
		cmocka_unit_test(a_transaction_that_is_not_understood_is_refused),
		cmocka_unit_test(lease_replies_are_understood),
		cmocka_unit_test(a_token_must_be_fit_for_a_header_line),
		cmocka_unit_test(messages_about_the_watch_itself),
		cmocka_unit_test(events_of_both_versions),
		cmocka_unit_test(an_error_in_the_stream_is_in_etcds_words),
		cmocka_unit_test(an_error_of_unary_shape_is_in_etcds_words_too),
		cmocka_unit_test(a_message_that_is_not_understood_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
