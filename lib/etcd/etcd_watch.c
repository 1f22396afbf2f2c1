/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches, and the stream that carries them.
 *
 *   WANTED --list--> LISTING --last page--> READY --stream carries it--> followed
 *      ^                                      |
 *      +------ compacted, lost, restored -----+
 *
 * Whatever happens marks what is wanted and wakes the one place that starts lists and opens the
 * stream (on_work). Watches are listed one at a time: memory is then that of one page, however many
 * watches there are.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/etcd/etcd_client.h"
#include "lib/store/store_view.h"
#include "lib/store/txn.h"

#define LIST_TIMEOUT_MS     30000
#define RECHECK_USEC        600000000ULL
#define RECHECK_AGAIN_USEC  1000000ULL
#define RECHECK_SPREAD_USEC 20000ULL /* per key */
#define MAX_MESSAGE         (32 * 1024 * 1024)
#define CREATED_USEC        5000000ULL
#define SILENCE_USEC        15000000ULL
#define PROBE_TIMEOUT_MS    4000
#define PROBES              2
#define VERIFY_TIMEOUT_MS   30000
/* A stream that lived so long was a good one: its end is the first failure. */
#define PROVEN_USEC 5000000ULL

enum watch_state { WATCH_WANTED, WATCH_LISTING, WATCH_READY };

struct etcd_watch {
	struct store_watch base;
	TAILQ_ENTRY(etcd_watch) entry;
	struct etcd *etcd;
	enum watch_state state;
	char *key, *range_end;
	struct store_watch_handlers handlers;
	void *arg;
	struct store_view *view;
	int64_t next; /* the lowest revision not yet seen in full */
	int64_t id;   /* on the present stream; 0: not carried */
	bool created; /* the stream has confirmed it */
	bool anew;    /* the next list proves nothing by revisions */
	bool dead;    /* unwatched in a callback; freed later */
	unsigned list_failures;
	sd_event_source *list_retry; /* armed: do not list before */
	struct store_call *list, *recheck;
	sd_event_source *recheck_again;
	unsigned doubts;
};

static void wake_up(struct etcd *e)
{
	if (!e->closing)
		sd_event_source_set_enabled(e->stream.work, SD_EVENT_ONESHOT);
}

static int arm(struct etcd *e, sd_event_source **source, uint64_t usec, uint64_t accuracy,
	       sd_event_time_handler_t fn, void *arg)
{
	int r;

	if (!*source)
		return sd_event_add_time_relative(e->event, source, CLOCK_MONOTONIC, usec, accuracy,
						  fn, arg);
	r = sd_event_source_set_time_relative(*source, usec);
	return r < 0 ? r : sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT);
}

static void disarm(sd_event_source *source)
{
	if (source)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static bool is_armed(sd_event_source *source)
{
	int enabled = SD_EVENT_OFF;

	return source && sd_event_source_get_enabled(source, &enabled) > 0;
}

static int on_wake(sd_event_source *source, uint64_t usec, void *arg)
{
	wake_up(arg);
	return 0;
}

static void tell_trouble(struct etcd *e, const char *text)
{
	e->stream.told_watching = false;
	e->stream.told_trouble = true;
	store_notify(&e->base, STORE_TROUBLE, "%s", text);
}

/* --- telling the caller --------------------------------------------------------------------- */

static void tell_put(struct etcd_watch *w, const struct store_kv *kv)
{
	if (!w->dead && w->handlers.put)
		w->handlers.put(kv, w->arg);
}

static void tell_deleted(const char *key, int64_t revision, void *arg)
{
	struct etcd_watch *w = arg;

	if (!w->dead && w->handlers.deleted)
		w->handlers.deleted(key, revision, w->arg);
}

static void watch_free(struct etcd_watch *w)
{
	TAILQ_REMOVE(&w->etcd->watches, w, entry);
	store_cancel(w->list);
	store_cancel(w->recheck);
	sd_event_source_disable_unref(w->list_retry);
	sd_event_source_disable_unref(w->recheck_again);
	store_view_free(w->view);
	free(w->key);
	free(w->range_end);
	free(w);
}

static void callbacks_begin(struct etcd *e)
{
	e->stream.dispatching++;
}

static void callbacks_end(struct etcd *e)
{
	struct etcd_watch *w, *next;

	if (--e->stream.dispatching)
		return;
	for (w = TAILQ_FIRST(&e->watches); w; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->dead)
			watch_free(w);
	}
}

