/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle of the walk is what a diff promises: applied to the old text it gives the new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/diff.h"
#include "lib/base/auto.h"

static char *diff(const char *before, const char *after)
{
	struct diff_side a = { "a", before, strlen(before) }, b = { "b", after, strlen(after) };
	char *text = NULL;

	assert_int_equal(diff_unified(&a, &b, &text), 0);
	return text;
}

#define EXPECT(before, after, want)                                                                \
	do {                                                                                       \
		AUTO(free) char *got_ = diff(before, after);                                       \
		assert_string_equal(got_, want);                                                   \
	} while (0)

static void equal_texts_are_nothing(void **unused)
{
	EXPECT("", "", "");
	EXPECT("a\nb\n", "a\nb\n", "");
}

static void a_changed_line_is_shown_with_three_lines_of_context(void **unused)
{
	EXPECT("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
	       "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

static void what_is_far_apart_is_two_hunks_and_what_is_near_one(void **unused)
{
	EXPECT("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
	       "--- a\n+++ b\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n"
	       "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
	EXPECT("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
	       "--- a\n+++ b\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

static void a_new_file_and_an_emptied_one(void **unused)
{
	EXPECT("", "x\ny\n", "--- a\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n");
	EXPECT("x\n", "", "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
}

static void a_missing_newline_at_the_end_is_told(void **unused)
{
	EXPECT("x\ny", "x\ny\n",
	       "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+y\n");
}

static void an_insertion_among_equal_lines_is_one_line(void **unused)
{
	EXPECT("{\n}\n{\n}\n", "{\n}\n{\n}\n{\n}\n",
	       "--- a\n+++ b\n@@ -2,3 +2,5 @@\n }\n {\n }\n+{\n+}\n");
}

/* --- a walk over random texts --------------------------------------------------------------- */

/* Takes our output for granted only as far as it is checked here. */
static void apply(const char *before, const char *patch, char *ret)
{
	const char *p = strstr(patch, "@@");
	size_t line = 1;

	*ret = '\0';
	while (p && *p) {
		const char *end = strchr(p, '\n') + 1;
		size_t from;

		if (*p == '@') {
			assert_int_equal(sscanf(p, "@@ -%zu", &from), 1);
			for (; line < from; line++) {
				const char *next = strchr(before, '\n') + 1;

				strncat(ret, before, (size_t)(next - before));
				before = next;
			}
		} else {
			if (*p != '+') {
				assert_memory_equal(before, p + 1, (size_t)(end - p - 1));
				before += end - p - 1;
				line++;
			}
			if (*p != '-')
				strncat(ret, p + 1, (size_t)(end - p - 1));
		}
		p = end;
	}
	strcat(ret, before);
}

static unsigned state = 12345;
static unsigned chance(unsigned n)
{
	state = state * 1103515245 + 12345;
	return (state >> 16) % n;
}

static void make_text(char *text)
{
	unsigned n = 1 + chance(25);

	for (unsigned i = 0; i < n; i++)
		text += sprintf(text, "%c\n", 'a' + (int)chance(4));
}

static void applied_to_the_old_text_it_gives_the_new(void **unused)
{
	char a[256], b[256], got[512];

	for (unsigned i = 0; i < 3000; i++) {
		AUTO(free) char *patch = NULL;

		make_text(a);
		make_text(b);
		patch = diff(a, b);
		apply(a, patch, got);
		assert_string_equal(got, b);
	}
}

static void texts_that_have_little_in_common_stay_cheap(void **unused)
{
	size_t room = 1 << 20;
	AUTO(free) char *a = calloc(1, room);
	AUTO(free) char *b = calloc(1, room);
	AUTO(free) char *patch = NULL;
	char *p = a, *q = b;

	for (int i = 0; i < 20000; i++) {
		p += sprintf(p, "old %d\n", i);
		q += sprintf(q, "new %d\n", i);
	}
	patch = diff(a, b);
	assert_non_null(strstr(patch, "@@ -1,20000 +1,20000 @@\n-old 0\n-old 1\n"));
	assert_non_null(strstr(patch, "-old 19999\n+new 0\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_are_nothing),
		cmocka_unit_test(a_changed_line_is_shown_with_three_lines_of_context),
		cmocka_unit_test(what_is_far_apart_is_two_hunks_and_what_is_near_one),
		cmocka_unit_test(a_new_file_and_an_emptied_one),
		cmocka_unit_test(a_missing_newline_at_the_end_is_told),
		cmocka_unit_test(an_insertion_among_equal_lines_is_one_line),
		cmocka_unit_test(applied_to_the_old_text_it_gives_the_new),
		cmocka_unit_test(texts_that_have_little_in_common_stay_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
