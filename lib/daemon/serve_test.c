/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/serve_lab.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/cni/local_client.h"

/* --- the handlers under which all tests run ------------------------------------------------- */

static void echo(struct serve_request *q, void *arg)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	size_t len;
	const char *a = serve_query(q, "a"), *body = serve_body(q, &len);

	assert_string_equal(arg, "the argument");
	json_object_object_add(o, "method", json_object_new_string(serve_method(q)));
	json_object_object_add(o, "path", json_object_new_string(serve_path(q)));
	json_object_object_add(o, "a", a ? json_object_new_string(a) : NULL);
	json_object_object_add(o, "body", json_object_new_string_len(body, (int)len));
	assert_int_equal(body[len], '\0');
	serve_reply_json(q, 200, o);
}

static void want_json(struct serve_request *q, void *arg)
{
	AUTO(json_put) struct json_object *o = NULL;

	if (serve_body_json(q, &o) == 0)
		serve_reply_json(q, 201, o);
}

static void half_a_character(struct serve_request *q, void *arg)
{
	serve_reply_error(q, 409, CNI_CODE_ADDRESS_IN_USE, "\xff\xed\xa0\x80\xf4\x90\x80\x80",
			  "caf\xc3\xa9 caf\xc3");
}

static void metrics(struct serve_request *q, void *arg)
{
	serve_reply_text(q, 200, "text/plain; version=0.0.4", "up 1\n", 5);
}

static void forget(struct serve_request *q, void *arg)
{
}

static const struct serve_route routes[] = {
	{ "GET", "/fine", lab_fine },
	{ "GET", "/echo", echo },
	{ "POST", "/echo", echo },
	{ "POST", "/json", want_json },
	{ "GET", "/half", half_a_character },
	{ "GET", "/metrics", metrics },
	{ "GET", "/forget", forget },
};

static int start(void **state)
{
	static char argument[] = "the argument";

	lab_setup(state);
	lab_serve((struct serve_config){
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.arg = argument,
	});
	return 0;
}

/* --- answers -------------------------------------------------------------------------------- */

static void handlers_see_what_was_asked(void **unused)
{
	lab_try("GET /echo?b=1&a=x%20y%2fz&a=2 HTTP/1.1\r\nHost: x\r\n\r\n", 200,
		"{\"method\":\"GET\",\"path\":\"/echo\",\"a\":\"x y/z\",\"body\":\"\"}");
	lab_try("POST /echo?a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", 200,
		"{\"method\":\"POST\",\"path\":\"/echo\",\"a\":\"\",\"body\":\"hello\"}");
	lab_try("GET /echo?a=1%002 HTTP/1.1\r\nHost: x\r\n\r\n", 200,
		"{\"method\":\"GET\",\"path\":\"/echo\",\"a\":null,\"body\":\"\"}");
}

static void a_body_may_come_in_pieces(void **unused)
{
	const char *text = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
			   "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
	int fd = lab_connect();

	for (const char *p = text; *p; p++) {
		lab_say_n(fd, p, 1);
		lab_turn(0);
	}
	lab_expect(fd, 200,
		   "{\"method\":\"POST\",\"path\":\"/echo\",\"a\":null,\"body\":\"abcde\"}");
	close(fd);
}

static void errors_are_json(void **unused)
{
	lab_try("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404,
		"{\"code\":7,\"error\":\"there is no /nowhere\",\"details\":\"\"}");
	lab_try("GET /%ff%07 HTTP/1.1\r\nHost: x\r\n\r\n", 404,
		"{\"code\":7,\"error\":\"there is no /??\",\"details\":\"\"}");
	lab_try("GET /fine/ HTTP/1.1\r\nHost: x\r\n\r\n", 404, "");
	lab_try("GET /forget HTTP/1.1\r\nHost: x\r\n\r\n", 500, "");
	lab_try("POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n{\"a\": 1}", 201,
		"{\"a\":1}");
	lab_try("POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n{\"a\": 1]", 400,
		"{\"code\":7,\"error\":\"the body is not understood\",\"details\":"
		"\"not valid JSON at byte 8: object value separator ',' expected\"}");
	lab_try("POST /json HTTP/1.1\r\nHost: x\r\n\r\n", 400, "");
	lab_try("GET /half HTTP/1.1\r\nHost: x\r\n\r\n", 409,
		"{\"code\":102,\"error\":\"caf\xc3\xa9 caf?\",\"details\":\"????????\"}");
}

static void expect_head(const char *request, unsigned status, const char *field)
{
	struct http_reply_parser p;
	int fd = lab_ask(request);

	assert_int_equal(lab_hear(fd, &p), 0);
	assert_int_equal(p.status, status);
	p.head[p.head_len - 1] = '\0';
	if (!strstr(p.head, field))
		fail_msg("no '%s' in %s", field, p.head);
	http_reply_done(&p);
	close(fd);
}

