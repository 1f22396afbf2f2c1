/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/http/http_reply.h"

#define MAX_BODY 20

/* Whole, and byte by byte: "200 body", "more", or the error. */
static void feed(const char *data, size_t n, size_t step, char *ret, size_t room)
{
	struct http_reply_parser p;
	struct err err = { "" };
	int r = 0;

	http_reply_init(&p, MAX_BODY);
	for (size_t i = 0; i < n; i += step)
		r = http_reply_feed(&p, data + i, step < n - i ? step : n - i, &err);
	if (r == 1)
		snprintf(ret, room, "%u %s", p.status, p.body);
	else if (r == 0)
		snprintf(ret, room, "more");
	else
		snprintf(ret, room, "%s: %s", strerrorname_np(-r), err.text);
	assert_true(r != 1 || strlen(p.body) == p.len);
	http_reply_done(&p);
}

static void expect_n(const char *data, size_t n, const char *want)
{
	char got[600];

	for (size_t step = 1; step <= n; step = step < 80 ? step + 1 : step * 7) {
		feed(data, n, step, got, sizeof(got));
		assert_string_equal(got, want);
	}
	feed(data, n, n, got, sizeof(got));
	assert_string_equal(got, want);
}

static void expect(const char *data, const char *want)
{
	expect_n(data, strlen(data), want);
}

static void replies_are_read(void **unused)
{
	expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 hello");
	expect("HTTP/1.1 503 Not now\r\nX: y\r\ncontent-LENGTH:5  \r\nZ:\r\n\r\nhello",
	       "503 hello");
	expect("HTTP/1.0 200\r\nContent-Length: 0\r\n\r\n", "200 ");
	expect("HTTP/1.1 200 OK\r\nContent-Length: 00020\r\n\r\n12345678901234567890",
	       "200 12345678901234567890");
	expect("HTTP/1.1 204 \r\n\r\n", "204 ");
	expect("HTTP/1.1 204 \r\nContent-Length: 5\r\n\r\nhello", "204 ");
}

static void what_follows_is_not_looked_at(void **unused)
{
	expect("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 500 \r\n\r\n", "200 {}");
	expect("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789abcdefghi", "200 123456789");
	/* Nor is what follows a failure. */
	expect("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
	       "EBADMSG: status 100 is not a final one");
	expect_n("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\0\xff", 40, "200 ");
}

static void a_part_is_not_enough(void **unused)
{
	const char *whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

	for (size_t n = 1; n < strlen(whole); n++)
		expect_n(whole, n, "more");
}

#define BAD(what) "EBADMSG: " what

static void other_things_are_refused(void **unused)
{
	const char *begins = BAD("the reply does not begin like one of HTTP/1.1");

	expect("\r\n\r\n", begins);
	expect("HTTP/2 200 OK\r\n\r\n", begins);
	expect("HTTP/1.1 20 OK\r\n\r\n", begins);
	expect("HTTP/1.1 2000 OK\r\n\r\n", begins);
	expect("HTTP/1.x 200 OK\r\n\r\n", begins);
	expect("http/1.1 200 OK\r\n\r\n", begins);
	expect("SSH-2.0-OpenSSH_9.2\r\n\r\n", begins);
	expect("HTTP/1.1 100 Continue\r\n\r\n", BAD("status 100 is not a final one"));
	expect("HTTP/1.1 200 OK\r\n\r\n", BAD("the reply does not say its length"));
	expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	       BAD("the reply has a transfer encoding, which is not understood here"));
	expect("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
	       BAD("the reply gives its length twice"));
	expect("HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", BAD("the reply's length is empty"));
	expect("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	       BAD("the reply's length is not a number"));
	expect("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
	       BAD("the reply's length is not a number"));
}

static void broken_lines_are_refused(void **unused)
{
	const char *line = BAD("the reply's head has a broken line");
	const char *field = BAD("the reply's head has a line that is no field");

	expect("HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", line);
	expect("HTTP/1.1 200 OK\r\nA: b\rContent-Length: 0\r\n\r\n", line);
	expect_n("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", 25, line);
	expect("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", field);
	expect("HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", field);
	expect("HTTP/1.1 200 OK\r\n: 0\r\n\r\n", field);
	expect("HTTP/1.1 200 OK\r\nnothing\r\n\r\n", field);
}

static void there_are_limits(void **unused)
{
	char head[HTTP_REPLY_HEAD_MAX + 1];

	expect("HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n",
	       BAD("the reply is larger than 20 bytes"));
	expect("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
	       BAD("the reply is larger than 20 bytes"));

	memset(head, 'x', sizeof(head));
	memcpy(head, "HTTP/1.1 204 OK\r\nX: ", 20);
	expect_n(head, sizeof(head) - 2, "more");
	expect_n(head, sizeof(head), BAD("the reply's head is too long"));
	/* Just as long as allowed. */
	memcpy(head + sizeof(head) - 5, "\r\n\r\n", 4);
	expect_n(head, sizeof(head), "204 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_are_read),
		cmocka_unit_test(what_follows_is_not_looked_at),
		cmocka_unit_test(a_part_is_not_enough),
		cmocka_unit_test(other_things_are_refused),
		cmocka_unit_test(broken_lines_are_refused),
		cmocka_unit_test(there_are_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
