/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lease/lease_client.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/endpoint.h"

#define ASK_MS          8000
#define POLL_MS         300000
#define RETRY_FIRST_US  100000
#define RETRY_MAX_US    5000000
#define RETRY_AFTER_MAX 30
#define TEXT_SHOWN      160

/* One request, on its way until it is answered. */
struct lease_ask {
	LIST_ENTRY(lease_ask) entry;
	struct lease_client *client;
	char *method, *path, *body;
	uint32_t timeout_ms;
	bool poll; /* no answer in time is one: nothing has happened */
	struct http_call *call;
	sd_event_source *retry;
	size_t server;
	unsigned failures;
	uint64_t sent;     /* CLOCK_MONOTONIC, us: the last attempt */
	int64_t sent_boot; /* the same by CLOCK_BOOTTIME, ns */
	lease_answer_fn *fn;
	void *arg;
};

/* What the following waits for. */
enum step { STEP_NETWORK, STEP_LIST, STEP_POLL };

struct lease_client {
	sd_event *event;
	struct http *http;
	struct curl_slist *headers;
	struct endpoint *servers;
	size_t n_servers, current;
	char network[NAME_TEXT];
	uint32_t poll_ms;
	LIST_HEAD(lease_asks, lease_ask) asks;
	enum step step;
	struct lease_ask *following;
	char cursor[LEASE_CURSOR];
	bool listed;   /* the cursor is good */
	bool watching; /* as told last */
	bool in_trouble;
	const struct lease_client_handlers *handlers;
	void *arg;
	struct store_stats stats;
	uint64_t heard;
};

static void follow(struct lease_client *c, enum step step);

/* --- one request ---------------------------------------------------------------------------- */

static void ask_free(struct lease_ask *a)
{
	LIST_REMOVE(a, entry);
	http_cancel(a->call);
	sd_event_source_disable_unref(a->retry);
	free(a->method);
	free(a->path);
	free(a->body);
	free(a);
}

void lease_ask_cancel(struct lease_ask *a)
{
	if (a)
		ask_free(a);
}

static void tell_trouble(struct lease_client *c, const char *text)
{
	/* What was read may be old when it is over. */
	c->listed = false;
	c->watching = false;
	if (c->in_trouble)
		return;
	c->in_trouble = true;
	c->handlers->trouble(text, c->arg);
}

static int send_ask(struct lease_ask *a);

static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct lease_ask *a = arg;

	a->retry = sd_event_source_disable_unref(a->retry);
	send_ask(a);
	return 0;
}

static void send_later(struct lease_ask *a, uint64_t usec)
{
	sd_event_source_disable_unref(TAKE(a->retry));
	if (sd_event_add_time_relative(a->client->event, &a->retry, CLOCK_MONOTONIC, usec, usec / 8,
				       on_retry, a) < 0)
		abort(); /* Without memory for a timer nothing would ever go on. */
}

/* First line of what the server says, for people. */
static void say(const struct lease_ask *a, const struct http_reply *reply, char *text, size_t size)
{
	const char *name = a->client->servers[a->server].name;
	size_t line = reply->err ? 0 : strcspn(reply->body, "\r\n");

	if (reply->err)
		snprintf(text, size, "%s: %s", name, reply->text);
	else
		snprintf(text, size, "%s answers %ld: %.*s", name, reply->status,
			 (int)(line < TEXT_SHOWN ? line : TEXT_SHOWN), reply->body);
}

static void failed(struct lease_ask *a, const struct http_reply *reply)
{
	struct lease_client *c = a->client;
	uint32_t after = reply->retry_after < RETRY_AFTER_MAX ? reply->retry_after
							      : RETRY_AFTER_MAX;
	uint64_t wait;
	char text[512];

	c->stats.failed_attempts++;
	a->failures++;
	say(a, reply, text, sizeof(text));
	if (c->current == a->server)
		c->current = (c->current + 1) % c->n_servers;
	if (a->failures % c->n_servers) {
		send_later(a, 0);
		return;
	}
	wait = backoff_usec(a->failures / (unsigned)c->n_servers, RETRY_FIRST_US, RETRY_MAX_US);
	if (wait < after * 1000000ULL)
		wait = after * 1000000ULL;
	if (a != c->following) {
		send_later(a, wait);
		return;
	}
	/* A long poll would not tell when they are back: begin with what is answered at once. */
	tell_trouble(c, text);
	if (c->step == STEP_NETWORK) {
		send_later(a, wait);
		return;
	}
	ask_free(TAKE(c->following));
	follow(c, STEP_NETWORK);
}

