/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What an error means, as letters: e = elsewhere, m = maybe done, l = log in again. */
static const char *flags_of(const struct etcd_error *e)
{
	static char text[4];

	snprintf(text, sizeof(text), "%s%s%s", e->elsewhere ? "e" : "", e->maybe_done ? "m" : "",
		 e->login_again ? "l" : "");
	return text;
}

static void expect(long status, const char *body, int err, const char *flags, const char *text)
{
	/* A copy without a NUL: reading on is then seen by the sanitizer. */
	size_t len = strlen(body);
	AUTO(free) char *copy = malloc(len ?: 1);
	struct etcd_error e;

	assert_non_null(copy);
	memcpy(copy, body, len);
	e = etcd_classify(status, copy, len);
	assert_string_equal(strerrorname_np(-e.err), strerrorname_np(-err));
	assert_string_equal(flags_of(&e), flags);
	assert_string_equal(e.text, text);
}

/* Every error that etcd is known to give: statuses of gateway v1 (3.4) and v2, code, words. */
static const struct known {
	long v1, v2;
	int code;
	const char *message;
	int err;
	const char *flags;
} known[] = {
	{ 400, 400, 3, "invalid character 'x' looking for beginning of value", -EINVAL, "" },
	{ 400, 400, 3, "illegal base64 data at input byte 2", -EINVAL, "" },
	{ 400, 400, 3, "etcdserver: duplicate key given in txn request", -EINVAL, "" },
	{ 400, 400, 3, "etcdserver: too many operations in txn request", -EINVAL, "" },
	{ 400, 400, 3, "etcdserver: key not found", -EINVAL, "" },
	{ 400, 400, 3, "etcdserver: authentication failed, invalid user ID or password",
	  -EKEYREJECTED, "" },
	{ 400, 400, 3, "etcdserver: user name is empty", -EKEYREJECTED, "l" },
	{ 401, 401, 16, "etcdserver: invalid auth token", -EKEYREJECTED, "l" },
	{ 400, 400, 3, "etcdserver: revision of auth store is old", -EKEYREJECTED, "l" },
	{ 403, 403, 7, "etcdserver: permission denied", -EACCES, "" },
	{ 404, 404, 5, "etcdserver: requested lease not found", -ENOENT, "" },
	{ 412, 400, 9, "etcdserver: lease already exists", -EEXIST, "" },
	{ 412, 400, 9, "etcdserver: authentication is not enabled", -ENOTSUP, "" },
	{ 400, 400, 11, "etcdserver: mvcc: required revision has been compacted", -ESTALE, "" },
	{ 400, 400, 11, "etcdserver: mvcc: required revision is a future revision", -ERANGE, "" },
	{ 400, 400, 3, "etcdserver: request is too large", -E2BIG, "" },
	{ 429, 429, 8, "grpc: received message larger than max (2097158 vs. 2097152)", -E2BIG, "" },
	{ 429, 429, 8, "etcdserver: mvcc: database space exceeded", -ENOSPC, "" },
	{ 429, 429, 8, "etcdserver: too many requests", -EAGAIN, "e" },
	{ 503, 503, 14, "etcdserver: no leader", -EAGAIN, "e" },
	{ 503, 503, 14, "etcdserver: request timed out", -ETIMEDOUT, "em" },
	{ 503, 503, 14, "etcdserver: request timed out, possibly due to previous leader failure",
	  -ETIMEDOUT, "em" },
	{ 503, 503, 14, "etcdserver: request timed out, possibly due to connection lost",
	  -ETIMEDOUT, "em" },
	{ 503, 503, 14, "transport is closing", -EAGAIN, "em" },
	{ 503, 503, 14, "connection error: desc = \"transport: ...\"", -EAGAIN, "em" },
	{ 500, 500, 2, "context deadline exceeded", -ETIMEDOUT, "em" },
	{ 504, 504, 4, "context deadline exceeded", -ETIMEDOUT, "em" },
	{ 408, 499, 1, "grpc: the client connection is closing", -EAGAIN, "em" },
	{ 408, 499, 1, "context canceled", -EAGAIN, "em" },
	{ 500, 500, 2, "something unheard of", -EIO, "m" },
	{ 500, 500, 13, "internal", -EIO, "m" },
};

static void expect_known(const struct known *k, long status, const char *fmt, ...)
{
	AUTO(free) char *body = NULL;
	va_list ap;

	va_start(ap, fmt);
	assert_true(vasprintf(&body, fmt, ap) > 0);
	va_end(ap);
	expect(status, body, k->err, k->flags, k->message);
}

static const char *quoted(const char *message)
{
	static char text[256];
	size_t n = 0;

	for (; *message; message++) {
		if (*message == '"')
			text[n++] = '\\';
		text[n++] = *message;
	}
	text[n] = '\0';
	return text;
}

static void every_known_error_in_the_shape_of_3_4(void **unused)
{
	for (const struct known *k = known; k < known + ARRAY_SIZE(known); k++) {
		const char *m = quoted(k->message);

		expect_known(k, k->v1, "{\"error\":\"%s\",\"message\":\"%s\",\"code\":%d}", m, m,
			     k->code);
		/* older ones leave out the message */
		expect_known(k, k->v1, "{\"error\":\"%s\",\"code\":%d}", m, k->code);
	}
}

