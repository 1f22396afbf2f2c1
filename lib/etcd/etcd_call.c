/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_client.h"

#include <errno.h>
#include <string.h>

#include "lib/json/json.h"

/* A page is parsed as one tree, some 1,200 bytes a key. */
#define PAGE_KEYS 1000
#define MAX_REPLY (64 * 1024 * 1024)
/* What an attempt needs to be worth it. */
#define LEAST_USEC 100000
/* However slow etcd is, an attempt does not get more than this, or what its verb has. */
#define MOST_MS 6000

typedef int decode_fn(struct json_object *reply, struct etcd_reply *ret, struct err *err);

static int decode_token(struct json_object *reply, struct etcd_reply *ret, struct err *err);

/* What distinguishes one kind of call from another. */
struct verb {
	const char *path;
	decode_fn *decode;
	uint32_t attempt_ms; /* a member that does not answer by then is left for the next */
};

static const struct verb verb_txn = { "/v3/kv/txn", etcd_decode_txn, 1500 };
static const struct verb verb_list = { "/v3/kv/range", etcd_decode_range, 10000 };
static const struct verb verb_probe = { "/v3/kv/range", etcd_decode_range, 4000 };
static const struct verb verb_login = { "/v3/auth/authenticate", decode_token, 5000 };
static const struct verb verbs_lease[] = {
	[STORE_LEASE_GRANT] = { "/v3/lease/grant", etcd_decode_grant, 1500 },
	[STORE_LEASE_KEEPALIVE] = { "/v3/lease/keepalive", etcd_decode_keepalive, 1500 },
	[STORE_LEASE_REVOKE] = { "/v3/lease/revoke", etcd_decode_revoke, 1500 },
};

/* A member answers a keep-alive with a header that it filled before it asked the leader. */
static bool linearizable(const struct verb *verb)
{
	return verb != &verb_probe && verb != &verbs_lease[STORE_LEASE_KEEPALIVE];
}

struct etcd_call {
	struct store_call base;
	TAILQ_ENTRY(etcd_call) entry;
	struct etcd *etcd;
	const struct verb *verb;
	struct verb own;             /* store_etcd_ask(): a path of its own */
	struct json_object **answer; /* the whole of it goes there */
	char *body;
	bool writes, repeatable, maybe_done;
	bool persistent; /* no error ends it */
	bool pinned;     /* to its endpoint: one attempt, no fail-over */
	bool waits_for_login, logged_in_again;
	bool stay; /* the next attempt goes to the same endpoint */
	bool in_callback, cancelled, finished;
	size_t endpoint;
	unsigned failures;
	unsigned late;     /* of these: sent, and not answered in time */
	uint64_t deadline; /* 0: never */
	uint32_t timeout_ms;
	struct http_call *http;
	struct curl_slist *headers;
	sd_event_source *retry;
	uint64_t sent;           /* CLOCK_MONOTONIC, µs: this attempt */
	int64_t sent_boot;       /* the same by CLOCK_BOOTTIME, ns: a suspend must count */
	struct etcd_known known; /* when this attempt was sent */
	store_reply_fn *fn;
	void *arg;
	/* lists: where the next page starts, at which revision; txns: one of its keys */
	char *key, *range_end;
	size_t key_len;
	int64_t limit, revision;
	int64_t lease, ttl;
	/* txns: what was asked for if the compares fail, and if they hold */
	size_t n_ops[2];
	uint8_t kinds[2][STORE_TXN_MAX];
};

static int attempt(struct etcd_call *c);

static void call_free(struct etcd_call *c)
{
	TAILQ_REMOVE(&c->etcd->calls, c, entry);
	http_cancel(c->http);
	curl_slist_free_all(c->headers);
	sd_event_source_disable_unref(c->retry);
	free(c->body);
	free(c->key);
	free(c->range_end);
	free(c);
}

static void call_cancel(struct store_call *base)
{
	struct etcd_call *c = (struct etcd_call *)base;

	if (c->finished)
		return;
	if (c->in_callback)
		c->cancelled = true;
	else
		call_free(c);
}

/* The last word on a call. */
static void deliver(struct etcd_call *c, const struct store_reply *reply)
{
	c->finished = true;
	c->fn(reply, c->arg);
	call_free(c);
}

static void deliver_error(struct etcd_call *c, int err, const char *text)
{
	struct store_reply reply = { .err = err, .text = text, .unknown = c->maybe_done };

	deliver(c, &reply);
}