/* Not now, or not here: another server, or this one later, may well answer. */
static bool passes(const struct lease_ask *a, const struct http_reply *reply)
{
	if (reply->err || reply->status == 429 || (reply->status >= 502 && reply->status <= 504))
		return true;
	/* Who follows wants leases, whatever was said instead. */
	return a == a->client->following && reply->status != 200;
}

static void count(struct lease_ask *a, const struct http_reply *reply)
{
	enum server_outcome o = reply->err == -ETIMEDOUT ? SERVER_LATE
				: reply->err             ? SERVER_UNREACHABLE
				: reply->status == 200   ? SERVER_DONE
							 : SERVER_REFUSED;
	struct lease_client *c = a->client;

	if (!reply->err)
		c->heard = clock_monotonic_us();
	/* A long poll takes as long as nothing happens: no measure of anything. */
	if (a->poll && (!reply->err || reply->err == -ETIMEDOUT))
		return;
	c->stats.outcomes[o]++;
	histogram_add(&c->stats.duration, clock_monotonic_us() - a->sent);
}

static void on_done(const struct http_reply *reply, void *arg)
{
	struct lease_ask *a = arg;
	struct lease_answer answer = {
		.status = reply->status,
		.body = reply->body,
		.len = reply->len,
		.sent = a->sent_boot,
	};

	a->call = NULL;
	count(a, reply);
	if (a->poll && reply->err == -ETIMEDOUT && reply->sent) {
		answer = (struct lease_answer){ .status = 0, .body = "" };
	} else if (passes(a, reply)) {
		failed(a, reply);
		return;
	}
	if (a == a->client->following)
		a->client->following = NULL;
	a->fn(&answer, a->arg);
	ask_free(a);
}

static int send_ask(struct lease_ask *a)
{
	struct lease_client *c = a->client;
	char url[1024];
	struct http_request q = {
		.url = url,
		.method = a->method,
		.headers = c->headers,
		.body = a->body,
		.len = a->body ? strlen(a->body) : 0,
		.timeout_ms = a->timeout_ms,
		.max_reply = LEASE_REPLY_MAX,
		.on_done = on_done,
		.arg = a,
	};
	int r;

	a->server = c->current;
	a->sent = clock_monotonic_us();
	a->sent_boot = (int64_t)clock_boottime_ns();
	q.unix_path = c->servers[a->server].unix_path;
	snprintf(url, sizeof(url), "%s/v1/%s%s", c->servers[a->server].url, c->network, a->path);
	c->stats.requests++;
	r = a->body ? http_post(c->http, &q, &a->call) : http_get(c->http, &q, &a->call);
	if (r < 0)
		send_later(a, RETRY_MAX_US);
	return r;
}

static struct lease_ask *ask_new(struct lease_client *c, const char *method, const char *path,
				 const char *body, lease_answer_fn *fn, void *arg)
{
	struct lease_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->client = c;
	a->timeout_ms = ASK_MS;
	a->fn = fn;
	a->arg = arg;
	LIST_INSERT_HEAD(&c->asks, a, entry);
	a->method = strdup(method);
	a->path = strdup(path);
	a->body = body ? strdup(body) : NULL;
	if (a->method && a->path && (!body || a->body))
		return a;
	ask_free(a);
	return NULL;
}

int lease_client_ask(struct lease_client *c, const char *method, const char *path, const char *body,
		     lease_answer_fn *fn, void *arg, struct lease_ask **ret)
{
	struct lease_ask *a = ask_new(c, method, path, body, fn, arg);

	if (!a)
		return -ENOMEM;
	/* The callback never comes from within this call. */
	send_later(a, 0);
	*ret = a;
	return 0;
}

/* --- following ------------------------------------------------------------------------------ */

/* It answered, but with what we do not understand: as good as no answer. */
static void not_understood(struct lease_client *c, const struct err *err)
{
	char text[768];

	snprintf(text, sizeof(text), "%s: its answer is not understood: %s",
		 c->servers[c->current].name, err->text);
	tell_trouble(c, text);
	c->current = (c->current + 1) % c->n_servers;
	follow(c, STEP_NETWORK);
	/* Not as fast as it answers. */
	if (c->following)
		send_later(c->following, RETRY_MAX_US);
}

static void take_network(struct lease_client *c, const struct lease_answer *answer)
{
	struct lease_network network;
	struct err err = { "" };

	if (lease_network_read(answer->body, answer->len, &network, &err) < 0) {
		not_understood(c, &err);
		return;
	}
	c->handlers->network(&network, c->arg);
	follow(c, c->listed ? STEP_POLL : STEP_LIST);
}