static void every_known_error_in_the_shape_of_gateway_v2(void **unused)
{
	for (const struct known *k = known; k < known + ARRAY_SIZE(known); k++) {
		const char *m = quoted(k->message);

		expect_known(k, k->v2, "{\"code\":%d,\"message\":\"%s\"}", k->code, m);
		expect_known(k, k->v2, "{\"code\": %d, \"message\": \"%s\", \"details\": []}\n",
			     k->code, m);
	}
}

static void every_known_error_in_the_shapes_of_streams(void **unused)
{
	for (const struct known *k = known; k < known + ARRAY_SIZE(known); k++) {
		const char *m = quoted(k->message);

		expect_known(k, 200,
			     "{\"error\":{\"grpc_code\":%d,\"http_code\":%ld,\"message\":\"%s\","
			     "\"http_status\":\"x\"}}",
			     k->code, k->v1, m);
		expect_known(k, 200, "{\"error\": {\"code\":%d, \"message\":\"%s\"}}", k->code, m);
	}
}

/* Statuses differ between versions and proxies: code and words alone count. */
static void the_status_does_not_matter_when_there_is_a_code(void **unused)
{
	for (const struct known *k = known; k < known + ARRAY_SIZE(known); k++)
		expect_known(k, 418, "{\"code\":%d,\"message\":\"%s\"}", k->code,
			     quoted(k->message));
}

static void plain_texts_of_etcd_itself(void **unused)
{
	expect(404, "404 page not found\n", -EIO, "", "HTTP status 404: 404 page not found");
	expect(405, "Method Not Allowed\n", -EIO, "", "HTTP status 405: Method Not Allowed");
	/* a client certificate with a CN while authentication is on */
	expect(400, "CommonName of client sending a request against gateway will be ignored\n",
	       -EIO, "",
	       "HTTP status 400: CommonName of client sending a request against gateway will be "
	       "ignored");
}

static void a_proxy_speaks_html(void **unused)
{
	expect(502, "<html>\r\n<body>Bad Gateway</body></html>", -EIO, "em",
	       "HTTP status 502: <html>?");
	expect(504, "<html>timeout</html>", -EIO, "em", "HTTP status 504: <html>timeout</html>");
	expect(200, "<html>welcome</html>", -EBADMSG, "m", "HTTP status 200: <html>welcome</html>");
	expect(302, "", -EIO, "m", "HTTP status 302: ");
	expect(403, "<html>no", -EIO, "", "HTTP status 403: <html>no");
}

static void no_body_or_half_a_body_is_judged_by_the_status(void **unused)
{
	expect(503, "", -EIO, "em", "HTTP status 503: ");
	expect(204, "", -EBADMSG, "m", "HTTP status 204: ");
	expect(500, "{\"error\":\"con", -EIO, "em", "HTTP status 500: {\"error\":\"con");
	expect(500, "{\"code\":2}garbage", -EIO, "em", "HTTP status 500: {\"code\":2}garbage");
	expect(400, "[]", -EIO, "", "HTTP status 400: []");
	expect(500, "{}", -EIO, "em", "HTTP status 500: {}");
	expect(500, "{\"error\":null}", -EIO, "em", "HTTP status 500: {\"error\":null}");
	expect(500, "{\"error\":[1]}", -EIO, "em", "HTTP status 500: {\"error\":[1]}");
}

static void odd_types_do_no_harm(void **unused)
{
	expect(500, "{\"code\":\"14\",\"message\":\"x\"}", -EIO, "m", "x");
	expect(503, "{\"code\":14,\"message\":5}", -EAGAIN, "em", "etcd gave no reason");
	expect(503, "{\"code\":14}", -EAGAIN, "em", "etcd gave no reason");
	expect(500, "{\"error\":{}}", -EIO, "m", "etcd gave no reason");
	expect(500, "{\"message\":\"just words\"}", -EIO, "m", "just words");
	expect(500, "{\"code\":-1,\"message\":\"x\"}", -EIO, "m", "x");
	expect(500, "{\"code\":9223372036854775807,\"message\":\"x\"}", -EIO, "m", "x");
}

static void a_long_text_is_cut_and_control_characters_do_not_get_through(void **unused)
{
	char body[2000], want[256];

	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	snprintf(want, sizeof(want), "HTTP status 500: %.100s", body);
	expect(500, body, -EIO, "em", want);

	memcpy(body, "{\"code\":2,\"message\":\"", 21);
	memcpy(body + sizeof(body) - 3, "\"}", 3);
	snprintf(want, sizeof(want), "%.255s", body + 21);
	expect(500, body, -EIO, "m", want);
	expect(500, "a\x1b[2Jb", -EIO, "em", "HTTP status 500: a?[2Jb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_known_error_in_the_shape_of_3_4),
		cmocka_unit_test(every_known_error_in_the_shape_of_gateway_v2),
		cmocka_unit_test(every_known_error_in_the_shapes_of_streams),
		cmocka_unit_test(the_status_does_not_matter_when_there_is_a_code),
		cmocka_unit_test(plain_texts_of_etcd_itself),
		cmocka_unit_test(a_proxy_speaks_html),
		cmocka_unit_test(no_body_or_half_a_body_is_judged_by_the_status),
		cmocka_unit_test(odd_types_do_no_harm),
		cmocka_unit_test(a_long_text_is_cut_and_control_characters_do_not_get_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
