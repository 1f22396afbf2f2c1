/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/base/json_out.h"
#include "lib/base/names.h"
#include "lib/daemon/serve_tls.h"

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
/* A client that sends so many times max_body in chunks is not heard to the end. */
#define PATIENCE             16U
#define DEADLINE_ACCURACY_US 1000
#define ERROR_TEXT_MAX       1024
/* Limits of connections need not be kept to the millisecond, but tests wait for them. */
#define SWEEP_ACCURACY_US 100000
#define SECOND_US         1000000ULL
#define RETRY_AFTER_S     "1"

/*
 * A client's connection. libmicrohttpd ends one by its silence alone, and a client that sends a byte
 * now and then is never silent; so here the time runs from the last step that the server saw whole.
 */
struct link {
	TAILQ_ENTRY(link) entry; /* in serve.links, the one without a step for longest first */
	struct serve *serve;
	struct MHD_Connection *connection;
	int fd;
	struct address peer;     /* family 0: a unix socket */
	struct serve_request *q; /* the one that waits */
	uint64_t since;          /* accepted, head read, answered, sent */
	uint64_t ends;           /* its age limit; UINT64_MAX: none */
	bool asked, old, ended;
};
TAILQ_HEAD(link_list, link);

/*
 * Made when the head has been read, freed when libmicrohttpd reports it completed, which never
 * happens while the connection is suspended; so a waiter's pointer stays good until it is told.
 */
struct serve_request {
	TAILQ_ENTRY(serve_request) entry; /* in serve.suspended, if suspended */
	struct serve *serve;
	struct MHD_Connection *connection;
	struct link *link;
	const char *method, *path;
	char *body; /* NUL-terminated, NULL if none has come */
	size_t len, room;
	struct MHD_Response *response; /* NULL though answered: the connection is closed */
	struct serve_shared *shared;   /* or this one */
	unsigned status;
	sd_event_source *deadline, *watch;
	serve_end_fn *on_end;
	void *arg;
	uint64_t began;
	bool too_large, handled, waits, suspended, answered;
};

TAILQ_HEAD(request_list, serve_request);

struct serve {
	sd_event *event;
	struct MHD_Daemon *daemon;
	int fd;    /* listening */
	int error; /* why no connection can be accepted; 0: it can */
	sd_event_source *io, *timer, *again, *accept, *accept_again, *sweep;
	struct request_list suspended;
	struct link_list links;
	uint64_t sweep_at;     /* UINT64_MAX: no connection has a limit */
	struct serve_config o; /* with the defaults filled in */
	uint64_t timer_at;     /* when the timer will fire; UINT64_MAX: it is off */
	uint32_t gone_events;
	bool closing;
};

struct serve_shared {
	unsigned refs, status;
	struct MHD_Response *response;
};

/* --- connections ---------------------------------------------------------------------------- */

/* v4 in v6 is v4: a client is one address, whichever socket took it. */
static void address_of(const struct sockaddr *sa, struct address *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *four = (const struct sockaddr_in *)sa;

	*ret = (struct address){ 0 };
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the kernel filled it */
	if (sa && sa->sa_family == AF_INET) {
		ret->family = AF_INET;
		memcpy(ret->bytes, &four->sin_addr, 4);
	} else if (sa && sa->sa_family == AF_INET6) {
		bool is_mapped = memcmp(&six->sin6_addr, mapped, sizeof(mapped)) == 0;

		ret->family = is_mapped ? AF_INET : AF_INET6;
		memcpy(ret->bytes, six->sin6_addr.s6_addr + (is_mapped ? 12 : 0),
		       is_mapped ? 4 : 16);
	}
}

static uint64_t link_due(const struct link *l)
{
	const struct serve_config *o = &l->serve->o;
	uint64_t limit = l->asked ? o->idle_s : o->head_s, due = l->since + limit * SECOND_US;

	/* An old one ends with its last answer. */
	uint64_t ends = l->old ? UINT64_MAX : l->ends;

	if (l->ended)
		return UINT64_MAX;
	if (l->q)
		return ends;
	return due < ends ? due : ends;
}

/* The earliest of all; only ever moved forward by one connection. */
static void sweep_by(struct serve *s, uint64_t at)
{
	if (at >= s->sweep_at || !s->sweep)
		return;
	s->sweep_at = at;
	sd_event_source_set_time(s->sweep, at);
	sd_event_source_set_enabled(s->sweep, SD_EVENT_ONESHOT);
}

