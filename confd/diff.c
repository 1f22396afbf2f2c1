/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/files.h"

/* Where diff finds the second text. */
#define AFTER_FD   3
#define AFTER_PATH "/dev/fd/3"

/* A file in memory, at its beginning; above the numbers that diff gets. */
static int in_memory(const char *text, size_t len)
{
	AUTO(close) int fd = memfd_create("diff", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, len);

	if (r < 0)
		return r;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, AFTER_FD + 1);
	return r < 0 ? -errno : r;
}

/* The exit code: 0 equal, 1 different, 2 trouble; or -errno. */
static int run(const struct diff_side *before, const struct diff_side *after, const int fds[3])
{
	/* posix_spawn() takes pointers to non-const and only copies. */
	char *const argv[] = { (char[]){ "diff" },
			       (char[]){ "-au" },
			       (char[]){ "--label" },
			       (char *)(uintptr_t)before->name,
			       (char[]){ "--label" },
			       (char *)(uintptr_t)after->name,
			       (char[]){ "-" },
			       (char[]){ AFTER_PATH },
			       NULL };
	/* Its words for a missing newline must not depend on the operator's language. */
	char *const envp[] = { (char[]){ "LC_ALL=C" }, NULL };
	const int places[] = { STDIN_FILENO, AFTER_FD, STDOUT_FILENO };
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions), status;
	pid_t pid;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(places); i++)
		r = posix_spawn_file_actions_adddup2(&actions, fds[i], places[i]);
	r = r ?: posix_spawnp(&pid, argv[0], &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -r;
	if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int diff_unified(const struct diff_side *before, const struct diff_side *after, char **ret,
		 struct err *err)
{
	AUTO(close) int from = in_memory(before->text, before->len);
	AUTO(close) int to = in_memory(after->text, after->len);
	AUTO(close) int out = in_memory("", 0);
	AUTO(free) char *text = NULL;
	const int fds[] = { from, to, out };
	struct stat st;
	int r = from < 0 ? from : to < 0 ? to : out;

	r = r < 0 ? r : run(before, after, fds);
	if (r == -ENOENT)
		return err_set(err, r, "there is no program diff: install the package diffutils");
	if (r < 0)
		return err_set(err, r, "diff: %s", strerror(-r));
	if (r > 1)
		return err_set(err, -EIO, "diff failed with exit code %d", r);
	if (fstat(out, &st) < 0)
		return err_set(err, -errno, "diff: %s", strerror(errno));
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	/* A file in memory gives all of it at once. */
	if (pread(out, text, (size_t)st.st_size, 0) != st.st_size)
		return err_set(err, -EIO, "diff: its output cannot be read");
	text[st.st_size] = '\0';
	*ret = TAKE(text);
	return 0;
}