/* --- failure: another endpoint, another login, or the end ----------------------------------- */

static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct etcd_call *c = arg;
	int r;

	if (c->waits_for_login) {
		deliver_error(c, -ETIMEDOUT, "no reply to the login in time");
		return 0;
	}
	r = attempt(c);
	if (r < 0)
		deliver_error(c, r, "could not send the request");
	return 0;
}

static int retry_in(struct etcd_call *c, uint64_t usec)
{
	int r;

	if (!c->retry) {
		r = sd_event_add_time_relative(c->etcd->event, &c->retry, CLOCK_MONOTONIC, usec,
					       1000, on_retry, c);
		return r < 0 ? r : 0;
	}
	r = sd_event_source_set_time_relative(c->retry, usec);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->retry, SD_EVENT_ONESHOT);
	return r < 0 ? r : 0;
}

static bool may_go_on(const struct etcd_call *c, const struct etcd_error *error, uint64_t delay)
{
	if (c->pinned || c->etcd->closing)
		return false;
	if (c->persistent)
		return true;
	if (!error->elsewhere)
		return false;
	if (error->maybe_done && !c->repeatable)
		return false;
	/* An attempt with no time left would hide the real error behind a time-out. */
	return !c->deadline || clock_monotonic_us() + delay + LEAST_USEC < c->deadline;
}

/* What etcd said, and what the operator does about it where only he can. */
static const char *in_words(const struct etcd_call *c, const struct etcd_error *error, char *text,
			    size_t size)
{
	const char *user = c->etcd->user ?: "";
	int n = snprintf(text, size, "etcd %s: %s", c->etcd->endpoints[c->endpoint].at.name,
			 error->text);

	if (n < 0 || (size_t)n >= size)
		return text;
	if (error->err == -ENOSPC)
		snprintf(text + n, size - (size_t)n,
			 ": compact and defragment etcd, or raise its quota, then run `etcdctl "
			 "alarm disarm`");
	else if (error->err == -EACCES && c->key)
		snprintf(text + n, size - (size_t)n,
			 ": grant a role of user \"%s\" permission to %s %s (`etcdctl role "
			 "grant-permission`)",
			 user, c->writes ? "read and write" : "read", c->key);
	return text;
}

static void give_up(struct etcd_call *c, const struct etcd_error *error)
{
	char text[512];

	deliver_error(c, error->err, in_words(c, error, text, sizeof(text)));
}

/* A fresh token, once; a smaller page; a lease that our own earlier attempt made. */
static bool mend(struct etcd_call *c, const struct etcd_error *error)
{
	struct etcd_endpoint *ep = &c->etcd->endpoints[c->endpoint];

	if (error->login_again && c->etcd->user && !c->logged_in_again && c->verb != &verb_login) {
		c->logged_in_again = c->stay = true;
		free(ep->token);
		ep->token = NULL;
		return attempt(c) == 0;
	}
	if (error->err == -EMSGSIZE && c->verb == &verb_list && c->limit > 1) {
		c->limit = c->limit / 4 ?: 1;
		return attempt(c) == 0;
	}
	if (error->err == -EEXIST && c->maybe_done && c->verb == &verbs_lease[STORE_LEASE_GRANT]) {
		struct store_reply reply = { .text = "", .lease = c->lease, .ttl = c->ttl };

		deliver(c, &reply);
		return true;
	}
	return false;
}

static void attempt_failed(struct etcd_call *c, const struct etcd_error *error)
{
	struct etcd *e = c->etcd;
	uint64_t delay = 0;
	char text[512];

	if (mend(c, error))
		return;
	e->stats.failed_attempts++;
	c->maybe_done = c->maybe_done || (c->writes && error->maybe_done);
	c->late += error->err == -ETIMEDOUT && error->maybe_done;
	c->logged_in_again = false; /* a later attempt may meet another token that is void */
	if ((error->elsewhere || c->persistent) && !c->pinned) {
		etcd_endpoint_failed(e, c->endpoint);
		etcd_stream_suspect(e, c->endpoint);
		c->failures++;
		if (c->failures % e->n_endpoints == 0) {
			delay = etcd_backoff_usec(c->failures / (unsigned)e->n_endpoints);
			etcd_watch_stuck(e, &c->base, in_words(c, error, text, sizeof(text)));
		}
	}
	if (!may_go_on(c, error, delay) || retry_in(c, delay) < 0)
		give_up(c, error);
}