static void link_step(struct link *l)
{
	l->since = clock_monotonic_us();
	TAILQ_REMOVE(&l->serve->links, l, entry);
	TAILQ_INSERT_TAIL(&l->serve->links, l, entry);
	sweep_by(l->serve, link_due(l));
}

/* libmicrohttpd finds the end of its input, and closes it. */
static void link_end(struct link *l, int how)
{
	l->ended = true;
	shutdown(l->fd, how);
}

/* The one of this address (NULL: of any) that makes no step for longest; NULL: all wait for us. */
static struct link *link_quiet(const struct serve *s, const struct address *peer, unsigned *ret_n)
{
	struct link *found = NULL, *l;

	*ret_n = 0;
	TAILQ_FOREACH(l, &s->links, entry) {
		/* cppcheck-suppress uninitvar; the loop sets it */
		if (l->ended || (peer && address_compare(&l->peer, peer) != 0))
			continue;
		++*ret_n;
		if (!found && !l->q)
			found = l;
	}
	return found;
}

static void link_new(struct serve *s, struct MHD_Connection *connection, void **ret)
{
	const union MHD_ConnectionInfo *fd = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct link *l = fd ? calloc(1, sizeof(*l)) : NULL;
	uint64_t age = s->o.age_s * SECOND_US;
	uint32_t random = 0;

	if (!l) {
		if (fd)
			shutdown(fd->connect_fd, SHUT_RDWR);
		return;
	}
	l->serve = s;
	l->connection = connection;
	l->fd = fd->connect_fd;
	address_of(from ? from->client_addr : NULL, &l->peer);
	l->since = clock_monotonic_us();
	/* Those that a restart brought together do not come again together. */
	if (age && getrandom(&random, sizeof(random), GRND_NONBLOCK) == sizeof(random))
		age -= age / 4 * (random % 1024) / 1024;
	l->ends = age ? l->since + age : UINT64_MAX;
	TAILQ_INSERT_TAIL(&s->links, l, entry);
	sweep_by(s, link_due(l));
	*ret = l;
}

/* --- waiting --------------------------------------------------------------------------------- */

/* libmicrohttpd takes a suspended connection off its epoll and does not see its client go; so its
 * descriptor is watched here for as long, on the same loop. */
static void stop_waiting(struct serve_request *q)
{
	q->deadline = sd_event_source_disable_unref(q->deadline);
	q->watch = sd_event_source_disable_unref(q->watch);
}

static void answer(struct serve_request *q, unsigned status, struct MHD_Response *response)
{
	/* Against the contract; keeping the first is the harmless way out. */
	if (q->answered) {
		if (response)
			MHD_destroy_response(response);
		return;
	}
	q->answered = true;
	if (q->began)
		q->serve->o.answered(q->path, response || q->shared ? status : 0,
				     clock_monotonic_us() - q->began, q->serve->o.arg);
	q->status = status;
	q->response = response;
	stop_waiting(q);
	if (!q->suspended)
		return;
	q->suspended = false;
	TAILQ_REMOVE(&q->serve->suspended, q, entry);
	q->link->q = NULL;
	link_step(q->link);
	/*
	 * It is handled again from the loop, where the answer is found. Without a thread of its own
	 * libmicrohttpd has no way to wake anybody up: that is left to us.
	 */
	MHD_resume_connection(q->connection);
	if (q->serve->again)
		sd_event_source_set_enabled(q->serve->again, SD_EVENT_ONESHOT);
}

static void end_waiting(struct serve_request *q, enum serve_end why)
{
	stop_waiting(q);
	if (q->on_end)
		q->on_end(q, why, q->arg);
	if (q->answered)
		return;
	switch (why) {
	case SERVE_GONE:
		answer(q, 500, NULL);
		break;
	case SERVE_LATE:
		serve_reply_error(q, 503, CNI_CODE_TRY_AGAIN, NULL, "not answered in time");
		break;
	case SERVE_CLOSING:
		serve_reply_error(q, 503, CNI_CODE_TRY_AGAIN, NULL, "the server is shutting down");
		break;
	}
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *arg)
{
	end_waiting(arg, SERVE_LATE);
	return 0;
}

static int on_gone(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	end_waiting(arg, SERVE_GONE);
	return 0;
}

