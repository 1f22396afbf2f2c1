/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/delegate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/names.h"

/* A result is smaller by far. */
#define OUTPUT_MAX (1024U * 1024U)
#define PIECE      4096U

int delegate_find(const char *folders, const char *name, char ret[PATH_MAX])
{
	for (const char *p = folders; *p;) {
		const size_t len = strcspn(p, ":");
		struct stat st;
		char path[PATH_MAX];
		int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, p, name);

		if (len > 0 && n < (int)sizeof(path) && stat(path, &st) == 0 &&
		    S_ISREG(st.st_mode) && access(path, X_OK) == 0) {
			memcpy(ret, path, (size_t)n + 1);
			return 0;
		}
		p += len + (p[len] == ':');
	}
	return -ENOENT;
}

/* --- starting it ---------------------------------------------------------------------------- */

/* The ends of three pipes: ours, its. */
struct pipes {
	int ours[3], its[3];
};
#define PIPES_NONE                                                                                 \
	{                                                                                          \
		{ -1, -1, -1 },                                                                    \
		{                                                                                  \
			-1, -1, -1                                                                 \
		}                                                                                  \
	}

static void pipes_close_auto(struct pipes *p)
{
	for (size_t i = 0; i < 3; i++) {
		close_auto(&p->ours[i]);
		close_auto(&p->its[i]);
	}
}

static int pipes_open(struct pipes *p)
{
	for (int i = 0; i < 3; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		/* Of stdin it reads, of the others we do. */
		p->its[i] = ends[i != STDIN_FILENO];
		p->ours[i] = ends[i == STDIN_FILENO];
		if (fcntl(p->ours[i], F_SETFL, O_NONBLOCK) < 0)
			return -errno;
	}
	return 0;
}

static void become(const char *program, enum cni_verb verb, const struct pipes *p, pid_t parent)
{
	char *argv[] = { (char *)(uintptr_t)program, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	for (int i = 0; i < 3; i++)
		if (dup2(p->its[i], i) < 0)
			_exit(127);
	setenv("CNI_COMMAND", cni_verb_name(verb), 1);
	execv(program, argv);
	_exit(126);
}

static int start(const char *program, enum cni_verb verb, struct pipes *p, pid_t *ret)
{
	const pid_t self = getpid();
	pid_t pid = -1;

	/* It may end without reading its input. */
	signal(SIGPIPE, SIG_IGN);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become(program, verb, p, self);
	setpgid(pid, pid); /* whoever is first; it may be needed at once */
	for (size_t i = 0; i < 3; i++) {
		close_auto(&p->its[i]);
		p->its[i] = -1;
	}
	*ret = pid;
	return 0;
}

/* --- listening to it ------------------------------------------------------------------------ */

struct talk {
	const char *input;
	size_t input_left;
	char *said; /* on stdout */
	size_t len;
	char complaint[256]; /* the beginning of stderr */
	size_t complaint_len;
};

static void talk_done_auto(struct talk *t)
{
	free(t->said);
}

static void feed(struct talk *t, int *fd)
{
	ssize_t n = write(*fd, t->input, t->input_left);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		t->input += n;
		t->input_left -= (size_t)n;
	}
	if (n < 0 || t->input_left == 0) {
		close(*fd);
		*fd = -1;
	}
}

static int keep(struct talk *t, const char *piece, size_t n)
{
	char *grown = t->len + n > OUTPUT_MAX ? NULL : realloc(t->said, t->len + n + 1);

	if (!grown)
		return -EMSGSIZE;
	memcpy(grown + t->len, piece, n);
	t->said = grown;
	t->len += n;
	grown[t->len] = '\0';
	return 0;
}

static void pass_on(struct talk *t, const char *piece, size_t n)
{
	const size_t room = sizeof(t->complaint) - 1 - t->complaint_len, m = n < room ? n : room;

	memcpy(t->complaint + t->complaint_len, piece, m);
	t->complaint_len += m;
	while (n > 0) {
		ssize_t done = TEMP_FAILURE_RETRY(write(STDERR_FILENO, piece, n));

		if (done <= 0)
			return;
		piece += done;
		n -= (size_t)done;
	}
}

