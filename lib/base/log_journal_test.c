/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's place is taken by a socket of ours, in a mount namespace of our own. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/log_journal.h"

static int journal = -1; /* where the lines arrive, -1 without the right to mount */

static void the_journal_is_known_by_device_and_inode(void **unused)
{
	char stream[64];
	struct stat st;

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_true(log_journal_connected());

	/* Inherited from a parent whose stderr was another. */
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + 1);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_false(log_journal_connected());
	setenv("JOURNAL_STREAM", "nonsense", 1);
	assert_false(log_journal_connected());
	unsetenv("JOURNAL_STREAM");
	assert_false(log_journal_connected());
}

static void assert_has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (!at || at[strlen(line)] != '\n' || (at != text && at[-1] != '\n'))
		fail_msg("no line '%s' in:\n%s", line, text);
}

static void expect_entry(enum log_level level, const char *priority)
{
	char entry[2 * LOG_TEXT_MAX] = "";

	log_line(level, "store", "%s", "hunter2 is\ngone");
	assert_true(recv(journal, entry, sizeof(entry) - 1, MSG_DONTWAIT) > 0);
	assert_has_line(entry, priority);
	assert_has_line(entry, "ROOST_PART=store");
	assert_has_line(entry, "MESSAGE=*** is gone");
}

static void an_entry_has_priority_part_and_message(void **unused)
{
	if (journal < 0) {
		print_message("no right to make a mount namespace: skipped\n");
		skip();
	}
	log_set_sink(log_to_journal);
	log_set_level(LOG_LEVEL_DEBUG);
	assert_int_equal(log_hide("hunter2"), 0);
	expect_entry(LOG_LEVEL_ERROR, "PRIORITY=3");
	expect_entry(LOG_LEVEL_WARNING, "PRIORITY=4");
	expect_entry(LOG_LEVEL_INFO, "PRIORITY=6");
	expect_entry(LOG_LEVEL_DEBUG, "PRIORITY=7");
	log_forget_hidden();
}

static int take_the_journals_place(void **unused)
{
	const struct sockaddr_un address = { AF_UNIX, "/run/systemd/journal/socket" };
	int fd;

	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 0;
	if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0)
		return 0;
	mkdir("/run/systemd", 0755);
	mkdir("/run/systemd/journal", 0755);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		close(fd); /* a user without a mapping cannot write even there */
	else
		journal = fd;
	return 0;
}

static int leave(void **unused)
{
	if (journal >= 0)
		close(journal);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_journal_is_known_by_device_and_inode),
		cmocka_unit_test(an_entry_has_priority_part_and_message),
	};

	return cmocka_run_group_tests(tests, take_the_journals_place, leave);
}