/* Who waits without a deadline is asked to come again; the others have theirs. */
static void link_age(struct link *l)
{
	struct serve_request *q = l->q;

	l->old = true;
	if (!q) {
		link_end(l, SHUT_RDWR);
		return;
	}
	if (q->deadline)
		return;
	stop_waiting(q);
	if (q->on_end)
		q->on_end(q, SERVE_LATE, q->arg);
	if (!q->answered)
		serve_reply_error(q, 503, CNI_CODE_TRY_AGAIN, NULL,
				  "this connection has reached its age limit; connect again");
}

void serve_recheck(struct serve *s)
{
	char name[SERVE_NAME_TEXT];
	struct link *l;

	TAILQ_FOREACH(l, &s->links, entry)
		if (s->o.tls && !l->ended &&
		    serve_tls_name(s->o.tls, l->connection, name, NULL) < 0)
			link_end(l, SHUT_RDWR);
}

static int on_sweep(sd_event_source *source, uint64_t usec, void *arg)
{
	struct serve *s = arg;
	uint64_t now = clock_monotonic_us(), next = UINT64_MAX;
	struct link *l, *after;

	/* No callback of the server frees a connection; that is libmicrohttpd's, when it runs. */
	for (l = TAILQ_FIRST(&s->links); l; l = after) {
		after = TAILQ_NEXT(l, entry);
		if (link_due(l) <= now && now >= l->ends && !l->old)
			link_age(l);
		else if (link_due(l) <= now)
			link_end(l, SHUT_RDWR);
	}
	/* Answers have moved some: only now it is sure which is next. */
	TAILQ_FOREACH(l, &s->links, entry)
		if (link_due(l) < next)
			next = link_due(l);
	s->sweep_at = UINT64_MAX;
	sweep_by(s, next);
	return 0;
}

static int set_deadline(struct serve_request *q, uint64_t ms)
{
	uint64_t us = ms < UINT64_MAX / 1000 ? ms * 1000 : UINT64_MAX;
	int r;

	if (ms == SERVE_FOREVER) {
		q->deadline = sd_event_source_disable_unref(q->deadline);
		return 0;
	}
	if (!q->deadline)
		return sd_event_add_time_relative(q->serve->event, &q->deadline, CLOCK_MONOTONIC,
						  us, DEADLINE_ACCURACY_US, on_deadline, q);
	r = sd_event_source_set_time_relative(q->deadline, us);
	return r < 0 ? r : sd_event_source_set_enabled(q->deadline, SD_EVENT_ONESHOT);
}

static int watch_client(struct serve_request *q)
{
	const union MHD_ConnectionInfo *info;

	if (q->watch)
		return 0;
	info = MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!info)
		return -EBADF;
	return sd_event_add_io(q->serve->event, &q->watch, info->connect_fd, q->serve->gone_events,
			       on_gone, q);
}

int serve_wait(struct serve_request *q, uint64_t deadline_ms, serve_end_fn *on_end, void *arg)
{
	int r = set_deadline(q, deadline_ms);

	r = r < 0 ? r : watch_client(q);
	if (r < 0) {
		serve_reply_error(q, 500, CNI_CODE_IO, NULL, "waiting is not possible here");
		return r;
	}
	q->on_end = on_end;
	q->arg = arg;
	q->waits = true;
	return 0;
}

/* --- what was asked, as handlers see it ------------------------------------------------------- */

const char *serve_method(const struct serve_request *q)
{
	return q->method;
}

const char *serve_path(const struct serve_request *q)
{
	return q->path;
}

const char *serve_query(const struct serve_request *q, const char *name)
{
	const char *value = NULL;
	size_t n = 0;

	if (MHD_lookup_connection_value_n(q->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name),
					  &value, &n) != MHD_YES)
		return NULL;
	if (!value)
		return "";
	/* A %00 inside: what a handler would see of it is not what was asked. */
	return strlen(value) == n ? value : NULL;
}

const char *serve_body(const struct serve_request *q, size_t *ret_len)
{
	if (ret_len)
		*ret_len = q->len;
	return q->body ?: "";
}

int serve_body_json(struct serve_request *q, struct json_object **ret)
{
	struct err err = { "" };
	int r = json_parse(q->body ?: "", q->len, ret, &err);

	if (r == -ENOMEM)
		serve_reply_error(q, 500, CNI_CODE_IO, NULL, "out of memory");
	else if (r < 0)
		serve_reply_error(q, 400, CNI_CODE_CONFIG, err.text, "the body is not understood");
	return r;
}