static void heads_say_what_there_is(void **unused)
{
	expect_head(LAB_FINE_REQUEST, 200, "\r\nContent-Type: application/json\r\n");
	expect_head("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200,
		    "\r\nContent-Type: text/plain; version=0.0.4\r\n");
	expect_head("DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n", 405, "\r\nAllow: GET, POST\r\n");
	expect_head("GET /json HTTP/1.1\r\nHost: x\r\n\r\n", 405, "\r\nAllow: POST\r\n");
}

static void requests_in_a_row_are_answered_in_a_row(void **unused)
{
	int fd = lab_ask(LAB_FINE_REQUEST LAB_FINE_REQUEST
			 "POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
			 "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" LAB_FINE_REQUEST);

	lab_expect(fd, 200, "{\"fine\":true}");
	lab_expect(fd, 200, "{\"fine\":true}");
	lab_expect(fd, 201, "{}");
	lab_expect(fd, 404, "");
	lab_expect(fd, 200, "{\"fine\":true}");
	lab_say(fd, LAB_FINE_REQUEST);
	lab_expect(fd, 200, "{\"fine\":true}");
	close(fd);
}

static void the_plugins_client_understands_it(void **unused)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct json_object *o = NULL;
		unsigned code = 0;
		struct err err;
		int r = local_call(lab.path, "POST", "/json", "{\"x\":[1,2]}", 2000, &code, &o,
				   &err);

		/* Nothing of the parent's is to be released here. */
		_exit(r == 0 && code == 201 &&
				      !strcmp(json_object_to_json_string_ext(o, 0), "{\"x\":[1,2]}")
			      ? 0
			      : 1);
	}
	while (waitpid(child, &status, WNOHANG) == 0)
		sd_event_run(lab.event, 10000);
	assert_int_equal(status, 0);
}

/* --- a server that matches paths itself, and speaks plainly ---------------------------------- */

static void say_path(struct serve_request *q, void *arg)
{
	if (strcmp(serve_path(q), "/busy") == 0)
		serve_reply_error(q, 503, CNI_CODE_TRY_AGAIN, "why", "come %s", "again");
	else
		serve_reply_error(q, 500, CNI_CODE_IO, NULL, "%s %s", serve_method(q),
				  serve_path(q));
}

static void whatever_no_route_matches_may_have_a_handler(void **unused)
{
	static const struct serve_route fine[] = { { "GET", "/fine", lab_fine } };
	const struct serve_config config = { .routes = fine,
					     .n_routes = 1,
					     .other = say_path,
					     .plain_errors = true,
					     .connection_memory = 4096 };

	lab_serve(config);
	lab_expect_fine();
	lab_try("PUT /fine HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 500, "PUT /fine\n");
	lab_try("GET /a/b HTTP/1.1\r\nHost: x\r\n\r\n", 500, "GET /a/b\n");
	lab_try("GET /busy HTTP/1.1\r\nHost: x\r\n\r\n", 503, "come again: why\n");
}

/* --- the socket ----------------------------------------------------------------------------- */

static void the_socket_takes_the_place_of_a_stale_one_only(void **unused)
{
	mode_t old = umask(0);
	char file[80];
	struct stat st;
	int fd = -1;

	assert_int_equal(serve_listen_unix(lab.path, 0600, &fd), 0);
	close(fd);
	assert_int_equal(serve_listen_unix(lab.path, 0640, &fd), 0);
	close(fd);
	assert_int_equal(lstat(lab.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0640);
	umask(0777);
	assert_int_equal(serve_listen_unix(lab.path, 0600, &fd), 0);
	close(fd);
	umask(old);
	assert_int_equal(lstat(lab.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);

	snprintf(file, sizeof(file), "%s/file", lab.dir);
	fclose(fopen(file, "w"));
	assert_int_equal(serve_listen_unix(file, 0600, &fd), -EEXIST);
	assert_int_equal(unlink(file), 0);
	snprintf(file, sizeof(file), "%s/no/such", lab.dir);
	assert_int_equal(serve_listen_unix(file, 0600, &fd), -ENOENT);
}

/* A chmod() after bind() would be one moment too late. */
static void the_socket_is_born_with_its_mode(void **unused)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd = -1;
	mode_t old = umask(0);
	char events[4096];
	struct stat st;

	assert_true(inotify_add_watch(watch, lab.dir, IN_ATTRIB) >= 0);
	assert_int_equal(serve_listen_unix(lab.path, 0600, &fd), 0);
	umask(old);
	assert_int_equal(read(watch, events, sizeof(events)), -1);
	assert_int_equal(lstat(lab.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	close(watch);
	close(fd);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(handlers_see_what_was_asked),
		WITH_SERVER(a_body_may_come_in_pieces),
		WITH_SERVER(errors_are_json),
		WITH_SERVER(heads_say_what_there_is),
		WITH_SERVER(requests_in_a_row_are_answered_in_a_row),
		WITH_SERVER(the_plugins_client_understands_it),
		cmocka_unit_test_setup_teardown(whatever_no_route_matches_may_have_a_handler,
						lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(the_socket_takes_the_place_of_a_stale_one_only,
						lab_setup, lab_teardown),
		cmocka_unit_test_setup_teardown(the_socket_is_born_with_its_mode, lab_setup,
						lab_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
