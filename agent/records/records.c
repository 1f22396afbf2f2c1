/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/records/records.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/array.h"
#include "lib/model/record.h"

/* Ten seconds: a living node registers again within one or two of etcd's loss. */
#define LINGER(minute) ((minute) / 6)
/*
 * Where etcd was replaced or restored every node writes all of its own again, thousands at once,
 * and some hear of it late. A record that stays too long does no harm: who claims a block has it
 * at once.
 */
#define LINGER_LOST(minute) ((minute)*10)

/* --- kinds ---------------------------------------------------------------------------------- */

static int decode_block_place(const char *key, const char *json, size_t len, void *ret,
			      struct err *err)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	struct block_place *place = ret;
	int r = block_decode(key, json, len, &block, err);
	size_t node;
	char *texts;

	if (r < 0)
		return r;
	node = strlen(block.node) + 1;
	texts = malloc(node + strlen(block.pool) + 1);
	if (!texts)
		return -ENOMEM;
	memcpy(texts, block.node, node);
	memcpy(texts + node, block.pool, strlen(block.pool) + 1);
	*place = (struct block_place){ block.block, texts, texts + node };
	return 0;
}

/* What is kept of a kind. The decoder is the record's own, but of a block less is kept. */
struct row {
	const char *begins;  /* of its keys; NULL: nothing is kept, only events pass by */
	bool lingers;        /* made again by the living: a vanished one counts on for a while */
	bool remembered;     /* its text is kept, for the file of this boot */
	bool remembered_own; /* the same, but only of this node */
	/* The room that reads it reports a damaged one, and decides what a vanished one means. */
	bool left_to_reader;
};

static const struct row rows[KEY_KINDS] = {
	[KEY_CONFIG] = { .begins = "config", .remembered = true },
	[KEY_POOL] = { .begins = KEYS_POOL, .remembered = true },
	[KEY_EXTENT] = { .begins = KEYS_EXTENT, .remembered = true, .lingers = true },
	[KEY_BLOCK] = { .begins = KEYS_BLOCK, .lingers = true },
	[KEY_NODE] = { .begins = KEYS_NODE, .lingers = true },
	[KEY_SPEC] = { .begins = KEYS_SPEC, .remembered_own = true },
	[KEY_PEER] = { .begins = KEYS_PEER },
	[KEY_FILTER] = { .begins = KEYS_FILTER },
	[KEY_STATIC_ROUTE] = { .begins = KEYS_STATIC_ROUTE, .left_to_reader = true },
};

void records_key(enum key_kind kind, const char *name, char text[KEY_TEXT])
{
	snprintf(text, KEY_TEXT, "%s%s", rows[kind].begins, name);
}

/* --- values --------------------------------------------------------------------------------- */

struct value {
	size_t refs;
	enum key_kind kind;
	alignas(max_align_t) unsigned char data[];
};

static struct value *value_of(const void *data)
{
	return (struct value *)((uintptr_t)data - offsetof(struct value, data));
}

const void *record_keep(const void *data)
{
	if (data)
		value_of(data)->refs++;
	return data;
}

void record_drop(const void *data)
{
	struct value *v = data ? value_of(data) : NULL;

	if (!v || --v->refs)
		return;
	if (v->kind == KEY_BLOCK)
		free((char *)(uintptr_t)((struct block_place *)v->data)->node);
	else
		record_done(record_of(v->kind), v->data);
	free(v);
}

static int value_decode(enum key_kind kind, const char *key, const char *text, size_t len,
			const void **ret, struct err *err)
{
	const size_t size = kind == KEY_BLOCK ? sizeof(struct block_place) : record_of(kind)->size;
	struct value *v = calloc(1, sizeof(*v) + size);
	int r;

	if (!v)
		return -ENOMEM;
	*v = (struct value){ .refs = 1, .kind = kind };
	r = kind == KEY_BLOCK ? decode_block_place(key, text, len, v->data, err)
			      : record_decode(record_of(kind), key, text, len, v->data, err);
	if (r < 0)
		free(v);
	else
		*ret = v->data;
	return r;
}

static bool value_equal(enum key_kind kind, const void *a, const void *b)
{
	const struct block_place *x = a, *y = b;

	if (!a || !b)
		return a == b;
	if (kind != KEY_BLOCK)
		return record_equal(record_of(kind), a, b);
	/* The key says which block. */
	return strcmp(x->node, y->node) == 0 && strcmp(x->pool, y->pool) == 0;
}

