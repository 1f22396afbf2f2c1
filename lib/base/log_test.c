/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/log.h"

/* --- a sink that remembers ------------------------------------------------------------------ */

static struct {
	unsigned count;
	enum log_level level;
	char part[64];
	char text[2 * LOG_TEXT_MAX];
} last;

static void remember(const struct log_record *r)
{
	last.count++;
	last.level = r->level;
	snprintf(last.part, sizeof(last.part), "%s", r->part);
	snprintf(last.text, sizeof(last.text), "%s", r->text);
	errno = EIO; /* as a failing write would leave it */
}

static int start(void **unused)
{
	memset(&last, 0, sizeof(last));
	log_forget_hidden();
	log_set_level(LOG_LEVEL_INFO);
	log_set_sink(remember);
	return 0;
}

static int stop(void **unused)
{
	log_forget_hidden();
	return 0;
}

/* stderr as a socket that keeps the borders of writes: what one write brought, and if it was one.
 */
struct capture {
	char text[8 * LOG_TEXT_MAX];
	bool single;
};

static struct capture capture(log_sink_fn *sink, const char *message)
{
	struct capture c = { 0 };
	int saved = dup(STDERR_FILENO);
	int pair[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	dup2(pair[1], STDERR_FILENO);
	log_set_sink(sink);
	log_warning("store", "%s", message);
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = recv(pair[0], c.text, sizeof(c.text) - 1, MSG_DONTWAIT);
	c.single = n > 0 && recv(pair[0], &(char){ 0 }, 1, MSG_DONTWAIT) < 0;
	close(pair[0]);
	close(pair[1]);
	return c;
}

/* --- levels --------------------------------------------------------------------------------- */

static void every_level_has_a_name_that_leads_back(void **unused)
{
	const char *names[] = { "error", "warning", "info", "debug" };

	for (enum log_level l = LOG_LEVEL_ERROR; l <= LOG_LEVEL_DEBUG; l++) {
		enum log_level back = LOG_LEVEL_ERROR;

		assert_string_equal(log_level_name(l), names[l]);
		assert_int_equal(log_level_parse(names[l], &back), 0);
		assert_int_equal(back, l);
	}
	assert_int_equal(log_level_parse("verbose", &(enum log_level){ 0 }), -EINVAL);
	assert_int_equal(log_level_parse("", &(enum log_level){ 0 }), -EINVAL);
}

static int evaluated;

static int evaluate(void)
{
	return ++evaluated;
}

static void below_the_level_nothing_is_logged_or_evaluated(void **unused)
{
	log_debug("store", "%d", evaluate());
	assert_int_equal(evaluated, 0);
	log_line(LOG_LEVEL_DEBUG, "store", "x");
	assert_int_equal(last.count, 0);

	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("store", "%d", evaluate());
	assert_int_equal(evaluated, 1);
	assert_int_equal(last.count, 1);
	assert_int_equal(last.level, LOG_LEVEL_DEBUG);
	assert_string_equal(last.part, "store");
	assert_string_equal(last.text, "1");
}

static void errno_survives_a_line(void **unused)
{
	errno = ENOENT;
	log_info("kernel", "%m");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(last.text, "No such file or directory");
}

/* --- one clean line ------------------------------------------------------------------------- */

static void a_message_is_one_line_without_control_bytes(void **unused)
{
	log_info("store", "%s", "one\ntwo\r\nthree\tfour\n");
	assert_string_equal(last.text, "one two  three four");
	log_info("store", "%s", "\x1b[31mred\x7f \xc2\x9bm");
	assert_string_equal(last.text, "?[31mred? ??m");
}

static void what_is_not_utf8_is_replaced_and_the_rest_kept(void **unused)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x93",
		  "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x93" },
		{ "a\xff"
		  "b",
		  "a?b" },
		{ "a\x80"
		  "b",
		  "a?b" },
		{ "a\xc3", "a?" },
		{ "\xe2\x82", "??" },
		{ "\xc0\xaf", "??" },           /* overlong */
		{ "\xe0\x9f\xbf", "???" },      /* overlong */
		{ "\xed\xa0\x80", "???" },      /* surrogate */
		{ "\xf4\x90\x80\x80", "????" }, /* beyond the last character */
		{ "\xf0\x8f\xbf\xbf", "????" }, /* overlong */
		{ "\xf5\x80\x80\x80", "????" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		log_info("store", "%s", cases[i].in);
		assert_string_equal(last.text, cases[i].out);
	}
}

