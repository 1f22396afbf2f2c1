/* SPDX-License-Identifier: Apache-2.0 */
/* A shell script stands for BIRD; the real ones are in the whole-system tests. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "confd/bird_step.h"

static sd_event *event;
static char folder[32], program[64];
static int verdict;
static char words[CHILD_OUTPUT_MAX];

static void on_checked(int err, const char *said, void *arg)
{
	verdict = err;
	snprintf(words, sizeof(words), "%s", said);
}

static int set_up(void **state)
{
	strcpy(folder, "/tmp/roost-check-XXXXXX");
	verdict = 1;
	words[0] = '\0';
	if (!mkdtemp(folder))
		return -1;
	snprintf(program, sizeof(program), "%s/bird", folder);
	return sd_event_new(&event) < 0;
}

static int tear_down(void **state)
{
	unlink(program);
	rmdir(folder);
	sd_event_unref(event);
	return waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD;
}

static void play(const char *script)
{
	AUTO(close) int fd = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "#!/bin/sh\n%s\n", script) > 0);
}

static void check(const char *script)
{
	struct bird_check *b = NULL;

	play(script);
	assert_int_equal(bird_check(event, program, "/etc/bird/x.conf", on_checked, NULL, &b, NULL),
			 0);
	while (verdict == 1)
		assert_true(sd_event_run(event, 60000000) >= 0);
}

static void a_good_file_is_good(void **state)
{
	check("[ \"$*\" = '-p -c /etc/bird/x.conf' ]");
	assert_int_equal(verdict, 0);
	assert_string_equal(words, "");
}

static void warnings_are_passed_on(void **state)
{
	check("echo 'bird: x.conf:3:27: first' >&2; echo 'bird: x.conf:4:1: second' >&2");
	assert_int_equal(verdict, 0);
	assert_string_equal(words, "x.conf:3:27: first; x.conf:4:1: second");
}

static void a_bad_file_is_told_in_the_words_of_bird(void **state)
{
	check("echo 'bird: x.conf:2:1 syntax error' >&2; exit 1");
	assert_int_equal(verdict, -EINVAL);
	assert_string_equal(words, "x.conf:2:1 syntax error");
}

static void a_parser_that_dies_means_a_bad_file(void **state)
{
	check("echo 'realloc(): invalid old size' >&2; kill -ABRT $$");
	assert_int_equal(verdict, -EINVAL);
	assert_string_equal(words, "killed by SIGABRT: realloc(): invalid old size");
}

static void silence_and_a_bad_exit_mean_a_bad_file(void **state)
{
	check("exit 7");
	assert_int_equal(verdict, -EINVAL);
	assert_string_equal(words, "exit 7");
}

static void no_bird_is_told_at_once(void **state)
{
	struct bird_check *b = NULL;
	struct err err = { "" };

	assert_int_equal(bird_check(event, "/nonexistent/bird", "x", on_checked, NULL, &b, &err),
			 -ENOENT);
	assert_string_equal(err.text, "/nonexistent/bird: No such file or directory");
	assert_null(b);
}

static void a_check_can_be_cancelled(void **state)
{
	struct bird_check *b = NULL;

	play("sleep 1000");
	assert_int_equal(bird_check(event, program, "x", on_checked, NULL, &b, NULL), 0);
	bird_check_cancel(b);
	assert_int_equal(sd_event_run(event, 0), 0);
	assert_int_equal(verdict, 1);
}

static void words_are_put_in_one_line(void **state)
{
	static const struct {
		const char *output, *want;
	} cases[] = {
		{ "", "" },
		{ "\n\n", "" },
		{ "bird: 2026-11-16 23:31:36.199 [0001] <FATAL> bad.conf:2:1 syntax error\n",
		  "bad.conf:2:1 syntax error" },
		{ "bird: 2026-11-16 23:31:36.210 [0001] <WARN> a\n"
		  "bird: 2026-11-16 23:31:36.210 [0001] <WARN> b",
		  "a; b" },
		{ "bird: /etc/[x] <y> .conf:2:1 bad\n", "/etc/[x] <y> .conf:2:1 bad" },
		{ "bird: bad\nbird: ] <", "bad; ] <" },
		{ "a\nb\tc\n", "a; b?c" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(bird_check_words(cases[i].output, text, sizeof(text)),
				    cases[i].want);
	for (size_t room = 8; room < 20; room++)
		assert_in_range(strlen(bird_check_words("ab\ncd\nefghijk\nlm\nno", text, room)), 1,
				room - 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_good_file_is_good),
		CASE(warnings_are_passed_on),
		CASE(a_bad_file_is_told_in_the_words_of_bird),
		CASE(a_parser_that_dies_means_a_bad_file),
		CASE(silence_and_a_bad_exit_mean_a_bad_file),
		CASE(no_bird_is_told_at_once),
		CASE(a_check_can_be_cancelled),
		CASE(words_are_put_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
