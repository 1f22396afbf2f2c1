/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/cni/cni_place.h"

static void refused(const char *socket)
{
	struct err err = { "" };

	assert_int_equal(cni_place_check(socket, &err), -EPERM);
	assert_non_null(strstr(err.text, "is no socket of this node's agent"));
}

static void a_configuration_does_not_choose_where_root_writes(void **unused)
{
	(void)unused;
	assert_int_equal(cni_place_check("/run/roost/agent.sock", NULL), 0);
	refused("/etc/cron.d/agent.sock");
	refused("/agent.sock");
	refused("/run/agent.sock");
	refused("/run/roost/../../etc/cron.d/x");
	refused("/run/../x");
	refused("/var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/a/agent.sock");
}

static void only_a_folder_of_run_counts(void **unused)
{
	(void)unused;
	assert_true(cni_place_is_of_run("/run/other/agent.sock"));
	assert_true(cni_place_is_of_run("/var/run/other/agent.sock"));
	assert_true(cni_place_is_of_run("/run/..x/agent.sock"));
	assert_false(cni_place_is_of_run("/run/other/"));
	assert_false(cni_place_is_of_run("/run/other"));
	assert_false(cni_place_is_of_run("/run//agent.sock"));
	assert_false(cni_place_is_of_run("/run/./agent.sock"));
	assert_false(cni_place_is_of_run("/run/../agent.sock"));
	assert_false(cni_place_is_of_run("/run/user/1000/agent.sock"));
	assert_false(cni_place_is_of_run("/runner/x/agent.sock"));
}

static void another_folder_is_one_in_which_roots_agent_ran(void **unused)
{
	char folder[80], lock[100], socket[100];
	FILE *f;

	(void)unused;
	snprintf(folder, sizeof(folder), "/run/roost-place-test-%d", getpid());
	snprintf(lock, sizeof(lock), "%s/agent.lock", folder);
	snprintf(socket, sizeof(socket), "%s/agent.sock", folder);
	refused(socket);
	if (mkdir(folder, 0700) < 0)
		skip();
	refused(socket);
	f = fopen(lock, "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(cni_place_check(socket, NULL), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	refused(socket);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(chmod(lock, 0666), 0);
	refused(socket);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(symlink("/etc/passwd", lock), 0);
	refused(socket);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configuration_does_not_choose_where_root_writes),
		cmocka_unit_test(only_a_folder_of_run_counts),
		cmocka_unit_test(another_folder_is_one_in_which_roots_agent_ran),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
