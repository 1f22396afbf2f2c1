/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/log.h"
#include "lib/base/secret.h"

static char folder[] = "/tmp/roost-secret-XXXXXX";
static char path[320];

static void write_secret(const char *text, size_t len, mode_t mode)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void reads(const char *text, const char *want)
{
	AUTO(secret_free) char *secret = NULL;
	struct err err = { "" };

	write_secret(text, strlen(text), 0600);
	assert_int_equal(secret_read(path, &secret, NULL, &err), 0);
	assert_string_equal(secret, want);
}

/* The sentence ends so, and never shows what the file holds. */
static void refused(const char *text, size_t len, mode_t mode, int error, const char *sentence)
{
	char *secret = NULL;
	struct err err = { "" };

	write_secret(text, len, mode);
	assert_int_equal(secret_read(path, &secret, NULL, &err), error);
	assert_null(secret);
	if (!strstr(err.text, sentence))
		fail_msg("\"%s\" lacks \"%s\"", err.text, sentence);
	assert_null(strstr(err.text, "hunter"));
}

static void one_newline_at_the_end_is_not_part_of_it(void **unused)
{
	reads("hunter22", "hunter22");
	reads("hunter22\n", "hunter22");
	reads("hunter22\r\n", "hunter22");
	reads(" hunter 22 ", " hunter 22 ");
}

static void a_file_that_others_can_read_or_change_is_not_used(void **unused)
{
	static const mode_t modes[] = { 0604, 0644, 0602, 0601, 0620, 0666 };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		refused("hunter22", 8, modes[i], -EPERM, "others can read or change it");
}

static void a_group_may_read_and_that_is_told(void **unused)
{
	AUTO(secret_free) char *secret = NULL;
	bool group = false;

	write_secret("hunter22", 8, 0440);
	assert_int_equal(secret_read(path, &secret, &group, NULL), 0);
	assert_true(group);
}

static void a_strangers_file_is_not_used(void **unused)
{
	struct stat st = { .st_mode = S_IFREG | 0600, .st_uid = 1000 };
	struct err err = { "" };

	assert_int_equal(secret_mode_check("/p", &st, 0, &err), -EPERM);
	assert_string_equal(err.text,
			    "/p belongs to user 1000: a secret must belong to root or to us");
	assert_int_equal(secret_mode_check("/p", &st, 1000, &err), 0);
	st.st_uid = 0;
	assert_int_equal(secret_mode_check("/p", &st, 1000, &err), 0);
}

static void what_is_no_secret_fails_closed(void **unused)
{
	AUTO(free) char *large = malloc(2000);

	memset(large, 'x', 2000);
	refused("", 0, 0600, -EINVAL, "is empty");
	refused("\n", 1, 0600, -EINVAL, "is empty");
	refused("hunter\0"
		"22",
		9, 0600, -EINVAL, "holds a control character at byte 7");
	refused("hunter22\n\n", 10, 0600, -EINVAL, "holds a control character at byte 9");
	refused(large, 2000, 0600, -E2BIG, "that is no password");
	refused("abc", 3, 0600, -EINVAL, "fewer than 4 bytes cannot be kept out of the log");
}

