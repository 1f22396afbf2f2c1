/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, and clients without manners: the server must serve the next one. */
#include "lib/daemon/serve_lab.h"

#include <arpa/inet.h>
#include <fcntl.h>
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

/* --- over TCP, where clients have addresses --------------------------------------------------- */

static struct sockaddr_in at;

static void on_end(struct serve_request *q, enum serve_end why, void *arg)
{
}

static void wait_forever(struct serve_request *q, void *arg)
{
	assert_int_equal(serve_wait(q, SERVE_FOREVER, on_end, NULL), 0);
}

static void show_peer(struct serve_request *q, void *arg)
{
	char text[ADDRESS_TEXT], json[80];
	struct address peer;

	serve_peer(q, &peer);
	snprintf(json, sizeof(json), "{\"peer\":\"%s\"}", address_print(&peer, text));
	serve_reply(q, 200, json);
}

static const struct serve_route tcp_routes[] = {
	{ "GET", "/fine", lab_fine },
	{ "GET", "/wait", wait_forever },
	{ "GET", "/peer", show_peer },
};

static void serve_tcp(struct serve_config c)
{
	struct listen_address any;
	socklen_t n = sizeof(at);

	c.routes = tcp_routes;
	c.n_routes = ARRAY_SIZE(tcp_routes);
	assert_int_equal(listen_address_parse("[::]:1", &any, NULL), 0);
	any.port = 0;
	assert_int_equal(serve_listen_tcp(&any, &c.fd), 0);
	struct sockaddr_in6 six;
	n = sizeof(six);
	assert_int_equal(getsockname(c.fd, (struct sockaddr *)&six, &n), 0);
	at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = six.sin6_port };
	assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &at.sin_addr), 1);
	assert_int_equal(serve_new(lab.event, &c, &lab.serve), 0);
}

static int connect_from(const char *address)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	lab_turn(1);
	return fd;
}

static int ask_from(const char *address, const char *request)
{
	int fd = connect_from(address);

	lab_say(fd, request);
	return fd;
}

static bool is_open(int fd)
{
	char c;

	lab_turn(5);
	return recv(fd, &c, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

static void a_handler_sees_the_client_s_address(void **unused)
{
	int fd;

	serve_tcp((struct serve_config){ .max_body = 0 });
	fd = ask_from("127.0.0.7", "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
	lab_expect(fd, 200, "{\"peer\":\"127.0.0.7\"}");
	close(fd);
}

static void silent_connections_keep_nobody_out(void **unused)
{
	int idle[12], waiting, fd;

	serve_tcp((struct serve_config){ .max_connections = 4, .replace_quiet = true });
	waiting = ask_from("127.0.0.1", "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
	lab_turn(5);
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		idle[i] = connect_from("127.0.0.1");
	fd = ask_from("127.0.0.1", LAB_FINE_REQUEST);
	lab_expect(fd, 200, "{\"fine\":true}");
	/* Whose answer is due has done nothing wrong. */
	assert_true(is_open(waiting));
	assert_false(is_open(idle[0]));
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		close(idle[i]);
	close(waiting);
	close(fd);
}

static void an_address_has_its_share(void **unused)
{
	int other, mine[3], waiting[2], more;

	serve_tcp((struct serve_config){ .per_address = 2 });
	other = connect_from("127.0.0.3");
	for (size_t i = 0; i < ARRAY_SIZE(mine); i++)
		mine[i] = connect_from("127.0.0.2");
	assert_false(is_open(mine[0]));
	assert_true(is_open(mine[1]) && is_open(mine[2]) && is_open(other));
	/* None of its own is quiet: the new one is refused. */
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
		waiting[i] = ask_from("127.0.0.4", "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
	lab_turn(5);
	more = connect_from("127.0.0.4");
	assert_false(is_open(more));
	assert_true(is_open(waiting[0]) && is_open(waiting[1]));
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
		close(waiting[i]);
	for (size_t i = 0; i < ARRAY_SIZE(mine); i++)
		close(mine[i]);
	close(other);
	close(more);
}

static void a_head_must_come_in_time(void **unused)
{
	uint64_t begin = lab_now_ms();
	int fd;

	serve_tcp((struct serve_config){ .head_s = 1, .idle_s = 60 });
	fd = ask_from("127.0.0.1", "GET /fine HTTP/1.1\r\nX: ");
	/* A byte now and then is not silence, and not a request either. */
	while (is_open(fd)) {
		assert_true(lab_now_ms() - begin < LAB_PATIENCE_MS);
		send(fd, "x", 1, MSG_NOSIGNAL);
		lab_turn(50);
	}
	assert_in_range(lab_now_ms() - begin, 900, LAB_PATIENCE_MS);
	close(fd);
}

static void connections_have_an_age_limit(void **unused)
{
	uint64_t begin = lab_now_ms();
	int waiting, idle, fresh;

	serve_tcp((struct serve_config){ .age_s = 4, .idle_s = 60, .plain_errors = true });
	waiting = ask_from("127.0.0.1", "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
	idle = ask_from("127.0.0.1", LAB_FINE_REQUEST);
	lab_expect(idle, 200, "");
	lab_expect(waiting, 503, "this connection has reached its age limit; connect again\n");
	lab_expect_closed(waiting);
	lab_expect_closed(idle);
	assert_in_range(lab_now_ms() - begin, 2900, LAB_PATIENCE_MS);
	fresh = ask_from("127.0.0.1", LAB_FINE_REQUEST);
	lab_expect(fresh, 200, "");
	close(fresh);
	close(idle);
	close(waiting);
}

#define OVER_TCP(test)    cmocka_unit_test_setup_teardown(test, lab_setup, lab_teardown)
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
		OVER_TCP(a_handler_sees_the_client_s_address),
		OVER_TCP(silent_connections_keep_nobody_out),
		OVER_TCP(an_address_has_its_share),
		OVER_TCP(a_head_must_come_in_time),
		OVER_TCP(connections_have_an_age_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