static void a_long_message_is_cut_between_characters(void **unused)
{
	char text[2 * LOG_TEXT_MAX + 1] = "";

	memset(text, 'x', LOG_TEXT_MAX);
	log_info("store", "%s", text);
	assert_string_equal(last.text, text); /* just fits */
	text[LOG_TEXT_MAX] = 'x';
	log_info("store", "%s", text);
	assert_int_equal(strlen(last.text), LOG_TEXT_MAX);
	assert_string_equal(last.text + LOG_TEXT_MAX - 4, "x...");

	for (size_t i = 0; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xbc", 2);
	log_info("store", "%s", text);
	assert_string_equal(last.text + strlen(last.text) - 5, "\xc3\xbc...");
	assert_int_equal(strlen(last.text), LOG_TEXT_MAX - 1);
}

/* --- secrets -------------------------------------------------------------------------------- */

static void a_hidden_text_never_appears(void **unused)
{
	assert_int_equal(log_hide("hunter2"), 0);
	assert_int_equal(log_hide("hunter2"), 0);
	log_info("store", "password hunter2, again hunter2hunter2.");
	assert_string_equal(last.text, "password ***, again ******.");
	log_info("store", "hunter2");
	assert_string_equal(last.text, "***");
	log_info("store", "hunter");
	assert_string_equal(last.text, "hunter");
	log_forget_hidden();
	log_info("store", "hunter2");
	assert_string_equal(last.text, "hunter2");
}

static void overlapping_secrets_leave_no_tail(void **unused)
{
	assert_int_equal(log_hide("abcdef"), 0);
	assert_int_equal(log_hide("defghi"), 0);
	assert_int_equal(log_hide("abcd"), 0);
	log_info("store", "<abcdefghi> <abcdef> <abcdx>");
	assert_string_equal(last.text, "<***> <***> <***x>");
}

static void too_short_a_secret_is_refused(void **unused)
{
	assert_int_equal(log_hide(""), -EINVAL);
	assert_int_equal(log_hide("abc"), -EINVAL);
	assert_int_equal(log_hide("abcd"), 0);
	log_info("store", "abc");
	assert_string_equal(last.text, "abc");
}

static void a_secret_across_the_cut_does_not_show_its_head(void **unused)
{
	const char *secret = "SECRETSECRETSECRET";
	char text[2 * LOG_TEXT_MAX] = "";

	assert_int_equal(log_hide(secret), 0);
	for (size_t at = LOG_TEXT_MAX - 30; at < LOG_TEXT_MAX + 5; at++) {
		memset(text, 'x', sizeof(text) - 1);
		memcpy(text + at, secret, strlen(secret));
		log_info("store", "%s", text);
		assert_null(strstr(last.text, "S"));
		assert_int_equal(strlen(last.text), LOG_TEXT_MAX);
	}
}

static void a_secret_that_escaping_would_change_is_hidden(void **unused)
{
	const char *secret = "top\"se\\cret\n\x01\xff";
	struct capture c;

	assert_int_equal(log_hide(secret), 0);
	c = capture(log_to_stderr_json, "key top\"se\\cret\n\x01\xff.");
	assert_non_null(strstr(c.text, "\"message\":\"key ***.\""));
	c = capture(log_to_stderr, "key top\"se\\cret\n\x01\xff.");
	assert_non_null(strstr(c.text, "store: key ***.\n"));
	assert_null(strstr(c.text, "top"));
}

/* --- limit ---------------------------------------------------------------------------------- */

static void a_limit_lets_one_through_per_interval_and_counts_the_rest(void **unused)
{
	struct log_limit limit = { .interval_ms = 10000 };
	unsigned suppressed = 99;

	assert_true(log_limit_at(&limit, 5, &suppressed));
	assert_int_equal(suppressed, 0);
	for (uint64_t t = 6; t < 6 + 17; t++)
		assert_false(log_limit_at(&limit, t, &suppressed));
	assert_false(log_limit_at(&limit, 10004, &suppressed));
	assert_true(log_limit_at(&limit, 10005, &suppressed));
	assert_int_equal(suppressed, 18);
	assert_true(log_limit_at(&limit, 90000, &suppressed));
	assert_int_equal(suppressed, 0);
}

static void a_limited_line_says_how_many_were_left_out(void **unused)
{
	struct log_limit limit = { .interval_ms = 3600000 };
	char text[2 * LOG_TEXT_MAX] = "";

	log_limited(&limit, LOG_LEVEL_DEBUG, "store", "not even counted");
	for (int i = 0; i < 18; i++)
		log_limited(&limit, LOG_LEVEL_WARNING, "store", "lost %d", i);
	assert_int_equal(last.count, 1);
	assert_string_equal(last.text, "lost 0");

	limit.next_ms = 0; /* the hour is over */
	memset(text, 'x', sizeof(text) - 1);
	log_limited(&limit, LOG_LEVEL_WARNING, "store", "%s", text);
	assert_int_equal(last.count, 2);
	assert_string_equal(last.text + LOG_TEXT_MAX - 4, "x... (17 more like this)");
}

/* --- sinks ---------------------------------------------------------------------------------- */

static void a_plain_line_has_time_level_part_and_text(void **unused)
{
	struct capture c = capture(log_to_stderr, "gone\naway");
	int year, ms, end = 0;

	assert_true(c.single);
	sscanf(c.text, "%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%3dZ%n", &year, &ms, &end);
	assert_int_equal(end, strlen("2026-11-16T02:45:55.123Z"));
	assert_true(year >= 2024);
	assert_string_equal(c.text + end, " warning store: gone away\n");
}

static void a_json_line_is_one_object_that_reads_back(void **unused)
{
	struct capture c = capture(log_to_stderr_json, "say \"a\\b\"/c \xc3\xbc\x01\xff\n");
	struct json_object *o = json_tokener_parse(c.text);
	struct json_object *v = NULL;

	assert_true(c.single);
	assert_ptr_equal(strchr(c.text, '\n'), c.text + strlen(c.text) - 1);
	assert_non_null(strstr(c.text, "\"level\":\"warning\",\"part\":\"store\",\"message\":\"say "
				       "\\\"a\\\\b\\\"/c \xc3\xbc??\"}"));
	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "message", &v));
	assert_string_equal(json_object_get_string(v), "say \"a\\b\"/c \xc3\xbc??");
	assert_true(json_object_object_get_ex(o, "time", &v));
	assert_int_equal(json_object_get_string_len(v), strlen("2026-11-16T02:45:55.123Z"));
	json_object_put(o);
}

