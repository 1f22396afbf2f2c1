/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_control.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
/* The watch tells when the socket appears, unless something is mounted over its folder. */
#define RETRY_WATCHED_MS 60000

#define POLL_MIN_MS 20
#define POLL_MAX_MS 1000
/* Sessions that are taken down say good-bye first; a minute is far beyond that. */
#define FOLLOW_MS 60000

struct bird_asked {
	TAILQ_ENTRY(bird_asked) entry;
	bird_reply_fn *fn;
	void *arg;
	void (*release)(void *arg); /* NULL: nothing to release */
	uint32_t timeout_ms;
	char command[BIRD_COMMAND_MAX + 2]; /* with LF and NUL */
};
TAILQ_HEAD(bird_asked_list, bird_asked);

struct bird_waiter {
	TAILQ_ENTRY(bird_waiter) entry;
	bird_configured_fn *fn;
	void *arg;
};
TAILQ_HEAD(bird_waiter_list, bird_waiter);

struct bird_control {
	sd_event *event;
	char *path, *folder;
	const char *name; /* of the socket in its folder */
	struct bird_control_handlers handlers;
	void *arg;

	enum { BIRD_AWAY, BIRD_GREETING, BIRD_CONNECTED } state;
	int fd;
	sd_event_source *io;
	sd_event_source *timer; /* away: the next try; else the deadline of what BIRD owes us */
	struct bird_reader reader;
	struct bird_version version;

	int inotify; /* while away; -1: none */
	sd_event_source *watch;
	uint32_t retry_ms;
	struct err problem, told; /* why we are away; as on_disconnected knows it */

	struct bird_asked_list asked;
	bool in_flight; /* the first of them is with BIRD */

	struct {
		enum { CONFIGURE_IDLE, CONFIGURE_BEFORE, CONFIGURE_SENT, CONFIGURE_AFTER } phase;
		struct bird_waiter_list current, waiting;
		sd_event_source *timer;
		uint64_t deadline_us;
		uint32_t poll_ms;
	} configure;
};

static void try_to_connect(struct bird_control *c, bool appeared);
static void configure_start(struct bird_control *c);

static int timer_in(struct bird_control *c, uint64_t ms)
{
	int r = sd_event_source_set_time_relative(c->timer, ms * 1000);

	return r < 0 ? r : sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

static void tell_problem(struct bird_control *c)
{
	if (strcmp(c->problem.text, c->told.text) == 0)
		return;
	c->told = c->problem;
	if (c->handlers.on_disconnected)
		c->handlers.on_disconnected(c->problem.text, c->arg);
}

/* --- the folder of the socket --------------------------------------------------------------- */

static void watch_end(struct bird_control *c)
{
	c->watch = sd_event_source_disable_unref(c->watch);
	if (c->inotify >= 0)
		close(c->inotify);
	c->inotify = -1;
}

/* The folder itself went: what is made in its place has to be watched anew. */
static bool is_end_of_folder(const struct inotify_event *e)
{
	return e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT);
}

static bool concerns_us(const struct bird_control *c, const struct inotify_event *e)
{
	return e->mask & IN_Q_OVERFLOW || (e->len && strcmp(e->name, c->name) == 0);
}