/* --- login: one per endpoint at a time; whoever needs it waits ------------------------------ */

static int decode_token(struct json_object *reply, struct etcd_reply *ret, struct err *err)
{
	const char *token;

	return etcd_decode_login(reply, &token, err);
}

static struct etcd_call *first_waiting(struct etcd *e, size_t endpoint)
{
	struct etcd_call *c;

	TAILQ_FOREACH(c, &e->calls, entry)
		if (c->waits_for_login && c->endpoint == endpoint)
			return c;
	return NULL;
}

static void on_login(const struct store_reply *reply, void *arg)
{
	struct etcd_call *login = arg, *c;
	struct etcd *e = login->etcd;
	struct etcd_endpoint *ep = &e->endpoints[login->endpoint];
	struct etcd_error error;
	int err;

	/* Disabled authentication refuses logins and every token; requests without one pass. Once
	 * it is enabled, they are answered with "user name is empty", and the next login follows.
	 */
	if (reply->err == -ENOTSUP)
		ep->token = strdup("");
	err = reply->err && reply->err != -ENOTSUP ? reply->err : ep->token ? 0 : -ENOMEM;
	error = (struct etcd_error){
		.err = err,
		/* A wrong password is wrong everywhere; anything else may be this member's trouble.
		 */
		.elsewhere = err != -EKEYREJECTED && err != -ECANCELED,
	};

	ep->logging_in = false;
	snprintf(error.text, sizeof(error.text), "login as \"%s\": %s", e->user, reply->text);
	while ((c = first_waiting(e, login->endpoint))) {
		int r;

		c->waits_for_login = false;
		r = err ?: attempt(c);
		if (r == 0)
			continue;
		error.err = r;
		attempt_failed(c, &error);
	}
}

static struct etcd_call *call_new(struct etcd *e, const struct verb *verb, char *body,
				  store_reply_fn *fn, void *arg)
{
	struct etcd_call *c = calloc(1, sizeof(*c));

	if (!c) {
		free(body);
		return NULL;
	}
	c->base.cancel = call_cancel;
	c->etcd = e;
	c->verb = verb;
	c->body = body;
	c->repeatable = true;
	c->fn = fn;
	c->arg = arg;
	TAILQ_INSERT_TAIL(&e->calls, c, entry);
	return c;
}

static int start_login(struct etcd *e, size_t endpoint)
{
	struct etcd_call *c;
	int r;

	if (e->endpoints[endpoint].logging_in)
		return 0;
	c = call_new(e, &verb_login, etcd_encode_login(e->user, e->password), on_login, NULL);
	if (!c)
		return -ENOMEM;
	c->arg = c;
	c->pinned = true;
	c->endpoint = endpoint;
	e->stats.logins++;
	e->endpoints[endpoint].logging_in = true;
	r = c->body ? attempt(c) : -ENOMEM;
	if (r < 0) {
		e->endpoints[endpoint].logging_in = false;
		call_free(c);
	}
	return r;
}

/* --- success -------------------------------------------------------------------------------- */

/* The page ends after its last key: the next one starts at that key with a NUL appended. */
static int next_page(struct etcd_call *c, const struct etcd_kvs *kvs)
{
	char *key = malloc(kvs->last_key_len + 1);

	if (!key)
		return -ENOMEM;
	memcpy(key, kvs->last_key, kvs->last_key_len);
	key[kvs->last_key_len] = '\0';
	free(c->key);
	c->key = key;
	c->key_len = kvs->last_key_len + 1;
	c->failures = 0;
	/* A long list is not a slow one: the deadline counts from the last progress. */
	if (c->deadline)
		c->deadline = clock_monotonic_us() + c->timeout_ms * 1000ULL;
	return 0;
}

static void page_arrived(struct etcd_call *c, struct etcd_reply *decoded, struct store_reply *reply)
{
	bool more = decoded->more && decoded->kvs[0].last_key;
	int r;

	if (!c->revision)
		c->revision = decoded->header.revision;
	reply->revision = c->revision;
	reply->more = more;
	if (!more) {
		deliver(c, reply);
		return;
	}
	r = next_page(c, &decoded->kvs[0]);
	c->in_callback = true;
	c->fn(reply, c->arg);
	c->in_callback = false;
	if (c->cancelled) {
		call_free(c);
		return;
	}
	r = r ?: attempt(c);
	if (r < 0)
		deliver_error(c, r, "could not ask for the next page");
}