/* What is there; 1 if more may come. The end is noted in *fd. */
static int hear(struct talk *t, int *fd, bool is_stderr)
{
	char piece[PIECE];
	ssize_t n = *fd < 0 ? 0 : read(*fd, piece, sizeof(piece));
	int r = 0;

	if (n < 0)
		return errno == EINTR;
	if (n > 0 && is_stderr)
		pass_on(t, piece, (size_t)n);
	else if (n > 0)
		r = keep(t, piece, (size_t)n);
	else if (*fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return r < 0 ? r : n > 0;
}

/* Until it has ended; what a child of it still holds is not waited for. */
static int listen_to(struct talk *t, int *fds, int pidfd, const struct deadline *deadline)
{
	for (;;) {
		struct pollfd p[] = { { .fd = pidfd, .events = POLLIN },
				      { .fd = fds[0], .events = POLLOUT },
				      { .fd = fds[1], .events = POLLIN },
				      { .fd = fds[2], .events = POLLIN } };
		const unsigned left = deadline_left(deadline);
		int r;

		if (left == 0)
			return -ETIMEDOUT;
		if (poll(p, ARRAY_SIZE(p), (int)left) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			feed(t, &fds[0]);
		if (p[2].revents && (r = hear(t, &fds[1], false)) < 0)
			return r;
		if (p[3].revents)
			hear(t, &fds[2], true);
		if (p[0].revents)
			break;
	}
	while (hear(t, &fds[2], true) > 0)
		;
	for (;;) {
		int r = hear(t, &fds[1], false);

		if (r <= 0)
			return r;
	}
}

/* --- what came of it ------------------------------------------------------------------------ */

static int explain_end(const char *name, int status, const struct talk *t, struct cni_error *e)
{
	char shown[SHOW_TEXT];

	if (WIFSIGNALED(status))
		cni_fail(e, CNI_CODE_IO, "%s was killed by signal %d", name, WTERMSIG(status));
	else
		cni_fail(e, CNI_CODE_IO, "%s failed with exit code %d and gave no reason", name,
			 WEXITSTATUS(status));
	if (t->complaint_len > 0)
		cni_details(e, "it said: %s", t->complaint);
	else if (t->len > 0)
		cni_details(e, "it printed: %s", text_show(t->said, shown));
	return -EIO;
}

/* Its own code and words, if it has any. */
static int explain_error(const char *name, int status, const struct talk *t, struct cni_error *e)
{
	AUTO(json_put) struct json_object *object = NULL;
	const char *msg = NULL, *details = "";
	int64_t code = CNI_CODE_IO;
	struct json_at root;

	if (!t->said || json_parse(t->said, t->len, &object, NULL) < 0)
		return explain_end(name, status, t, e);
	root = json_root(object, NULL);
	root.as_go = true;
	json_read_text(json_member(&root, "msg"), JSON_STRING_MAX, &msg);
	json_read_text(json_member(&root, "details"), JSON_STRING_MAX, &details);
	json_read_integer(json_member(&root, "code"), 1, UINT32_MAX, &code);
	if (!msg)
		return explain_end(name, status, t, e);
	cni_fail(e, (enum cni_code)code, "%s: %s", name, msg);
	cni_details(e, "%s", details);
	return -EINVAL;
}

static int explain_failure(const char *name, int r, struct cni_error *e)
{
	switch (r) {
	case -ETIMEDOUT:
		cni_fail(e, CNI_CODE_TRY_AGAIN, "%s did not finish in time and was killed", name);
		break;
	case -EMSGSIZE:
		cni_fail(e, CNI_CODE_IO, "%s printed more than %u bytes", name, OUTPUT_MAX);
		break;
	default:
		cni_fail(e, CNI_CODE_IO, "cannot run %s: %s", name, strerror(-r));
	}
	return r;
}

/* Dead is dead, but its group is not free for another to take before it is reaped. */
static int end(pid_t pid)
{
	int status = 0;

	kill(-pid, SIGKILL);
	TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	return status;
}

int delegate_run(const struct cni_call *call, const char *program, enum cni_verb verb,
		 const struct deadline *deadline, char **ret, size_t *ret_len, struct cni_error *e)
{
	const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
	__attribute__((cleanup(pipes_close_auto))) struct pipes p = PIPES_NONE;
	__attribute__((cleanup(talk_done_auto))) struct talk t = { .input = call->input,
								   .input_left = call->input_len };
	AUTO(close) int pidfd = -1;
	int r = pipes_open(&p), status;
	pid_t pid = -1;

	r = r ?: start(program, verb, &p, &pid);
	if (r < 0)
		return explain_failure(name, r, e);
	pidfd = pidfd_open(pid, 0);
	r = pidfd < 0 ? -errno : listen_to(&t, p.ours, pidfd, deadline);
	status = end(pid);
	if (r < 0)
		return explain_failure(name, r, e);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return explain_error(name, status, &t, e);
	*ret = t.said ? TAKE(t.said) : strdup("");
	*ret_len = t.len;
	return *ret ? 0 : cni_no_memory(e);
}
