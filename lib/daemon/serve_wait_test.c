/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come later, or not at all. */
#include "lib/daemon/serve_lab.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define MANY 200
#define WAIT "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"

/* Who waits, in the order of asking, and how it ended for them. */
static struct {
	struct serve_request *held[MANY];
	size_t n_held, n_handled;
	unsigned ended[3];
	uint64_t deadline_ms;
	bool answers_when_late;
} test;

static void on_end(struct serve_request *q, enum serve_end why, void *arg)
{
	size_t i = 0;

	assert_ptr_equal(arg, &test);
	test.ended[why]++;
	while (i < test.n_held && test.held[i] != q)
		i++;
	assert_true(i < test.n_held); /* told once only, and never after an answer */
	test.held[i] = test.held[--test.n_held];
	if (test.answers_when_late)
		serve_reply(q, 507, "{\"late\":true}");
}

static void hold(struct serve_request *q, void *arg)
{
	test.n_handled++;
	assert_true(test.n_held < MANY);
	assert_int_equal(serve_wait(q, test.deadline_ms, on_end, &test), 0);
	test.held[test.n_held++] = q;
}

static void answer_last(const char *json)
{
	assert_true(test.n_held > 0);
	serve_reply(test.held[--test.n_held], 200, json);
}

/* As release cancels an assign: one request answers another. */
static void answer_other(struct serve_request *q, void *arg)
{
	answer_last("{\"cancelled\":true}");
	serve_reply(q, 200, "{\"done\":true}");
}

/* The wait that was not needed in the end. */
static void wait_and_answer(struct serve_request *q, void *arg)
{
	assert_int_equal(serve_wait(q, 1000, on_end, &test), 0);
	serve_reply(q, 200, "{\"at\":\"once\"}");
}

static const struct serve_route routes[] = {
	{ "GET", "/fine", lab_fine },
	{ "GET", "/wait", hold },
	{ "GET", "/other", answer_other },
	{ "GET", "/both", wait_and_answer },
};

static const struct serve_config config = { .routes = routes, .n_routes = ARRAY_SIZE(routes) };

static int start(void **state)
{
	memset(&test, 0, sizeof(test));
	test.deadline_ms = 60000;
	lab_setup(state);
	lab_serve(config);
	return 0;
}

static void turn_until_held(size_t n)
{
	uint64_t until = lab_now_ms() + LAB_PATIENCE_MS;

	while (test.n_held != n) {
		assert_true(lab_now_ms() < until);
		sd_event_run(lab.event, 1000);
	}
}

static void an_answer_may_come_later(void **unused)
{
	int fd = lab_ask(WAIT);
	char c;

	turn_until_held(1);
	lab_expect_fine();
	lab_turn(20);
	assert_int_equal(recv(fd, &c, 1, 0), -1);
	answer_last("{\"later\":true}");
	lab_expect(fd, 200, "{\"later\":true}");
	lab_say(fd, LAB_FINE_REQUEST);
	lab_expect(fd, 200, "{\"fine\":true}");
	close(fd);
	lab_try("GET /both HTTP/1.1\r\nHost: x\r\n\r\n", 200, "{\"at\":\"once\"}");
	assert_int_equal(test.n_handled, 1);
}

static void one_request_may_answer_another(void **unused)
{
	int fd = lab_ask(WAIT);

	turn_until_held(1);
	lab_try("GET /other HTTP/1.1\r\nHost: x\r\n\r\n", 200, "{\"done\":true}");
	lab_expect(fd, 200, "{\"cancelled\":true}");
	close(fd);
}

static void what_stands_behind_a_waiting_request_waits_too(void **unused)
{
	int fd = lab_ask(WAIT WAIT LAB_FINE_REQUEST);

	turn_until_held(1);
	lab_turn(20);
	assert_int_equal(test.n_handled, 1);
	answer_last("{\"n\":1}");
	lab_expect(fd, 200, "{\"n\":1}");
	turn_until_held(1);
	answer_last("{\"n\":2}");
	lab_expect(fd, 200, "{\"n\":2}");
	lab_expect(fd, 200, "{\"fine\":true}");
	close(fd);
}

static void waiting_has_a_deadline(void **unused)
{
	uint64_t begin = lab_now_ms();

	test.deadline_ms = 50;
	lab_try(WAIT, 503, "{\"code\":11,\"error\":\"not answered in time\",\"details\":\"\"}");
	assert_in_range(lab_now_ms() - begin, 45, 1000);
	assert_int_equal(test.ended[SERVE_LATE], 1);
	test.answers_when_late = true;
	lab_try(WAIT, 507, "{\"late\":true}");
	assert_int_equal(test.ended[SERVE_LATE], 2);
	assert_int_equal(test.ended[SERVE_GONE], 0);
}

/* A reply that the client does not take yet is one all the same. */
static void nothing_is_told_after_an_answer(void **unused)
{
	size_t n = 4 << 20;
	AUTO(free) char *large = malloc(n + 1);
	int fd;

	memset(large, ' ', n);
	memcpy(large, "{}", 2);
	large[n] = '\0';
	test.deadline_ms = 20;
	fd = lab_ask(WAIT);
	turn_until_held(1);
	answer_last(large);
	lab_turn(60);
	close(fd);
	lab_turn(20);
	assert_int_equal(test.ended[SERVE_LATE] + test.ended[SERVE_GONE], 0);
	lab_expect_fine();
}

static void a_deadline_may_be_moved(void **unused)
{
	uint64_t begin = lab_now_ms();
	int fd = lab_ask(WAIT);

	turn_until_held(1);
	assert_int_equal(serve_wait(test.held[0], 30, on_end, &test), 0);
	lab_expect(fd, 503, "");
	assert_in_range(lab_now_ms() - begin, 25, 1000);
	close(fd);
}

