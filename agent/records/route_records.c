/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/records/route_records.h"

#include <errno.h>
#include <string.h>

#include "lib/model/keys.h"

/* Ten seconds: whoever lives registers again within one or two of etcd's loss. */
#define LINGER(minute) ((minute) / 6)
/*
 * Where etcd was exchanged or restored every node writes all of its own again, thousands at once,
 * and some hear of it late. What stays too long does no harm: who claims a block has it at once.
 */
#define LINGER_LOST(minute) ((minute)*10)

/* --- kinds ---------------------------------------------------------------------------------- */

#define ADAPTERS(noun)                                                                             \
	static int decode_##noun(const char *key, const char *json, size_t len, void *ret,         \
				 struct err *err)                                                  \
	{                                                                                          \
		return noun##_decode(key, json, len, ret, err);                                    \
	}                                                                                          \
	static void done_##noun(void *record)                                                      \
	{                                                                                          \
		noun##_done(record);                                                               \
	}                                                                                          \
	static bool equal_##noun(const void *a, const void *b)                                     \
	{                                                                                          \
		return noun##_equal(a, b);                                                         \
	}
ADAPTERS(peer)
ADAPTERS(filter)
ADAPTERS(node)
ADAPTERS(node_spec)
ADAPTERS(cluster_config)
ADAPTERS(pool)
ADAPTERS(extent)

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

static void done_block_place(void *record)
{
	free((char *)(uintptr_t)((struct block_place *)record)->node);
}

/* The key says which block. */
static bool equal_block_place(const void *a, const void *b)
{
	const struct block_place *x = a, *y = b;

	return strcmp(x->node, y->node) == 0 && strcmp(x->pool, y->pool) == 0;
}

struct kind {
	const char *begins; /* of the key */
	bool watched;       /* here; else the addresses' part does */
	bool lingers;       /* made again by the living: a vanished one counts on for a while */
	size_t size;
	int (*decode)(const char *key, const char *json, size_t len, void *ret, struct err *err);
	void (*done)(void *record);
	bool (*equal)(const void *a, const void *b);
};

#define KIND(text, watched, lingers, noun)                                                         \
	{                                                                                          \
		text, watched, lingers, sizeof(struct noun), decode_##noun, done_##noun,           \
			equal_##noun                                                               \
	}
static const struct kind kinds[ROUTE_KINDS] = {
	[ROUTE_PEER] = KIND(KEYS_PEER, true, false, peer),
	[ROUTE_FILTER] = KIND(KEYS_FILTER, true, false, filter),
	[ROUTE_NODE] = KIND(KEYS_NODE, true, true, node),
	[ROUTE_SPEC] = KIND(KEYS_SPEC, true, false, node_spec),
	[ROUTE_BLOCK] = KIND(KEYS_BLOCK, true, true, block_place),
	[ROUTE_CONFIG] = KIND("config", false, false, cluster_config),
	[ROUTE_POOL] = KIND(KEYS_POOL, false, false, pool),
	[ROUTE_EXTENT] = KIND(KEYS_EXTENT, false, true, extent),
};

/* --- tables --------------------------------------------------------------------------------- */

struct entry {
	char *name;
	void *record;
	uint64_t until; /* it vanished and counts no longer than that; 0: it is there */
};

struct table {
	struct route_records *owner;
	const struct kind *kind;
	struct store_watch *watch;
	unsigned wanted; /* by so many */
	bool in_sync;
	bool relisting; /* etcd was exchanged: what is missing in the new list was not deleted */
	struct entry *v;
	size_t n, room;
};

struct route_records {
	struct route_records_options o;
	struct table tables[ROUTE_KINDS];
	struct timer linger;
};