static int on_folder(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct bird_control *c = arg;
	ssize_t n = read(fd, buffer, sizeof(buffer));
	bool ours = false, gone = false;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(buffer + at);

		gone = gone || is_end_of_folder(e);
		ours = ours || concerns_us(c, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	if (gone)
		watch_end(c);
	if ((ours || gone) && c->state == BIRD_AWAY) {
		c->retry_ms = RETRY_MIN_MS;
		try_to_connect(c, ours);
	}
	return 0;
}

/* Without a watch we try by time alone. */
static void watch_begin(struct bird_control *c)
{
	/* BIRD changes the mode of its socket once it listens. */
	const uint32_t mask = IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF |
			      IN_ONLYDIR;

	if (c->inotify >= 0)
		return;
	c->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (c->inotify < 0 || inotify_add_watch(c->inotify, c->folder, mask) < 0 ||
	    sd_event_add_io(c->event, &c->watch, c->inotify, EPOLLIN, on_folder, c) < 0)
		watch_end(c);
}

static void retry_later(struct bird_control *c, int e)
{
	if (e == -ENOENT && c->inotify >= 0) {
		timer_in(c, RETRY_WATCHED_MS);
		return;
	}
	timer_in(c, c->retry_ms);
	c->retry_ms = 2 * c->retry_ms < RETRY_MAX_MS ? 2 * c->retry_ms : RETRY_MAX_MS;
}

static void hang_up(struct bird_control *c)
{
	c->state = BIRD_AWAY;
	c->io = sd_event_source_disable_unref(c->io);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	bird_reader_done(&c->reader);
	/* Before the first try: what appears from now on is seen. */
	watch_begin(c);
	retry_later(c, 0);
}

/* --- configure ------------------------------------------------------------------------------ */

/*
 * One `configure` at a time: look that none is running, send ours, follow it to its end.
 *
 *   IDLE -> BEFORE (`configure status` until done) -> SENT -> AFTER (the same) -> IDLE
 *
 * Never `configure check`, whose parser dies with the daemon, and never `undo`.
 */

const char *bird_outcome_name(enum bird_outcome o)
{
	static const char *const names[] = {
		[BIRD_OUTCOME_DONE] = "done",         [BIRD_OUTCOME_REFUSED] = "refused",
		[BIRD_OUTCOME_BUSY] = "busy",         [BIRD_OUTCOME_LOST] = "lost",
		[BIRD_OUTCOME_SHUTDOWN] = "shutdown", [BIRD_OUTCOME_DENIED] = "denied",
	};

	return names[o];
}

static void tell_waiters(struct bird_waiter_list *list, enum bird_outcome outcome,
			 const char *words)
{
	struct bird_waiter *w;

	while ((w = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, w, entry);
		w->fn(outcome, words, w->arg);
		free(w);
	}
}

static void configure_end(struct bird_control *c, enum bird_outcome outcome, const char *words)
{
	struct bird_waiter_list answered = TAILQ_HEAD_INITIALIZER(answered);

	TAILQ_CONCAT(&answered, &c->configure.current, entry);
	/* Unless something ran to its end there is nothing to gain from one more. */
	if (c->configure.phase == CONFIGURE_BEFORE || outcome == BIRD_OUTCOME_LOST)
		TAILQ_CONCAT(&answered, &c->configure.waiting, entry);
	c->configure.phase = CONFIGURE_IDLE;
	sd_event_source_set_enabled(c->configure.timer, SD_EVENT_OFF);
	tell_waiters(&answered, outcome, words);
	if (c->configure.phase == CONFIGURE_IDLE && !TAILQ_EMPTY(&c->configure.waiting))
		configure_start(c);
}

static void follow_for(struct bird_control *c, uint64_t ms)
{
	c->configure.deadline_us = clock_monotonic_us() + ms * 1000;
	c->configure.poll_ms = POLL_MIN_MS;
}

static void poll_later(struct bird_control *c, const char *words)
{
	if (clock_monotonic_us() >= c->configure.deadline_us) {
		configure_end(c, BIRD_OUTCOME_BUSY, words);
		return;
	}
	sd_event_source_set_time_relative(c->configure.timer, c->configure.poll_ms * 1000ULL);
	sd_event_source_set_enabled(c->configure.timer, SD_EVENT_ONESHOT);
	c->configure.poll_ms += c->configure.poll_ms / 2;
	if (c->configure.poll_ms > POLL_MAX_MS)
		c->configure.poll_ms = POLL_MAX_MS;
}

static void on_configured(int err, const struct bird_reply *reply, void *arg)
{
	struct bird_control *c = arg;

	if (err) {
		configure_end(c, BIRD_OUTCOME_LOST, c->problem.text);
		return;
	}
	switch (bird_configure_parse(reply)) {
	case BIRD_PROGRESS_DONE:
		configure_end(c, BIRD_OUTCOME_DONE, reply->text);
		break;
	case BIRD_PROGRESS_RUNNING:
	case BIRD_PROGRESS_QUEUED:
		c->configure.phase = CONFIGURE_AFTER;
		follow_for(c, FOLLOW_MS);
		poll_later(c, reply->text);
		break;
	case BIRD_PROGRESS_SHUTDOWN:
		configure_end(c, BIRD_OUTCOME_SHUTDOWN, reply->text);
		break;
	case BIRD_PROGRESS_DENIED:
		configure_end(c, BIRD_OUTCOME_DENIED, reply->text);
		break;
	case BIRD_PROGRESS_REFUSED:
	case BIRD_PROGRESS_UNKNOWN:
		configure_end(c, BIRD_OUTCOME_REFUSED, reply->text);
		break;
	}
}

static void send_ours(struct bird_control *c)
{
	int r = bird_command(c, "configure", BIRD_CONFIGURE_TIMEOUT_MS, on_configured, c);

	if (r < 0) {
		configure_end(c, BIRD_OUTCOME_LOST, strerror(-r));
		return;
	}
	/* From here on the file counts as read. */
	TAILQ_CONCAT(&c->configure.current, &c->configure.waiting, entry);
	c->configure.phase = CONFIGURE_SENT;
}

static void on_status(int err, const struct bird_reply *reply, void *arg)
{
	struct bird_control *c = arg;
	struct bird_line line = { 0 };

	if (err) {
		configure_end(c, BIRD_OUTCOME_LOST, c->problem.text);
		return;
	}
	bird_line_next(reply, &line);
	switch (bird_configure_status_parse(reply)) {
	case BIRD_PROGRESS_RUNNING:
	case BIRD_PROGRESS_QUEUED:
		poll_later(c, line.text);
		break;
	case BIRD_PROGRESS_SHUTDOWN:
		configure_end(c, BIRD_OUTCOME_SHUTDOWN, line.text);
		break;
	default:
		/* Also when we may not ask: what we may do is said in answer to `configure`. */
		if (c->configure.phase == CONFIGURE_BEFORE)
			send_ours(c);
		else
			configure_end(c, BIRD_OUTCOME_DONE, line.text);
	}
}

static int on_poll(sd_event_source *s, uint64_t usec, void *arg)
{
	struct bird_control *c = arg;
	int r = bird_command(c, "configure status", BIRD_CONFIGURE_TIMEOUT_MS, on_status, c);

	if (r < 0)
		configure_end(c, BIRD_OUTCOME_LOST, strerror(-r));
	return 0;
}

/* By the timer: nobody is called back from within his own call. */
static void configure_start(struct bird_control *c)
{
	c->configure.phase = CONFIGURE_BEFORE;
	follow_for(c, BIRD_CONFIGURE_TIMEOUT_MS);
	sd_event_source_set_time_relative(c->configure.timer, 0);
	sd_event_source_set_enabled(c->configure.timer, SD_EVENT_ONESHOT);
}

int bird_configure(struct bird_control *c, bird_configured_fn *fn, void *arg)
{
	struct bird_waiter *w;

	if (c->state != BIRD_CONNECTED)
		return -ENOTCONN;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&c->configure.waiting, w, entry);
	if (c->configure.phase == CONFIGURE_IDLE)
		configure_start(c);
	return 0;
}

