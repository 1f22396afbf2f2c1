/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "confd/bird/bird_golden.h"

/* "code text|code text|", as the iterator tells it. */
static void expect_lines(const struct bird_reply *reply, const char *want)
{
	struct bird_line line = { 0 };
	char got[512] = "";
	size_t n = 0;

	while (bird_line_next(reply, &line))
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%d %s|", line.code, line.text);
	assert_string_equal(got, want);
}

/* In pieces of every size the result is the same. */
static void expect_reply(const char *bytes, const char *want)
{
	size_t total = strlen(bytes);

	for (size_t piece = 1; piece <= total; piece++) {
		AUTO_DONE(bird_reader_done) struct bird_reader r = { 0 };
		struct bird_reply reply = { 0 };
		size_t at = 0, used;
		int done = 0;

		while (at < total && !done) {
			size_t n = piece < total - at ? piece : total - at;

			done = bird_reader_feed(&r, bytes + at, n, &used, &reply);
			at += used;
		}
		assert_int_equal(done, 1);
		assert_int_equal(at, total);
		expect_lines(&reply, want);
	}
}

static int feed(const char *bytes, size_t n, size_t max)
{
	AUTO_DONE(bird_reader_done) struct bird_reader r = { .max = max };
	struct bird_reply reply;
	size_t used;

	return bird_reader_feed(&r, bytes, n, &used, &reply);
}

static void lines_carry_the_code_of_the_one_before(void **state)
{
	expect_reply("1007-a\n b\n  c\n1008-d\n0000 \n", "1007 a|1007 b|1007  c|1008 d|0 |");
	expect_reply("0001 BIRD 2.0.12 ready.\n", "1 BIRD 2.0.12 ready.|");
	expect_reply("9001 syntax error\n", "9001 syntax error|");
}

static void asynchronous_lines_belong_to_no_reply(void **state)
{
	expect_reply("+Config timeout expired, starting undo\n0002-a\n+0000 b\n c\n+\n0003 d\n",
		     "2 a|2 c|3 d|");
}

static void an_overflow_inside_is_no_failure(void **state)
{
	AUTO_DONE(bird_reader_done) struct bird_reader r = { 0 };
	struct bird_reply reply;
	size_t used;
	static const char bytes[] = "1002-a\n8000-<line overflow>\n1006-b\n0000 \n";

	expect_reply(bytes, "1002 a|8000 <line overflow>|1006 b|0 |");
	assert_int_equal(bird_reader_feed(&r, bytes, strlen(bytes), &used, &reply), 1);
	assert_false(bird_reply_failed(&reply));
}

static void two_replies_in_one_piece_come_one_by_one(void **state)
{
	AUTO_DONE(bird_reader_done) struct bird_reader r = { 0 };
	static const char bytes[] = "1000-a\n0013 b\n8002 c\n+d\n";
	struct bird_reply reply;
	size_t used, n = strlen(bytes);

	assert_int_equal(bird_reader_feed(&r, bytes, n, &used, &reply), 1);
	assert_int_equal(used, 14);
	assert_int_equal(reply.code, 13);
	assert_string_equal(reply.text, "b");
	bird_reader_next(&r);
	assert_false(bird_reader_pending(&r));
	assert_int_equal(bird_reader_feed(&r, bytes + 14, n - 14, &used, &reply), 1);
	assert_int_equal(used, 7);
	assert_int_equal(reply.code, BIRD_REFUSED);
	assert_true(bird_reply_failed(&reply));
	bird_reader_next(&r);
	assert_int_equal(bird_reader_feed(&r, bytes + 21, n - 21, &used, &reply), 0);
	assert_false(bird_reader_pending(&r));
}

static void what_is_no_reply_is_told(void **state)
{
	static const char *const bad[] = { "\n",       "HTTP/1.1 400\n", " text first\n", "000 x\n",
					   "0000\n",   "0000x\n",        "00a0-x\n",      "-\n",
					   "0000\tx\n" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(feed(bad[i], strlen(bad[i]), 0), -EBADMSG);
	assert_int_equal(feed("1000-a\nbad\n", 11, 0), -EBADMSG);
	assert_int_equal(feed("1000-a\n", 7, 0), 0);
}

static void memory_has_a_limit(void **state)
{
	assert_int_equal(feed("1000-0123456789\n", 16, 15), -EMSGSIZE);
	assert_int_equal(feed("1000-0123456789", 15, 15), 0);
}

static void asynchronous_lines_take_no_memory(void **state)
{
	AUTO_DONE(bird_reader_done) struct bird_reader r = { .max = 32 };
	struct bird_reply reply;
	size_t used;

	for (int i = 0; i < 100; i++)
		assert_int_equal(bird_reader_feed(&r, "+0123456789\n", 12, &used, &reply), 0);
	assert_int_equal(bird_reader_feed(&r, "0000 \n", 6, &used, &reply), 1);
}

static void a_nul_does_not_end_a_line(void **state)
{
	static const char bytes[] = "1000-a\0b\0\n0000 \n";
	AUTO_DONE(bird_reader_done) struct bird_reader r = { 0 };
	struct bird_reply reply;
	size_t used;

	assert_int_equal(bird_reader_feed(&r, bytes, sizeof(bytes) - 1, &used, &reply), 1);
	expect_lines(&reply, "1000 a?b?|0 |");
}

/* 5,000 peers, 1.9 MB: fits, and the room is given back. */
static void a_large_reply_fits_and_is_let_go(void **state)
{
	AUTO_DONE(bird_reader_done) struct bird_reader r = { 0 };
	struct bird_reply reply;
	size_t used, lines = 0;
	char piece[128];
	struct bird_line line = { 0 };

	for (int i = 0; i < 40000; i++) {
		snprintf(piece, sizeof(piece), "1002-%060d\n", i);
		assert_int_equal(bird_reader_feed(&r, piece, strlen(piece), &used, &reply), 0);
	}
	assert_int_equal(bird_reader_feed(&r, "0000 \n", 6, &used, &reply), 1);
	while (bird_line_next(&reply, &line))
		lines++;
	assert_int_equal(lines, 40001);
	bird_reader_next(&r);
	assert_int_equal(r.room, 0);
}

static void what_real_birds_say_is_framed(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(golden_versions); i++) {
		AUTO_DONE(bird_reader_done) struct bird_reader r = { 0 };
		struct bird_reply reply;

		golden(golden_versions[i], "show protocols \"zz*\"", 0, &r, &reply);
		expect_lines(&reply, "8003 No protocols match|");
		bird_reader_next(&r);
		golden(golden_versions[i], "configure status", 0, &r, &reply);
		expect_lines(&reply, "3 Daemon is up and running|0 |");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_carry_the_code_of_the_one_before),
		cmocka_unit_test(asynchronous_lines_belong_to_no_reply),
		cmocka_unit_test(an_overflow_inside_is_no_failure),
		cmocka_unit_test(two_replies_in_one_piece_come_one_by_one),
		cmocka_unit_test(what_is_no_reply_is_told),
		cmocka_unit_test(memory_has_a_limit),
		cmocka_unit_test(asynchronous_lines_take_no_memory),
		cmocka_unit_test(a_nul_does_not_end_a_line),
		cmocka_unit_test(a_large_reply_fits_and_is_let_go),
		cmocka_unit_test(what_real_birds_say_is_framed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
