/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct child {
	sd_event_source *end, *output, *deadline;
	pid_t pid; /* 0 once reaped */
	int pidfd, pipe;
	char *text;
	size_t len, max;
	bool cut, timed_out;
	uint32_t timeout_ms;
	child_done_fn *on_done;
	void *arg;
};

/* --- its output ---------------------------------------------------------------------------------
 */

/* The end is kept. n is at most c->max. */
static void keep(struct child *c, const char *data, size_t n)
{
	if (c->len + n > c->max) {
		size_t drop = c->len + n - c->max;

		c->len -= drop;
		memmove(c->text, c->text + drop, c->len);
		c->cut = true;
	}
	memcpy(c->text + c->len, data, n);
	c->len += n;
	c->text[c->len] = '\0';
}

/* 0 at the end of it. One piece at a time: a chatterbox must not hold up the loop. */
static int read_some(struct child *c)
{
	char data[4096];
	ssize_t n = read(c->pipe, data, sizeof(data));

	if (n <= 0)
		return n < 0 ? -errno : 0;
	if ((size_t)n > c->max) {
		c->cut = true;
		keep(c, data + n - c->max, c->max);
	} else {
		keep(c, data, (size_t)n);
	}
	return 1;
}

static int on_output(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	int r = read_some(arg);

	if (r <= 0 && r != -EAGAIN && r != -EINTR)
		sd_event_source_set_enabled(s, SD_EVENT_OFF);
	return 0;
}

/* What it left in the background may write for ever: no more than the pipe holds. */
static void read_rest(struct child *c)
{
	for (int i = 0; i < 16 && read_some(c) > 0; i++)
		;
}

/* --- its end ------------------------------------------------------------------------------------
 */

static void child_free(struct child *c)
{
	sd_event_source_disable_unref(c->end);
	sd_event_source_disable_unref(c->output);
	sd_event_source_disable_unref(c->deadline);
	if (c->pidfd >= 0)
		close(c->pidfd);
	if (c->pipe >= 0)
		close(c->pipe);
	free(c->text);
	free(c);
}

static void finish(struct child *c, const siginfo_t *info)
{
	struct child_result result = {
		.end = info->si_code == CLD_EXITED ? CHILD_EXITED : CHILD_SIGNALLED,
		.number = info->si_status,
		.timeout_ms = c->timeout_ms,
	};

	c->pid = 0;
	read_rest(c);
	/* It may have ended well in the very moment of its deadline. */
	if (c->timed_out && result.end == CHILD_SIGNALLED && result.number == SIGKILL)
		result.end = CHILD_TIMED_OUT;
	result.output = c->text;
	result.len = c->len;
	result.cut = c->cut;
	c->on_done(&result, c->arg);
	child_free(c);
}

static int on_end(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct child *c = arg;
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
		return 0;
	finish(c, &info);
	return 0;
}

/* Before it is reaped: until then the number cannot belong to another group. */
static void kill_group(const struct child *c)
{
	if (c->pid > 0)
		kill(-c->pid, SIGKILL);
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *arg)
{
	struct child *c = arg;

	c->timed_out = true;
	kill_group(c);
	return 0;
}

void child_cancel(struct child *c)
{
	if (!c)
		return;
	kill_group(c);
	while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	child_free(c);
}

/* --- its start ----------------------------------------------------------------------------------
 */

static int set_files(posix_spawn_file_actions_t *a, int out, const char *folder)
{
	int r = posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	r = r ?: posix_spawn_file_actions_adddup2(a, out, STDOUT_FILENO);
	r = r ?: posix_spawn_file_actions_adddup2(a, out, STDERR_FILENO);
	r = r ?: posix_spawn_file_actions_addclosefrom_np(a, STDERR_FILENO + 1);
	if (folder)
		r = r ?: posix_spawn_file_actions_addchdir_np(a, folder);
	return r;
}

/* A daemon blocks and ignores signals that a command relies on. */
static int set_attributes(posix_spawnattr_t *a)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setflags(a, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	r = r ?: posix_spawnattr_setpgroup(a, 0);
	r = r ?: posix_spawnattr_setsigmask(a, &none);
	return r ?: posix_spawnattr_setsigdefault(a, &all);
}

static int spawn(struct child *c, const struct child_options *o, int out)
{
	const char *const by_shell[] = { "/bin/sh", "-c", o->shell, NULL };
	const char *const *argv = o->shell ? by_shell : o->argv;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int r;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	r = set_files(&files, out, o->folder);
	r = r ?: set_attributes(&attributes);
	/* The prototype lacks a const that the words deserve. */
	r = r
		    ?: posix_spawnp(&c->pid, argv[0], &files, &attributes,
				    (char *const *)(uintptr_t)argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	if (r)
		c->pid = 0;
	return -r;
}

/* The same by hand, for a function: see set_files() and set_attributes(). */
_Noreturn static void become(const struct child_options *o, int out)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	setpgid(0, 0);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(out, STDERR_FILENO) < 0 || (o->folder && chdir(o->folder) < 0))
		_exit(126);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	/* Not exit(): what is registered for that is the parent's. */
	_exit(o->run(o->run_arg));
}

static int fork_function(struct child *c, const struct child_options *o, int out)
{
	c->pid = fork();
	if (c->pid < 0) {
		c->pid = 0;
		return -errno;
	}
	if (c->pid == 0)
		become(o, out);
	/* Both do it: whoever is first, the group is there when it is to be killed. */
	setpgid(c->pid, c->pid);
	return 0;
}

static int run(struct child *c, const struct child_options *o)
{
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	c->pipe = ends[0];
	/* Our end alone: a program may be surprised by an output that does not block. */
	r = fcntl(c->pipe, F_SETFL, O_NONBLOCK) < 0 ? -errno
	    : o->run                                ? fork_function(c, o, ends[1])
						    : spawn(c, o, ends[1]);
	close(ends[1]);
	if (r < 0)
		return r;
	c->pidfd = pidfd_open(c->pid, 0);
	return c->pidfd < 0 ? -errno : 0;
}

static int follow(struct child *c, sd_event *event)
{
	int r = sd_event_add_io(event, &c->end, c->pidfd, EPOLLIN, on_end, c);

	if (r >= 0)
		r = sd_event_add_io(event, &c->output, c->pipe, EPOLLIN, on_output, c);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &c->deadline, CLOCK_MONOTONIC,
					       c->timeout_ms * 1000ULL, 0, on_deadline, c);
	return r < 0 ? r : 0;
}

int child_start(sd_event *event, const struct child_options *options, struct child **ret)
{
	AUTO(child_cancel) struct child *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->pidfd = c->pipe = -1;
	c->max = options->max_output ?: CHILD_OUTPUT_MAX;
	c->timeout_ms = options->timeout_ms ?: CHILD_TIMEOUT_MS;
	c->on_done = options->on_done;
	c->arg = options->arg;
	c->text = calloc(1, c->max + 1);
	if (!c->text)
		return -ENOMEM;
	r = run(c, options);
	r = r ?: follow(c, event);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}