/* --- listing -------------------------------------------------------------------------------- */

static void want_list(struct etcd_watch *w)
{
	store_cancel(TAKE(w->list));
	store_cancel(TAKE(w->recheck));
	w->state = WATCH_WANTED;
	w->id = 0;
	wake_up(w->etcd);
}

static void list_failed(struct etcd_watch *w, int err, const char *text)
{
	char line[512];

	want_list(w);
	/* Compacted while we paged: begin again at once. */
	if (err == -ESTALE)
		return;
	snprintf(line, sizeof(line), "listing %s: %s", w->key, text);
	tell_trouble(w->etcd, line);
	if (arm(w->etcd, &w->list_retry, etcd_backoff_usec(++w->list_failures), 1000, on_wake,
		w->etcd) < 0)
		disarm(w->list_retry);
}

void etcd_watch_stuck(struct etcd *e, const struct store_call *call, const char *text)
{
	const struct etcd_watch *w;
	char line[512];

	TAILQ_FOREACH(w, &e->watches, entry)
		if (w->list == call) {
			snprintf(line, sizeof(line), "listing %.200s: %.300s", w->key, text);
			tell_trouble(e, line);
		}
}

static int take_page(struct etcd_watch *w, const struct store_reply *reply)
{
	const struct store_op_reply *page = &reply->ops[0];

	for (size_t i = 0; i < page->n && !w->dead; i++) {
		int news = store_view_listed(w->view, page->kvs[i].key, page->kvs[i].mod_revision);

		if (news == -ESTALE)
			etcd_key_went_back(w->etcd, page->kvs[i].key);
		if (news < 0)
			return news;
		if (news)
			tell_put(w, &page->kvs[i]);
	}
	return 0;
}

static void list_complete(struct etcd_watch *w, int64_t revision)
{
	w->state = WATCH_READY;
	w->list = NULL;
	w->anew = false;
	w->list_failures = 0;
	w->doubts = 0;
	w->next = revision + 1;
	w->etcd->stream.wanted = true;
	w->etcd->stats.lists++;
	if (!w->dead && w->handlers.in_sync)
		w->handlers.in_sync(revision, w->arg);
	wake_up(w->etcd);
}

static void on_page(const struct store_reply *reply, void *arg)
{
	struct etcd_watch *w = arg;
	struct etcd *e = w->etcd;
	int r = 0;

	if (reply->err) {
		w->list = NULL;
		if (reply->err != -ECANCELED)
			list_failed(w, reply->err, reply->text);
		return;
	}
	callbacks_begin(e);
	r = take_page(w, reply);
	if (r == 0 && !reply->more)
		r = store_view_list_end(w->view, reply->revision, tell_deleted, w);
	/* A callback or the reply's own header may have found that revisions are void. */
	if (w->state != WATCH_LISTING)
		want_list(w);
	else if (r < 0)
		list_failed(w, r, "out of memory");
	else if (!reply->more)
		list_complete(w, reply->revision);
	callbacks_end(e);
}

static void start_list(struct etcd_watch *w)
{
	int r;

	store_view_list_begin(w->view, w->anew);
	w->state = WATCH_LISTING;
	if (w->base.listing)
		w->base.listing(w->arg);
	r = etcd_list(&w->etcd->base, w->key, w->range_end, LIST_TIMEOUT_MS, on_page, w, &w->list);
	if (r < 0)
		list_failed(w, r, "could not ask");
}

/* --- insurance: does a range still hold what we were told? ---------------------------------- */

static bool as_told(const struct etcd_watch *w, const struct store_op_reply *found)
{
	if ((size_t)found->count != store_view_count(w->view))
		return false;
	return !found->n ||
	       store_view_knows(w->view, found->kvs[0].key, found->kvs[0].mod_revision);
}

static void recheck(struct etcd_watch *w);

static int on_recheck_again(sd_event_source *source, uint64_t usec, void *arg)
{
	recheck(arg);
	return 0;
}

