/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way between machines over leases and the lease servers of the controllers. Stands in for
 * lib/http/http.c on one side and for lib/daemon/serve*.c on the other.
 *
 *   lib/lease/lease_client -> http_get() ─> call ─> request ─> controller/leases/lease_server
 *   http_done_fn     <─ a later turn <─ answer <─ serve_reply_…()
 *
 * A machine's net decides what arrives. A request that has arrived is worked on, though its client
 * may have given up by then; an answer may be lost though what was asked has been done.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "integration-tests/simulation/simulation.h"
#include "lib/http/http.h"

#define FIRST_SERVER 101

struct http {
	struct process *process;
};

struct http_call {
	LIST_ENTRY(http_call) entry;
	struct process *process;       /* of the client */
	struct serve_request *request; /* at the server; NULL: lost, or answered */
	bool done, sent, confirms;
	int err;
	long status;
	char *body;
	int64_t sent_at, deadline; /* world; CLOCK_MONOTONIC of the client */
	http_done_fn *on_done;
	void *arg;
};

/* --- the client's side ---------------------------------------------------------------------- */

int http_new(sd_event *event, const struct http_tls *tls, struct http **ret)
{
	*ret = memory_must(calloc(1, sizeof(**ret)));
	(*ret)->process = sim.current;
	return 0;
}

void http_free(struct http *h)
{
	while (h && !LIST_EMPTY(&h->process->calls))
		http_cancel(LIST_FIRST(&h->process->calls));
	free(h);
}

const struct certificate *http_server(const struct http *h)
{
	return NULL;
}

static void detach(struct http_call *c)
{
	if (c->request) {
		c->request->call = NULL;
		c->request = NULL;
	}
}

static void fail(struct http_call *c, int err)
{
	detach(c);
	c->done = true;
	c->err = err;
}

void http_cancel(struct http_call *c)
{
	if (!c)
		return;
	detach(c);
	LIST_REMOVE(c, entry);
	free(c->body);
	free(c);
}

static struct serve_request *request_new(struct http_call *c, const struct http_request *r,
					 struct process *server)
{
	struct serve_request *q = memory_must(calloc(1, sizeof(*q)));
	const char *path = strstr(r->url, "/v1/"), *query = strchr(path, '?');

	q->wire = true;
	q->process = server;
	q->machine = c->process->machine;
	q->call = c;
	snprintf(q->method, sizeof(q->method), "%s", r->method);
	snprintf(q->path, sizeof(q->path), "%.*s", (int)strcspn(path, "?"), path);
	if (query && strncmp(query, "?next=", 6) == 0)
		snprintf(q->next, sizeof(q->next), "%s", query + 6);
	if (r->body && (size_t)snprintf(q->body, sizeof(q->body), "%s", r->body) >= sizeof(q->body))
		abort();
	TAILQ_INSERT_TAIL(&server->inbox, q, entry);
	return q;
}

static struct process *server_of(const char *url)
{
	unsigned n;

	if (sscanf(url, "http://192.0.2.%u:", &n) != 1 || n < FIRST_SERVER ||
	    n >= FIRST_SERVER + SIM_CONTROLLERS)
		abort();
	return sim.controllers[n - FIRST_SERVER].process;
}

static int call_send(const struct http *h, const struct http_request *r, struct http_call **ret)
{
	struct http_call *c = memory_must(calloc(1, sizeof(*c)));
	struct process *server = server_of(r->url);
	enum net net = h->process->machine->net;

	c->process = h->process;
	c->on_done = r->on_done;
	c->arg = r->arg;
	c->sent_at = sim.now;
	c->deadline = loop_clock(c->process, CLOCK_MONOTONIC) + r->timeout_ms * MS;
	/* Of a lease of its own: what shows that the machine holds it. */
	c->confirms = strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0 ||
		      (strcmp(r->method, "GET") == 0 && strstr(r->url, "/leases/"));
	LIST_INSERT_HEAD(&c->process->calls, c, entry);
	*ret = c;
	if (net == NET_CUT || (!server && net == NET_WHOLE)) {
		fail(c, -ENOTCONN);
		return 0;
	}
	c->sent = true;
	if (server && (net == NET_WHOLE || (net == NET_DEAF && chance_once_in(&sim.chance, 2))))
		c->request = request_new(c, r, server);
	return 0;
}

int http_get(struct http *h, const struct http_request *r, struct http_call **ret)
{
	return call_send(h, r, ret);
}

int http_post(struct http *h, const struct http_request *r, struct http_call **ret)
{
	return call_send(h, r, ret);
}

static int64_t call_due(const struct http_call *c)
{
	return c->done ? sim.now : loop_world_time(c->process, CLOCK_MONOTONIC, c->deadline);
}

static void call_step(struct http_call *c)
{
	struct http_reply reply;

	if (!c->done)
		fail(c, -ETIMEDOUT);
	reply = (struct http_reply){
		.err = c->err,
		.text = c->err ? strerror(-c->err) : "",
		.sent = c->sent,
		.status = c->status,
		.body = c->body ?: "",
		.len = c->body ? strlen(c->body) : 0,
		.retry_after = c->status == 503,
	};
	LIST_REMOVE(c, entry);
	if (c->confirms && c->status == 200)
		judge_confirmed(c->process->machine, c->sent_at);
	c->on_done(&reply, c->arg);
	free(c->body);
	free(c);
}

