/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin says when the agent does not answer: an agent that listens and never gets to run.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipam/plugin/plugin.h"

static char folder[48], lock[64];
static struct sockaddr_un silent = { .sun_family = AF_UNIX };

static int listen_and_be_silent(void **state)
{
	static int fd;

	/* In /run, with the file that root's agent leaves: a network configuration may name only such a
	 * folder. */
	snprintf(folder, sizeof(folder), "/run/plugin-ask-test-%d", getpid());
	snprintf(lock, sizeof(lock), "%s/agent.lock", folder);
	snprintf(silent.sun_path, sizeof(silent.sun_path), "%s/agent.sock", folder);
	if (mkdir(folder, 0700) < 0)
		return -1;
	fd = open(lock, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || close(fd) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*state = &fd;
	return bind(fd, (const struct sockaddr *)&silent, sizeof(silent)) || listen(fd, 8);
}

static int stop(void **state)
{
	unlink(silent.sun_path);
	unlink(lock);
	rmdir(folder);
	return close(*(int *)*state);
}

static void expect(enum cni_verb verb, const char *path, unsigned ms, const char *want)
{
	const struct cni_call call = { .env = { .verb = verb },
				       .conf = { .socket = silent.sun_path } };
	const struct deadline deadline = deadline_in(ms);
	struct json_object *reply = NULL;
	struct cni_error e = { 0 };

	assert_int_equal(plugin_ask(&call, "POST", path, "{}", &deadline, &reply, &e), -ETIMEDOUT);
	assert_int_equal(e.code, CNI_CODE_TRY_AGAIN);
	if (!strstr(e.msg.text, want))
		fail_msg("%s", e.msg.text);
	assert_non_null(strstr(e.msg.text, "may lack CPU time"));
	assert_null(strstr(e.msg.text, " 0 ms"));
}

static void a_late_answer_names_the_step_and_the_time(void **unused)
{
	expect(CNI_ADD, "/v1/ipam/assign", 20, "did not give the pod its addresses within ");
	expect(CNI_ADD, "/v1/attach", 20, "did not route to the pod's link ");
	expect(CNI_ADD, "/v1/attach", 20, " ms of the 9000 ms of this call; ");
	expect(CNI_STATUS, "/v1/ready?network=x", 20, "did not answer within ");
}

static void a_step_without_any_time_left_says_so(void **unused)
{
	expect(CNI_ADD, "/v1/attach", 0, "no time is left to ask the roost agent on ");
	expect(CNI_ADD, "/v1/attach", 0, "the steps before it took the whole 9000 ms of this call");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_answer_names_the_step_and_the_time),
		cmocka_unit_test(a_step_without_any_time_left_says_so),
	};

	return cmocka_run_group_tests(tests, listen_and_be_silent, stop);
}