/* --- tables --------------------------------------------------------------------------------- */

struct table {
	struct record_entry *v; /* by name */
	size_t n, room;
};

/* One watch, and who hears of it. */
struct feed {
	LIST_ENTRY(feed) entry;
	LIST_HEAD(want_list, record_want) wants;
	struct records *records;
	struct store_watch *watch;
	bool listed;
	bool relisting; /* etcd was replaced: what the new list lacks was not deleted */
	int64_t seen;
	char keys[KEY_TEXT];
};

struct record_want {
	LIST_ENTRY(record_want) entry;
	struct feed *feed;
	record_fn *fn; /* NULL: unwanted while events are delivered */
	void *arg;
	char keys[KEY_TEXT];
};

struct records {
	struct records_options o;
	LIST_HEAD(feed_list, feed) feeds;
	struct table tables[KEY_KINDS];
	struct timer linger;
	unsigned delivering;
	bool unwanted; /* some were, meanwhile */
};

static struct record_entry *find(const struct table *t, const char *name)
{
	return array_find(t->v, t->n, x, strcmp(x->name, name));
}

static struct record_entry *find_or_add(struct table *t, const char *name)
{
	size_t i = array_place(t->v, t->n, x, strcmp(x->name, name));
	struct record_entry *e;
	char *copy;

	if (i < t->n && strcmp(t->v[i].name, name) == 0)
		return &t->v[i];
	copy = strdup(name);
	e = copy ? array_insert(t, i) : NULL;
	if (e)
		e->name = copy;
	else
		free(copy);
	return e;
}

static void entry_done(struct record_entry *e)
{
	record_drop(e->value);
	free(e->name);
	free(e->text);
	free(e->wrong);
}

static void entry_drop(struct table *t, struct record_entry *e)
{
	entry_done(e);
	array_remove(t, (size_t)(e - t->v));
}

static bool is_prefix(const char *keys)
{
	return keys[0] && keys[strlen(keys) - 1] == '/';
}

/* Whether a range, a prefix with its '/' or one key, has this key or range in it. */
static bool covers(const char *range, const char *key)
{
	return is_prefix(range) ? strncmp(range, key, strlen(range)) == 0 : strcmp(range, key) == 0;
}

static struct feed *feed_of(const struct records *r, const char *keys)
{
	struct feed *f;

	LIST_FOREACH(f, &r->feeds, entry)
		if (covers(f->keys, keys))
			return f;
	return NULL;
}

/* --- telling -------------------------------------------------------------------------------- */

static void sweep_unwanted(struct records *r);

static void deliver(struct records *r, struct feed *f, const struct record_event *e)
{
	struct record_want *w;

	if (!f)
		return;
	r->delivering++;
	LIST_FOREACH(w, &f->wants, entry)
		if (w->fn && (!e->key || covers(w->keys, e->key)))
			w->fn(e, w->arg);
	r->delivering--;
	sweep_unwanted(r);
}

/* --- one record ----------------------------------------------------------------------------- */

static bool is_remembered(const struct records *r, const struct key *key)
{
	const struct row *row = &rows[key->kind];

	return row->remembered || (row->remembered_own && strcmp(key->node, r->o.node) == 0);
}

/* 0 or -ENOMEM; *e has the entry and whether it is different. */
static int take(struct records *r, struct record_event *e, const char *text, size_t len,
		int64_t created, int64_t modified)
{
	const enum key_kind kind = e->parsed->kind;
	struct table *t = &r->tables[kind];
	const char *name = e->key + strlen(rows[kind].begins);
	const void *value = NULL;
	AUTO(free) char *copy = NULL, *wrong = NULL;
	struct record_entry *entry;
	bool was_wrong;
	struct err err = { "" };
	int rc = value_decode(kind, e->key, text, len, &value, &err);

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		wrong = strdup(err.text);
	if (is_remembered(r, e->parsed))
		copy = strndup(text, len);
	entry = find_or_add(t, name);
	if (!entry || (rc < 0 && !wrong) || (is_remembered(r, e->parsed) && !copy)) {
		record_drop(value);
		return -ENOMEM;
	}
	e->entry = entry;
	entry->created = created;
	entry->modified = modified;
	entry->state = RECORD_STANDS;
	was_wrong = entry->wrong;
	free(entry->wrong);
	entry->wrong = TAKE(wrong);
	if (rows[kind].left_to_reader)
		;
	else if (rc < 0)
		health_set(r->o.health, e->key, LOG_LEVEL_ERROR, "%s%s", err.text,
			   entry->value ? "; what it was before stays in force" : "");
	else if (was_wrong) /* else the part may be another room's, about something else */
		health_clear(r->o.health, e->key);
	if (rc == 0 || !entry->value) {
		free(entry->text);
		entry->text = TAKE(copy);
	}
	if (rc < 0)
		return 0;
	e->changed = !value_equal(kind, entry->value, value);
	/* An equal one stays: readers have texts of it. */
	record_drop(e->changed ? entry->value : value);
	if (e->changed)
		entry->value = value;
	return 0;
}