static void succeeded(struct etcd_call *c, struct json_object *json, struct etcd_reply *decoded)
{
	struct store_reply reply = {
		.text = "",
		.revision = decoded->header.revision,
		.sent = c->sent_boot,
		.succeeded = decoded->succeeded,
		.ops = decoded->ops,
		.n_ops = decoded->n_ops,
		.lease = decoded->lease,
		.ttl = decoded->ttl,
	};
	const char *token;

	if (c->verb == &verb_login && etcd_decode_login(json, &token, NULL) == 0) {
		struct etcd_endpoint *ep = &c->etcd->endpoints[c->endpoint];

		free(ep->token);
		ep->token = strdup(token);
	}
	if (c->answer)
		*c->answer = json_object_get(json);
	if (c->verb == &verb_list)
		page_arrived(c, decoded, &reply);
	else
		deliver(c, &reply);
}

/* --- one attempt ---------------------------------------------------------------------------- */

static bool is_error(struct json_object *object)
{
	struct json_object *v;

	return json_object_object_get_ex(object, "error", &v);
}

static void not_understood(struct etcd_call *c, int code, const struct err *err)
{
	struct etcd_error error = { .err = code, .maybe_done = true };

	snprintf(error.text, sizeof(error.text), "%.250s", err->text);
	attempt_failed(c, &error);
}

static void transport_failed(struct etcd_call *c, const struct http_reply *http)
{
	struct etcd_error error = {
		.err = http->err,
		.elsewhere = http->err != -EMSGSIZE,
		.maybe_done = http->sent,
	};

	/* To the caller a connection that broke is an endpoint out of reach. */
	if (http->err == -ECONNRESET || http->err == -EIO)
		error.err = -ENOTCONN;
	snprintf(error.text, sizeof(error.text), "%s", http->text);
	attempt_failed(c, &error);
}

/* Users look for the result of their n-th operation without counting. */
static int as_asked(const struct etcd_call *c, const struct etcd_reply *d, struct err *err)
{
	const uint8_t *kinds = c->kinds[d->succeeded];

	if (c->verb != &verb_txn)
		return 0;
	if (d->n_ops != c->n_ops[d->succeeded])
		return err_set(err, -EBADMSG, "etcd's reply: %zu results of %zu operations",
			       d->n_ops, c->n_ops[d->succeeded]);
	for (size_t i = 0; i < d->n_ops; i++)
		if (d->ops[i].kind != kinds[i])
			return err_set(err, -EBADMSG,
				       "etcd's reply: the result of another operation");
	return 0;
}

static void count(struct etcd_call *c, const struct http_reply *http)
{
	struct etcd *e = c->etcd;
	uint64_t took = clock_monotonic_us() - c->sent;
	enum server_outcome o = http->err == -ETIMEDOUT ? SERVER_LATE
				: http->err             ? SERVER_UNREACHABLE
				: http->status == 200   ? SERVER_DONE
							: SERVER_REFUSED;

	c->etcd->stats.outcomes[o]++;
	histogram_add(&c->etcd->stats.duration, took);
	/* Quick answers between slow ones make it shorter only bit by bit. */
	if (http->err)
		return;
	e->patience_ms = e->patience_ms / 8 * 7;
	if (e->patience_ms < took / 500)
		e->patience_ms = took / 500 < MOST_MS ? (uint32_t)(took / 500) : MOST_MS;
}

static void on_http(const struct http_reply *http, void *arg)
{
	AUTO(json_put) struct json_object *json = NULL;
	struct etcd_call *c = arg;
	struct etcd_reply decoded = { 0 };
	struct err err = { "" };
	int r;

	c->http = NULL;
	curl_slist_free_all(TAKE(c->headers));
	count(c, http);
	if (http->err) {
		transport_failed(c, http);
		return;
	}
	etcd_heard(c->etcd, c->endpoint);
	if (http->status != 200) {
		struct etcd_error error = etcd_classify(http->status, http->body, http->len);

		attempt_failed(c, &error);
		return;
	}
	r = json_stream_single(MAX_REPLY, http->body, http->len, &json, &err);
	if (r == 0 && is_error(json)) {
		struct etcd_error error = etcd_classify(http->status, http->body, http->len);

		attempt_failed(c, &error);
		return;
	}
	r = r ?: c->verb->decode(json, &decoded, &err);
	r = r ?: as_asked(c, &decoded, &err);
	if (r < 0) {
		etcd_reply_done(&decoded);
		not_understood(c, r, &err);
		return;
	}
	/* If it is another etcd that answers, this call may be cancelled right here. */
	c->in_callback = true;
	etcd_check_header(c->etcd, c->endpoint, &decoded.header, &c->known);
	c->in_callback = false;
	if (c->cancelled)
		call_free(c);
	else
		succeeded(c, json, &decoded);
	etcd_reply_done(&decoded);
}

