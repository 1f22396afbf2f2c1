/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, and clients without manners: the server must serve the next one. */
#include "lib/daemon/serve_lab.h"

#include <sys/resource.h>

static void take(struct serve_request *q, void *arg)
{
	serve_reply(q, 200, "{}");
}

static const struct serve_route routes[] = {
	{ "GET", "/fine", lab_fine },
	{ "POST", "/take", take },
};

static int start(void **state)
{
	lab_setup(state);
	lab_serve((struct serve_config){ .routes = routes,
					 .n_routes = ARRAY_SIZE(routes),
					 .max_body = 100,
					 .idle_s = 1,
					 .max_connections = 50 });
	return 0;
}

static void bodies_have_a_limit(void **unused)
{
	char fits[101], chunks[2100];
	char request[400];
	uint64_t begin;
	size_t n;

	memset(fits, 'x', 100);
	fits[100] = '\0';
	snprintf(request, sizeof(request),
		 "POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n%s", fits);
	lab_try(request, 200, "");
	snprintf(request, sizeof(request),
		 "POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n%sx", fits);
	lab_try(request, 413,
		"{\"code\":7,\"error\":\"the body is larger than 100 bytes\",\"details\":\"\"}");
	lab_try("POST /take HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		"60\r\n012345678901234567890123456789012345678901234567"
		"012345678901234567890123456789012345678901234567\r\n"
		"5\r\nabcde\r\n0\r\n\r\n",
		413, "");

	/* In chunks without an end. */
	n = (size_t)sprintf(
		chunks,
		"POST /take HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n700\r\n");
	memset(chunks + n, 'x', 1792);
	chunks[n + 1792] = '\0';
	begin = lab_now_ms();
	lab_expect_closed(lab_ask(chunks));
	assert_in_range(lab_now_ms() - begin, 0, 800); /* not by its silence */
	lab_expect_fine();
}

static void a_large_body_is_refused_while_it_is_sent(void **unused)
{
	size_t n = 4 << 20;
	AUTO(free) char *body = malloc(n);
	int fd = lab_ask("POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n");

	memset(body, 'x', n);
	lab_say_n(fd, body, n);
	lab_expect(fd, 413, "");
	close(fd);
	lab_expect_fine();
}

static void garbage_harms_nobody(void **unused)
{
	static const char *const pieces[] = {
		"\r\n\r\n\r\n\r\n",
		"\x16\x03\x01\x02\x01\xfc\x03\x03",
		"GET",
		"GET /fine",
		"GET /fine HTTP/9.9\r\n\r\n",
		"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999999999999999\r\n\r\n",
		"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhalf",
		"POST /take HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		int fd = lab_ask(pieces[i]);

		lab_turn(1);
		if (i % 2)
			shutdown(fd, SHUT_WR);
		lab_turn(1);
		close(fd);
		lab_expect_fine();
	}
}

static void heads_have_a_limit(void **unused)
{
	AUTO(free) char *head = malloc(100000);
	int fd = lab_ask("GET /fine HTTP/1.1\r\nHost: x\r\nX: ");

	memset(head, 'x', 100000);
	lab_say_n(fd, head, 100000);
	lab_expect(fd, 431, "");
	close(fd);
	lab_expect_fine();
}

static void silence_is_ended(void **unused)
{
	int idle = lab_ask(LAB_FINE_REQUEST), half = lab_ask("POST /take HTTP/1.1\r\nHo");
	uint64_t begin = lab_now_ms();

	lab_expect(idle, 200, "");
	lab_expect_closed(idle);
	lab_expect_closed(half);
	assert_in_range(lab_now_ms() - begin, 900, 20000);
}

static void more_connections_than_allowed_take_turns(void **unused)
{
	int fds[500];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = lab_ask("GET /fine HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		lab_expect(fds[i], 200, "{\"fine\":true}");
		close(fds[i]);
	}
	lab_expect_fine();
}

static void all_of_the_allowed_connections_may_end_at_once(void **unused)
{
	int fds[51];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = lab_connect();
	/* By their silence; only then the last one gets its turn. */
	lab_say(fds[50], LAB_FINE_REQUEST);
	lab_expect(fds[50], 200, "");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

static int error_seen = -1;

static void on_refused(int error, void *arg)
{
	error_seen = error;
}

/* Lets this process open n more files. */
static void allow_files(rlim_t n)
{
	int next = dup(0);
	struct rlimit limit;

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)next + n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void a_lack_of_files_is_outlived(void **unused)
{
	struct rlimit before;
	int fds[8];

	serve_free(TAKE(lab.serve));
	lab_serve((struct serve_config){ .routes = routes,
					 .n_routes = ARRAY_SIZE(routes),
					 .idle_s = 1,
					 .refused = on_refused });
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = lab_connect();
	/* Three get in and say nothing; the others wait until those are sent away. */
	allow_files(3);
	for (size_t i = 3; i < ARRAY_SIZE(fds); i++) {
		lab_say(fds[i], LAB_FINE_REQUEST);
		lab_expect(fds[i], 200, "");
		close(fds[i]);
	}
	assert_int_equal(error_seen, 0);
	for (size_t i = 0; i < 3; i++)
		lab_expect_closed(fds[i]);
	/* And without any connection whose end could be waited for. */
	fds[0] = lab_ask(LAB_FINE_REQUEST);
	allow_files(0);
	lab_turn(1);
	assert_int_equal(error_seen, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	lab_expect(fds[0], 200, "");
	assert_int_equal(error_seen, 0);
	close(fds[0]);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(bodies_have_a_limit),
		WITH_SERVER(a_large_body_is_refused_while_it_is_sent),
		WITH_SERVER(garbage_harms_nobody),
		WITH_SERVER(heads_have_a_limit),
		WITH_SERVER(silence_is_ended),
		WITH_SERVER(more_connections_than_allowed_take_turns),
		WITH_SERVER(all_of_the_allowed_connections_may_end_at_once),
		WITH_SERVER(a_lack_of_files_is_outlived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