void serve_peer(const struct serve_request *q, struct address *ret)
{
	*ret = q->link->peer;
}

int serve_certified(const struct serve_request *q, char name[static SERVE_NAME_TEXT],
		    struct err *err)
{
	name[0] = '\0';
	return q->serve->o.tls ? serve_tls_name(q->serve->o.tls, q->connection, name, err) : 0;
}

/* --- answers -------------------------------------------------------------------------------- */

static struct MHD_Response *make_response(const char *content_type, const char *body, size_t len)
{
	union {
		const char *in;
		void *out;
	} text = { .in = body }; /* copied, whatever the prototype says */
	struct MHD_Response *response = MHD_create_response_from_buffer(len, text.out,
									MHD_RESPMEM_MUST_COPY);

	if (response && MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
						content_type) != MHD_YES) {
		MHD_destroy_response(response);
		return NULL;
	}
	return response;
}

void serve_reply_text(struct serve_request *q, unsigned status, const char *content_type,
		      const char *body, size_t len)
{
	answer(q, status, make_response(content_type, body, len));
}

struct serve_shared *serve_shared_new(unsigned status, const char *content_type, const char *body,
				      size_t len)
{
	struct serve_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->refs = 1;
	shared->status = status;
	shared->response = make_response(content_type, body, len);
	if (shared->response)
		return shared;
	free(shared);
	return NULL;
}

void serve_shared_unref(struct serve_shared *shared)
{
	if (!shared || --shared->refs)
		return;
	MHD_destroy_response(shared->response);
	free(shared);
}

void serve_reply_shared(struct serve_request *q, struct serve_shared *shared)
{
	if (q->answered)
		return;
	shared->refs++;
	q->shared = shared;
	answer(q, shared->status, NULL);
}

void serve_reply(struct serve_request *q, unsigned status, const char *json)
{
	serve_reply_text(q, status, "application/json", json, strlen(json));
}

void serve_reply_json(struct serve_request *q, unsigned status, struct json_object *object)
{
	size_t len = 0;
	const char *text = json_object_to_json_string_length(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

	if (text)
		serve_reply_text(q, status, "application/json", text, len);
	else
		answer(q, 500, NULL);
}

/* A sentence that was cut to a buffer's size may end in half a character, which JSON forbids. */
static void make_utf8(char *text)
{
	for (size_t i = 0; text[i];) {
		size_t n = utf8_length(text + i);

		if (n == 0)
			text[i++] = '?';
		else
			i += n;
	}
}

static void reply_sentence(struct serve_request *q, unsigned status, const char *error,
			   const char *details)
{
	char text[2 * ERROR_TEXT_MAX + 4];
	struct MHD_Response *response;
	int n = snprintf(text, sizeof(text), "%s%s%s\n", error, details[0] ? ": " : "", details);

	response = make_response("text/plain; charset=utf-8", text, (size_t)n);
	if (response && status == 503)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, RETRY_AFTER_S);
	answer(q, status, response);
}

void serve_reply_error(struct serve_request *q, unsigned status, enum cni_code code,
		       const char *details, const char *fmt, ...)
{
	char error[ERROR_TEXT_MAX], more[ERROR_TEXT_MAX];
	struct json_out out = { 0 };
	AUTO(free) char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, sizeof(error), fmt, ap);
	va_end(ap);
	snprintf(more, sizeof(more), "%s", details ?: "");
	if (q->serve->o.plain_errors) {
		reply_sentence(q, status, error, more);
		return;
	}
	make_utf8(error);
	make_utf8(more);
	json_out_open(&out, NULL, '{');
	json_out_number(&out, "code", code);
	json_out_text(&out, "error", error);
	json_out_text(&out, "details", more);
	json_out_close(&out, '}');
	if (json_out_take(&out, &text) < 0)
		answer(q, 500, NULL);
	else
		serve_reply(q, status, text);
}

/* --- the body ------------------------------------------------------------------------------- */

static void request_free(struct serve_request *q)
{
	stop_waiting(q);
	if (q->response)
		MHD_destroy_response(q->response);
	serve_shared_unref(q->shared);
	free(q->body);
	free(q);
}

static void refuse_size(struct serve_request *q)
{
	serve_reply_error(q, 413, CNI_CODE_CONFIG, NULL, "the body is larger than %zu bytes",
			  q->serve->o.max_body);
}