static int list_body(struct etcd_call *c)
{
	struct etcd_range range = {
		.key = c->key,
		.key_len = c->key_len,
		.range_end = c->range_end,
		.limit = c->limit,
		.revision = c->revision,
	};

	free(c->body);
	c->body = etcd_encode_range(&range);
	return c->body ? 0 : -ENOMEM;
}

/*
 * The attempt's own time: the verb's, short so that a dead member is left soon; twice what answers
 * took lately, and doubled when every member was late, because then they are slow, not dead. Never
 * more than what is left of the call's.
 */
static uint32_t attempt_time(const struct etcd_call *c)
{
	uint64_t now = clock_monotonic_us(), left;
	uint32_t ms = c->verb->attempt_ms;

	if (ms < c->etcd->patience_ms)
		ms = c->etcd->patience_ms;
	for (size_t n = c->late / c->etcd->n_endpoints; n > 0 && ms < MOST_MS; n--)
		ms = 2 * ms < MOST_MS ? 2 * ms : MOST_MS;
	if (!c->deadline)
		return ms;
	left = c->deadline > now ? (c->deadline - now) / 1000 : 0;
	return left < ms ? (uint32_t)left ?: 1 : ms;
}

static int attempt(struct etcd_call *c)
{
	struct etcd *e = c->etcd;
	uint32_t ms = attempt_time(c);
	uint64_t now = clock_monotonic_us();
	struct http_request q;
	char url[512];
	int r;

	if (c->retry)
		sd_event_source_set_enabled(c->retry, SD_EVENT_OFF);
	if (!c->pinned && !c->stay)
		c->endpoint = e->current;
	c->stay = false;
	if (e->user && !e->endpoints[c->endpoint].token && c->verb != &verb_login) {
		c->waits_for_login = true;
		r = start_login(e, c->endpoint);
		/* The login has a time of its own, but nobody waits for it beyond theirs. */
		if (r == 0 && c->deadline)
			r = retry_in(c, c->deadline > now ? c->deadline - now : 0);
		return r;
	}
	r = c->verb == &verb_list ? list_body(c) : 0;
	if (r < 0)
		return r;
	c->headers = etcd_headers(&e->endpoints[c->endpoint], ms);
	if (!c->headers)
		return -ENOMEM;
	snprintf(url, sizeof(url), "%s%s", e->endpoints[c->endpoint].at.url, c->verb->path);
	c->known = linearizable(c->verb) ? etcd_known(e, c->endpoint)
					 : (struct etcd_known){ .era = e->era };
	c->sent = clock_monotonic_us();
	c->sent_boot = (int64_t)clock_boottime_ns();
	e->stats.requests++;
	q = (struct http_request){
		.url = url,
		.unix_path = e->endpoints[c->endpoint].at.unix_path,
		.headers = c->headers,
		.body = c->body,
		.len = strlen(c->body),
		.once = !c->repeatable,
		/* etcd's own deadline comes first, so that it says what it did. */
		.timeout_ms = ms + ms / 4,
		.max_reply = MAX_REPLY,
		.on_done = on_http,
		.arg = c,
	};
	r = http_post(e->http, &q, &c->http);
	if (r < 0)
		curl_slist_free_all(TAKE(c->headers));
	return r;
}

/* --- interface ------------------------------------------------------------------------------ */

static int start(struct etcd_call *c, uint32_t timeout_ms, struct store_call **ret_call)
{
	int r;

	c->timeout_ms = timeout_ms;
	if (timeout_ms != STORE_FOREVER)
		c->deadline = clock_monotonic_us() + timeout_ms * 1000ULL;
	r = c->etcd->closing ? -ECANCELED : attempt(c);
	if (r < 0) {
		call_free(c);
		return r;
	}
	if (ret_call)
		*ret_call = &c->base;
	return 0;
}

