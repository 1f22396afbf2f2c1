/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/daemon/serve_parts.h"

#define MAX_BODY        (64U * 1024U)
#define MAX_CONNECTIONS 1024U
#define IDLE_S          30U
/* Bounds the head of a request; up to 32 KiB libmicrohttpd takes it from malloc, not by mmap. */
#define CONNECTION_MEMORY (16U * 1024U)
/* Idle connections need not be closed to the millisecond. */
#define TIMER_ACCURACY_US 100000
/* For the last answers; who does not take his at once goes without. */
#define CLOSING_ROUNDS 16U
/* The others after what these ask for. */
#define ACCEPT_AT_ONCE 10U
/* After an error such as EMFILE, where no event says that it has passed. */
#define ACCEPT_AGAIN_US 100000U

/* --- the loop ------------------------------------------------------------------------------- */

/*
 * The timer is only ever moved forward: each request postpones the end of idleness, and asking the
 * kernel for a later wake-up each time would cost more than one in vain.
 */
static void plan(struct serve *s)
{
	MHD_UNSIGNED_LONG_LONG ms;
	uint64_t now, at;

	if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
		return;
	if (ms == 0) {
		sd_event_source_set_enabled(s->again, SD_EVENT_ONESHOT);
		return;
	}
	sd_event_now(s->event, CLOCK_MONOTONIC, &now);
	at = now + (uint64_t)ms * 1000;
	if (at >= s->timer_at)
		return;
	s->timer_at = at;
	sd_event_source_set_time(s->timer, at);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static void run(struct serve *s)
{
	MHD_run(s->daemon);
	plan(s);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	run(arg);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct serve *s = arg;

	s->timer_at = UINT64_MAX;
	run(s);
	return 0;
}

static int on_again(sd_event_source *source, void *arg)
{
	run(arg);
	return 0;
}

/* --- new connections ------------------------------------------------------------------------- */

/*
 * Accepted here, because libmicrohttpd stops listening after EMFILE until a connection of its own
 * ends, and when the last one ends it waits for an event that cannot come any more.
 */
static void set_error(struct serve *s, int error)
{
	if (error == s->error)
		return;
	s->error = error;
	if (s->refused)
		s->refused(error, s->arg);
}

static bool has_room(const struct serve *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		       ->num_connections < s->max_connections;
}

static void listen_again(struct serve *s)
{
	if (s->accept)
		sd_event_source_set_enabled(s->accept, SD_EVENT_ON);
}

/* False if there is none to be had now. */
static bool accept_one(struct serve *s)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd = accept4(s->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		set_error(s, 0);
		MHD_add_connection(s->daemon, fd, (struct sockaddr *)&from, len);
		return true;
	}
	if (errno == EINTR || errno == ECONNABORTED)
		return true;
	if (errno == EAGAIN)
		return false;
	set_error(s, errno);
	sd_event_source_set_enabled(s->accept, SD_EVENT_OFF);
	sd_event_source_set_time_relative(s->accept_again, ACCEPT_AGAIN_US);
	sd_event_source_set_enabled(s->accept_again, SD_EVENT_ONESHOT);
	return false;
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct serve *s = arg;
	unsigned n = 0;

	while (n < ACCEPT_AT_ONCE && has_room(s) && accept_one(s))
		n++;
	if (n)
		run(s);
	/* Until one of them ends. */
	if (!has_room(s))
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

static int on_accept_again(sd_event_source *source, uint64_t usec, void *arg)
{
	listen_again(arg);
	return 0;
}

/* --- interface ------------------------------------------------------------------------------ */

static int add_sources(struct serve *s, int fd)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info)
		return -EIO;
	r = sd_event_add_io(s->event, &s->io, info->epoll_fd, EPOLLIN, on_io, s);
	if (r < 0)
		return r;
	r = sd_event_add_time(s->event, &s->timer, CLOCK_MONOTONIC, UINT64_MAX, TIMER_ACCURACY_US,
			      on_timer, s);
	if (r < 0)
		return r;
	r = sd_event_add_defer(s->event, &s->again, on_again, s);
	r = r < 0 ? r : sd_event_source_set_enabled(s->again, SD_EVENT_OFF);
	r = r < 0 ? r : sd_event_add_io(s->event, &s->accept, fd, EPOLLIN, on_accept, s);
	r = r < 0 ? r
		  : sd_event_add_time(s->event, &s->accept_again, CLOCK_MONOTONIC, UINT64_MAX,
				      TIMER_ACCURACY_US, on_accept_again, s);
	return r < 0 ? r : 0;
}

