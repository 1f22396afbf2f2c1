/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's place is taken by a child that does what the test says with one connection. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/cni/local_client.h"
#include "lib/json/json.h"

static char dir[32], path[64];
static int listener = -1;
static pid_t child = -1;

static int setup(void **unused)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	strcpy(dir, "/tmp/local-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	strcpy(sa.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(listener, 0), 0);
	return 0;
}

static int teardown(void **unused)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		child = -1;
	}
	if (listener >= 0)
		close(listener);
	listener = -1;
	unlink(path);
	return rmdir(dir);
}

/* --- what the other side does --------------------------------------------------------------- */

typedef void serve_fn(int fd, const char *text);

static void read_request(int fd)
{
	char buffer[4096];
	size_t len = 0;

	do {
		ssize_t n = read(fd, buffer + len, sizeof(buffer) - 1 - len);

		if (n <= 0)
			_exit(1);
		len += (size_t)n;
		buffer[len] = '\0';
	} while (!strstr(buffer, "\r\n\r\n"));
}

static void put(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t done = send(fd, text, n, MSG_NOSIGNAL);

		if (done <= 0)
			_exit(1);
		text += done;
		n -= (size_t)done;
	}
}

static void say(int fd, const char *text)
{
	read_request(fd);
	put(fd, text, strlen(text));
}

static void say_and_keep(int fd, const char *text)
{
	say(fd, text);
	pause();
}

/* Never so long without a word that a naive deadline would notice. */
static void drip(int fd, const char *text)
{
	read_request(fd);
	for (;; text += text[1] ? 1 : 0) {
		put(fd, text, 1);
		usleep(10000);
	}
}

