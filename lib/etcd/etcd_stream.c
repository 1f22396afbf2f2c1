/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one stream that carries all watches. Over HTTP/1.1 it cannot be added
 * to, so a change of watches opens a new one, each watch going on from where
 * it was.
 */
#include "lib/etcd/etcd_watch.h"

#include <errno.h>
#include <string.h>

#define MAX_MESSAGE       (32 * 1024 * 1024)
#define CREATED_USEC      5000000ULL
#define SILENCE_USEC      15000000ULL
#define PROBE_TIMEOUT_MS  4000
#define PROBES            2
#define VERIFY_TIMEOUT_MS 30000
/* A stream that lived so long was a good one: its end is the first failure. */
#define PROVEN_USEC 5000000ULL

/* --- the stream ----------------------------------------------------------------------------- */

void etcd_stream_close(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	struct etcd_watch *w;

	http_cancel(TAKE(s->http));
	curl_slist_free_all(TAKE(s->headers));
	json_stream_free(TAKE(s->splitter));
	store_cancel(TAKE(s->probe));
	etcd_disarm(s->created);
	etcd_disarm(s->silence);
	TAILQ_FOREACH(w, &e->watches, entry)
		w->id = 0;
}

static void stream_failed(struct etcd *e, const char *text)
{
	struct etcd_stream *s = &e->stream;
	const char *token;
	char line[512];

	snprintf(line, sizeof(line), "watch stream of %s: %s", e->endpoints[s->endpoint].at.name,
		 text);
	etcd_stream_close(e);
	/* Tokens are refused in several forms, and so is a missing one; the next opening logs in.
	 */
	token = e->endpoints[s->endpoint].token;
	if (strstr(text, "auth token") || strstr(text, "auth store") || (token && !*token))
		free(TAKE(e->endpoints[s->endpoint].token));
	etcd_endpoint_failed(e, s->endpoint);
	if (s->confirmed && clock_monotonic_us() - s->confirmed > PROVEN_USEC)
		s->failures = 0;
	s->confirmed = 0;
	s->failures++;
	e->stats.reconnects++;
	s->wanted = true;
	etcd_tell_trouble(e, line);
	/* Each endpoint is tried at once; then a full round has failed. */
	if (s->failures % e->n_endpoints == 0 &&
	    etcd_arm(e, &s->retry, etcd_backoff_usec(s->failures / (unsigned)e->n_endpoints), 1000,
		     etcd_on_wake, e) < 0)
		etcd_disarm(s->retry);
	etcd_wake(e);
}

static void on_verified(const struct store_reply *reply, void *arg)
{
	struct etcd *e = arg;

	(void)reply; /* Its header was all that mattered, and has been looked at. */
	e->stream.verify = NULL;
}

/* Was etcd restored? A member may just be late, but the reply to a read that goes through the
 * leader tells: etcd_check_header() looks at its revision and term. */
static void verify_revision(struct etcd *e, const struct etcd_watch *w)
{
	struct store_op op = { .kind = STORE_GET, .key = w->key, .keys_only = true };
	struct store_txn txn = { .success = &op, .n_success = 1, .repeatable = true };

	if (!e->stream.verify)
		etcd_txn(&e->base, &txn, VERIFY_TIMEOUT_MS, on_verified, e, &e->stream.verify);
}

static void stream_confirmed(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, entry)
		if (w->id && !w->created)
			return;
	etcd_disarm(s->created);
	s->confirmed = clock_monotonic_us();
	TAILQ_FOREACH(w, &e->watches, entry)
		if (!w->id && !w->dead)
			return;
	if (s->told_watching)
		return;
	s->told_watching = true;
	/* While it was lost, etcd may have been restored and have reached our revision again. */
	if (s->told_trouble) {
		s->told_trouble = false;
		verify_revision(e, TAILQ_FIRST(&e->watches));
		etcd_recheck_soon(e);
	}
	store_notify(&e->base, STORE_WATCHING, "watching through %s",
		     e->endpoints[s->endpoint].at.name);
}