static void tell_watching(struct lease_client *c)
{
	char text[512];

	if (c->watching)
		return;
	c->stats.reconnects += c->in_trouble;
	c->watching = true;
	c->in_trouble = false;
	snprintf(text, sizeof(text), "following the leases of network %s at %s", c->network,
		 c->servers[c->current].name);
	c->handlers->watching(text, c->arg);
}

static void take_changes(struct lease_client *c, const struct lease_answer *answer)
{
	AUTO_DONE(lease_changes_done) struct lease_changes changes = { 0 };
	struct err err = { "" };
	bool was_poll;

	if (lease_changes_read(answer->body, answer->len, &changes, &err) < 0) {
		not_understood(c, &err);
		return;
	}
	if (changes.reset)
		c->stats.lists++;
	else
		c->stats.events += changes.n;
	memcpy(c->cursor, changes.cursor, sizeof(c->cursor));
	c->listed = true;
	c->handlers->changes(&changes, c->arg);
	tell_watching(c);
	was_poll = c->step == STEP_POLL;
	follow(c, c->listed ? STEP_POLL : STEP_LIST);
	/* A server that has lost its history may answer so as fast as it is asked. */
	if (was_poll && changes.reset)
		send_later(c->following, RETRY_FIRST_US);
}

static void on_followed(const struct lease_answer *answer, void *arg)
{
	struct lease_client *c = arg;

	if (c->step == STEP_NETWORK)
		take_network(c, answer);
	else if (answer->status == 0)
		follow(c, STEP_NETWORK);
	else
		take_changes(c, answer);
}

static void follow(struct lease_client *c, enum step step)
{
	char path[64] = "/config";
	struct lease_ask *a;

	if (step == STEP_LIST)
		strcpy(path, "/leases");
	else if (step == STEP_POLL)
		snprintf(path, sizeof(path), "/leases?next=%s", c->cursor);
	c->step = step;
	a = ask_new(c, "GET", path, NULL, on_followed, c);
	if (!a)
		abort();
	a->poll = step == STEP_POLL;
	if (a->poll)
		a->timeout_ms = c->poll_ms;
	c->following = a;
	send_later(a, 0);
}

void lease_client_look(struct lease_client *c)
{
	c->listed = false;
	if (c->step != STEP_POLL || !c->following)
		return;
	ask_free(TAKE(c->following));
	follow(c, STEP_LIST);
}

/* --- the whole ------------------------------------------------------------------------------ */

static int parse_servers(struct lease_client *c, const struct lease_client_options *o,
			 struct err *err)
{
	size_t n = endpoints_count(o->servers);

	c->servers = calloc(n, sizeof(*c->servers));
	if (!c->servers)
		return -ENOMEM;
	for (const char *p = o->servers; c->n_servers < n;) {
		size_t len = strcspn(p, ",");
		int r = endpoint_parse(p, len, "lease server", &c->servers[c->n_servers++], err);

		if (r < 0)
			return r;
		p += len + (p[len] == ',');
	}
	c->current = endpoints_start(o->name, n);
	return 0;
}

static int make_headers(struct lease_client *c)
{
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");

	c->headers = list;
	return list && curl_slist_append(list, "Expect:") ? 0 : -ENOMEM;
}

int lease_client_new(const struct lease_client_options *o, struct lease_client **ret,
		     struct err *err)
{
	AUTO(lease_client_free) struct lease_client *c = calloc(1, sizeof(*c));
	struct http_tls tls = o->tls;
	int r;

	if (!c)
		return -ENOMEM;
	c->event = sd_event_ref(o->event);
	LIST_INIT(&c->asks);
	c->handlers = o->handlers;
	c->arg = o->arg;
	c->poll_ms = o->poll_ms ?: POLL_MS;
	snprintf(c->network, sizeof(c->network), "%s", o->network);
	tls.cacert_setting = "--lease-cacert";
	r = parse_servers(c, o, err);
	r = r ?: make_headers(c);
	r = r ?: http_new(o->event, &tls, &c->http);
	if (r < 0)
		return r;
	follow(c, STEP_NETWORK);
	*ret = TAKE(c);
	return 0;
}

void lease_client_free(struct lease_client *c)
{
	if (!c)
		return;
	while (!LIST_EMPTY(&c->asks))
		ask_free(LIST_FIRST(&c->asks));
	http_free(c->http);
	curl_slist_free_all(c->headers);
	for (size_t i = 0; i < c->n_servers; i++)
		endpoint_done(&c->servers[i]);
	free(c->servers);
	sd_event_unref(c->event);
	free(c);
}

void lease_client_stats(const struct lease_client *c, struct store_stats *ret)
{
	*ret = c->stats;
	ret->server = "the lease server";
	ret->endpoint = c->servers[c->current].name;
	ret->certificate = http_server(c->http);
	ret->heard = c->heard;
}