static void note_ops(struct etcd_call *c, bool branch, const struct store_op *ops, size_t n)
{
	c->n_ops[branch] = n;
	for (size_t i = 0; i < n; i++)
		c->kinds[branch][i] = (uint8_t)ops[i].kind;
}

/* The key that stands for all of it in sentences: the first that is written, else read. */
static const char *txn_key(const struct store_txn *txn)
{
	for (size_t i = 0; i < txn->n_success; i++)
		if (txn->success[i].kind != STORE_GET)
			return txn->success[i].key;
	return txn->n_success ? txn->success[0].key : NULL;
}

static bool txn_writes(const struct store_txn *txn)
{
	for (size_t i = 0; i < txn->n_success; i++)
		if (txn->success[i].kind != STORE_GET)
			return true;
	for (size_t i = 0; i < txn->n_failure; i++)
		if (txn->failure[i].kind != STORE_GET)
			return true;
	return false;
}

int etcd_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms, store_reply_fn *fn,
	     void *arg, struct store_call **ret_call)
{
	char *body = etcd_encode_txn(txn);
	struct etcd_call *c;

	if (!body)
		return -ENOMEM;
	c = call_new((struct etcd *)s, &verb_txn, body, fn, arg);
	if (!c)
		return -ENOMEM;
	c->writes = txn_writes(txn);
	c->key = txn_key(txn) ? strdup(txn_key(txn)) : NULL;
	c->repeatable = txn->repeatable || !c->writes;
	c->persistent = txn->persistent;
	note_ops(c, true, txn->success, txn->n_success);
	note_ops(c, false, txn->failure, txn->n_failure);
	return start(c, timeout_ms, ret_call);
}

int etcd_list(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
	      store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	struct etcd_call *c = call_new((struct etcd *)s, &verb_list, NULL, fn, arg);

	if (!c)
		return -ENOMEM;
	c->limit = PAGE_KEYS;
	c->key = strdup(key);
	c->key_len = strlen(key);
	c->range_end = range_end ? strdup(range_end) : NULL;
	if (!c->key || (range_end && !c->range_end)) {
		call_free(c);
		return -ENOMEM;
	}
	return start(c, timeout_ms, ret_call);
}

int etcd_lease(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
	       uint32_t timeout_ms, store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	char *body = verb == STORE_LEASE_GRANT ? etcd_encode_grant(id, ttl) : etcd_encode_lease(id);
	struct etcd_call *c;

	if (!body)
		return -ENOMEM;
	c = call_new((struct etcd *)s, &verbs_lease[verb], body, fn, arg);
	if (!c)
		return -ENOMEM;
	c->writes = true;
	c->lease = id;
	c->ttl = ttl;
	return start(c, timeout_ms, ret_call);
}

int etcd_probe(struct etcd *e, size_t endpoint, const char *key, uint32_t timeout_ms,
	       store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	struct etcd_range range = { .key = key,
				    .key_len = strlen(key),
				    .limit = 1,
				    .keys_only = true,
				    .serializable = true };
	char *body = etcd_encode_range(&range);
	struct etcd_call *c;

	if (!body)
		return -ENOMEM;
	c = call_new(e, &verb_probe, body, fn, arg);
	if (!c)
		return -ENOMEM;
	c->pinned = true;
	c->endpoint = endpoint;
	return start(c, timeout_ms, ret_call);
}

int store_etcd_ask(struct store *s, const char *path, const char *body, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct json_object **answer,
		   struct store_call **ret_call)
{
	char *copy = strdup(body);
	struct etcd_call *c = copy ? call_new((struct etcd *)s, NULL, copy, fn, arg) : NULL;

	if (!c)
		return -ENOMEM;
	c->own = (struct verb){ path, etcd_decode_revoke, 5000 };
	c->verb = &c->own;
	c->answer = answer;
	/* As txn_key(): what a refusal names. */
	c->key = strdup(path);
	c->writes = true;
	return start(c, timeout_ms, ret_call);
}

void etcd_calls_done(struct etcd *e)
{
	struct etcd_call *c;

	while ((c = TAILQ_FIRST(&e->calls))) {
		/* What is on its way may well be applied. */
		c->maybe_done = c->maybe_done || (c->writes && c->http);
		deliver_error(c, -ECANCELED, "the store is being closed");
	}
}
