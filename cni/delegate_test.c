/* SPDX-License-Identifier: Apache-2.0 */
/* Delegates that are shell scripts: what a plugin can do to who runs it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "cni/delegate.h"

static char folder[] = "/tmp/roost-delegate-XXXXXX";

static int make_folder(void **unused)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **unused)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command); /* NOLINT: a name of ours */
}

static const char *script(const char *name, const char *text)
{
	static char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", text);
	fclose(f);
	assert_int_equal(chmod(path, 0700), 0);
	return path;
}

static char input[] = "{\"name\":\"pods\"}";
static const struct cni_call call = { .program = "test",
				      .input = input,
				      .input_len = sizeof(input) - 1 };

static char *runs(const char *text, enum cni_verb verb)
{
	const struct deadline deadline = deadline_in(60000);
	struct cni_error e = { 0 };
	char *said;
	size_t len;

	if (delegate_run(&call, script("plugin", text), verb, &deadline, &said, &len, &e) < 0)
		fail_msg("%s; %s", e.msg.text, e.details.text);
	assert_int_equal(len, strlen(said));
	return said;
}

static struct cni_error fails(const char *text, unsigned ms, int code)
{
	const struct deadline deadline = deadline_in(ms);
	struct cni_error e = { 0 };
	char *said;
	size_t len;

	assert_int_equal(
		delegate_run(&call, script("plugin", text), CNI_ADD, &deadline, &said, &len, &e),
		code);
	return e;
}

static void no_child_is_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* What init has yet to bury is dead. */
static bool is_alive(const char *pid)
{
	char path[64], state = 'X';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", atoi(pid));
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(f);
	return state != 'X' && state != 'Z';
}

/* --- finding -------------------------------------------------------------------------------- */

static void the_first_executable_file_in_the_path_is_found(void **unused)
{
	char folders[PATH_MAX], found[PATH_MAX], want[PATH_MAX];

	script("good", "");
	chmod(script("plain", ""), 0600);
	snprintf(want, sizeof(want), "%s/directory", folder);
	mkdir(want, 0700);
	snprintf(folders, sizeof(folders), "/nowhere::%s:/bin", folder);
	snprintf(want, sizeof(want), "%s/good", folder);
	assert_int_equal(delegate_find(folders, "good", found), 0);
	assert_string_equal(found, want);
	assert_int_equal(delegate_find(folders, "sh", found), 0);
	assert_string_equal(found, "/bin/sh");
	assert_int_equal(delegate_find(folders, "directory", found), -ENOENT);
	assert_int_equal(delegate_find(folders, "absent", found), -ENOENT);
	assert_int_equal(delegate_find("", "good", found), -ENOENT);
	/* Root may execute nothing that is not executable for anybody. */
	assert_int_equal(delegate_find(folders, "plain", found), -ENOENT);
}

/* --- running -------------------------------------------------------------------------------- */

static void it_gets_the_input_and_the_verb(void **unused)
{
	AUTO(free) char *said = runs("echo $CNI_COMMAND; cat", CNI_DEL);

	assert_string_equal(said, "DEL\n{\"name\":\"pods\"}");
	no_child_is_left();
}

static void it_may_leave_its_input_unread_and_say_nothing(void **unused)
{
	AUTO(free) char *said = runs("exec <&-", CNI_DEL);

	assert_string_equal(said, "");
}

static void much_output_is_read_while_it_is_written(void **unused)
{
	AUTO(free)
	char *said = runs("head -c 300000 /dev/zero | tr '\\0' x; cat > /dev/null", CNI_ADD);

	assert_int_equal(strlen(said), 300000);
	assert_string_equal(fails("head -c 2000000 /dev/zero", 60000, -EMSGSIZE).msg.text,
			    "plugin printed more than 1048576 bytes");
	no_child_is_left();
}

static void what_it_leaves_behind_is_not_waited_for(void **unused)
{
	const struct deadline patience = deadline_in(50000);
	AUTO(free) char *said = runs("sleep 100 & echo $!", CNI_ADD);

	assert_true(deadline_left(&patience) > 0);
	for (int i = 0; i < 30000 && is_alive(said); i++)
		usleep(1000);
	assert_false(is_alive(said));
}

static void it_never_holds_our_output(void **unused)
{
	AUTO(free) char *said = runs("readlink /proc/$$/fd/1 /proc/$$/fd/2", CNI_ADD);
	char ours[128] = "";

	for (int fd = 1; fd <= 2; fd++) {
		char path[32];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, ours, sizeof(ours) - 1);
		assert_true(n > 0);
		ours[n] = '\0';
		assert_null(strstr(said, ours));
	}
}

/* --- failing -------------------------------------------------------------------------------- */

static void its_own_error_is_passed_on(void **unused)
{
	struct cni_error e = fails(
		"echo '{\"Code\":11,\"msg\":\"busy\",\"details\":\"very\"}'; exit 1", 60000,
		-EINVAL);

	assert_int_equal(e.code, CNI_CODE_TRY_AGAIN);
	assert_string_equal(e.msg.text, "plugin: busy");
	assert_string_equal(e.details.text, "very");
}

static void an_error_without_words_has_what_there_is(void **unused)
{
	struct cni_error e = fails("echo rubbish; exit 3", 60000, -EIO);

	assert_string_equal(e.msg.text, "plugin failed with exit code 3 and gave no reason");
	assert_string_equal(e.details.text, "it printed: rubbish?");
	e = fails("kill -9 $$", 60000, -EIO);
	assert_string_equal(e.msg.text, "plugin was killed by signal 9");
	assert_int_equal(e.code, CNI_CODE_IO);
}

static void at_the_deadline_it_is_killed_with_its_children(void **unused)
{
	struct cni_error e = fails("sleep 100 & wait", 100, -ETIMEDOUT);

	assert_string_equal(e.msg.text, "plugin did not finish in time and was killed");
	assert_int_equal(e.code, CNI_CODE_TRY_AGAIN);
	no_child_is_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_executable_file_in_the_path_is_found),
		cmocka_unit_test(it_gets_the_input_and_the_verb),
		cmocka_unit_test(it_may_leave_its_input_unread_and_say_nothing),
		cmocka_unit_test(much_output_is_read_while_it_is_written),
		cmocka_unit_test(what_it_leaves_behind_is_not_waited_for),
		cmocka_unit_test(it_never_holds_our_output),
		cmocka_unit_test(its_own_error_is_passed_on),
		cmocka_unit_test(an_error_without_words_has_what_there_is),
		cmocka_unit_test(at_the_deadline_it_is_killed_with_its_children),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