static void no_file_at_all_fails_closed(void **unused)
{
	char *secret = NULL;
	struct err err = { "" };

	unlink(path);
	assert_int_equal(secret_read(path, &secret, NULL, &err), -ENOENT);
	assert_int_equal(secret_read(folder, &secret, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is not a file"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(secret_read(path, &secret, NULL, &err), -EINVAL);
	assert_null(secret);
}

static char logged[256];
static void keep(const struct log_record *record)
{
	snprintf(logged, sizeof(logged), "%s", record->text);
}

static void it_never_reaches_the_log(void **unused)
{
	reads("hunter22\n", "hunter22");
	log_set_sink(keep);
	log_error("test", "login as root:hunter22 failed");
	log_set_sink(log_to_stderr);
	assert_string_equal(logged, "login as root:*** failed");
}

static void in_dirs(const char *dirs, const char *file, int want, const char *sentence)
{
	AUTO(secret_free) char *secret = NULL;
	struct err err = { "" };

	assert_int_equal(secret_read_in(dirs, file, &secret, &err), want);
	if (want == 0) {
		assert_string_equal(secret, "hunter22");
		return;
	}
	assert_null(secret);
	if (!strstr(err.text, sentence))
		fail_msg("\"%s\" lacks \"%s\"", err.text, sentence);
}

static void a_path_of_others_stays_in_the_directories(void **unused)
{
	char dirs[200], in[100], out[300], odd[200];

	(void)unused;
	snprintf(in, sizeof(in), "%s/in", folder);
	snprintf(out, sizeof(out), "%s/in2", folder);
	snprintf(dirs, sizeof(dirs), "/none:%s/", in);
	assert_int_equal(mkdir(in, 0700), 0);
	assert_int_equal(mkdir(out, 0700), 0);

	snprintf(path, sizeof(path), "%s/outside", out);
	write_secret("hunter22", 8, 0600);
	in_dirs(dirs, path, -EACCES, "is in none of the directories for passwords (/none:");
	in_dirs(dirs, path, -EACCES, "--secret-dir");
	in_dirs("", path, -EACCES, "is in none");
	in_dirs("/", path, -EACCES, "is in none");
	in_dirs(dirs, in, -EACCES, "is in none");
	in_dirs(out, path, 0, "");
	snprintf(odd, sizeof(odd), "%s/../in2/outside", in);
	in_dirs(dirs, odd, -EXDEV, "leads out of");
	/* Within, but by a link of another. */
	snprintf(odd, sizeof(odd), "%s/link", in);
	assert_int_equal(symlink(path, odd), 0);
	in_dirs(dirs, odd, -EXDEV, "leads out of");
	assert_int_equal(unlink(odd), 0);
	assert_int_equal(symlink("/proc/self/environ", odd), 0);
	in_dirs(dirs, odd, -EXDEV, "leads out of");
	assert_int_equal(unlink(odd), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(out), 0);

	snprintf(path, sizeof(path), "%s/inside", in);
	write_secret("hunter22", 8, 0600);
	in_dirs(dirs, path, 0, "");
	/* As Kubernetes mounts a Secret: rack-a -> ..data/rack-a, ..data -> ..2024_01 */
	snprintf(odd, sizeof(odd), "%s/..2024_01", in);
	assert_int_equal(mkdir(odd, 0700), 0);
	snprintf(out, sizeof(out), "%s/rack-a", odd);
	assert_int_equal(rename(path, out), 0);
	snprintf(odd, sizeof(odd), "%s/..data", in);
	assert_int_equal(symlink("..2024_01", odd), 0);
	assert_int_equal(symlink("..data/rack-a", path), 0);
	in_dirs(dirs, path, 0, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(odd), 0);
	assert_int_equal(unlink(out), 0);
	snprintf(odd, sizeof(odd), "%s/..2024_01", in);
	assert_int_equal(rmdir(odd), 0);
	in_dirs(dirs, path, -ENOENT, "No such file");
	assert_int_equal(rmdir(in), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_newline_at_the_end_is_not_part_of_it),
		cmocka_unit_test(a_file_that_others_can_read_or_change_is_not_used),
		cmocka_unit_test(a_group_may_read_and_that_is_told),
		cmocka_unit_test(a_strangers_file_is_not_used),
		cmocka_unit_test(what_is_no_secret_fails_closed),
		cmocka_unit_test(no_file_at_all_fails_closed),
		cmocka_unit_test(it_never_reaches_the_log),
		cmocka_unit_test(a_path_of_others_stays_in_the_directories),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/secret", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	log_forget_hidden();
	return failed;
}
