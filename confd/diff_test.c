/* SPDX-License-Identifier: Apache-2.0 */
/* That diff(1) is asked for the right thing and its answer comes back whole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "confd/diff.h"
#include "lib/base/auto.h"

static char *diff(const char *before, const char *after)
{
	struct diff_side a = { "a", before, strlen(before) }, b = { "b", after, strlen(after) };
	struct err err = { "" };
	char *text = NULL;

	assert_int_equal(diff_unified(&a, &b, &text, &err), 0);
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

static void a_missing_newline_at_the_end_is_shown(void **unused)
{
	EXPECT("x\ny", "x\ny\n",
	       "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+y\n");
}

static void bytes_of_all_kinds_are_text(void **unused)
{
	struct diff_side a = { "a", "x\0y\n", 4 }, b = { "b", "x\0z\n", 4 };
	AUTO(free) char *text = NULL;
	struct err err;
	const char want[] = "--- a\n+++ b\n@@ -1 +1 @@\n-x\0y\n+x\0z\n";

	assert_int_equal(diff_unified(&a, &b, &text, &err), 0);
	assert_memory_equal(text, want, sizeof(want));
}

static void without_the_program_the_sentence_names_the_package(void **unused)
{
	struct diff_side a = { "a", "x\n", 2 }, b = { "b", "y\n", 2 };
	AUTO(free) char *text = NULL;
	AUTO(free) char *path = strdup(getenv("PATH") ?: "/usr/bin");
	struct err err = { "" };

	setenv("PATH", "/nowhere", 1);
	assert_int_equal(diff_unified(&a, &b, &text, &err), -ENOENT);
	setenv("PATH", path, 1);
	assert_string_equal(err.text, "there is no program diff: install the package diffutils");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_are_nothing),
		cmocka_unit_test(a_changed_line_is_shown_with_three_lines_of_context),
		cmocka_unit_test(what_is_far_apart_is_two_hunks_and_what_is_near_one),
		cmocka_unit_test(a_new_file_and_an_emptied_one),
		cmocka_unit_test(a_missing_newline_at_the_end_is_shown),
		cmocka_unit_test(bytes_of_all_kinds_are_text),
		cmocka_unit_test(without_the_program_the_sentence_names_the_package),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