static bool announces_too_much(const struct serve_request *q)
{
	const char *length = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	/* libmicrohttpd has refused what is not a number. */
	return length && strtoull(length, NULL, 10) > q->serve->o.max_body;
}

/* A part of the body. An answer cannot be given before its end, so too much is read and dropped. */
static enum MHD_Result collect(struct serve_request *q, const char *data, size_t n)
{
	size_t max = q->serve->o.max_body;

	if (q->too_large || n > max - q->len) {
		q->too_large = true;
		q->len += n;
		return q->len > max * PATIENCE ? MHD_NO : MHD_YES;
	}
	if (array_make_room(&q->body, q->len, &q->room, 1, n + 1) < 0)
		return MHD_NO;
	memcpy(q->body + q->len, data, n);
	q->len += n;
	q->body[q->len] = '\0';
	return MHD_YES;
}

/* --- routes --------------------------------------------------------------------------------- */

static void refuse_method(struct serve_request *q, const char *allowed)
{
	serve_reply_error(q, 405, CNI_CODE_CONFIG, NULL, "this path takes %s only", allowed);
	if (q->response)
		MHD_add_response_header(q->response, MHD_HTTP_HEADER_ALLOW, allowed);
}

static void refuse_path(struct serve_request *q)
{
	char shown[SHOW_TEXT];

	serve_reply_error(q, 404, CNI_CODE_CONFIG, NULL, "there is no %s",
			  text_show(q->path, shown));
}

static void route(struct serve_request *q)
{
	const struct serve *s = q->serve;
	char allowed[64] = "";

	for (const struct serve_route *p = s->o.routes; p < s->o.routes + s->o.n_routes; p++) {
		size_t n = strlen(allowed);

		if (strcmp(p->path, q->path) != 0)
			continue;
		if (strcmp(p->method, q->method) == 0) {
			p->handler(q, s->o.arg);
			return;
		}
		snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? ", " : "", p->method);
	}
	if (s->o.other)
		s->o.other(q, s->o.arg);
	else if (allowed[0])
		refuse_method(q, allowed);
	else
		refuse_path(q);
}

static void handle(struct serve_request *q)
{
	q->handled = true;
	q->began = q->serve->o.answered ? clock_monotonic_us() : 0;
	if (q->serve->closing)
		serve_reply_error(q, 503, CNI_CODE_TRY_AGAIN, NULL, "the server is shutting down");
	else if (q->too_large)
		refuse_size(q);
	else
		route(q);
	if (!q->answered && !q->waits)
		serve_reply_error(q, 500, CNI_CODE_IO, NULL, "this request was forgotten");
}

/* --- libmicrohttpd's callbacks -------------------------------------------------------------- */

static struct serve_request *request_new(struct serve *s, struct MHD_Connection *connection,
					 const char *url, const char *method)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct link *link = info ? info->socket_context : NULL;
	struct serve_request *q = link ? calloc(1, sizeof(*q)) : NULL;

	if (!q)
		return NULL;
	q->link = link;
	link->asked = true;
	link_step(link);
	q->serve = s;
	q->connection = connection;
	q->method = method;
	q->path = url;
	return q;
}

/* Sends the answer, closes the connection if there is none to send, or waits for it. */
static enum MHD_Result conclude(struct serve_request *q)
{
	enum MHD_Result r;

	if (!q->answered) {
		q->suspended = true;
		q->link->q = q;
		sweep_by(q->serve, link_due(q->link));
		TAILQ_INSERT_TAIL(&q->serve->suspended, q, entry);
		MHD_suspend_connection(q->connection);
		return MHD_YES;
	}
	if (q->shared) {
		r = MHD_queue_response(q->connection, q->status, q->shared->response);
		serve_shared_unref(TAKE(q->shared));
		return r;
	}
	if (!q->response)
		return MHD_NO;
	if (q->link->old)
		MHD_add_response_header(q->response, MHD_HTTP_HEADER_CONNECTION, "close");
	r = MHD_queue_response(q->connection, q->status, q->response);
	MHD_destroy_response(TAKE(q->response)); /* it keeps a reference of its own */
	return r;
}

