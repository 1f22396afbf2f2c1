/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches: listed page by page, then followed through etcd's history. What is
 * news is decided by the same store_view as in the real store, so a caller
 * sees the same after a cut, a compaction or a restore.
 */
#include <string.h>

#include "lib/store_fake_parts.h"
#include "lib/store_view.h"

enum watch_state { WATCH_WANTED, WATCH_LISTING, WATCH_READY };

struct fake_watch {
	struct store_watch base;
	struct fake_task task;
	TAILQ_ENTRY(fake_watch) entry;
	struct fake *fake;
	enum watch_state state;
	char *key, *range_end;
	struct store_watch_handlers handlers;
	void *arg;
	struct store_view *view;
	int64_t next;    /* the lowest revision not yet seen */
	bool followed;   /* events come as they happen */
	bool anew;       /* the next list proves nothing by revisions */
	bool busy, dead; /* in its own step; unwatched there */
	struct fake_kvs found;
	int64_t list_revision;
	size_t at;
};

static bool reachable(const struct fake *f)
{
	return f->online && f->following;
}

/* --- telling -------------------------------------------------------------------------------- */

static void tell_trouble(struct fake *f, const char *text)
{
	if (f->told_trouble)
		return;
	f->told_watching = false;
	f->told_trouble = true;
	store_notify(&f->base, STORE_TROUBLE, "%s", text);
}

static void tell_watching(struct fake *f)
{
	struct fake_watch *w;

	TAILQ_FOREACH(w, &f->watches, entry)
		if (!w->followed && !w->dead)
			return;
	if (f->told_watching)
		return;
	f->told_watching = true;
	f->told_trouble = false;
	store_notify(&f->base, STORE_WATCHING, "watching in memory");
}

static void tell_put(struct fake_watch *w, const struct store_kv *kv)
{
	if (!w->dead && w->handlers.put)
		w->handlers.put(kv, w->arg);
}

static void tell_deleted(const char *key, int64_t revision, void *arg)
{
	struct fake_watch *w = arg;

	if (!w->dead && w->handlers.deleted)
		w->handlers.deleted(key, revision, w->arg);
}

static bool news(int answer)
{
	if (answer < 0)
		abort();
	return answer;
}

/* --- listing -------------------------------------------------------------------------------- */

static void want_list(struct fake_watch *w, bool anew)
{
	w->anew = w->anew || anew;
	w->state = WATCH_WANTED;
	w->followed = false;
	if (!w->busy)
		fake_queue(w->fake, &w->task);
}

static void begin_list(struct fake_watch *w)
{
	store_view_list_begin(w->view, w->anew);
	fake_kvs_done(&w->found);
	fake_range(&w->fake->etcd, w->key, w->range_end, &w->found);
	w->list_revision = w->fake->etcd.revision;
	w->at = 0;
	w->state = WATCH_LISTING;
	if (w->base.listing)
		w->base.listing(w->arg);
}

static void end_list(struct fake_watch *w)
{
	if (store_view_list_end(w->view, w->list_revision, tell_deleted, w) < 0)
		abort();
	fake_kvs_done(&w->found);
	/* A callback may have restored etcd: then this list was in vain. */
	if (w->state != WATCH_LISTING)
		return;
	w->state = WATCH_READY;
	w->anew = false;
	w->next = w->list_revision + 1;
	if (!w->dead && w->handlers.in_sync)
		w->handlers.in_sync(w->list_revision, w->arg);
}

static void list_page(struct fake_watch *w)
{
	struct fake_verdict v = fake_next_verdict(w->fake, STORE_FAKE_WATCH, NULL, w->key);

	w->fake->stats.watch_pages++;
	if (v.err || v.fate != STORE_FAKE_PASS) {
		want_list(w, false);
		tell_trouble(w->fake, "listing failed");
		return;
	}
	if (w->state == WATCH_LISTING && w->list_revision < w->fake->etcd.compacted)
		w->state = WATCH_WANTED;
	if (w->state == WATCH_WANTED)
		begin_list(w);
	for (size_t n = 0; n < w->fake->page && w->at < w->found.n && !w->dead; n++) {
		const struct store_kv *kv = &w->found.v[w->at++]->kv;

		if (news(store_view_listed(w->view, kv->key, kv->mod_revision)))
			tell_put(w, kv);
	}
	if (w->state == WATCH_LISTING && w->at == w->found.n)
		end_list(w);
}

/* --- following ------------------------------------------------------------------------------ */

static bool concerns(const struct fake_watch *w, const struct fake_kv *event)
{
	return fake_in_range(event->kv.key, w->key, w->range_end);
}