static void on_rechecked(const struct store_reply *reply, void *arg)
{
	struct etcd_watch *w = arg;

	w->recheck = NULL;
	if (reply->err || w->state != WATCH_READY)
		return;
	if (as_told(w, &reply->ops[0])) {
		w->doubts = 0;
	} else if (w->doubts++ == 0) {
		/* An event may just be on its way: look once more. */
		arm(w->etcd, &w->recheck_again, RECHECK_AGAIN_USEC, 1000, on_recheck_again, w);
	} else {
		want_list(w);
	}
}

static void recheck(struct etcd_watch *w)
{
	struct store_op op = {
		.kind = STORE_GET,
		.key = w->key,
		.range_end = w->range_end,
		.keys_only = true,
		.newest_first = true,
		.limit = 1,
	};
	struct store_txn txn = { .success = &op, .n_success = 1, .repeatable = true };

	if (w->state == WATCH_READY && !w->recheck && !w->dead)
		etcd_txn(&w->etcd->base, &txn, LIST_TIMEOUT_MS, on_rechecked, w, &w->recheck);
}

static int on_recheck_time(sd_event_source *source, uint64_t usec, void *arg)
{
	struct etcd *e = arg;
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, entry)
		recheck(w);
	/* Spread over a tenth, or a thousand nodes would ask at once. */
	arm(e, &e->stream.recheck, RECHECK_USEC + etcd_backoff_usec(7) * 12, 1000000,
	    on_recheck_time, e);
	return 0;
}

/*
 * After a restart of etcd every agent asks. A recheck costs etcd 0.8 ms of CPU time and 1.6 µs a
 * key, and the number of keys follows the number of agents: 5,000 agents with 10,000 keys in six
 * watches use half a core for 200 s.
 */
static void recheck_soon(struct etcd *e)
{
	uint64_t spread = 0;
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, entry)
		spread += store_view_count(w->view) * RECHECK_SPREAD_USEC;
	TAILQ_FOREACH(w, &e->watches, entry)
		arm(e, &w->recheck_again, backoff_usec(1, 2 * spread, 2 * spread) - spread, 1000,
		    on_recheck_again, w);
}

/* --- the stream ------------------------------------------------------------------------------- *
 *
 * One carries all watches. Over HTTP/1.1 it cannot be added to, so a change of watches opens a new
 * one, each watch going on from where it was.
 */

static void stream_close(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	struct etcd_watch *w;

	http_cancel(TAKE(s->http));
	curl_slist_free_all(TAKE(s->headers));
	json_stream_free(TAKE(s->splitter));
	store_cancel(TAKE(s->probe));
	disarm(s->created);
	disarm(s->silence);
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
	stream_close(e);
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
	tell_trouble(e, line);
	/* Each endpoint is tried at once; then a full round has failed. */
	if (s->failures % e->n_endpoints == 0 &&
	    arm(e, &s->retry, etcd_backoff_usec(s->failures / (unsigned)e->n_endpoints), 1000,
		on_wake, e) < 0)
		disarm(s->retry);
	wake_up(e);
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
	const struct store_txn txn = { TXN_THEN(op_get_key(w->key)), .repeatable = true };

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
	disarm(s->created);
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
		recheck_soon(e);
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
			tell_put(w, kv);
		else
			tell_deleted(kv->key, kv->mod_revision, w);
	}
	/* A fragment may end within a revision: what is sent again then is known to the view. */
	if (seen && seen + !m->fragment > w->next)
		w->next = seen + !m->fragment;
	if (seen > e->revision)
		e->revision = seen;
	if (!back)
		return 0;
	/* Etcd has had such faults; nothing that it said of this range is certain then. */
	want_list(w);
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
		want_list(w);
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

	callbacks_begin(e);
	if (r == 0)
		etcd_check_header(e, e->stream.endpoint, &m.header, &any);
	/* In a new era this stream's events are of no use any more. */
	if (r == 0 && any.era == e->era)
		r = take_message(e, &m, &e->stream.reason);
	callbacks_end(e);
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
		arm(e, &e->stream.silence, SILENCE_USEC - (now - heard), 1000000, on_silence, e);
	return 0;
}