static size_t place(const struct table *t, const char *name)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(t->v[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct entry *find(const struct table *t, const char *name)
{
	size_t i = place(t, name);

	return i < t->n && strcmp(t->v[i].name, name) == 0 ? &t->v[i] : NULL;
}

static void record_free(const struct kind *kind, void *record)
{
	if (record)
		kind->done(record);
	free(record);
}

/* Takes the record. */
static int insert(struct table *t, const char *name, void *record)
{
	size_t i = place(t, name);
	char *copy = strdup(name);

	if (copy && t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 16;
		struct entry *grown = reallocarray(t->v, room, sizeof(*grown));

		if (grown) {
			t->v = grown;
			t->room = room;
		}
	}
	if (!copy || t->n == t->room) {
		free(copy);
		return -ENOMEM;
	}
	memmove(&t->v[i + 1], &t->v[i], (t->n - i) * sizeof(*t->v));
	t->v[i] = (struct entry){ .name = copy, .record = record };
	t->n++;
	return 0;
}

static void tell(const struct table *t)
{
	struct route_records *r = t->owner;

	r->o.changed((enum route_kind)(t - r->tables), r->o.arg);
}

static void drop(struct table *t, struct entry *e)
{
	free(e->name);
	record_free(t->kind, e->record);
	t->n--;
	memmove(e, e + 1, (size_t)(&t->v[t->n] - e) * sizeof(*e));
	tell(t);
}

/* --- one record ----------------------------------------------------------------------------- */

static int store_record(struct table *t, const char *name, void *record)
{
	struct entry *e = find(t, name);
	bool same;

	if (!e) {
		if (insert(t, name, record) < 0)
			return -ENOMEM;
		tell(t);
		return 0;
	}
	same = t->kind->equal(e->record, record);
	record_free(t->kind, e->record);
	*e = (struct entry){ .name = e->name, .record = record };
	if (!same)
		tell(t);
	return 0;
}

static void put(struct table *t, const char *key, const char *value, size_t len)
{
	struct route_records *r = t->owner;
	const char *name = key + strlen(t->kind->begins);
	void *record = calloc(1, t->kind->size);
	struct err err = { "" };
	int rc = record ? t->kind->decode(key, value, len, record, &err) : -ENOMEM;

	if (rc == 0) {
		rc = store_record(t, name, record);
		if (rc < 0)
			t->kind->done(record);
		else
			record = NULL;
	}
	free(record);
	if (rc == -ENOMEM)
		log_error("routing", "out of memory at %s", key);
	else if (rc < 0)
		health_set(r->o.health, key, LOG_LEVEL_ERROR, "%s%s", err.text,
			   find(t, name) ? "; what it was before stays in force" : "");
	else if (t->kind->watched)
		health_clear(r->o.health, key);
}

static void gone(struct table *t, const char *key)
{
	struct route_records *r = t->owner;
	struct entry *e = find(t, key + strlen(t->kind->begins));
	uint64_t linger = t->relisting ? LINGER_LOST(r->o.minute) : LINGER(r->o.minute);

	if (t->kind->watched)
		health_clear(r->o.health, key);
	if (!e)
		return;
	if (t->relisting && !t->kind->lingers) {
		log_warning("routing",
			    "%s vanished with etcd's data and stays in force until it is "
			    "written again",
			    key);
		return;
	}
	if (!t->kind->lingers) {
		drop(t, e);
		return;
	}
	if (r->o.vanished)
		r->o.vanished((enum route_kind)(t - r->tables), e->record, r->o.arg);
	e->until = timers_now(r->o.timers) + linger;
	/* Nodes that vanish one after the other must not keep the first ones alive. */
	if (!r->linger.set || e->until < r->linger.due)
		timer_set(r->o.timers, &r->linger, linger, linger / 10);
}

/* Those that nobody has written again. */
static void on_linger(void *arg)
{
	struct route_records *r = arg;
	uint64_t now = timers_now(r->o.timers), next = 0;

	for (size_t k = 0; k < ROUTE_KINDS; k++)
		for (size_t i = r->tables[k].n; i > 0; i--) {
			struct entry *e = &r->tables[k].v[i - 1];

			if (e->until && e->until <= now)
				drop(&r->tables[k], e);
			else if (e->until && (!next || e->until < next))
				next = e->until;
		}
	if (next)
		timer_set(r->o.timers, &r->linger, next - now, (next - now) / 10);
}

/* --- where they come from ------------------------------------------------------------------- */

static void on_put(const struct store_kv *kv, void *arg)
{
	struct table *t = arg;
	const char *key = kv->key + strlen(t->owner->o.prefix);
	struct key parsed;

	if (key_parse(key, &parsed) == 0)
		put(t, key, kv->value, kv->value_len);
}

static void on_deleted(const char *full, int64_t revision, void *arg)
{
	struct table *t = arg;

	gone(t, full + strlen(t->owner->o.prefix));
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct table *t = arg;

	t->in_sync = true;
	t->relisting = false;
	tell(t);
}

static int watch(struct route_records *r, struct table *t)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	char key[KEY_FULL_TEXT];
	AUTO(free) char *end = NULL;
	int rc = key_full(r->o.prefix, t->kind->begins, key);

	if (rc < 0)
		return rc;
	end = store_prefix_end(key);
	return end ? store_watch(r->o.store, key, end, &handlers, t, &t->watch) : -ENOMEM;
}

static void empty(struct table *t)
{
	store_unwatch(TAKE(t->watch));
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].name);
		record_free(t->kind, t->v[i].record);
	}
	free(TAKE(t->v));
	t->n = t->room = 0;
	t->in_sync = false;
}