/* --- the queue of commands ------------------------------------------------------------------ */

static struct bird_asked *take_first(struct bird_control *c)
{
	struct bird_asked *a = TAILQ_FIRST(&c->asked);

	if (a)
		TAILQ_REMOVE(&c->asked, a, entry);
	c->in_flight = false;
	return a;
}

static void asked_free(struct bird_asked *a)
{
	if (a->release)
		a->release(a->arg);
	free(a);
}

/*
 * The socket is empty when a command goes out, so it takes all of it. Whatever goes wrong here
 * shows up as the end of the connection, on the loop, where callbacks may be called.
 */
static void send_next(struct bird_control *c)
{
	struct bird_asked *a = TAILQ_FIRST(&c->asked);
	size_t n;

	if (c->state != BIRD_CONNECTED || c->in_flight || !a)
		return;
	n = strlen(a->command);
	c->in_flight = true;
	timer_in(c, a->timeout_ms);
	if (send(c->fd, a->command, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
		shutdown(c->fd, SHUT_RDWR);
}

static int check_command(const char *command)
{
	size_t n = strlen(command);

	if (n > BIRD_COMMAND_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)command[i] < ' ' || command[i] == 127)
			return -EINVAL;
	return n ? 0 : -EINVAL;
}

int bird_ask(struct bird_control *c, const char *command, uint32_t timeout_ms, bird_reply_fn *fn,
	     void *arg, void (*release)(void *arg))
{
	int r = check_command(command);
	struct bird_asked *a;

	if (r < 0)
		return r;
	if (c->state != BIRD_CONNECTED)
		return -ENOTCONN;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	snprintf(a->command, sizeof(a->command), "%s\n", command);
	a->timeout_ms = timeout_ms ?: BIRD_COMMAND_TIMEOUT_MS;
	a->fn = fn;
	a->arg = arg;
	a->release = release;
	TAILQ_INSERT_TAIL(&c->asked, a, entry);
	send_next(c);
	return 0;
}

int bird_command(struct bird_control *c, const char *command, uint32_t timeout_ms,
		 bird_reply_fn *fn, void *arg)
{
	return bird_ask(c, command, timeout_ms, fn, arg, NULL);
}

/* --- what BIRD says ------------------------------------------------------------------------- */

static void lost(struct bird_control *c, int err)
{
	bool in_flight = c->in_flight;
	struct bird_asked *a;

	hang_up(c);
	/* What is asked for from within the callbacks is refused, so this ends. */
	while ((a = take_first(c))) {
		a->fn(in_flight ? err : -ECONNRESET, NULL, a->arg);
		in_flight = false;
		asked_free(a);
	}
	/* Its command in flight, if any, has been answered; between two polls there is none. */
	if (c->configure.phase != CONFIGURE_IDLE)
		configure_end(c, BIRD_OUTCOME_LOST, c->problem.text);
	tell_problem(c);
}

static void on_deadline(struct bird_control *c)
{
	const struct bird_asked *a = TAILQ_FIRST(&c->asked);

	if (c->state == BIRD_GREETING)
		err_set(&c->problem, 0, "BIRD did not greet within %g s: it hangs or is very busy",
			BIRD_COMMAND_TIMEOUT_MS / 1000.0);
	else if (a)
		err_set(&c->problem, 0, "BIRD did not answer \"%.*s\" within %g s",
			(int)strcspn(a->command, "\n"), a->command, a->timeout_ms / 1000.0);
	lost(c, -ETIMEDOUT);
}

/* 0, or negative: hang up, c->problem says why. */
static int take_greeting(struct bird_control *c, const struct bird_reply *reply)
{
	if (reply->code != BIRD_READY || bird_version_parse(reply->text, &c->version) < 0)
		return err_set(&c->problem, -EBADMSG,
			       "%s is not a control socket of BIRD: it sent \"%04d %.100s\"",
			       c->path, reply->code, reply->text);
	c->state = BIRD_CONNECTED;
	c->problem.text[0] = c->told.text[0] = '\0';
	sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	watch_end(c);
	c->retry_ms = RETRY_MIN_MS;
	if (c->handlers.on_connected)
		c->handlers.on_connected(&c->version, c->arg);
	return 0;
}

static int take_reply(struct bird_control *c, const struct bird_reply *reply)
{
	struct bird_asked *a;

	if (c->state == BIRD_GREETING)
		return take_greeting(c, reply);
	if (!c->in_flight)
		return err_set(&c->problem, -EBADMSG, "%s: an unexpected reply: %.100s", c->path,
			       reply->text);
	sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	a = take_first(c);
	a->fn(0, reply, a->arg);
	asked_free(a);
	return 0;
}

static int take_bytes(struct bird_control *c, const char *bytes, size_t n)
{
	while (n) {
		struct bird_reply reply;
		size_t used;
		int r = bird_reader_feed(&c->reader, bytes, n, &used, &reply);

		bytes += used;
		n -= used;
		if (r == 0)
			return 0;
		if (r < 0)
			return err_set(&c->problem, r, "%s: an invalid reply: %s", c->path,
				       strerror(-r));
		r = take_reply(c, &reply);
		if (r < 0)
			return r;
		bird_reader_next(&c->reader);
	}
	return 0;
}

/* --- the socket ----------------------------------------------------------------------------- */

static int on_io(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct bird_control *c = arg;
	char bytes[65536];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n > 0) {
		if (take_bytes(c, bytes, (size_t)n) < 0)
			lost(c, -ECONNRESET);
		else
			send_next(c);
	} else if (n == 0 || errno == ECONNRESET) {
		err_set(&c->problem, 0, "BIRD closed the connection: it stopped or crashed");
		lost(c, -ECONNRESET);
	} else if (errno != EAGAIN && errno != EINTR) {
		err_set(&c->problem, 0, "%s: %s", c->path, strerror(errno));
		lost(c, -ECONNRESET);
	}
	return 0;
}