/* Put off at once, not when it fires: an idle agent would wake up to find that all is well. */
void etcd_heard(struct etcd *e, size_t endpoint)
{
	struct etcd_stream *s = &e->stream;

	e->endpoints[endpoint].heard = clock_monotonic_us();
	if (s->endpoint == endpoint && is_armed(s->silence))
		arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
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
		arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
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
		arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
}

void etcd_stream_suspect(struct etcd *e, size_t endpoint)
{
	if (e->stream.http && e->stream.endpoint == endpoint && !e->stream.probes_lost)
		probe_now(e);
}

/* --- opening the stream --------------------------------------------------------------------- */

static void on_login_probed(const struct store_reply *reply, void *arg)
{
	struct etcd *e = arg;

	e->stream.probe = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (reply->err && !e->endpoints[e->stream.endpoint].token)
		stream_failed(e, reply->text);
	else
		wake_up(e);
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

static void stream_open(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	AUTO(free) char *body = NULL;
	int r;

	stream_close(e);
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
	r = r ?: arm(e, &s->created, CREATED_USEC, 1000, on_not_created, e);
	if (r >= 0)
		r = arm(e, &s->silence, SILENCE_USEC, 1000000, on_silence, e);
	e->stats.streams++;
	if (r < 0)
		stream_failed(e, strerror(-r));
}

/* --- what is to be done? -------------------------------------------------------------------- */

static struct etcd_watch *next_to_list(struct etcd *e, bool *ret_busy)
{
	struct etcd_watch *w, *found = NULL;

	*ret_busy = false;
	TAILQ_FOREACH(w, &e->watches, entry) {
		if (w->state == WATCH_LISTING)
			*ret_busy = true;
		else if (w->state == WATCH_WANTED && !w->dead && !is_armed(w->list_retry) && !found)
			found = w;
	}
	return found;
}

static int on_work(sd_event_source *source, void *arg)
{
	struct etcd *e = arg;
	struct etcd_watch *w;
	bool busy;

	w = next_to_list(e, &busy);
	if (busy)
		return 0;
	if (w)
		start_list(w);
	else if (e->stream.wanted && !is_armed(e->stream.retry))
		stream_open(e);
	return 0;
}

/* --- interface ------------------------------------------------------------------------------ */

void etcd_stream_restart(struct etcd *e)
{
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, entry) {
		w->anew = true;
		want_list(w);
	}
	e->stream.wanted = true;
	wake_up(e);
}

static void unwatch(struct store_watch *base)
{
	struct etcd_watch *w = (struct etcd_watch *)base;
	struct etcd *e = w->etcd;

	w->dead = true;
	w->id = 0;
	e->stream.wanted = true;
	wake_up(e);
	if (!e->stream.dispatching)
		watch_free(w);
}

int etcd_watch(struct store *s, const char *key, const char *range_end,
	       const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret)
{
	struct etcd *e = (struct etcd *)s;
	struct etcd_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->base.unwatch = unwatch;
	w->etcd = e;
	w->handlers = *handlers;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&e->watches, w, entry);
	w->key = strdup(key);
	w->range_end = range_end ? strdup(range_end) : NULL;
	if (!w->key || (range_end && !w->range_end) || store_view_new(&w->view) < 0) {
		watch_free(w);
		return -ENOMEM;
	}
	wake_up(e);
	*ret = &w->base;
	return 0;
}

int etcd_stream_init(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	int r = sd_event_add_defer(e->event, &s->work, on_work, e);

	if (r < 0)
		return r;
	sd_event_source_set_enabled(s->work, SD_EVENT_OFF);
	r = arm(e, &s->recheck, RECHECK_USEC, 1000000, on_recheck_time, e);
	return r < 0 ? r : 0;
}

void etcd_stream_done(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	struct etcd_watch *w;

	stream_close(e);
	store_cancel(TAKE(s->verify));
	while ((w = TAILQ_FIRST(&e->watches)))
		watch_free(w);
	sd_event_source_disable_unref(s->work);
	sd_event_source_disable_unref(s->retry);
	sd_event_source_disable_unref(s->created);
	sd_event_source_disable_unref(s->silence);
	sd_event_source_disable_unref(s->recheck);
}
