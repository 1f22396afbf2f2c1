/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/local_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#include "lib/http/http_reply.h"
#include "lib/json/json.h"

/* More than a usual reply, so that one read takes it. */
#define PIECE 16384U

/* One call: where it goes and until when. */
struct call {
	int fd;
	int64_t until_ms;
	unsigned deadline_ms;
	const char *awaited; /* what the agent did not do in time */
	struct err *err;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int too_late(const struct call *c)
{
	return err_set(c->err, -ETIMEDOUT, "the agent did not %s within %u ms", c->awaited,
		       c->deadline_ms);
}

static int cut_off(const struct call *c)
{
	return err_set(c->err, -ECONNRESET, "the agent closed the connection before it answered");
}

static int wait_for(const struct call *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };

	for (;;) {
		int64_t left = c->until_ms - now_ms();
		int r;

		if (left <= 0)
			return too_late(c);
		/* Rounded up, or the last part of a millisecond would be spent spinning. */
		r = poll(&p, 1, left < INT32_MAX ? (int)left + 1 : INT32_MAX);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return err_set(c->err, -errno, "poll: %m");
	}
}

/* --- connecting ----------------------------------------------------------------------------- */

/*
 * The backlog is full, and poll() cannot wait for room in it; a blocking connect() with a send
 * timeout can.
 */
static int connect_blocking(const struct call *c, const struct sockaddr_un *sa)
{
	int64_t left = c->until_ms - now_ms();
	struct timeval tv = { .tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 };
	int flags = fcntl(c->fd, F_GETFL);

	if (left <= 0)
		return -ETIMEDOUT;
	if (flags < 0 || fcntl(c->fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0)
		return -errno;
	if (connect(c->fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return fcntl(c->fd, F_SETFL, flags) < 0 ? -errno : 0;
}

static int connect_to(struct call *c, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int r;

	c->awaited = "accept the connection";
	if (strlen(path) >= sizeof(sa.sun_path))
		return err_set(c->err, -EINVAL, "the socket's path is longer than %zu bytes: %s",
			       sizeof(sa.sun_path) - 1, path);
	memcpy(sa.sun_path, path, strlen(path));
	r = connect(c->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	/* A signal may cut the blocking form short: what is left of the time is still ours. */
	while (r == -EAGAIN || r == -EINTR)
		r = connect_blocking(c, &sa);
	switch (r) {
	case 0:
		return 0;
	case -ENOENT:
	case -ECONNREFUSED:
		return err_set(c->err, -ENOTCONN, "no agent answers on %s: %s", path,
			       r == -ENOENT ? "no such socket" : "nobody listens");
	case -ETIMEDOUT:
		return too_late(c);
	default:
		return err_set(c->err, r, "cannot connect to %s: %s", path, strerror(-r));
	}
}

/* --- asking --------------------------------------------------------------------------------- */

/* One word of a request line: nothing that could end it or begin another one. */
static bool is_word(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p == 0x7f)
			return false;
	return *text;
}

/* NULL: out of memory. */
static char *print_head(const char *method, const char *path, const char *body)
{
	char length[80] = "";
	char *head = NULL;

	if (body)
		snprintf(length, sizeof(length),
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
	if (asprintf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n",
		     method, path, length) < 0)
		return NULL;
	return head;
}

static void advance(struct iovec *v, size_t n)
{
	for (size_t i = 0; i < 2; i++) {
		size_t step = n < v[i].iov_len ? n : v[i].iov_len;

		v[i].iov_base = (char *)v[i].iov_base + step;
		v[i].iov_len -= step;
		n -= step;
	}
}

static int send_all(struct call *c, char *head, const char *body)
{
	union {
		const char *in;
		char *out;
	} text = { .in = body ?: "" }; /* iovec knows no const; nobody writes there */
	struct iovec v[2] = { { head, strlen(head) }, { text.out, strlen(text.in) } };
	struct msghdr msg = { .msg_iov = v, .msg_iovlen = 2 };

	c->awaited = "read the request";
	while (v[0].iov_len + v[1].iov_len > 0) {
		ssize_t n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
		int r;

		if (n >= 0) {
			advance(v, (size_t)n);
			continue;
		}
		if (errno == EINTR)
			continue;
		/* It may have refused the rest and said why: read on. */
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN)
			return err_set(c->err, -errno, "cannot write to the agent: %m");
		r = wait_for(c, POLLOUT);
		if (r < 0)
			return r;
	}
	return 0;
}

static int receive(struct call *c, struct http_reply_parser *p)
{
	char piece[PIECE];
	int r;

	c->awaited = "answer";
	/* Waiting first: the answer is never there yet, and a read in vain costs as much. */
	while ((r = wait_for(c, POLLIN)) == 0) {
		ssize_t n = recv(c->fd, piece, sizeof(piece), 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return cut_off(c);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_set(c->err, -errno, "cannot read from the agent: %m");
		if (n < 0)
			continue;
		r = http_reply_feed(p, piece, (size_t)n, c->err);
		if (r != 0)
			break;
	}
	return r < 0 ? r : 0;
}

static int to_json(const struct http_reply_parser *p, unsigned *ret_status,
		   struct json_object **ret_json, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	int r = p->len ? json_parse(p->body, p->len, &object, err) : 0;

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return err_wrap(err, -EBADMSG, "the agent's reply with status %u", p->status);
	*ret_status = p->status;
	*ret_json = TAKE(object);
	return 0;
}

int local_call(const char *socket_path, const char *method, const char *path, const char *body,
	       unsigned deadline_ms, unsigned *ret_status, struct json_object **ret_json,
	       struct err *err)
{
	AUTO(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct call c = {
		.fd = fd, .until_ms = now_ms() + deadline_ms, .deadline_ms = deadline_ms, .err = err
	};
	struct http_reply_parser parser;
	AUTO(free) char *head = NULL;
	int r;

	if (fd < 0)
		return err_set(err, -errno, "socket: %m");
	if (deadline_ms == 0)
		return err_set(err, -ETIMEDOUT, "no time was left to ask the agent");
	if (!is_word(method) || !is_word(path))
		return err_set(err, -EINVAL, "method and path must be words");
	head = print_head(method, path, body);
	if (!head)
		return err_set(err, -ENOMEM, "out of memory");
	r = connect_to(&c, socket_path);
	r = r ?: send_all(&c, head, body);
	if (r < 0)
		return r;
	http_reply_init(&parser, LOCAL_REPLY_MAX);
	r = receive(&c, &parser);
	r = r ?: to_json(&parser, ret_status, ret_json, err);
	http_reply_done(&parser);
	return r;
}