static int take_events(struct etcd_watch *w, const struct etcd_watch_message *m, struct err *err)
{
	struct etcd *e = w->etcd;
	int64_t seen = 0;
	bool back = false;

	for (size_t i = 0; i < m->kvs.n; i++) {
		const struct store_kv *kv = &m->kvs.v[i];
		int news;

		back = back || kv->mod_revision < seen;
		seen = kv->mod_revision;
		if (kv->mod_revision < w->next)
			continue;
		news = kv->version ? store_view_put(w->view, kv->key, kv->mod_revision)
				   : store_view_deleted(w->view, kv->key, kv->mod_revision);
		if (news < 0)
			return news;
		if (!news)
			continue;
		e->stats.events++;
		if (kv->version)
			etcd_tell_put(w, kv);
		else
			etcd_tell_deleted(kv->key, kv->mod_revision, w);
	}
	/* A fragment may end within a revision: what is sent again then is known to the view. */
	if (seen && seen + !m->fragment > w->next)
		w->next = seen + !m->fragment;
	if (seen > e->revision)
		e->revision = seen;
	if (!back)
		return 0;
	/* Etcd has had such faults; nothing that it said of this range is certain then. */
	etcd_watch_want_list(w);
	return err_set(err, -EBADMSG, "events of %.200s came out of order", w->key);
}

static struct etcd_watch *watch_by_id(struct etcd *e, int64_t id)
{
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, entry)
		if (w->id == id && id > 0)
			return w;
	return NULL;
}

/* Refused watches have no id, so the reason is all there is. */
static int refused(const struct etcd_watch_message *m, struct err *err)
{
	return err_set(err, -EPROTO, "etcd refused a watch: %.200s",
		       m->cancel_reason ?: "no reason given");
}

static int take_message(struct etcd *e, const struct etcd_watch_message *m, struct err *err)
{
	struct etcd_watch *w = watch_by_id(e, m->watch_id);

	if (m->canceled && w && m->compact_revision) {
		etcd_watch_want_list(w);
		return 0;
	}
	if (m->canceled)
		return w || m->watch_id < 0 ? refused(m, err) : 0;
	if (!w)
		return 0;
	if (m->created) {
		w->created = true;
		if (m->header.revision && m->header.revision < w->next - 1)
			verify_revision(e, w);
		stream_confirmed(e);
	}
	return take_events(w, m, err);
}

static int on_message(struct json_object *object, void *arg)
{
	struct etcd_watch_message m = { 0 };
	struct etcd *e = arg;
	const struct etcd_known any = { .era = e->era };
	int r = etcd_decode_watch(object, &m, &e->stream.reason);

	etcd_callbacks_begin(e);
	if (r == 0)
		etcd_check_header(e, e->stream.endpoint, &m.header, &any);
	/* In a new era this stream's events are of no use any more. */
	if (r == 0 && any.era == e->era)
		r = take_message(e, &m, &e->stream.reason);
	etcd_callbacks_end(e);
	etcd_watch_message_done(&m);
	return r;
}

static int on_data(const char *data, size_t n, void *arg)
{
	struct etcd *e = arg;

	etcd_heard(e, e->stream.endpoint);
	return json_stream_feed(e->stream.splitter, data, n, &e->stream.reason);
}

static void on_end(const struct http_reply *reply, void *arg)
{
	struct etcd *e = arg;
	char text[300];

	e->stream.http = NULL;
	if (e->stream.reason.text[0])
		snprintf(text, sizeof(text), "%.290s", e->stream.reason.text);
	else if (reply->err)
		snprintf(text, sizeof(text), "%s", reply->text);
	else
		snprintf(text, sizeof(text), "ended with HTTP status %ld", reply->status);
	stream_failed(e, text);
}

static int on_not_created(sd_event_source *source, uint64_t usec, void *arg)
{
	stream_failed(arg, "not every watch was confirmed within 5 s");
	return 0;
}

/* --- silence: alive or dead? ---------------------------------------------------------------- */

static void probe_now(struct etcd *e);

static int on_silence(sd_event_source *source, uint64_t usec, void *arg)
{
	struct etcd *e = arg;
	uint64_t heard = e->endpoints[e->stream.endpoint].heard, now = clock_monotonic_us();

	/* Any reply of this endpoint, to whatever, is a proof of life. */
	if (now - heard >= SILENCE_USEC)
		probe_now(e);
	else
		etcd_arm(e, &e->stream.silence, SILENCE_USEC - (now - heard), 1000000, on_silence,
			 e);
	return 0;
}

/* Put off at once, not when it fires: an idle agent would wake up to find that all is well. */
void etcd_heard(struct etcd *e, size_t endpoint)
{
	struct etcd_stream *s = &e->stream;

	e->endpoints[endpoint].heard = clock_monotonic_us();
	if (s->endpoint == endpoint && etcd_armed(s->silence))
		etcd_arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
}