static void a_client_that_goes_away_is_noticed(void **unused)
{
	int fd = lab_ask(WAIT);

	turn_until_held(1);
	close(fd);
	turn_until_held(0);
	assert_int_equal(test.ended[SERVE_GONE], 1);

	/* Even if it has sent more, which nobody has read. */
	fd = lab_ask(WAIT WAIT);
	turn_until_held(1);
	close(fd);
	turn_until_held(0);
	assert_int_equal(test.ended[SERVE_GONE], 2);

	/* Gone between question and handling. */
	close(lab_ask(WAIT));
	lab_turn(20);
	assert_int_equal(test.n_held, 0);
	lab_expect_fine();
}

static void a_client_that_is_killed_is_noticed(void **unused)
{
	pid_t child = fork();

	if (child == 0) {
		lab_ask(WAIT);
		pause();
		_exit(0);
	}
	turn_until_held(1);
	kill(child, SIGKILL);
	turn_until_held(0);
	assert_int_equal(test.ended[SERVE_GONE], 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void who_has_only_finished_speaking_still_listens(void **unused)
{
	int fd = lab_ask(WAIT);

	shutdown(fd, SHUT_WR);
	turn_until_held(1);
	lab_turn(20);
	assert_int_equal(test.n_held, 1);
	answer_last("{\"heard\":true}");
	lab_expect(fd, 200, "{\"heard\":true}");
	close(fd);
}

static void many_wait_at_once(void **unused)
{
	int fds[MANY];

	for (size_t i = 0; i < MANY; i++)
		fds[i] = lab_ask(WAIT);
	turn_until_held(MANY);
	lab_expect_fine();
	while (test.n_held) {
		char json[32];

		snprintf(json, sizeof(json), "{\"n\":%zu}", test.n_held - 1);
		answer_last(json);
	}
	for (size_t i = 0; i < MANY; i++) {
		char json[32];

		snprintf(json, sizeof(json), "{\"n\":%zu}", i);
		lab_expect(fds[i], 200, json);
		close(fds[i]);
	}
	assert_int_equal(test.ended[SERVE_GONE] + test.ended[SERVE_LATE], 0);
}

static void a_server_that_ends_answers_all(void **unused)
{
	int fds[MANY], idle = lab_ask(LAB_FINE_REQUEST), half = lab_ask("GET /wa");

	lab_expect(idle, 200, "");
	for (size_t i = 0; i < MANY; i++)
		fds[i] = lab_ask(i % 2 ? WAIT : WAIT WAIT);
	turn_until_held(MANY);
	serve_free(TAKE(lab.serve));
	assert_int_equal(test.n_held, 0);
	assert_int_equal(test.ended[SERVE_CLOSING], MANY);
	assert_int_equal(test.n_handled, MANY);
	for (size_t i = 0; i < MANY; i++) {
		lab_expect(
			fds[i], 503,
			"{\"code\":11,\"error\":\"the server is shutting down\",\"details\":\"\"}");
		close(fds[i]);
	}
	lab_expect_closed(idle);
	lab_expect_closed(half);
}

/* As many as wait for the same thing. */
static void one_answer_serves_many(void **unused)
{
	struct serve_shared *shared = serve_shared_new(200, "text/plain", "news", 4);
	int fds[MANY];

	test.deadline_ms = SERVE_FOREVER;
	for (size_t i = 0; i < MANY; i++)
		fds[i] = lab_ask(WAIT);
	turn_until_held(MANY);
	/* One of them has gone before it could be told. */
	close(fds[0]);
	turn_until_held(MANY - 1);
	while (test.n_held)
		serve_reply_shared(test.held[--test.n_held], shared);
	serve_shared_unref(shared);
	for (size_t i = 1; i < MANY; i++) {
		lab_expect(fds[i], 200, "news");
		close(fds[i]);
	}
	assert_int_equal(test.ended[SERVE_GONE], 1);
}

static int tcp_listener(struct sockaddr_in *sa)
{
	socklen_t n = sizeof(*sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*sa = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (struct sockaddr *)sa, sizeof(*sa)), 0);
	assert_int_equal(listen(fd, 10), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)sa, &n), 0);
	return fd;
}

static void it_serves_tcp_too(void **unused)
{
	struct serve_config c = config;
	struct sockaddr_in sa;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	serve_free(TAKE(lab.serve));
	c.fd = tcp_listener(&sa);
	assert_int_equal(serve_new(lab.event, &c, &lab.serve), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	lab_say(fd, LAB_FINE_REQUEST WAIT);
	lab_expect(fd, 200, "{\"fine\":true}");
	turn_until_held(1);
	close(fd);
	turn_until_held(0);
	assert_int_equal(test.ended[SERVE_GONE], 1);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(an_answer_may_come_later),
		WITH_SERVER(one_request_may_answer_another),
		WITH_SERVER(what_stands_behind_a_waiting_request_waits_too),
		WITH_SERVER(waiting_has_a_deadline),
		WITH_SERVER(nothing_is_told_after_an_answer),
		WITH_SERVER(a_deadline_may_be_moved),
		WITH_SERVER(a_client_that_goes_away_is_noticed),
		WITH_SERVER(a_client_that_is_killed_is_noticed),
		WITH_SERVER(who_has_only_finished_speaking_still_listens),
		WITH_SERVER(many_wait_at_once),
		WITH_SERVER(one_answer_serves_many),
		WITH_SERVER(a_server_that_ends_answers_all),
		WITH_SERVER(it_serves_tcp_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