static void the_longest_line_is_still_one_write(void **unused)
{
	char text[2 * LOG_TEXT_MAX] = "";
	struct capture c;

	memset(text, '"', sizeof(text) - 1);
	c = capture(log_to_stderr, text);
	assert_true(c.single);
	assert_string_equal(c.text + strlen(c.text) - 5, "\"...\n");
	c = capture(log_to_stderr_json, text);
	assert_true(c.single);
	assert_string_equal(c.text + strlen(c.text) - 8, "\\\"...\"}\n");
}

#define test(fn) cmocka_unit_test_setup_teardown(fn, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(every_level_has_a_name_that_leads_back),
		test(below_the_level_nothing_is_logged_or_evaluated),
		test(errno_survives_a_line),
		test(a_message_is_one_line_without_control_bytes),
		test(what_is_not_utf8_is_replaced_and_the_rest_kept),
		test(a_long_message_is_cut_between_characters),
		test(a_hidden_text_never_appears),
		test(overlapping_secrets_leave_no_tail),
		test(too_short_a_secret_is_refused),
		test(a_secret_across_the_cut_does_not_show_its_head),
		test(a_secret_that_escaping_would_change_is_hidden),
		test(a_limit_lets_one_through_per_interval_and_counts_the_rest),
		test(a_limited_line_says_how_many_were_left_out),
		test(a_plain_line_has_time_level_part_and_text),
		test(a_json_line_is_one_object_that_reads_back),
		test(the_longest_line_is_still_one_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