static enum MHD_Result on_access(void *arg, struct MHD_Connection *connection, const char *url,
				 const char *method, const char *version, const char *data,
				 size_t *n, void **context)
{
	struct serve_request *q = *context;

	if (!q) {
		q = request_new(arg, connection, url, method);
		if (!q)
			return MHD_NO;
		*context = q;
		if (!announces_too_much(q))
			return MHD_YES;
		refuse_size(q);
		return conclude(q);
	}
	if (*n) {
		size_t got = *n;

		*n = 0;
		return collect(q, data, got);
	}
	if (!q->handled)
		handle(q);
	return conclude(q);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode why)
{
	struct serve_request *q = TAKE(*context);

	if (!q)
		return;
	link_step(q->link);
	if (q->link->old)
		link_end(q->link, SHUT_RD);
	request_free(q);
}

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
	if (s->o.refused)
		s->o.refused(error, s->o.arg);
}

static bool has_room(const struct serve *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		       ->num_connections < s->o.max_connections;
}

static void listen_again(struct serve *s)
{
	if (s->accept)
		sd_event_source_set_enabled(s->accept, SD_EVENT_ON);
}

/* By the end of one that says nothing, so that nobody can hold all places by silence. */
static bool make_room(struct serve *s)
{
	unsigned n;
	struct link *l = s->o.replace_quiet ? link_quiet(s, NULL, &n) : NULL;

	if (!l)
		return false;
	link_end(l, SHUT_RDWR);
	MHD_run(s->daemon);
	return has_room(s);
}

/* Of its own address only: who opens many takes them from himself. */
static bool is_too_many(const struct serve *s, const struct sockaddr *from)
{
	struct address peer;
	struct link *quiet;
	unsigned n;

	address_of(from, &peer);
	if (!s->o.per_address || !peer.family)
		return false;
	quiet = link_quiet(s, &peer, &n);
	if (n < s->o.per_address)
		return false;
	if (quiet)
		link_end(quiet, SHUT_RDWR);
	return !quiet;
}

/* False if there is none to be had now. */
static bool accept_one(struct serve *s)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd = accept4(s->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		set_error(s, 0);
		if (is_too_many(s, (struct sockaddr *)&from))
			close(fd);
		else
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

	if (!has_room(s))
		make_room(s);
	while (n < ACCEPT_AT_ONCE && has_room(s) && accept_one(s))
		n++;
	if (n)
		run(s);
	/* Until one of them ends. */
	if (!has_room(s) && (n == 0 || !s->o.replace_quiet))
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
	r = r < 0 ? r
		  : sd_event_add_time(s->event, &s->sweep, CLOCK_MONOTONIC, UINT64_MAX,
				      SWEEP_ACCURACY_US, on_sweep, s);
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

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		struct link *l = TAKE(*context);

		if (l)
			TAILQ_REMOVE(&s->links, l, entry);
		free(l);
		listen_again(s);
		return;
	}
	link_new(s, connection, context);
	if (s->o.tls)
		serve_tls_connection(s->o.tls, connection);
}

static int start(struct serve *s)
{
	unsigned flags = MHD_USE_NO_LISTEN_SOCKET | MHD_USE_EPOLL | MHD_USE_TURBO |
			 MHD_ALLOW_SUSPEND_RESUME | MHD_USE_SUPPRESS_DATE_NO_CLOCK |
			 (s->o.tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[SERVE_TLS_OPTIONS] = { { MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem options[] = {
		{ MHD_OPTION_CONNECTION_LIMIT, s->o.max_connections, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, s->o.idle_s, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)s->o.connection_memory, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (s->o.tls)
		serve_tls_options(s->o.tls, tls);
	errno = 0;
	s->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, on_access, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_ARRAY, options,
		MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	return s->daemon ? 0 : errno ? -errno : -EIO;
}

int serve_new(sd_event *event, const struct serve_config *c, struct serve **ret)
{
	AUTO(serve_free) struct serve *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = sd_event_ref(event);
	s->o = *c;
	s->o.max_body = c->max_body ?: MAX_BODY;
	s->o.max_connections = c->max_connections ?: MAX_CONNECTIONS;
	s->o.idle_s = c->idle_s ?: IDLE_S;
	s->o.head_s = c->head_s ?: s->o.idle_s;
	s->o.connection_memory = c->connection_memory ?: CONNECTION_MEMORY;
	s->fd = -1;
	s->timer_at = s->sweep_at = UINT64_MAX;
	TAILQ_INIT(&s->suspended);
	TAILQ_INIT(&s->links);
	r = prepare_socket(s, c->fd);
	r = r ?: start(s);
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
		end_waiting(q, SERVE_CLOSING);
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
	s->sweep = sd_event_source_disable_unref(s->sweep);
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