static void gone(struct records *r, struct feed *f, struct record_event *e)
{
	const struct row *row = &rows[e->parsed->kind];
	struct table *t = &r->tables[e->parsed->kind];
	struct record_entry *entry = row->begins ? find(t, e->key + strlen(row->begins)) : NULL;
	uint64_t linger = f->relisting ? LINGER_LOST(r->o.minute) : LINGER(r->o.minute);

	if (entry) {
		if (!row->left_to_reader)
			health_clear(r->o.health, e->key);
		free(TAKE(entry->wrong));
		entry->modified = 0;
	}
	if (entry && entry->value && row->lingers) {
		entry->state = RECORD_LINGERS;
		entry->until = timers_now(r->o.timers) + linger;
		/* Nodes that vanish one after the other must not keep the first ones alive. */
		if (!r->linger.set || entry->until < r->linger.due)
			timer_set(r->o.timers, &r->linger, linger, linger / 10);
		e->entry = entry;
	} else if (entry && entry->value && f->relisting && !row->left_to_reader) {
		log_warning("records",
			    "%s vanished with etcd's data and stays in force until it is "
			    "written again",
			    e->key);
		entry->state = RECORD_LOST;
		e->entry = entry;
	} else if (entry) {
		e->changed = entry->value;
		entry_drop(t, entry);
	}
	deliver(r, f, e);
}

/* Those that nobody has written again. */
static void on_linger(void *arg)
{
	struct records *r = arg;
	uint64_t now = timers_now(r->o.timers), next = 0;

	r->delivering++;
	for (size_t k = 0; k < KEY_KINDS; k++)
		for (size_t i = r->tables[k].n; i > 0; i--) {
			struct record_entry *e = &r->tables[k].v[i - 1];
			char key[KEY_TEXT];
			struct key parsed;

			if (e->state != RECORD_LINGERS)
				continue;
			if (e->until > now) {
				next = !next || e->until < next ? e->until : next;
				continue;
			}
			records_key((enum key_kind)k, e->name, key);
			entry_drop(&r->tables[k], e);
			if (key_parse(key, &parsed) == 0)
				deliver(r, feed_of(r, key),
					&(struct record_event){ .news = RECORD_DROPPED,
								.key = key,
								.parsed = &parsed,
								.changed = true });
		}
	r->delivering--;
	sweep_unwanted(r);
	if (next)
		timer_set(r->o.timers, &r->linger, next - now, (next - now) / 10);
}

/* --- watches -------------------------------------------------------------------------------- */

static void on_put(const struct store_kv *kv, void *arg)
{
	struct feed *f = arg;
	struct records *r = f->records;
	struct key parsed;
	struct record_event e = { .news = RECORD_PUT,
				  .key = kv->key + strlen(r->o.prefix),
				  .parsed = &parsed,
				  .kv = kv,
				  .revision = kv->mod_revision };

	if (kv->mod_revision > f->seen)
		f->seen = kv->mod_revision;
	if (key_parse(e.key, &parsed) < 0) {
		log_debug("records", "key %s is none of ours and left alone", kv->key);
		return;
	}
	if (rows[parsed.kind].begins &&
	    take(r, &e, kv->value, kv->value_len, kv->create_revision, kv->mod_revision) < 0)
		log_error("records", "out of memory at %s", e.key);
	else
		deliver(r, f, &e);
}

