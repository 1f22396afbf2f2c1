/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_watch.h"

#include <errno.h>
#include <string.h>

#include "lib/base/backoff.h"

#define LIST_TIMEOUT_MS     30000
#define RECHECK_USEC        600000000ULL
#define RECHECK_AGAIN_USEC  1000000ULL
#define RECHECK_SPREAD_USEC 20000ULL /* per key */

void etcd_wake(struct etcd *e)
{
	if (!e->closing)
		sd_event_source_set_enabled(e->stream.work, SD_EVENT_ONESHOT);
}

int etcd_arm(struct etcd *e, sd_event_source **source, uint64_t usec, uint64_t accuracy,
	     sd_event_time_handler_t fn, void *arg)
{
	int r;

	if (!*source)
		return sd_event_add_time_relative(e->event, source, CLOCK_MONOTONIC, usec, accuracy,
						  fn, arg);
	r = sd_event_source_set_time_relative(*source, usec);
	return r < 0 ? r : sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT);
}

void etcd_disarm(sd_event_source *source)
{
	if (source)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

bool etcd_armed(sd_event_source *source)
{
	int enabled = SD_EVENT_OFF;

	return source && sd_event_source_get_enabled(source, &enabled) > 0;
}

int etcd_on_wake(sd_event_source *source, uint64_t usec, void *arg)
{
	etcd_wake(arg);
	return 0;
}

void etcd_tell_trouble(struct etcd *e, const char *text)
{
	e->stream.told_watching = false;
	e->stream.told_trouble = true;
	store_notify(&e->base, STORE_TROUBLE, "%s", text);
}

/* --- telling the caller --------------------------------------------------------------------- */

void etcd_tell_put(struct etcd_watch *w, const struct store_kv *kv)
{
	if (!w->dead && w->handlers.put)
		w->handlers.put(kv, w->arg);
}

void etcd_tell_deleted(const char *key, int64_t revision, void *arg)
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

void etcd_callbacks_begin(struct etcd *e)
{
	e->stream.dispatching++;
}

void etcd_callbacks_end(struct etcd *e)
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

void etcd_watch_want_list(struct etcd_watch *w)
{
	store_cancel(TAKE(w->list));
	store_cancel(TAKE(w->recheck));
	w->state = WATCH_WANTED;
	w->id = 0;
	etcd_wake(w->etcd);
}

static void list_failed(struct etcd_watch *w, int err, const char *text)
{
	char line[512];

	etcd_watch_want_list(w);
	/* Compacted while we paged: begin again at once. */
	if (err == -ESTALE)
		return;
	snprintf(line, sizeof(line), "listing %s: %s", w->key, text);
	etcd_tell_trouble(w->etcd, line);
	if (etcd_arm(w->etcd, &w->list_retry, etcd_backoff_usec(++w->list_failures), 1000,
		     etcd_on_wake, w->etcd) < 0)
		etcd_disarm(w->list_retry);
}

void etcd_watch_stuck(struct etcd *e, const struct store_call *call, const char *text)
{
	const struct etcd_watch *w;
	char line[512];

	TAILQ_FOREACH(w, &e->watches, entry)
		if (w->list == call) {
			snprintf(line, sizeof(line), "listing %.200s: %.300s", w->key, text);
			etcd_tell_trouble(e, line);
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
			etcd_tell_put(w, &page->kvs[i]);
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
	etcd_wake(w->etcd);
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
	etcd_callbacks_begin(e);
	r = take_page(w, reply);
	if (r == 0 && !reply->more)
		r = store_view_list_end(w->view, reply->revision, etcd_tell_deleted, w);
	/* A callback or the reply's own header may have found that revisions are void. */
	if (w->state != WATCH_LISTING)
		etcd_watch_want_list(w);
	else if (r < 0)
		list_failed(w, r, "out of memory");
	else if (!reply->more)
		list_complete(w, reply->revision);
	etcd_callbacks_end(e);
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
		etcd_arm(w->etcd, &w->recheck_again, RECHECK_AGAIN_USEC, 1000, on_recheck_again, w);
	} else {
		etcd_watch_want_list(w);
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
	etcd_arm(e, &e->stream.recheck, RECHECK_USEC + etcd_backoff_usec(7) * 12, 1000000,
		 on_recheck_time, e);
	return 0;
}

/*
 * After a restart of etcd every agent asks. A recheck costs etcd 0.8 ms of CPU time and 1.6 µs a
 * key, and the number of keys follows the number of agents: 5,000 agents with 10,000 keys in six
 * watches use half a core for 200 s.
 */
void etcd_recheck_soon(struct etcd *e)
{
	uint64_t spread = 0;
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, entry)
		spread += store_view_count(w->view) * RECHECK_SPREAD_USEC;
	TAILQ_FOREACH(w, &e->watches, entry)
		etcd_arm(e, &w->recheck_again, backoff_usec(1, 2 * spread, 2 * spread) - spread,
			 1000, on_recheck_again, w);
}

/* --- what is to be done? -------------------------------------------------------------------- */

static struct etcd_watch *next_to_list(struct etcd *e, bool *ret_busy)
{
	struct etcd_watch *w, *found = NULL;

	*ret_busy = false;
	TAILQ_FOREACH(w, &e->watches, entry) {
		if (w->state == WATCH_LISTING)
			*ret_busy = true;
		else if (w->state == WATCH_WANTED && !w->dead && !etcd_armed(w->list_retry) &&
			 !found)
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
	else if (e->stream.wanted && !etcd_armed(e->stream.retry))
		etcd_stream_open(e);
	return 0;
}

/* --- interface ------------------------------------------------------------------------------ */

void etcd_stream_restart(struct etcd *e)
{
	struct etcd_watch *w;

	TAILQ_FOREACH(w, &e->watches, entry) {
		w->anew = true;
		etcd_watch_want_list(w);
	}
	e->stream.wanted = true;
	etcd_wake(e);
}

static void unwatch(struct store_watch *base)
{
	struct etcd_watch *w = (struct etcd_watch *)base;
	struct etcd *e = w->etcd;

	w->dead = true;
	w->id = 0;
	e->stream.wanted = true;
	etcd_wake(e);
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
	etcd_wake(e);
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
	r = etcd_arm(e, &s->recheck, RECHECK_USEC, 1000000, on_recheck_time, e);
	return r < 0 ? r : 0;
}

void etcd_stream_done(struct etcd *e)
{
	struct etcd_stream *s = &e->stream;
	struct etcd_watch *w;

	etcd_stream_close(e);
	store_cancel(TAKE(s->verify));
	while ((w = TAILQ_FIRST(&e->watches)))
		watch_free(w);
	sd_event_source_disable_unref(s->work);
	sd_event_source_disable_unref(s->retry);
	sd_event_source_disable_unref(s->created);
	sd_event_source_disable_unref(s->silence);
	sd_event_source_disable_unref(s->recheck);
}
