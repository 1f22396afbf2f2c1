/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agent/node/lock.h"

/* A name of this very run: the machine may have an agent, and tests run side by side. */
static char name[64];

static void the_second_one_is_told_the_pid_of_the_first(void **unused)
{
	int first = -1, second = -1;
	struct err err = { "" };
	char want[256];

	assert_int_equal(lock_take(name, &first, &err), 0);
	assert_int_equal(lock_take(name, &second, &err), -EBUSY);
	assert_int_equal(second, -1);
	snprintf(want, sizeof(want),
		 "another agent, process %d, runs in this network namespace (it holds the socket "
		 "@%s)",
		 getpid(), name);
	assert_string_equal(err.text, want);
	close(first);
	assert_int_equal(lock_take(name, &first, &err), 0);
	close(first);
}

static void the_lock_ends_with_its_holder_however_it_ends(void **unused)
{
	int ready[2], fd = -1, status;
	struct err err = { "" };
	char byte, want[64];
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		if (lock_take(name, &fd, NULL) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(lock_take(name, &fd, &err), -EBUSY);
	snprintf(want, sizeof(want), "process %d,", child);
	assert_non_null(strstr(err.text, want));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(lock_take(name, &fd, &err), 0);
	close(fd);
	close(ready[0]);
	close(ready[1]);
}

static void very_many_refused_ones_do_not_confuse_the_holder(void **unused)
{
	int first = -1, second = -1;

	assert_int_equal(lock_take(name, &first, NULL), 0);
	/* More than anybody's backlog: the pid may be missing then, the refusal never. */
	for (int i = 0; i < 5000; i++)
		assert_int_equal(lock_take(name, &second, NULL), -EBUSY);
	close(first);
}

static void another_network_namespace_has_its_own(void **unused)
{
	int first = -1, status;
	pid_t child;

	assert_int_equal(lock_take(name, &first, NULL), 0);
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWNET) < 0)
			_exit(77);
		_exit(lock_take(name, &first, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	close(first);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_one_is_told_the_pid_of_the_first),
		cmocka_unit_test(the_lock_ends_with_its_holder_however_it_ends),
		cmocka_unit_test(very_many_refused_ones_do_not_confuse_the_holder),
		cmocka_unit_test(another_network_namespace_has_its_own),
	};

	snprintf(name, sizeof(name), "roost-lock-test-%d", getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