static int open_socket(struct bird_control *c)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	memcpy(sa.sun_path, c->path, strlen(c->path));
	r = connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	if (r == 0)
		r = sd_event_add_io(c->event, &c->io, fd, EPOLLIN, on_io, c);
	if (r < 0) {
		close(fd);
		return r;
	}
	c->fd = fd;
	return 0;
}

static void explain(struct bird_control *c, int e)
{
	switch (e) {
	case -ENOENT:
		err_set(&c->problem, e,
			"%s does not exist: BIRD does not run, or its socket is elsewhere",
			c->path);
		break;
	case -ECONNREFUSED:
		err_set(&c->problem, e,
			"%s has no listener: it is left over from a BIRD that crashed", c->path);
		break;
	case -EAGAIN:
		err_set(&c->problem, e, "%s accepts no more clients: BIRD hangs or is very busy",
			c->path);
		break;
	default:
		err_set(&c->problem, e, "%s: %s", c->path, strerror(-e));
	}
}

/* appeared: it was touched just now. A BIRD that starts binds first and listens a moment later. */
static void try_to_connect(struct bird_control *c, bool appeared)
{
	int r;

	watch_begin(c);
	r = open_socket(c);
	if (r == 0) {
		c->state = BIRD_GREETING;
		timer_in(c, BIRD_COMMAND_TIMEOUT_MS);
		return;
	}
	explain(c, r);
	retry_later(c, r);
	if (r != -ECONNREFUSED || !appeared)
		tell_problem(c);
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct bird_control *c = arg;

	if (c->state == BIRD_AWAY)
		try_to_connect(c, false);
	else
		on_deadline(c);
	return 0;
}

