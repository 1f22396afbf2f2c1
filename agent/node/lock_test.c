/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/node/lock.h"

static char top[64], run[80], other[80], common[80];

static int set_up(void **unused)
{
	(void)unused;
	snprintf(top, sizeof(top), "/tmp/roost-lock-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(run, sizeof(run), "%s/run", top);
	snprintf(other, sizeof(other), "%s/other", top);
	snprintf(common, sizeof(common), "%s/common", top);
	return 0;
}

static int tear_down(void **unused)
{
	char command[128];

	(void)unused;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void busy(const char *run_dir, const char *word)
{
	struct lock second = LOCK_NONE;
	struct err err = { "" };

	assert_int_equal(lock_take(run_dir, common, &second, &err), -EBUSY);
	assert_int_equal(second.run, -1);
	assert_int_equal(second.net, -1);
	if (word && !strstr(err.text, word))
		fail_msg("%s: no %s", err.text, word);
}

static void the_second_one_reads_the_pid_of_the_first(void **unused)
{
	struct lock first = LOCK_NONE;
	struct err err = { "" };
	char want[256];

	(void)unused;
	assert_int_equal(lock_take(run, common, &first, &err), 0);
	snprintf(want, sizeof(want),
		 "another agent, process %d, runs here (it holds %s/agent.lock)", getpid(), run);
	busy(run, want);
	lock_drop(&first);
	/* The file that is left blocks nothing. */
	assert_int_equal(lock_take(run, common, &first, &err), 0);
	lock_drop(&first);
}

static void two_run_directories_in_one_network_namespace_exclude_each_other(void **unused)
{
	struct lock first = LOCK_NONE;
	char want[256];

	(void)unused;
	assert_int_equal(lock_take(run, common, &first, NULL), 0);
	snprintf(want, sizeof(want), "process %d,", getpid());
	busy(other, want);
	lock_drop(&first);
	assert_int_equal(lock_take(other, common, &first, NULL), 0);
	busy(run, want);
	lock_drop(&first);
}

static void the_lock_ends_with_its_holder_however_it_ends(void **unused)
{
	struct lock lock = LOCK_NONE;
	int ready[2], status;
	char byte, want[64];
	pid_t child;

	(void)unused;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		if (lock_take(run, common, &lock, NULL) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	snprintf(want, sizeof(want), "process %d,", child);
	busy(run, want);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(lock_take(run, common, &lock, NULL), 0);
	lock_drop(&lock);
	close(ready[0]);
	close(ready[1]);
}

static void another_network_namespace_has_its_own(void **unused)
{
	struct lock first = LOCK_NONE;
	int status;
	pid_t child;

	(void)unused;
	assert_false(lock_is_held_here(run));
	assert_int_equal(lock_take(run, common, &first, NULL), 0);
	assert_true(lock_is_held_here(run));
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWNET) < 0)
			_exit(77);
		/* But not one run directory: its files are one agent's. */
		if (lock_take(run, common, &first, NULL) != -EBUSY || lock_is_held_here(run))
			_exit(2);
		_exit(lock_take(other, common, &first, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	lock_drop(&first);
	assert_false(lock_is_held_here(run));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_user_who_binds_the_former_socket_name_blocks_nothing(void **unused)
{
	static const char name[] = "\0roost-agent";
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct lock lock = LOCK_NONE;

	(void)unused;
	memcpy(at.sun_path, name, sizeof(name) - 1);
	/* Bound already: an older agent of the machine does the same for the test. */
	(void)bind(fd, (const void *)&at,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name) - 1));
	assert_int_equal(lock_take(run, common, &lock, NULL), 0);
	lock_drop(&lock);
	close(fd);
}

static void a_user_cannot_open_the_file_to_lock_it(void **unused)
{
	struct lock lock = LOCK_NONE;
	char path[256];
	int status;
	pid_t child;

	(void)unused;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(top, 0755), 0);
	assert_int_equal(lock_take(run, common, &lock, NULL), 0);
	lock_drop(&lock);
	assert_int_equal(chmod(run, 0755), 0); /* as a hostPath volume makes it */
	snprintf(path, sizeof(path), "%s/agent.lock", run);
	child = fork();
	if (child == 0) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		_exit(open(path, O_RDONLY) < 0 && errno == EACCES && unlink(path) < 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_file_or_directory_of_others_is_refused(void **unused)
{
	struct lock lock = LOCK_NONE;
	struct err err = { "" };
	char path[256];
	struct stat st = { .st_uid = 1000, .st_mode = 0755 };

	(void)unused;
	assert_int_equal(lock_owner_check("/run/roost", &st, 0, &err), -EPERM);
	assert_string_equal(err.text, "/run/roost belongs to user 1000, who could replace the "
				      "agent's lock; chown root /run/roost");
	st = (struct stat){ .st_mode = 0777 };
	assert_int_equal(lock_owner_check("/run/roost", &st, 0, &err), -EPERM);
	assert_non_null(strstr(err.text, "mode 0777"));

	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(chmod(run, 0777), 0);
	assert_int_equal(lock_take(run, common, &lock, &err), -EPERM);
	assert_int_equal(chmod(run, 0700), 0);

	/* A link would let its owner choose the file. */
	snprintf(path, sizeof(path), "%s/agent.lock", run);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(lock_take(run, common, &lock, &err), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(lock_take(run, common, &lock, &err), -EINVAL);
}

static void a_look_at_the_lock_does_not_refuse_the_agent(void **unused)
{
	struct lock lock = LOCK_NONE;
	char path[256], byte;
	int ready[2], status;
	pid_t child;

	(void)unused;
	assert_int_equal(lock_take(run, common, &lock, NULL), 0);
	lock_drop(&lock);
	snprintf(path, sizeof(path), "%s/agent.lock", run);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		int fd = open(path, O_RDONLY);

		if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		usleep(20000);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(lock_take(run, common, &lock, NULL), 0);
	lock_drop(&lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ready[0]);
	close(ready[1]);
}

static void a_common_directory_that_cannot_be_made_is_no_reason_to_refuse(void **unused)
{
	struct lock lock = LOCK_NONE;
	struct err err = { "" };

	(void)unused;
	assert_int_equal(lock_take(run, "/proc/nothing", &lock, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(lock.net, -1);
	lock_drop(&lock);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_second_one_reads_the_pid_of_the_first),
		TEST(two_run_directories_in_one_network_namespace_exclude_each_other),
		TEST(the_lock_ends_with_its_holder_however_it_ends),
		TEST(another_network_namespace_has_its_own),
		TEST(a_user_who_binds_the_former_socket_name_blocks_nothing),
		TEST(a_user_cannot_open_the_file_to_lock_it),
		TEST(a_file_or_directory_of_others_is_refused),
		TEST(a_look_at_the_lock_does_not_refuse_the_agent),
		TEST(a_common_directory_that_cannot_be_made_is_no_reason_to_refuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
