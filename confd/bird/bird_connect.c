/* SPDX-License-Identifier: Apache-2.0 */
/* How the connection is had, watched for and had again. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "confd/bird/bird_control_parts.h"

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
/* The watch tells when the socket appears, unless something is mounted over its folder. */
#define RETRY_WATCHED_MS 60000

int bird_timer_in(struct bird_control *c, uint64_t ms)
{
	int r = sd_event_source_set_time_relative(c->timer, ms * 1000);

	return r < 0 ? r : sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

static void try_to_connect(struct bird_control *c, bool appeared);

/* --- the folder ----------------------------------------------------------------------------- */

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

/* --- the socket ----------------------------------------------------------------------------- */

static int on_io(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct bird_control *c = arg;
	char bytes[65536];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n > 0) {
		bird_on_bytes(c, bytes, (size_t)n);
	} else if (n == 0 || errno == ECONNRESET) {
		err_set(&c->problem, 0, "BIRD closed the connection: it stopped or crashed");
		bird_lost(c, -ECONNRESET);
	} else if (errno != EAGAIN && errno != EINTR) {
		err_set(&c->problem, 0, "%s: %s", c->path, strerror(errno));
		bird_lost(c, -ECONNRESET);
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
			"%s has nobody behind it: it is left over from a BIRD that died", c->path);
		break;
	case -EAGAIN:
		err_set(&c->problem, e, "%s takes no more clients: BIRD hangs or is very busy",
			c->path);
		break;
	default:
		err_set(&c->problem, e, "%s: %s", c->path, strerror(-e));
	}
}

static void retry_later(struct bird_control *c, int e)
{
	if (e == -ENOENT && c->inotify >= 0) {
		bird_timer_in(c, RETRY_WATCHED_MS);
		return;
	}
	bird_timer_in(c, c->retry_ms);
	c->retry_ms = 2 * c->retry_ms < RETRY_MAX_MS ? 2 * c->retry_ms : RETRY_MAX_MS;
}

/* appeared: it was touched just now. A BIRD that starts binds first and listens a moment later. */
static void try_to_connect(struct bird_control *c, bool appeared)
{
	int r;

	watch_begin(c);
	r = open_socket(c);
	if (r == 0) {
		c->state = BIRD_GREETING;
		bird_timer_in(c, BIRD_COMMAND_TIMEOUT_MS);
		return;
	}
	explain(c, r);
	retry_later(c, r);
	if (r != -ECONNREFUSED || !appeared)
		bird_tell_problem(c);
}

void bird_arrived(struct bird_control *c)
{
	watch_end(c);
	c->retry_ms = RETRY_MIN_MS;
}

void bird_hang_up(struct bird_control *c)
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

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct bird_control *c = arg;

	if (c->state == BIRD_AWAY)
		try_to_connect(c, false);
	else
		bird_on_deadline(c);
	return 0;
}

/* --- from its making to its end ------------------------------------------------------------- */

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

int bird_connect_new(struct bird_control *c, const char *path)
{
	int r = split_path(c, path);

	c->fd = c->inotify = -1;
	c->retry_ms = RETRY_MIN_MS;
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(c->event, &c->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, c);
	return r < 0 ? r : 0;
}

void bird_connect_free(struct bird_control *c)
{
	watch_end(c);
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->timer);
	if (c->fd >= 0)
		close(c->fd);
	free(c->path);
	free(c->folder);
}