int route_records_want(struct route_records *r, enum route_kind kind, bool wanted)
{
	struct table *t = &r->tables[kind];

	int rc = wanted && !t->wanted ? watch(r, t) : 0;

	if (rc < 0)
		return rc;
	t->wanted += wanted ? 1 : -1U;
	if (t->wanted)
		return 0;
	empty(t);
	/* The second time nothing is fresh any more. */
	health_sweep(r->o.health, t->kind->begins);
	health_sweep(r->o.health, t->kind->begins);
	tell(t);
	return 0;
}

void route_records_take(struct route_records *r, const char *key, const char *value, size_t len)
{
	for (size_t k = 0; k < ROUTE_KINDS; k++) {
		struct table *t = &r->tables[k];

		if (t->kind->watched || strncmp(key, t->kind->begins, strlen(t->kind->begins)) != 0)
			continue;
		if (value)
			put(t, key, value, len);
		else
			gone(t, key);
	}
}

void route_records_notice(struct route_records *r, enum store_notice notice)
{
	if (notice == STORE_TROUBLE)
		return;
	/* The watches here say for themselves when their list is complete. */
	for (size_t k = 0; k < ROUTE_KINDS; k++)
		if (notice != STORE_WATCHING || !r->tables[k].kind->watched)
			r->tables[k].relisting = notice != STORE_WATCHING;
}

bool route_records_synced(const struct route_records *r, enum route_kind kind)
{
	return r->tables[kind].in_sync;
}

/* --- looking -------------------------------------------------------------------------------- */

size_t route_records_count(const struct route_records *r, enum route_kind kind)
{
	return r->tables[kind].n;
}

const void *route_record(const struct route_records *r, enum route_kind kind, size_t i)
{
	return r->tables[kind].v[i].record;
}

const void *route_record_find(const struct route_records *r, enum route_kind kind, const char *name)
{
	const struct entry *e = find(&r->tables[kind], name);

	return e ? e->record : NULL;
}

/* --- life ----------------------------------------------------------------------------------- */

int route_records_new(const struct route_records_options *options, struct route_records **ret)
{
	AUTO(route_records_free) struct route_records *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->linger = (struct timer){ .fn = on_linger, .arg = r };
	for (size_t k = 0; k < ROUTE_KINDS; k++)
		r->tables[k] = (struct table){ .owner = r, .kind = &kinds[k] };
	*ret = TAKE(r);
	return 0;
}

void route_records_free(struct route_records *r)
{
	if (!r)
		return;
	timer_clear(r->o.timers, &r->linger);
	for (size_t k = 0; k < ROUTE_KINDS; k++)
		empty(&r->tables[k]);
	free(r);
}
