/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json_stream.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT 1000

/* What came out: each object as plain text, one per line. */
struct seen {
	char text[4096];
	size_t objects, bytes;
	int answer;       /* what the callback returns ... */
	size_t answer_at; /* ... for the object of this number; 0: never */
};

static int note(struct json_object *object, void *arg)
{
	struct seen *seen = arg;
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	size_t len = strlen(text);

	seen->objects++;
	if (seen->bytes + len + 2 < sizeof(seen->text))
		seen->bytes += (size_t)sprintf(seen->text + seen->bytes, "%s\n", text);
	return seen->objects == seen->answer_at ? seen->answer : 0;
}

static struct json_stream *make(size_t limit, struct seen *seen)
{
	struct json_stream *s = NULL;

	assert_int_equal(json_stream_new(limit, note, seen, &s), 0);
	return s;
}

/* Feeds pieces of a size; the result of the first piece that fails, or of the end. */
static int feed(struct json_stream *s, const char *text, size_t len, size_t piece, struct err *err)
{
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		/* A copy of its own: reading past the piece is then seen by the sanitizer. */
		AUTO(free) char *copy = malloc(n);
		int r;

		assert_non_null(copy);
		memcpy(copy, text + at, n);
		r = json_stream_feed(s, copy, n, err);
		if (r < 0)
			return r;
	}
	return json_stream_end(s, err);
}

/* The same whatever the size of the pieces. */
static void expect_bytes(size_t limit, const char *text, size_t len, int result, const char *want)
{
	for (size_t piece = 1; piece <= len; piece++) {
		struct seen seen = { .text = "" };
		AUTO(json_stream_free) struct json_stream *s = make(limit, &seen);
		struct err err = { "" };

		assert_int_equal(feed(s, text, len, piece, &err), result);
		assert_string_equal(seen.text, want);
		assert_int_equal(err.text[0] != '\0', result != 0);
	}
}

static void expect(const char *text, int result, const char *want)
{
	expect_bytes(LIMIT, text, strlen(text), result, want);
}

static void objects_come_out_whatever_the_pieces(void **unused)
{
	expect("{}", 0, "{}\n");
	expect("{\"a\":1}", 0, "{\"a\":1}\n");
	expect("{\"a\":1}{\"b\":[1,2,{\"c\":null}]}{\"d\":\"}{\"}", 0,
	       "{\"a\":1}\n{\"b\":[1,2,{\"c\":null}]}\n{\"d\":\"}{\"}\n");
	expect("{\"e\":\"\\u00e4\\\"\\\\\",\"f\":-1.5e3,\"g\":true}", 0,
	       "{\"e\":\"ä\\\"\\\\\",\"f\":-1.5e3,\"g\":true}\n");
}

static void blanks_between_objects_are_nothing(void **unused)
{
	expect("\n\r\t {}\n\n{ \"a\" : 1 }  \n", 0, "{}\n{\"a\":1}\n");
	expect(" \n", 0, "");
}

static void nothing_at_all_is_a_fine_stream(void **unused)
{
	struct seen seen = { .text = "" };
	AUTO(json_stream_free) struct json_stream *s = make(LIMIT, &seen);

	assert_int_equal(json_stream_feed(s, "", 0, NULL), 0);
	assert_int_equal(json_stream_end(s, NULL), 0);
	assert_int_equal(seen.objects, 0);
}