/* --- from its making to its end ------------------------------------------------------------- */

const struct bird_version *bird_control_version(const struct bird_control *c)
{
	return c->state == BIRD_CONNECTED ? &c->version : NULL;
}

const char *bird_control_problem(const struct bird_control *c)
{
	if (c->state == BIRD_CONNECTED)
		return "";
	return c->problem.text[0] ? c->problem.text : "not connected to BIRD yet";
}

static int split_path(struct bird_control *c, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct sockaddr_un sa;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	if (!slash || !slash[1])
		return -EINVAL;
	c->path = strdup(path);
	c->folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (!c->path || !c->folder)
		return -ENOMEM;
	c->name = c->path + (slash + 1 - path);
	return 0;
}

int bird_control_new(sd_event *event, const char *path,
		     const struct bird_control_handlers *handlers, void *arg,
		     struct bird_control **ret)
{
	AUTO(bird_control_free) struct bird_control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->event = sd_event_ref(event);
	c->arg = arg;
	if (handlers)
		c->handlers = *handlers;
	c->fd = c->inotify = -1;
	c->retry_ms = RETRY_MIN_MS;
	TAILQ_INIT(&c->asked);
	TAILQ_INIT(&c->configure.current);
	TAILQ_INIT(&c->configure.waiting);
	r = split_path(c, path);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(event, &c->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, c);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &c->configure.timer, CLOCK_MONOTONIC, 0, 1,
					       on_poll, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->configure.timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

static void waiters_free(struct bird_waiter_list *list)
{
	struct bird_waiter *w;

	while ((w = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, w, entry);
		free(w);
	}
}

void bird_control_free(struct bird_control *c)
{
	struct bird_asked *a;

	if (!c)
		return;
	while ((a = take_first(c)))
		asked_free(a);
	waiters_free(&c->configure.current);
	waiters_free(&c->configure.waiting);
	watch_end(c);
	sd_event_source_disable_unref(c->configure.timer);
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->timer);
	if (c->fd >= 0)
		close(c->fd);
	free(c->path);
	free(c->folder);
	bird_reader_done(&c->reader);
	sd_event_unref(c->event);
	free(c);
}