/* Goes to the next event in the range; false: there is none, all is seen. */
static bool advance(struct fake_watch *w)
{
	const struct fake_etcd *e = &w->fake->etcd;

	for (size_t i = fake_history_from(e, w->next); i < e->history.n; i++) {
		if (!concerns(w, e->history.v[i]))
			continue;
		w->next = e->history.v[i]->kv.mod_revision;
		return true;
	}
	w->next = e->revision + 1;
	return false;
}

static void tell_event(struct fake_watch *w, const struct store_kv *kv)
{
	if (kv->version && news(store_view_put(w->view, kv->key, kv->mod_revision)))
		tell_put(w, kv);
	else if (!kv->version && news(store_view_deleted(w->view, kv->key, kv->mod_revision)))
		tell_deleted(kv->key, kv->mod_revision, w);
}

/* All events of one revision; copied, because callbacks may write history. */
static void follow_one(struct fake_watch *w)
{
	const struct fake_etcd *e = &w->fake->etcd;
	struct fake_kvs events = { 0 };

	for (size_t i = fake_history_from(e, w->next);
	     i < e->history.n && e->history.v[i]->kv.mod_revision == w->next; i++)
		if (concerns(w, e->history.v[i]))
			fake_kvs_add(&events, e->history.v[i]);
	w->next++;
	for (size_t i = 0; i < events.n && w->state == WATCH_READY; i++)
		tell_event(w, &events.v[i]->kv);
	fake_kvs_done(&events);
}

static void follow(struct fake_watch *w)
{
	w->followed = true;
	tell_watching(w->fake);
	if (w->next < w->fake->etcd.compacted)
		want_list(w, false);
	else if (advance(w))
		follow_one(w);
}

/* --- a step --------------------------------------------------------------------------------- */

static void watch_free(struct fake_watch *w)
{
	TAILQ_REMOVE(&w->fake->watches, w, entry);
	w->fake->stats.watches--;
	fake_unqueue(w->fake, &w->task);
	fake_kvs_done(&w->found);
	store_view_free(w->view);
	free(w->key);
	free(w->range_end);
	free(w);
}

static void step(struct fake_watch *w)
{
	if (!reachable(w->fake)) {
		w->followed = false;
		/* A list that was cut half-way begins again. */
		if (w->state == WATCH_LISTING)
			w->state = WATCH_WANTED;
		tell_trouble(w->fake, "watches are cut");
	} else if (w->state == WATCH_READY) {
		follow(w);
	} else {
		list_page(w);
	}
}

static bool has_work(struct fake_watch *w)
{
	if (!reachable(w->fake))
		return w->followed || w->state == WATCH_LISTING;
	return w->state != WATCH_READY || !w->followed || advance(w);
}

static void watch_run(struct fake_task *task)
{
	struct fake_watch *w = FAKE_OWNER(task, struct fake_watch, task);

	w->busy = true;
	step(w);
	w->busy = false;
	if (w->dead)
		watch_free(w);
	else if (has_work(w))
		fake_queue(w->fake, &w->task);
}

/* --- interface ------------------------------------------------------------------------------ */

void fake_changed(struct fake *f)
{
	struct fake_watch *w;

	TAILQ_FOREACH(w, &f->watches, entry)
		if (!w->busy && w->followed && advance(w))
			fake_queue(f, &w->task);
}

void fake_watches_look(struct fake *f)
{
	struct fake_watch *w;

	TAILQ_FOREACH(w, &f->watches, entry)
		if (!w->busy)
			fake_queue(f, &w->task);
}

void fake_watches_list(struct fake *f, bool anew)
{
	struct fake_watch *w;

	TAILQ_FOREACH(w, &f->watches, entry)
		want_list(w, anew);
}

static void unwatch(struct store_watch *base)
{
	struct fake_watch *w = (struct fake_watch *)base;

	w->dead = true;
	if (!w->busy)
		watch_free(w);
}

int fake_watch(struct store *s, const char *key, const char *range_end,
	       const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret)
{
	struct fake *f = (struct fake *)s;
	struct fake_watch *w = fake_must(calloc(1, sizeof(*w)));

	w->base.unwatch = unwatch;
	w->task.run = watch_run;
	w->fake = f;
	w->handlers = *handlers;
	w->arg = arg;
	w->key = fake_must(strdup(key));
	w->range_end = range_end ? fake_must(strdup(range_end)) : NULL;
	if (store_view_new(&w->view) < 0)
		abort();
	TAILQ_INSERT_TAIL(&f->watches, w, entry);
	f->stats.watches++;
	fake_queue(f, &w->task);
	*ret = &w->base;
	return 0;
}

void fake_watches_done(struct fake *f)
{
	struct fake_watch *w;

	while ((w = TAILQ_FIRST(&f->watches)))
		watch_free(w);
}