static void only_objects_are_accepted(void **unused)
{
	const char *bad[] = { "[]",    "[{}]",   "1", "\"a\"", "null",           "true",
			      "hello", "<html>", "}", ",{}",   "\xef\xbb\xbf{}", "\v{}" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect(bad[i], -EBADMSG, "");
	expect("{}x", -EBADMSG, "{}\n");
	expect("{},{}", -EBADMSG, "{}\n");
}

static void broken_objects_end_the_stream_after_the_good_ones(void **unused)
{
	const char *bad[] = { "{a:1}",      "{\"a\":1,}",  "{\"a\" 1}", "{\"a\":}",
			      "{\"a\":01}", "{\"a\":nul}", "{/*x*/}",   "{\"a\":\"\\x\"}" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(free) char *text = NULL;

		assert_true(asprintf(&text, "{\"ok\":1}\n%s\n{\"after\":1}", bad[i]) > 0);
		expect(text, -EBADMSG, "{\"ok\":1}\n");
	}
}

static void a_nul_byte_is_not_json(void **unused)
{
	expect_bytes(LIMIT, "\0{}", 3, -EBADMSG, "");
	expect_bytes(LIMIT, "{}\0{}", 5, -EBADMSG, "{}\n");
	expect_bytes(LIMIT, "{\"a\":\0}", 7, -EBADMSG, "");
	expect_bytes(LIMIT, "{\"a\":\"x\0y\"}", 11, -EBADMSG, "");
}

static void bytes_that_are_not_utf8_are_refused(void **unused)
{
	const char *bad[] = { "\xff",     "\x80",         "\xc3(",        "\xe2\x82",
			      "\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
			      "\xf5" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(free) char *text = NULL;

		assert_true(asprintf(&text, "{\"a\":\"%s\"}", bad[i]) > 0);
		expect(text, -EBADMSG, "");
	}
}

static void a_character_may_come_in_pieces(void **unused)
{
	const char *good[] = { "\xc2\x80",         "\xdf\xbf",        "\xe0\xa0\x80",
			       "\xe2\x82\xac",     "\xed\x9f\xbf",    "\xef\xbf\xbf",
			       "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		AUTO(free) char *text = NULL;

		assert_true(asprintf(&text, "{\"%s\":\"%sx%s\"}\n", good[i], good[i], good[i]) > 0);
		expect(text, 0, text);
	}
}

static void an_object_cut_off_is_told_with_its_length(void **unused)
{
	struct seen seen = { .text = "" };
	AUTO(json_stream_free) struct json_stream *s = make(LIMIT, &seen);
	struct err err = { "" };

	assert_int_equal(json_stream_feed(s, "{} {\"a\":", 8, &err), 0);
	assert_int_equal(json_stream_end(s, &err), -EBADMSG);
	assert_string_equal(err.text, "cut off within a JSON object, after 5 bytes");
	assert_int_equal(seen.objects, 1);
	expect("{\"a\":\"b", -EBADMSG, "");
	expect("{", -EBADMSG, "");
}

static char *object_of(size_t size)
{
	char *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, 'x', size);
	memcpy(text, "{\"a\":\"", 6);
	memcpy(text + size - 2, "\"}", 3);
	return text;
}

static void the_limit_itself_is_allowed_and_one_byte_more_is_not(void **unused)
{
	AUTO(free) char *fits = object_of(40), *does_not = object_of(41);
	AUTO(free) char *both = NULL, *line = NULL;

	assert_true(asprintf(&line, "%s\n", fits) > 0);
	expect_bytes(40, fits, 40, 0, line);
	expect_bytes(40, does_not, 41, -EMSGSIZE, "");
	assert_true(asprintf(&both, "%s%s", fits, does_not) > 0);
	expect_bytes(40, both, 81, -EMSGSIZE, line);
}