void wire_cut(struct process *client)
{
	struct http_call *c;

	LIST_FOREACH(c, &client->calls, entry)
		if (!c->done)
			fail(c, -ECONNRESET);
}

/* --- the server's side ---------------------------------------------------------------------- */

struct serve {
	struct process *process;
};

int serve_new(sd_event *event, const struct serve_config *config, struct serve **ret)
{
	struct serve *s = memory_must(calloc(1, sizeof(*s)));

	s->process = sim.current;
	s->process->handler = config->other;
	s->process->handler_arg = config->arg;
	*ret = s;
	return 0;
}

static void requests_drop(struct requests *list)
{
	struct serve_request *q, *next;

	for (q = TAILQ_FIRST(list); q; q = next) {
		next = TAILQ_NEXT(q, entry);
		if (!q->wire)
			continue;
		TAILQ_REMOVE(list, q, entry);
		/* Who is cut off does not see that it is gone. */
		if (q->call && q->machine->net == NET_WHOLE)
			fail(q->call, -ECONNRESET);
		else if (q->call)
			detach(q->call);
		free(q);
	}
}

void serve_free(struct serve *s)
{
	if (!s)
		return;
	requests_drop(&s->process->inbox);
	requests_drop(&s->process->waiting);
	free(s);
}

int serve_listen_tcp(const struct listen_address *at, int *ret)
{
	*ret = -1;
	return 0;
}

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
	return strcmp(name, "next") == 0 && q->next[0] ? q->next : NULL;
}

/* By the address that its agent posts. */
void serve_peer(const struct serve_request *q, struct address *ret)
{
	char text[ADDRESS_TEXT];

	snprintf(text, sizeof(text), "192.0.2.%u", q->machine->index + 1);
	if (address_parse(text, ret) < 0)
		abort();
}

int serve_certified(const struct serve_request *q, char name[static SERVE_NAME_TEXT],
		    struct err *err)
{
	name[0] = '\0';
	return 0;
}

void serve_recheck(struct serve *s)
{
}

void wire_reply(struct serve_request *q, unsigned status, const char *body)
{
	struct http_call *c = q->call;

	if (c && sim.lose) {
		sim.lose--;
	} else if (c && !q->process->dying && q->machine->net == NET_WHOLE) {
		c->status = (long)status;
		c->body = memory_must(strdup(body));
		c->done = true;
	}
	if (c)
		detach(c);
	if (q->waits)
		TAILQ_REMOVE(&q->process->waiting, q, entry);
	free(q);
}

void serve_reply_text(struct serve_request *q, unsigned status, const char *content_type,
		      const char *body, size_t len)
{
	wire_reply(q, status, body);
}

struct serve_shared {
	unsigned refs;
	char *body;
};

struct serve_shared *serve_shared_new(unsigned status, const char *content_type, const char *body,
				      size_t len)
{
	struct serve_shared *s = memory_must(calloc(1, sizeof(*s)));

	s->refs = 1;
	s->body = memory_must(strndup(body, len));
	return s;
}

void serve_shared_unref(struct serve_shared *s)
{
	if (!s || --s->refs)
		return;
	free(s->body);
	free(s);
}

void serve_reply_shared(struct serve_request *q, struct serve_shared *s)
{
	wire_reply(q, 200, s->body);
}

/* The waiter is not asked to answer; the client, if it is there, is. */
static void request_end(struct serve_request *q, enum serve_end why)
{
	/* Whatever it does, the request is gone when it returns. */
	q->on_end(q, why, q->arg);
	wire_reply(q, 503, "it takes too long");
}

/* --- what the scheduler asks ---------------------------------------------------------------- */

int64_t wire_due(const struct process *p)
{
	const struct serve_request *q;
	const struct http_call *c;
	int64_t next = TAILQ_EMPTY(&p->inbox) ? SIM_NEVER : sim.now;

	LIST_FOREACH(c, &p->calls, entry)
		if (call_due(c) < next)
			next = call_due(c);
	TAILQ_FOREACH(q, &p->waiting, entry)
		if (q->wire && !q->call)
			next = sim.now;
	return next;
}

/* A client has gone, and the server notices; false: none has. */
static bool notice_gone(struct process *p)
{
	struct serve_request *q = TAILQ_FIRST(&p->waiting);

	while (q && (!q->wire || q->call))
		q = TAILQ_NEXT(q, entry);
	if (!q)
		return false;
	request_end(q, SERVE_GONE);
	return true;
}

void wire_step(struct process *p)
{
	struct serve_request *q = TAILQ_FIRST(&p->inbox);
	struct http_call *c, *chosen = NULL;
	unsigned n = 0;

	LIST_FOREACH(c, &p->calls, entry)
		if (call_due(c) <= sim.now && chance_below(&sim.chance, ++n) == 0)
			chosen = c;
	if (chosen) {
		call_step(chosen);
	} else if (q && (chance_once_in(&sim.chance, 2) || !notice_gone(p))) {
		TAILQ_REMOVE(&p->inbox, q, entry);
		p->handler(q, p->handler_arg);
	} else if (!q) {
		notice_gone(p);
	}
}

void wire_late(struct serve_request *q)
{
	request_end(q, SERVE_LATE);
}
