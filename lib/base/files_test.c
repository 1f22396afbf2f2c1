/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static int scratch = -1;

static int make_scratch(void **unused)
{
	char path[] = "/tmp/roost-files-XXXXXX";

	if (!mkdtemp(path))
		return -1;
	scratch = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Gone when the last descriptor is closed, but for what the tests leave: they leave
	 * nothing. */
	return scratch < 0 || setenv("SCRATCH", path, 1) < 0 ? -1 : 0;
}

static int remove_scratch(void **unused)
{
	close(scratch);
	return rmdir(getenv("SCRATCH") ?: "");
}

static void expect_content(const char *name, const char *want)
{
	AUTO(free) char *text = NULL;
	size_t len;

	assert_int_equal(file_read(scratch, name, 100, &text, &len), 0);
	assert_int_equal(len, strlen(want));
	assert_string_equal(text, want);
}

static void published_content_replaces_the_old(void **unused)
{
	struct stat st;

	assert_int_equal(file_publish(scratch, "a", 0640, "one", 3), 0);
	expect_content("a", "one");
	assert_int_equal(file_publish(scratch, "a", 0640, "", 0), 0);
	expect_content("a", "");
	assert_int_equal(fstatat(scratch, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(file_remove(scratch, "a"), 0);
	assert_int_equal(file_remove(scratch, "a"), 0);
}

static void a_failed_publication_leaves_the_old_content_and_no_rest(void **unused)
{
	AUTO(free) char *text = NULL;

	/* A directory of that name cannot be replaced by a file. */
	assert_int_equal(mkdirat(scratch, "d", 0700), 0);
	assert_int_equal(file_publish(scratch, "d", 0600, "x", 1), -EISDIR);
	assert_int_equal(file_read(scratch, ".d.new", 100, &text, NULL), -ENOENT);
	assert_int_equal(unlinkat(scratch, "d", AT_REMOVEDIR), 0);
}

static void what_is_no_small_regular_file_is_refused(void **unused)
{
	AUTO(free) char *text = NULL;

	assert_int_equal(file_publish(scratch, "big", 0600, "0123456789", 10), 0);
	assert_int_equal(file_read(scratch, "big", 9, &text, NULL), -EFBIG);
	assert_int_equal(symlinkat("/etc/passwd", scratch, "link"), 0);
	assert_int_equal(file_read(scratch, "link", 100000, &text, NULL), -ELOOP);
	assert_int_equal(fchdir(scratch), 0);
	assert_int_equal(file_read_path("link", 1 << 20, &text, NULL), 0);
	free(TAKE(text));
	assert_int_equal(file_read_path("absent", 1 << 20, &text, NULL), -ENOENT);
	assert_int_equal(mkfifoat(scratch, "pipe", 0600), 0);
	assert_int_equal(file_read(scratch, "pipe", 100, &text, NULL), -EINVAL);
	assert_int_equal(file_read(scratch, "absent", 100, &text, NULL), -ENOENT);
	assert_null(text);
	file_remove(scratch, "big");
	file_remove(scratch, "link");
	file_remove(scratch, "pipe");
}

static int count(int dir, const char *name, void *arg)
{
	assert_int_not_equal(name[0], '.');
	++*(int *)arg;
	return 0;
}

static void temporary_names_are_skipped(void **unused)
{
	int n = 0;

	assert_int_equal(file_publish(scratch, "x", 0600, "1", 1), 0);
	assert_int_equal(file_publish(scratch, "y", 0600, "2", 1), 0);
	close(openat(scratch, ".z.new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(dir_each(scratch, count, &n), 0);
	assert_int_equal(n, 2);
	file_remove(scratch, "x");
	file_remove(scratch, "y");
	file_remove(scratch, ".z.new");
}

static void folders_are_made_with_their_parents(void **unused)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/p/q/r", getenv("SCRATCH"));
	fd = dir_open(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unlinkat(scratch, "p/q/r", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(scratch, "p/q", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(scratch, "p", AT_REMOVEDIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_content_replaces_the_old),
		cmocka_unit_test(a_failed_publication_leaves_the_old_content_and_no_rest),
		cmocka_unit_test(what_is_no_small_regular_file_is_refused),
		cmocka_unit_test(temporary_names_are_skipped),
		cmocka_unit_test(folders_are_made_with_their_parents),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