static void the_limit_is_per_object_and_blanks_do_not_count(void **unused)
{
	expect_bytes(7, "   \n{\"a\":1}     {\"b\":2}      {\"c\":3}", 36, 0,
		     "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
}

static void an_object_that_never_ends_is_given_up_at_the_limit(void **unused)
{
	struct seen seen = { .text = "" };
	AUTO(json_stream_free) struct json_stream *s = make(LIMIT, &seen);
	struct err err = { "" };
	size_t fed = 1;

	assert_int_equal(json_stream_feed(s, "{", 1, NULL), 0);
	while (json_stream_feed(s, " ", 1, &err) == 0)
		fed++;
	assert_int_equal(fed, LIMIT);
	assert_string_equal(err.text, "a message is larger than 1000 bytes");
	assert_int_equal(json_stream_end(s, NULL), -EMSGSIZE);
}

static void nest(char *text, size_t depth)
{
	*text = '\0';
	for (size_t i = 1; i < depth; i++)
		strcat(text, "{\"a\":");
	strcat(text, "{}");
	for (size_t i = 1; i < depth; i++)
		strcat(text, "}");
}

static void depth_is_limited_to_sixteen(void **unused)
{
	char text[512], line[520];

	for (size_t depth = 1; depth <= 16; depth++) {
		nest(text, depth);
		snprintf(line, sizeof(line), "%s\n", text);
		expect(text, 0, line);
	}
	nest(text, 17);
	expect(text, -EBADMSG, "");
	memset(text, '[', sizeof(text));
	memcpy(text, "{\"a\":", 5);
	expect_bytes(LIMIT, text, sizeof(text), -EBADMSG, "");
}

static void an_error_of_the_callback_stops_the_stream_for_good(void **unused)
{
	struct seen seen = { .answer = -ENOLINK, .answer_at = 2 };
	AUTO(json_stream_free) struct json_stream *s = make(LIMIT, &seen);
	struct err err = { "" };

	assert_int_equal(json_stream_feed(s, "{}{}{}", 6, &err), -ENOLINK);
	assert_int_equal(seen.objects, 2);
	assert_int_equal(json_stream_feed(s, "{}", 2, &err), -ENOLINK);
	assert_string_equal(err.text, "the stream was given up earlier");
	assert_int_equal(json_stream_end(s, &err), -ENOLINK);
	assert_int_equal(seen.objects, 2);
}

static void nothing_after_a_broken_object_is_trusted(void **unused)
{
	struct seen seen = { .text = "" };
	AUTO(json_stream_free) struct json_stream *s = make(LIMIT, &seen);

	assert_int_equal(json_stream_feed(s, "{]", 2, NULL), -EBADMSG);
	assert_int_equal(json_stream_feed(s, "{}", 2, NULL), -EBADMSG);
	assert_int_equal(json_stream_end(s, NULL), -EBADMSG);
	assert_int_equal(seen.objects, 0);
}

static void small_objects_follow_a_big_one(void **unused)
{
	const size_t big = 1024 * 1024;
	AUTO(free) char *text = object_of(big);

	for (size_t piece = 1000; piece < 2 * big; piece *= 3) {
		struct seen seen = { .text = "" };
		AUTO(json_stream_free) struct json_stream *s = make(big, &seen);

		assert_int_equal(feed(s, text, big, piece, NULL), 0);
		assert_int_equal(seen.objects, 1);
		seen.bytes = 0;
		assert_int_equal(feed(s, "{\"a\":1}{\"b\":2}", 14, piece, NULL), 0);
		assert_string_equal(seen.text, "{\"a\":1}\n{\"b\":2}\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_come_out_whatever_the_pieces),
		cmocka_unit_test(blanks_between_objects_are_nothing),
		cmocka_unit_test(nothing_at_all_is_a_fine_stream),
		cmocka_unit_test(only_objects_are_accepted),
		cmocka_unit_test(broken_objects_end_the_stream_after_the_good_ones),
		cmocka_unit_test(a_nul_byte_is_not_json),
		cmocka_unit_test(bytes_that_are_not_utf8_are_refused),
		cmocka_unit_test(a_character_may_come_in_pieces),
		cmocka_unit_test(an_object_cut_off_is_told_with_its_length),
		cmocka_unit_test(the_limit_itself_is_allowed_and_one_byte_more_is_not),
		cmocka_unit_test(the_limit_is_per_object_and_blanks_do_not_count),
		cmocka_unit_test(an_object_that_never_ends_is_given_up_at_the_limit),
		cmocka_unit_test(depth_is_limited_to_sixteen),
		cmocka_unit_test(an_error_of_the_callback_stops_the_stream_for_good),
		cmocka_unit_test(nothing_after_a_broken_object_is_trusted),
		cmocka_unit_test(small_objects_follow_a_big_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
