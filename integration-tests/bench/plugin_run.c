/* SPDX-License-Identifier: Apache-2.0 */
#include "integration-tests/bench/plugin_run.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "integration-tests/bench/figures.h"

#define OUTPUT_MAX    8192
#define USUAL_FOLDERS "/opt/cni/bin"

/* One under way. */
struct run {
	pid_t pid;
	int out; /* -1: the slot is free */
	size_t tag;
	double start, ms;
	size_t len;
	char output[OUTPUT_MAX];
};

struct crowd {
	size_t room, busy;
	struct run *runs;
	struct pollfd *fds; /* room, and one more for the caller's */
};

char *plugin_conf_read(const char *path)
{
	AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = zeroed(1, OUTPUT_MAX);

	if (fd < 0 || read(fd, text, OUTPUT_MAX - 1) < 0)
		die(path);
	return text;
}

/* --- one ------------------------------------------------------------------------------------ */

struct environment {
	char text[6][256];
	char *v[7];
};

static void set_variable(struct environment *e, size_t i, const char *name, const char *value)
{
	snprintf(e->text[i], sizeof(e->text[i]), "%s=%s", name, value);
	e->v[i] = e->text[i];
}

static void set_environment(struct environment *e, const struct plugin *p, const struct call *call)
{
	set_variable(e, 0, "CNI_COMMAND", call->verb);
	set_variable(e, 1, "CNI_CONTAINERID", call->container);
	set_variable(e, 2, "CNI_IFNAME", call->interface);
	set_variable(e, 3, "CNI_NETNS", call->netns);
	set_variable(e, 4, "CNI_PATH", p->folders ?: USUAL_FOLDERS);
	set_variable(e, 5, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
	e->v[6] = NULL;
}

static void spawn(const struct plugin *p, int in, int out, char *const *env, pid_t *ret)
{
	AUTO(free) char *path = strdup(p->path);
	char *argv[] = { path, NULL };
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	errno = path ? posix_spawn(ret, p->path, &actions, NULL, argv, env) : ENOMEM;
	posix_spawn_file_actions_destroy(&actions);
	if (errno != 0)
		die(p->path);
}

/* The configuration fits into the pipe, so it is there before the plugin asks for it. */
static void run_begin(struct run *run, const struct plugin *p, const struct call *call)
{
	const size_t len = strlen(p->conf);
	struct environment env;
	int in[2], out[2];

	run->start = now_ms();
	run->len = 0;
	set_environment(&env, p, call);
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	if (write(in[1], p->conf, len) != (ssize_t)len)
		die("write");
	close(in[1]);
	spawn(p, in[0], out[1], env.v, &run->pid);
	close(in[0]);
	close(out[1]);
	run->out = out[0];
}

static void run_end(struct run *run)
{
	int status;

	close(run->out);
	run->out = -1;
	if (waitpid(run->pid, &status, 0) != run->pid)
		die("waitpid");
	run->ms = now_ms() - run->start;
	if (status == 0)
		return;
	fprintf(stderr, "%s: a plugin failed: %.*s\n", program_invocation_short_name, (int)run->len,
		run->output);
	exit(1);
}

/* true: it has ended. */
static bool run_read(struct run *run)
{
	ssize_t n = read(run->out, run->output + run->len, sizeof(run->output) - run->len);

	if (n < 0)
		die("read");
	run->len += (size_t)n;
	if (n > 0)
		return false;
	run_end(run);
	return true;
}

double plugin_call(const struct plugin *p, const struct call *call)
{
	struct run run;

	run_begin(&run, p, call);
	while (!run_read(&run))
		;
	return run.ms;
}

/* --- many ----------------------------------------------------------------------------------- */

struct crowd *crowd_new(size_t room)
{
	struct crowd *c = zeroed(1, sizeof(*c));

	c->room = room;
	c->runs = zeroed(room, sizeof(*c->runs));
	c->fds = zeroed(room + 1, sizeof(*c->fds));
	for (size_t i = 0; i < room; i++)
		c->runs[i].out = -1;
	return c;
}

void crowd_free(struct crowd *c)
{
	free(c->runs);
	free(c->fds);
	free(c);
}

size_t crowd_busy(const struct crowd *c)
{
	return c->busy;
}

void crowd_begin(struct crowd *c, const struct plugin *p, const struct call *call, size_t tag)
{
	struct run *run = c->runs;

	while (run < c->runs + c->room && run->out >= 0)
		run++;
	if (run == c->runs + c->room)
		die("more at once than there is room for");
	run->tag = tag;
	run_begin(run, p, call);
	c->busy++;
}

static void wait_readable(struct crowd *c, int fd, double timeout_ms)
{
	const struct timespec timeout = { .tv_sec = (time_t)(timeout_ms / 1e3),
					  .tv_nsec = (long)(timeout_ms * 1e6) % 1000000000 };

	for (size_t i = 0; i < c->room; i++)
		c->fds[i] = (struct pollfd){ .fd = c->runs[i].out, .events = POLLIN };
	c->fds[c->room] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (ppoll(c->fds, c->room + 1, timeout_ms < 0 ? NULL : &timeout, NULL) < 0)
		die("poll");
}

bool crowd_wait(struct crowd *c, int fd, double timeout_ms, crowd_ended_fn *ended, void *arg)
{
	wait_readable(c, fd, timeout_ms);
	for (size_t i = 0; i < c->room; i++)
		if (c->fds[i].revents && run_read(&c->runs[i])) {
			c->busy--;
			ended(c->runs[i].tag, c->runs[i].ms, arg);
		}
	return c->fds[c->room].revents != 0;
}