static void send_large(int fd, const char *size)
{
	size_t n = strtoul(size, NULL, 10);
	char *body = malloc(n);
	char head[100];

	read_request(fd);
	memset(body, ' ', n);
	memcpy(body, "{}", 2);
	put(fd, head, (size_t)sprintf(head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", n));
	put(fd, body, n);
	free(body);
}

/* Takes the request slowly and whole, and says how long it was. */
static void count(int fd, const char *expected)
{
	size_t left = strtoul(expected, NULL, 10), n = 0;
	char buffer[4096], reply[100];

	while (n < left) {
		ssize_t got = read(fd, buffer, sizeof(buffer));

		if (got <= 0)
			_exit(1);
		if (n == 0)
			usleep(20000);
		n += (size_t)got;
	}
	put(fd, reply,
	    (size_t)sprintf(reply, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n{\"n\":%zu}",
			    snprintf(NULL, 0, "{\"n\":%zu}", n), n));
}

/* Answers without reading what was sent. */
static void refuse(int fd, const char *text)
{
	put(fd, text, strlen(text));
	shutdown(fd, SHUT_RD);
	usleep(20000);
}

static void play(serve_fn *serve, const char *text)
{
	if (child > 0)
		waitpid(child, NULL, 0);
	child = fork();
	if (child == 0) {
		int fd = accept(listener, NULL, NULL);

		serve(fd, text);
		_exit(0);
	}
}

/* --- what comes of it ----------------------------------------------------------------------- */

/* "200 {...}", or "ENOTCONN: sentence". */
static const char *call_with(const char *body, unsigned deadline_ms)
{
	static char text[700];
	AUTO(json_put) struct json_object *o = NULL;
	struct err err = { "" };
	unsigned status = 0;
	int r = local_call(path, "POST", "/v1/x", body, deadline_ms, &status, &o, &err);

	if (r < 0) {
		assert_null(o);
		assert_int_not_equal(err.text[0], '\0');
		snprintf(text, sizeof(text), "%s: %s", strerrorname_np(-r), err.text);
	} else {
		snprintf(text, sizeof(text), "%u %s", status,
			 o ? json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN) : "nothing");
	}
	return text;
}

static void expect(serve_fn *serve, const char *said, const char *want)
{
	play(serve, said);
	assert_string_equal(call_with("{}", 2000), want);
}

static void replies_of_any_status_are_handed_on(void **unused)
{
	expect(say, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\": 1}", "200 {\"a\":1}");
	expect(say, "HTTP/1.1 507 No\r\nContent-Length: 12\r\n\r\n{\"code\":100}",
	       "507 {\"code\":100}");
	expect(say, "HTTP/1.1 204 No\r\n\r\n", "204 nothing");
	play(say, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
	assert_string_equal(call_with(NULL, 2000), "200 {}");
	/* The agent need not close first. */
	expect(say_and_keep, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "200 {}");
}

static void no_agent_is_told_apart(void **unused)
{
	char want[200];

	close(listener);
	listener = -1;
	snprintf(want, sizeof(want), "ENOTCONN: no agent answers on %s: nobody listens", path);
	assert_string_equal(call_with("{}", 2000), want);
	unlink(path);
	snprintf(want, sizeof(want), "ENOTCONN: no agent answers on %s: no such socket", path);
	assert_string_equal(call_with("{}", 2000), want);
}

static void what_is_no_answer_is_refused(void **unused)
{
	expect(say, "hello\r\n\r\n", "EBADMSG: the reply does not begin like one of HTTP/1.1");
	expect(say, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	       "EBADMSG: the reply has a transfer encoding, which is not understood here");
	expect(say, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
	       "EBADMSG: the agent's reply with status 200: not a JSON object");
	expect(say, "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n",
	       "EBADMSG: the reply is larger than 1048576 bytes");
	expect(send_large, "1048577", "EBADMSG: the reply is larger than 1048576 bytes");
	expect(send_large, "1048576", "200 {}");
}

static void an_answer_cut_off_is_none(void **unused)
{
	const char *want = "ECONNRESET: the agent closed the connection before it answered";

	expect(say, "", want);
	expect(say, "HTTP/1.1 200 OK\r\nConte", want);
	expect(say, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\": 1", want);
	/* Closed with the request unread, which is a reset. */
	expect(refuse, "", want);
}

static void the_deadline_holds(void **unused)
{
	const char *want = "ETIMEDOUT: the agent did not answer within 60 ms";
	struct timespec a, b;
	int64_t ms;

	clock_gettime(CLOCK_MONOTONIC, &a);
	play(say_and_keep, "");
	assert_string_equal(call_with("{}", 60), want);
	kill(child, SIGKILL);
	play(drip, "HTTP/1.1 200 OK\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
	assert_string_equal(call_with("{}", 60), want);
	kill(child, SIGKILL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
	assert_in_range(ms, 118, 2000);
	assert_string_equal(call_with("{}", 0), "ETIMEDOUT: no time was left to ask the agent");
}

/* Nobody accepts: a backlog of 0 has room for one. */
static void a_full_backlog_is_waited_for(void **unused)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(sa.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_string_equal(call_with("{}", 60),
			    "ETIMEDOUT: the agent did not accept the connection within 60 ms");

	/* Somebody does in the end; the first connection says nothing and is dropped. */
	child = fork();
	if (child == 0) {
		usleep(30000);
		close(accept(listener, NULL, NULL));
		say(accept(listener, NULL, NULL), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
		_exit(0);
	}
	assert_string_equal(call_with("{}", 2000), "200 {}");
	close(fd);
}

static void large_requests_go_out_whole(void **unused)
{
	size_t n = 4 << 20, head = strlen("POST /v1/x HTTP/1.1\r\nHost: localhost\r\n"
					  "Connection: close\r\nContent-Type: application/json\r\n"
					  "Content-Length: 4194304\r\n\r\n");
	AUTO(free) char *body = malloc(n + 1);
	char total[32], want[64];

	memset(body, 'x', n);
	body[n] = '\0';
	snprintf(total, sizeof(total), "%zu", head + n);
	snprintf(want, sizeof(want), "200 {\"n\":%s}", total);
	play(count, total);
	assert_string_equal(call_with(body, 5000), want);
	/* Refused halfway, with the reason. */
	play(refuse, "HTTP/1.1 413 Large\r\nContent-Length: 10\r\n\r\n{\"code\":7}");
	assert_string_equal(call_with(body, 5000), "413 {\"code\":7}");
}

static void nonsense_is_not_sent(void **unused)
{
	struct json_object *o = NULL;
	char far[200];
	unsigned status;

	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = '\0';
	assert_int_equal(local_call(far, "GET", "/", NULL, 100, &status, &o, NULL), -EINVAL);
	assert_int_equal(local_call(path, "GET", "/ HTTP/1.1\r\n", NULL, 100, &status, &o, NULL),
			 -EINVAL);
	assert_int_equal(local_call(path, "", "/", NULL, 100, &status, &o, NULL), -EINVAL);
}

#define WITH_SOCKET(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKET(replies_of_any_status_are_handed_on),
		WITH_SOCKET(no_agent_is_told_apart),
		WITH_SOCKET(what_is_no_answer_is_refused),
		WITH_SOCKET(an_answer_cut_off_is_none),
		WITH_SOCKET(the_deadline_holds),
		WITH_SOCKET(a_full_backlog_is_waited_for),
		WITH_SOCKET(large_requests_go_out_whole),
		WITH_SOCKET(nonsense_is_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
