/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches: listed page by page, then followed through etcd's history. What is
 * news is decided by the same store_view as in the real store, so a caller
 * sees the same after a cut, a compaction or a restore.
 */
#include <errno.h>
#include <string.h>

#include "lib/store/store_memory_parts.h"
#include "lib/store/store_view.h"

enum watch_state { WATCH_WANTED, WATCH_LISTING, WATCH_READY };

struct memory_watch {
	struct store_watch base;
	struct memory_task task;
	TAILQ_ENTRY(memory_watch) entry;
	struct memory *memory;
	enum watch_state state;
	char *key, *range_end;
	struct store_watch_handlers handlers;
	void *arg;
	struct store_view *view;
	int64_t next;    /* the lowest revision not yet seen */
	bool followed;   /* events come as they happen */
	bool anew;       /* the next list proves nothing by revisions */
	bool busy, dead; /* in its own step; unwatched there */
	struct memory_kvs found;
	int64_t list_revision;
	size_t at;
};

static bool reachable(const struct memory *m)
{
	return m->online && m->following;
}

/* --- telling -------------------------------------------------------------------------------- */

static void tell_trouble(struct memory *m, const char *text)
{
	if (m->told_trouble)
		return;
	m->told_watching = false;
	m->told_trouble = true;
	store_notify(&m->base, STORE_TROUBLE, "%s", text);
}

static void tell_watching(struct memory *m)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		if (!w->followed && !w->dead)
			return;
	if (m->told_watching)
		return;
	m->told_watching = true;
	m->told_trouble = false;
	store_notify(&m->base, STORE_WATCHING, "%s", m->watched);
}

static void tell_put(struct memory_watch *w, const struct store_kv *kv)
{
	if (!w->dead && w->handlers.put)
		w->handlers.put(kv, w->arg);
}