/*
 * A unix socket tells a client that is gone from one that has only said all it had to say; with
 * TCP both are a FIN, and to answer nobody is worse than to turn a rare client away.
 */
static int prepare_socket(struct serve *s, int fd)
{
	int domain, flags = fcntl(fd, F_GETFL);
	socklen_t n = sizeof(domain);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0)
		return -errno;
	s->gone_events = domain == AF_UNIX ? 0 : EPOLLRDHUP;
	return 0;
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct serve *s = arg;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED)
		listen_again(s);
	else if (s->tls)
		serve_tls_connection(s->tls, connection);
}

static int start(struct serve *s, const struct serve_config *c)
{
	unsigned flags = MHD_USE_NO_LISTEN_SOCKET | MHD_USE_EPOLL | MHD_USE_TURBO |
			 MHD_ALLOW_SUSPEND_RESUME | MHD_USE_SUPPRESS_DATE_NO_CLOCK |
			 (c->tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[SERVE_TLS_OPTIONS] = { { MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem options[] = {
		{ MHD_OPTION_CONNECTION_LIMIT, s->max_connections, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, c->idle_s ?: IDLE_S, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		  (intptr_t)(c->connection_memory ?: CONNECTION_MEMORY), NULL },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (c->tls)
		serve_tls_options(c->tls, tls);
	errno = 0;
	s->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, serve_on_access, s, MHD_OPTION_NOTIFY_COMPLETED,
		serve_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_ARRAY, options, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	return s->daemon ? 0 : errno ? -errno : -EIO;
}

int serve_new(sd_event *event, const struct serve_config *c, struct serve **ret)
{
	AUTO(serve_free) struct serve *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = sd_event_ref(event);
	s->routes = c->routes;
	s->n_routes = c->n_routes;
	s->arg = c->arg;
	s->answered = c->answered;
	s->refused = c->refused;
	s->other = c->other;
	s->tls = c->tls;
	s->plain_errors = c->plain_errors;
	s->max_body = c->max_body ?: MAX_BODY;
	s->max_connections = c->max_connections ?: MAX_CONNECTIONS;
	s->fd = -1;
	s->timer_at = UINT64_MAX;
	TAILQ_INIT(&s->suspended);
	r = prepare_socket(s, c->fd);
	r = r ?: start(s, c);
	r = r ?: add_sources(s, c->fd);
	if (r < 0)
		return r;
	s->fd = c->fd;
	*ret = TAKE(s);
	return 0;
}

static void stop(struct serve *s)
{
	MHD_UNSIGNED_LONG_LONG ms = 0;
	struct serve_request *q;

	while ((q = TAILQ_FIRST(&s->suspended)))
		serve_end(q, SERVE_CLOSING);
	for (unsigned i = 0; i < CLOSING_ROUNDS && ms == 0; i++) {
		MHD_run(s->daemon);
		if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
			break;
	}
	MHD_stop_daemon(s->daemon);
}

void serve_free(struct serve *s)
{
	if (!s)
		return;
	s->closing = true;
	/* First, so that nobody new comes in while those who wait are sent home. */
	s->accept = sd_event_source_disable_unref(s->accept);
	sd_event_source_disable_unref(s->accept_again);
	if (s->fd >= 0)
		close(s->fd);
	sd_event_source_disable_unref(s->io);
	sd_event_source_disable_unref(s->timer);
	s->again = sd_event_source_disable_unref(s->again);
	if (s->daemon)
		stop(s);
	sd_event_unref(s->event);
	free(s);
}