static void on_deleted(const char *full, int64_t revision, void *arg)
{
	struct feed *f = arg;
	struct key parsed;
	struct record_event e = { .news = RECORD_GONE,
				  .key = full + strlen(f->records->o.prefix),
				  .parsed = &parsed,
				  .revision = revision };

	if (revision > f->seen)
		f->seen = revision;
	if (key_parse(e.key, &parsed) == 0)
		gone(f->records, f, &e);
}

/* Records of the file that etcd does not have any more. */
static void drop_unlisted(struct feed *f)
{
	struct records *r = f->records;

	for (size_t k = 0; k < KEY_KINDS; k++)
		for (size_t i = r->tables[k].n; i > 0; i--) {
			const struct record_entry *entry = &r->tables[k].v[i - 1];
			char key[KEY_TEXT];
			struct key parsed;
			struct record_event e = { .news = RECORD_GONE,
						  .key = key,
						  .parsed = &parsed,
						  .revision = f->seen };

			records_key((enum key_kind)k, entry->name, key);
			if (entry->created < 0 && entry->state == RECORD_STANDS &&
			    covers(f->keys, key) && key_parse(key, &parsed) == 0)
				gone(r, f, &e);
		}
}

static void feed_close(struct feed *f)
{
	store_unwatch(f->watch);
	LIST_REMOVE(f, entry);
	free(f);
}

/*
 * Watches that lie inside this one are needless: those that have not been listed yet at once, the
 * others when it is, so that nobody falls out of sync.
 */
static void fold(struct feed *wide)
{
	struct feed *f, *next;

	for (f = LIST_FIRST(&wide->records->feeds); f; f = next) {
		struct record_want *w;

		next = LIST_NEXT(f, entry);
		if (f == wide || !covers(wide->keys, f->keys) || (f->listed && !wide->listed))
			continue;
		while ((w = LIST_FIRST(&f->wants))) {
			LIST_REMOVE(w, entry);
			LIST_INSERT_HEAD(&wide->wants, w, entry);
			w->feed = wide;
		}
		feed_close(f);
	}
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct feed *f = arg;

	f->seen = revision;
	f->listed = true;
	f->relisting = false;
	f->records->delivering++;
	drop_unlisted(f);
	fold(f);
	f->records->delivering--;
	deliver(f->records, f,
		&(struct record_event){
			.news = RECORD_LISTED, .revision = revision, .changed = true });
}

static int feed_open(struct records *r, const char *keys, struct feed **ret)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	const bool prefix = is_prefix(keys);
	AUTO(free) struct feed *f = calloc(1, sizeof(*f));
	AUTO(free) char *end = NULL;
	char full[KEY_FULL_TEXT];
	int rc = key_full(r->o.prefix, keys, full);

	if (rc < 0)
		return rc;
	end = prefix ? store_prefix_end(full) : NULL;
	if (!f || (prefix && !end))
		return -ENOMEM;
	f->records = r;
	LIST_INIT(&f->wants);
	snprintf(f->keys, sizeof(f->keys), "%s", keys);
	rc = store_watch(r->o.store, full, end, &handlers, f, &f->watch);
	if (rc < 0)
		return rc;
	LIST_INSERT_HEAD(&r->feeds, f, entry);
	*ret = f;
	fold(TAKE(f));
	return 0;
}

/* --- wants ---------------------------------------------------------------------------------- */

int records_want(struct records *r, const char *keys, record_fn *fn, void *arg,
		 struct record_want **ret)
{
	struct record_want *w = calloc(1, sizeof(*w));
	struct feed *f = feed_of(r, keys);
	int rc = w ? 0 : -ENOMEM;

	if (rc == 0 && !f)
		rc = feed_open(r, keys, &f);
	if (rc < 0) {
		free(w);
		return rc;
	}
	*w = (struct record_want){ .feed = f, .fn = fn, .arg = arg };
	snprintf(w->keys, sizeof(w->keys), "%s", keys);
	LIST_INSERT_HEAD(&f->wants, w, entry);
	*ret = w;
	return 0;
}

/* What no want has in it any more. */
static void forget(struct records *r, const char *keys)
{
	for (size_t k = 0; k < KEY_KINDS; k++)
		for (size_t i = r->tables[k].n; i > 0; i--) {
			struct record_entry *e = &r->tables[k].v[i - 1];
			char key[KEY_TEXT];

			records_key((enum key_kind)k, e->name, key);
			if (!covers(keys, key) || feed_of(r, key))
				continue;
			if (!rows[k].left_to_reader)
				health_clear(r->o.health, key);
			entry_drop(&r->tables[k], e);
		}
}

