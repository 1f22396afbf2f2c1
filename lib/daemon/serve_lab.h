/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the server's tests: a server on a unix socket in a folder of its own, and clients that are
 * plain sockets, all on one loop. Bytes go in as the test wrote them; the loop is turned until the
 * answer is there. Includes cmocka with what it needs.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/daemon/serve.h"
#include "lib/http/http_reply.h"

/* A test that hangs fails instead. */
#define LAB_PATIENCE_MS 60000

struct lab {
	char dir[32], path[64];
	sd_event *event;
	struct serve *serve;
};

static struct lab lab;

static inline uint64_t lab_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline int lab_setup(void **unused)
{
	memset(&lab, 0, sizeof(lab));
	strcpy(lab.dir, "/tmp/serve-XXXXXX");
	assert_non_null(mkdtemp(lab.dir));
	snprintf(lab.path, sizeof(lab.path), "%s/s", lab.dir);
	assert_int_equal(sd_event_new(&lab.event), 0);
	return 0;
}

static inline int lab_teardown(void **unused)
{
	serve_free(TAKE(lab.serve));
	lab.event = sd_event_unref(lab.event);
	unlink(lab.path);
	/* Fails, and so does the test, if anything was left behind. */
	return rmdir(lab.dir);
}

static inline void lab_serve(struct serve_config config)
{
	assert_int_equal(serve_listen_unix(lab.path, 0600, &config.fd), 0);
	assert_int_equal(serve_new(lab.event, &config, &lab.serve), 0);
}

/* Lets the server do all that it can do now, and what falls due in the next ms. */
static inline void lab_turn(uint64_t ms)
{
	uint64_t until = lab_now_ms() + ms;

	while (sd_event_run(lab.event, 0) > 0 || lab_now_ms() < until)
		if (ms)
			sd_event_run(lab.event, 500);
}

static inline int lab_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	assert_true(fd >= 0);
	strcpy(sa.sun_path, lab.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static inline void lab_say_n(int fd, const char *text, size_t n)
{
	uint64_t until = lab_now_ms() + LAB_PATIENCE_MS;

	while (n) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		/* Refused by a server that has answered already. */
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return;
		assert_true(sent > 0 || errno == EAGAIN);
		if (sent > 0) {
			text += sent;
			n -= (size_t)sent;
		} else {
			assert_true(lab_now_ms() < until);
			lab_turn(0);
		}
	}
}

static inline void lab_say(int fd, const char *text)
{
	lab_say_n(fd, text, strlen(text));
}

static inline int lab_ask(const char *request)
{
	int fd = lab_connect();

	lab_say(fd, request);
	return fd;
}

/* One byte at a time: what follows the reply belongs to the next one. -ECONNRESET: closed. */
static inline int lab_hear(int fd, struct http_reply_parser *p)
{
	uint64_t until = lab_now_ms() + LAB_PATIENCE_MS;
	struct err err = { "" };
	int r = 0;

	http_reply_init(p, 1 << 20);
	while (r == 0) {
		char c;
		ssize_t n = recv(fd, &c, 1, 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return -ECONNRESET;
		if (n == 1)
			r = http_reply_feed(p, &c, 1, &err);
		else
			sd_event_run(lab.event, 1000);
		if (lab_now_ms() > until)
			fail_msg("no answer, but so far: %.*s", (int)p->head_len, p->head);
	}
	if (r < 0)
		fail_msg("a bad answer: %s", err.text);
	return 0;
}

/* The next reply on the connection is this; "" is any body. */
static inline void lab_expect(int fd, unsigned status, const char *body)
{
	struct http_reply_parser p;

	assert_int_equal(lab_hear(fd, &p), 0);
	if (p.status != status || (*body && strcmp(p.body, body) != 0))
		fail_msg("%u %s instead of %u %s", p.status, p.body, status, body);
	http_reply_done(&p);
}

static inline void lab_expect_closed(int fd)
{
	struct http_reply_parser p;
	int r = lab_hear(fd, &p);

	http_reply_done(&p);
	assert_int_equal(r, -ECONNRESET);
	close(fd);
}

/* Asks and expects on a connection of its own. */
static inline void lab_try(const char *request, unsigned status, const char *body)
{
	int fd = lab_ask(request);

	lab_expect(fd, status, body);
	close(fd);
}

/* The server has no more and no less than what it should: it serves. */
#define LAB_FINE_REQUEST "GET /fine HTTP/1.1\r\nHost: x\r\n\r\n"
static inline void lab_expect_fine(void)
{
	lab_try(LAB_FINE_REQUEST, 200, "{\"fine\":true}");
}

static inline void lab_fine(struct serve_request *q, void *arg)
{
	serve_reply(q, 200, "{\"fine\":true}");
}