static void tell_deleted(const char *key, int64_t revision, void *arg)
{
	struct memory_watch *w = arg;

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

static void want_list(struct memory_watch *w, bool anew)
{
	w->anew = w->anew || anew;
	w->state = WATCH_WANTED;
	w->followed = false;
	if (!w->busy)
		memory_queue(w->memory, &w->task);
}

/* As lib/etcd/etcd_era.c does. */
static void key_went_back(struct memory *m, const char *key)
{
	memory_watches_list(m, true);
	store_notify(&m->base, STORE_REVISION_WENT_BACK,
		     "etcd lists %.200s at an older revision than before: restored from a backup?",
		     key);
}

static void begin_list(struct memory_watch *w)
{
	store_view_list_begin(w->view, w->anew);
	memory_kvs_done(&w->found);
	memory_range(w->memory->etcd, w->key, w->range_end, &w->found);
	w->list_revision = w->memory->etcd->revision;
	w->at = 0;
	w->state = WATCH_LISTING;
	if (w->base.listing)
		w->base.listing(w->arg);
}

static void end_list(struct memory_watch *w)
{
	if (store_view_list_end(w->view, w->list_revision, tell_deleted, w) < 0)
		abort();
	memory_kvs_done(&w->found);
	/* A callback may have restored etcd: then this list was in vain. */
	if (w->state != WATCH_LISTING)
		return;
	w->state = WATCH_READY;
	w->anew = false;
	w->next = w->list_revision + 1;
	if (!w->dead && w->handlers.in_sync)
		w->handlers.in_sync(w->list_revision, w->arg);
}

static void list_page(struct memory_watch *w)
{
	struct memory_verdict v = memory_next_verdict(w->memory, MEMORY_WATCH, NULL, w->key);

	w->memory->stats.watch_pages++;
	if (v.err || v.fate != MEMORY_PASS) {
		want_list(w, false);
		tell_trouble(w->memory, "listing failed");
		return;
	}
	if (w->state == WATCH_LISTING && w->list_revision < w->memory->etcd->compacted)
		w->state = WATCH_WANTED;
	if (w->state == WATCH_WANTED)
		begin_list(w);
	for (size_t n = 0; n < w->memory->page && w->at < w->found.n && !w->dead; n++) {
		const struct store_kv *kv = &w->found.v[w->at++]->kv;
		int r = store_view_listed(w->view, kv->key, kv->mod_revision);

		if (r == -ESTALE) {
			key_went_back(w->memory, kv->key);
			return;
		}
		if (news(r))
			tell_put(w, kv);
	}
	if (w->state == WATCH_LISTING && w->at == w->found.n)
		end_list(w);
}

/* --- following ------------------------------------------------------------------------------ */

static bool concerns(const struct memory_watch *w, const struct memory_kv *event)
{
	return memory_in_range(event->kv.key, w->key, w->range_end);
}

/* Goes to the next event in the range; false: there is none, all is seen. */
static bool advance(struct memory_watch *w)
{
	const struct memory_etcd *e = w->memory->etcd;

	for (size_t i = memory_history_from(e, w->next); i < e->history.n; i++) {
		if (!concerns(w, e->history.v[i]))
			continue;
		w->next = e->history.v[i]->kv.mod_revision;
		return true;
	}
	w->next = e->revision + 1;
	return false;
}

static void tell_event(struct memory_watch *w, const struct store_kv *kv)
{
	if (kv->version && news(store_view_put(w->view, kv->key, kv->mod_revision)))
		tell_put(w, kv);
	else if (!kv->version && news(store_view_deleted(w->view, kv->key, kv->mod_revision)))
		tell_deleted(kv->key, kv->mod_revision, w);
}

/* All events of one revision; copied, because callbacks may write history. */
static void follow_one(struct memory_watch *w)
{
	const struct memory_etcd *e = w->memory->etcd;
	struct memory_kvs events = { 0 };

	for (size_t i = memory_history_from(e, w->next);
	     i < e->history.n && e->history.v[i]->kv.mod_revision == w->next; i++)
		if (concerns(w, e->history.v[i]))
			memory_kvs_add(&events, e->history.v[i]);
	w->next++;
	for (size_t i = 0; i < events.n && w->state == WATCH_READY; i++)
		tell_event(w, &events.v[i]->kv);
	memory_kvs_done(&events);
}

static void follow(struct memory_watch *w)
{
	w->followed = true;
	tell_watching(w->memory);
	if (w->next < w->memory->etcd->compacted)
		want_list(w, false);
	else if (advance(w))
		follow_one(w);
}

/* --- a step --------------------------------------------------------------------------------- */

static void watch_free(struct memory_watch *w)
{
	TAILQ_REMOVE(&w->memory->watches, w, entry);
	w->memory->stats.watches--;
	memory_unqueue(w->memory, &w->task);
	memory_kvs_done(&w->found);
	store_view_free(w->view);
	free(w->key);
	free(w->range_end);
	free(w);
}

static void step(struct memory_watch *w)
{
	if (!reachable(w->memory)) {
		w->followed = false;
		/* A list that was cut half-way begins again. */
		if (w->state == WATCH_LISTING)
			w->state = WATCH_WANTED;
		if (w->memory->cut)
			tell_trouble(w->memory, w->memory->cut);
	} else if (w->state == WATCH_READY) {
		follow(w);
	} else {
		list_page(w);
	}
}

static bool has_work(struct memory_watch *w)
{
	if (!reachable(w->memory))
		return w->followed || w->state == WATCH_LISTING;
	return w->state != WATCH_READY || !w->followed || advance(w);
}

static void watch_run(struct memory_task *task)
{
	struct memory_watch *w = MEMORY_OWNER(task, struct memory_watch, task);

	w->busy = true;
	step(w);
	w->busy = false;
	if (w->dead)
		watch_free(w);
	else if (has_work(w))
		memory_queue(w->memory, &w->task);
}

/* --- interface ------------------------------------------------------------------------------ */

void memory_changed(struct memory *m)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		if (!w->busy && w->followed && advance(w))
			memory_queue(m, &w->task);
}

void memory_watches_look(struct memory *m)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		if (!w->busy)
			memory_queue(m, &w->task);
}

void memory_watches_list(struct memory *m, bool anew)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		want_list(w, anew);
}

static void unwatch(struct store_watch *base)
{
	struct memory_watch *w = (struct memory_watch *)base;

	w->dead = true;
	if (!w->busy)
		watch_free(w);
}

int memory_watch(struct store *s, const char *key, const char *range_end,
		 const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret)
{
	struct memory *m = (struct memory *)s;
	struct memory_watch *w = memory_must(calloc(1, sizeof(*w)));

	w->base.unwatch = unwatch;
	w->task.run = watch_run;
	w->memory = m;
	w->handlers = *handlers;
	w->arg = arg;
	w->key = memory_must(strdup(key));
	w->range_end = range_end ? memory_must(strdup(range_end)) : NULL;
	if (store_view_new(&w->view) < 0)
		abort();
	TAILQ_INSERT_TAIL(&m->watches, w, entry);
	m->stats.watches++;
	memory_queue(m, &w->task);
	*ret = &w->base;
	return 0;
}

void memory_watches_done(struct memory *m)
{
	struct memory_watch *w;

	while ((w = TAILQ_FIRST(&m->watches)))
		watch_free(w);
}

int64_t memory_watches_need(const struct memory *m)
{
	int64_t need = m->etcd->revision + 1;
	const struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry) {
		int64_t next = w->state == WATCH_LISTING ? w->list_revision + 1 : w->next;

		/* One that is still to be listed needs nothing of the past. */
		if (w->state != WATCH_WANTED && next < need)
			need = next;
	}
	return need;
}