static void want_close(struct record_want *w)
{
	struct feed *f = w->feed;

	LIST_REMOVE(w, entry);
	free(w);
	if (LIST_EMPTY(&f->wants)) {
		struct records *r = f->records;
		char keys[KEY_TEXT];

		memcpy(keys, f->keys, sizeof(keys));
		feed_close(f);
		forget(r, keys);
	}
}

static void sweep_unwanted(struct records *r)
{
	struct feed *f, *next_feed;
	struct record_want *w, *next;

	if (r->delivering || !r->unwanted)
		return;
	r->unwanted = false;
	for (f = LIST_FIRST(&r->feeds); f; f = next_feed) {
		next_feed = LIST_NEXT(f, entry);
		for (w = LIST_FIRST(&f->wants); w; w = next) {
			next = LIST_NEXT(w, entry);
			if (!w->fn)
				want_close(w);
		}
	}
}

void records_unwant(struct record_want *w)
{
	if (!w)
		return;
	if (!w->feed->records->delivering) {
		want_close(w);
		return;
	}
	w->fn = NULL;
	w->feed->records->unwanted = true;
}

bool records_listed(const struct record_want *w)
{
	return w && w->feed->listed;
}

bool records_in_sync(const struct record_want *w)
{
	return w && w->feed->listed && !w->feed->relisting;
}

int64_t records_seen(const struct record_want *w)
{
	return w->feed->seen;
}

/* --- from outside --------------------------------------------------------------------------- */

void records_notice(struct records *r, enum store_notice notice)
{
	struct feed *f;

	if (notice != STORE_CLUSTER_CHANGED && notice != STORE_REVISION_WENT_BACK)
		return;
	LIST_FOREACH(f, &r->feeds, entry) {
		f->relisting = true;
		f->seen = 0;
	}
}

int records_put(struct records *r, const char *key, const char *text, size_t len, int64_t created)
{
	struct key parsed;
	struct record_event e = { .news = RECORD_PUT, .key = key, .parsed = &parsed };
	int rc;

	if (key_parse(key, &parsed) < 0 || !rows[parsed.kind].begins)
		return 0;
	rc = take(r, &e, text, len, created, created < 0 ? 0 : created);
	if (rc == 0)
		deliver(r, feed_of(r, key), &e);
	return rc;
}

/* --- looking -------------------------------------------------------------------------------- */

size_t records_count(const struct records *r, enum key_kind kind)
{
	return r->tables[kind].n;
}

const struct record_entry *records_at(const struct records *r, enum key_kind kind, size_t i)
{
	return &r->tables[kind].v[i];
}

const struct record_entry *records_entry(const struct records *r, enum key_kind kind,
					 const char *name)
{
	return find(&r->tables[kind], name);
}

const void *records_find(const struct records *r, enum key_kind kind, const char *name)
{
	const struct record_entry *e = find(&r->tables[kind], name);

	return e ? e->value : NULL;
}

int records_list(const struct records *r, enum key_kind kind, const void ***ret, size_t *ret_n)
{
	const struct table *t = &r->tables[kind];
	const void **v = calloc(t->n ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].value)
			v[n++] = t->v[i].value;
	*ret = v;
	*ret_n = n;
	return 0;
}

/* --- life ----------------------------------------------------------------------------------- */

int records_new(const struct records_options *options, struct records **ret)
{
	struct records *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->linger = (struct timer){ .fn = on_linger, .arg = r };
	LIST_INIT(&r->feeds);
	*ret = r;
	return 0;
}

void records_free(struct records *r)
{
	struct record_want *w;
	struct feed *f;

	if (!r)
		return;
	timer_clear(r->o.timers, &r->linger);
	while ((f = LIST_FIRST(&r->feeds))) {
		while ((w = LIST_FIRST(&f->wants))) {
			LIST_REMOVE(w, entry);
			free(w);
		}
		feed_close(f);
	}
	for (size_t k = 0; k < KEY_KINDS; k++) {
		for (size_t i = 0; i < r->tables[k].n; i++)
			entry_done(&r->tables[k].v[i]);
		array_done(&r->tables[k]);
	}
	free(r);
}
