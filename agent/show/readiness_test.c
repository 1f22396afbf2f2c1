/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/show/readiness.h"

static void discard(const struct log_record *record)
{
}

static void only_what_is_needed_decides(void **unused)
{
	struct readiness r = { 0 };
	struct err why = { "" };

	readiness_add(&r, "etcd", false, "it does not answer");
	readiness_add(&r, "kernel", true, NULL);
	readiness_add(&r, "addresses", true, "");
	assert_true(readiness_is_ready(&r, &why));
	readiness_add(&r, "bird", true, "nobody listens at /run/bird/bird.ctl");
	assert_false(readiness_is_ready(&r, &why));
	assert_string_equal(why.text, "bird: nobody listens at /run/bird/bird.ctl");
}

static void more_than_fit_are_left_out(void **unused)
{
	struct readiness r = { 0 };

	for (size_t i = 0; i < 2 * READINESS_MAX; i++)
		readiness_add(&r, "x", false, NULL);
	assert_int_equal(r.n, READINESS_MAX);
}

static void every_input_and_peer_is_named(void **unused)
{
	AUTO(health_free) struct health *health = NULL;
	AUTO(json_put) struct json_object *o = NULL;
	AUTO(free) char *text = NULL;
	const struct status_session sessions[] = {
		{ .name = "tor",
		  .peer = "192.0.2.1",
		  .state = "Established",
		  .error = "",
		  .up = true },
		{ .name = "b", .peer = "192.0.2.2", .state = "Active", .error = "Socket: refused" },
		{ .name = "c", .peer = "192.0.2.3", .state = "Idle", .error = "" },
	};
	const struct status_bird bird = { .sessions = sessions, .n_sessions = 3 };
	struct readiness r = { 0 };

	assert_int_equal(health_new(NULL, NULL, &health), 0);
	health_set(health, "session/c", LOG_LEVEL_WARNING, "%s", "c is down");
	readiness_add(&r, "etcd", false, "no answer");
	readiness_add(&r, "kernel", true, NULL);
	assert_int_equal(readiness_json(&r, &bird, health, &o), 0);
	assert_int_equal(json_print(o, &text), 0);
	assert_string_equal(
		text,
		"{\"ready\":true,\"reason\":\"\",\"inputs\":["
		"{\"name\":\"etcd\",\"ready\":false,\"needed\":false,\"reason\":\"no answer\"},"
		"{\"name\":\"kernel\",\"ready\":true,\"needed\":true,\"reason\":\"\"}],"
		"\"peers\":["
		"{\"name\":\"tor\",\"peer\":\"192.0.2.1\",\"ready\":true,\"reason\":\"\"},"
		"{\"name\":\"b\",\"peer\":\"192.0.2.2\",\"ready\":false,"
		"\"reason\":\"Active: Socket: refused\"},"
		"{\"name\":\"c\",\"peer\":\"192.0.2.3\",\"ready\":false,"
		"\"reason\":\"c is down\"}]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_needed_decides),
		cmocka_unit_test(more_than_fit_are_left_out),
		cmocka_unit_test(every_input_and_peer_is_named),
	};

	log_set_sink(discard);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
