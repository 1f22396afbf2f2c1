/* SPDX-License-Identifier: Apache-2.0 */
/* A request from its head to its answer, as libmicrohttpd tells it. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/names.h"
#include "lib/daemon/serve_parts.h"

/* A client that sends so many times max_body in chunks is not heard to the end. */
#define PATIENCE 16U

/* --- the body ------------------------------------------------------------------------------- */

static void request_free(struct serve_request *q)
{
	serve_stop_waiting(q);
	if (q->response)
		MHD_destroy_response(q->response);
	serve_shared_unref(q->shared);
	free(q->body);
	free(q);
}

static void refuse_size(struct serve_request *q)
{
	serve_reply_error(q, 413, CNI_CODE_CONFIG, NULL, "the body is larger than %zu bytes",
			  q->serve->max_body);
}

static bool announces_too_much(const struct serve_request *q)
{
	const char *length = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	/* libmicrohttpd has refused what is not a number. */
	return length && strtoull(length, NULL, 10) > q->serve->max_body;
}

static bool grow(struct serve_request *q, size_t need)
{
	size_t room = q->room ?: 1024;
	char *grown;

	if (need <= q->room)
		return true;
	while (room < need)
		room *= 2;
	grown = realloc(q->body, room);
	if (!grown)
		return false;
	q->body = grown;
	q->room = room;
	return true;
}

/* A part of the body. An answer cannot be given before its end, so too much is read and dropped. */
static enum MHD_Result collect(struct serve_request *q, const char *data, size_t n)
{
	size_t max = q->serve->max_body;

	if (q->too_large || n > max - q->len) {
		q->too_large = true;
		q->len += n;
		return q->len > max * PATIENCE ? MHD_NO : MHD_YES;
	}
	if (!grow(q, q->len + n + 1))
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

	for (const struct serve_route *p = s->routes; p < s->routes + s->n_routes; p++) {
		size_t n = strlen(allowed);

		if (strcmp(p->path, q->path) != 0)
			continue;
		if (strcmp(p->method, q->method) == 0) {
			p->handler(q, s->arg);
			return;
		}
		snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? ", " : "", p->method);
	}
	if (s->other)
		s->other(q, s->arg);
	else if (allowed[0])
		refuse_method(q, allowed);
	else
		refuse_path(q);
}

static void handle(struct serve_request *q)
{
	q->handled = true;
	q->began = q->serve->answered ? clock_monotonic_us() : 0;
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
	struct serve_request *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
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
	r = MHD_queue_response(q->connection, q->status, q->response);
	MHD_destroy_response(TAKE(q->response)); /* it keeps a reference of its own */
	return r;
}

enum MHD_Result serve_on_access(void *arg, struct MHD_Connection *connection, const char *url,
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

void serve_on_completed(void *arg, struct MHD_Connection *connection, void **context,
			enum MHD_RequestTerminationCode why)
{
	struct serve_request *q = TAKE(*context);

	if (q)
		request_free(q);
}