static void on_probed(const struct store_reply *reply, void *arg)
{
	struct etcd *e = arg;
	struct etcd_stream *s = &e->stream;

	s->probe = NULL;
	if (reply->err == -ECANCELED)
		return;
	/* Whatever it said, it is there. */
	if (reply->err != -ETIMEDOUT && reply->err != -ENOTCONN) {
		s->probes_lost = 0;
		etcd_arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
	} else if (++s->probes_lost < PROBES) {
		probe_now(e);
	} else {
		stream_failed(e, "the endpoint does not answer any more");
	}
}

static void probe_now(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	struct etcd_watch *w = TAILQ_FIRST(&e->watches);

	if (s->probe || !s->http || !w)
		return;
	if (etcd_probe(e, s->endpoint, w->key, PROBE_TIMEOUT_MS, on_probed, e, &s->probe) < 0)
		etcd_arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
}

void etcd_stream_suspect(struct etcd *e, size_t endpoint)
{
	if (e->stream.http && e->stream.endpoint == endpoint && !e->stream.probes_lost)
		probe_now(e);
}

/* --- what is to be done? -------------------------------------------------------------------- */

static void on_login_probed(const struct store_reply *reply, void *arg)
{
	struct etcd *e = arg;

	e->stream.probe = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (reply->err && !e->endpoints[e->stream.endpoint].token)
		stream_failed(e, reply->text);
	else
		etcd_wake(e);
}

static char *stream_body(struct etcd *e)
{
	struct etcd_watch *w;
	char *body = NULL;
	size_t n = 0;

	TAILQ_FOREACH(w, &e->watches, entry) {
		AUTO(free) char *one = NULL;
		char *longer;

		if (w->state != WATCH_READY || w->dead)
			continue;
		w->id = ++e->stream.next_id;
		w->created = false;
		one = etcd_encode_watch(w->id, w->key, w->range_end, w->next);
		longer = one ? realloc(body, n + strlen(one) + 1) : NULL;
		if (!longer) {
			free(body);
			return NULL;
		}
		body = longer;
		strcpy(body + n, one);
		n += strlen(one);
	}
	return body ?: strdup("");
}

static int stream_post(struct etcd *e, const char *body)
{
	struct etcd_stream *s = &e->stream;
	const struct etcd_endpoint *ep = &e->endpoints[s->endpoint];
	char url[512];
	struct http_request q = {
		.url = url,
		.unix_path = ep->at.unix_path,
		.body = body,
		.len = strlen(body),
		.max_reply = MAX_MESSAGE,
		.on_data = on_data,
		.on_done = on_end,
		.arg = e,
	};
	int r;

	snprintf(url, sizeof(url), "%s/v3/watch", ep->at.url);
	s->headers = etcd_headers(ep, 0);
	/*
	 * Go's server drops what it has not read of a request's body when the first answer goes
	 * out, and with it every watch but the first few (one stream in six, of five watches); but
	 * not on a connection that is not used again, as this one never is.
	 */
	q.headers = s->headers ? curl_slist_append(s->headers, "Connection: close") : NULL;
	if (!q.headers)
		return -ENOMEM;
	r = json_stream_new(MAX_MESSAGE, on_message, e, &s->splitter);
	return r ?: http_post(e->http, &q, &s->http);
}

void etcd_stream_open(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	AUTO(free) char *body = NULL;
	int r;

	etcd_stream_close(e);
	s->wanted = false;
	s->probes_lost = 0;
	s->reason.text[0] = '\0';
	s->endpoint = e->current;
	body = stream_body(e);
	if (body && !*body)
		return;
	/* The probe of an endpoint without a token logs in; then we are called again. */
	if (e->user && !e->endpoints[s->endpoint].token) {
		s->wanted = true;
		r = etcd_probe(e, s->endpoint, TAILQ_FIRST(&e->watches)->key, PROBE_TIMEOUT_MS,
			       on_login_probed, e, &s->probe);
	} else {
		r = body ? stream_post(e, body) : -ENOMEM;
	}
	r = r ?: etcd_arm(e, &s->created, CREATED_USEC, 1000, on_not_created, e);
	if (r >= 0)
		r = etcd_arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
	e->stats.streams++;
	if (r < 0)
		stream_failed(e, strerror(-r));
}
