/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/renderer.h"
#include "lib/base/files.h"

static char folder[] = "/tmp/roost-templates-XXXXXX";
static char ours[64], shipped[64];

static void write_template(const char *dir, const char *name, const char *text)
{
	AUTO(close) int fd = dir_open(dir);

	assert_true(fd >= 0);
	assert_int_equal(file_publish(fd, name, 0644, text, strlen(text)), 0);
}

static int set_up(void **state)
{
	const char *folders[] = { ours, shipped };

	return template_dir_new(folders, 2, (struct template_dir **)state);
}

static int tear_down(void **state)
{
	char line[128];

	template_dir_free(*state);
	snprintf(line, sizeof(line), "rm -rf %s/*", folder);
	return system(line);
}

static void expect(void *t, const char *name, const char *want)
{
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	size_t len = 0;
	int r = template_dir_load(name, &text, &len, t, &err);

	if (!want) {
		assert_true(r < 0);
		assert_true(err.text[0] != '\0');
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(len, strlen(want));
	assert_string_equal(text, want);
}

static void the_operators_template_goes_before_the_shipped_one(void **state)
{
	write_template(shipped, "a.mustache", "shipped a");
	write_template(shipped, "b.mustache", "shipped b");
	write_template(ours, "a.mustache", "our a");
	expect(*state, "a", "our a");
	expect(*state, "b", "shipped b");
}

static void the_suffix_may_be_left_out(void **state)
{
	char sub[96];

	write_template(shipped, "bird.conf.mustache", "x");
	expect(*state, "bird.conf", "x");
	expect(*state, "bird.conf.mustache", "x");
	snprintf(sub, sizeof(sub), "%s/sub", shipped);
	write_template(sub, "y.mustache", "y");
	expect(*state, "sub/y", "y");
}

static void a_missing_one_is_named(void **state)
{
	struct err err = { "" };
	char *text;
	size_t len;

	assert_int_equal(template_dir_load("no", &text, &len, *state, &err), -ENOENT);
	assert_string_equal(err.text, "there is no template \"no\"");
}

static void a_name_never_leaves_the_folder(void **state)
{
	write_template(folder, "secret.mustache", "s");
	write_template(ours, ".hidden.mustache", "h");
	expect(*state, "../secret", NULL);
	expect(*state, "a/../../secret", NULL);
	expect(*state, "/etc/passwd", NULL);
	expect(*state, "a//b", NULL);
	expect(*state, "./a", NULL);
	expect(*state, "a/", NULL);
	expect(*state, "", NULL);
	expect(*state, ".hidden", NULL);
	expect(*state, "a\nb", NULL);
}

static void what_is_no_file_is_refused(void **state)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/d.mustache", shipped);
	write_template(path, "x", "");
	expect(*state, "d", NULL);
}

static void an_edit_is_noticed(void **state)
{
	write_template(shipped, "a.mustache", "one");
	expect(*state, "a", "one");
	assert_false(template_dir_changed(*state));
	write_template(shipped, "a.mustache", "two");
	assert_true(template_dir_changed(*state));
	expect(*state, "a", "two");
	assert_false(template_dir_changed(*state));
}

static void a_new_file_of_the_operator_is_noticed_and_so_is_its_end(void **state)
{
	char path[96];

	write_template(shipped, "a.mustache", "shipped");
	expect(*state, "a", "shipped");
	write_template(ours, "a.mustache", "ours");
	assert_true(template_dir_changed(*state));
	expect(*state, "a", "ours");
	snprintf(path, sizeof(path), "%s/a.mustache", ours);
	assert_int_equal(unlink(path), 0);
	assert_true(template_dir_changed(*state));
	expect(*state, "a", "shipped");
}

static void one_that_was_missing_is_noticed_when_it_comes(void **state)
{
	expect(*state, "later", NULL);
	assert_false(template_dir_changed(*state));
	write_template(ours, "later.mustache", "now");
	assert_true(template_dir_changed(*state));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_operators_template_goes_before_the_shipped_one),
		CASE(the_suffix_may_be_left_out),
		CASE(a_missing_one_is_named),
		CASE(a_name_never_leaves_the_folder),
		CASE(what_is_no_file_is_refused),
		CASE(an_edit_is_noticed),
		CASE(a_new_file_of_the_operator_is_noticed_and_so_is_its_end),
		CASE(one_that_was_missing_is_noticed_when_it_comes),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	strcat(strcpy(ours, folder), "/ours");
	strcat(strcpy(shipped, folder), "/shipped");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
