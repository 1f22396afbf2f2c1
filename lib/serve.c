/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/serve_parts.h"

#define MAX_BODY        (64U * 1024U)
#define MAX_CONNECTIONS 1024U
#define IDLE_S          30U
/* Bounds the head of a request; up to 32 KiB libmicrohttpd takes it from malloc, not by mmap. */
#define CONNECTION_MEMORY (16U * 1024U)
/* Idle connections need not be closed to the millisecond. */
#define TIMER_ACCURACY_US 100000
/* For the last answers; who does not take his at once goes without. */
#define CLOSING_ROUNDS 16U

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
	(void)source;
	(void)fd;
	(void)events;
	run(arg);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct serve *s = arg;

	(void)source;
	(void)usec;
	s->timer_at = UINT64_MAX;
	run(s);
	return 0;
}

static int on_again(sd_event_source *source, void *arg)
{
	(void)source;
	run(arg);
	return 0;
}

/* --- interface ------------------------------------------------------------------------------ */

static int add_sources(struct serve *s)
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
	return r < 0 ? r : sd_event_source_set_enabled(s->again, SD_EVENT_OFF);
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
	const struct serve *s = arg;

	(void)context;
	if (s->tls && code == MHD_CONNECTION_NOTIFY_STARTED)
		serve_tls_connection(s->tls, connection);
}

static int start(struct serve *s, const struct serve_config *c)
{
	unsigned flags = MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME |
			 MHD_USE_SUPPRESS_DATE_NO_CLOCK | (c->tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[SERVE_TLS_OPTIONS] = { { MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem options[] = {
		{ MHD_OPTION_LISTEN_SOCKET, c->fd, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, c->max_connections ?: MAX_CONNECTIONS, NULL },
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
	s->other = c->other;
	s->tls = c->tls;
	s->plain_errors = c->plain_errors;
	s->max_body = c->max_body ?: MAX_BODY;
	s->timer_at = UINT64_MAX;
	TAILQ_INIT(&s->suspended);
	r = prepare_socket(s, c->fd);
	r = r ?: start(s, c);
	if (r < 0)
		return r;
	r = add_sources(s);
	if (r < 0) {
		MHD_quiesce_daemon(s->daemon); /* the socket stays the caller's */
		return r;
	}
	*ret = TAKE(s);
	return 0;
}

/* The socket first, so that nobody new comes in while those who wait are sent home. */
static void stop(struct serve *s)
{
	int fd = MHD_quiesce_daemon(s->daemon); /* -1 if that was done before */
	MHD_UNSIGNED_LONG_LONG ms = 0;
	struct serve_request *q;

	if (fd >= 0)
		close(fd);
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
	sd_event_source_disable_unref(s->io);
	sd_event_source_disable_unref(s->timer);
	s->again = sd_event_source_disable_unref(s->again);
	if (s->daemon)
		stop(s);
	sd_event_unref(s->event);
	free(s);
}
