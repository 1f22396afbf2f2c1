/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/behind.h"

#include <errno.h>
#include <search.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/store/txn.h"

struct mirrored {
	TAILQ_ENTRY(mirrored) entry;              /* in all */
	TAILQ_ENTRY(mirrored) queued;             /* in dirty, if is_dirty */
	char *want;                               /* NULL: there should be none */
	uint64_t want_hash, seen_hash, sent_hash; /* 0: none */
	int64_t revision; /* of what was seen or acknowledged last: older news is no news */
	bool is_dirty, sent;
	bool gone; /* the watch has said so; or never said anything */
	char key[];
};

TAILQ_HEAD(mirrored_list, mirrored);

struct behind {
	struct behind_config config;
	void *tree; /* tsearch, by key */
	struct mirrored_list all, dirty;
	size_t n_dirty;
	struct store_call *call;
	struct mirrored *batch[STORE_TXN_MAX];
	size_t n_batch;
	bool in_sync;
};

/* FNV-1a, never 0: tells whether etcd still holds what was written. */
static uint64_t hash(const char *text, size_t len)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * 1099511628211u;
	return h ?: 1;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct mirrored *)a)->key, ((const struct mirrored *)b)->key);
}

static int key_first(const void *a, const void *b)
{
	return strcmp(a, ((const struct mirrored *)b)->key);
}

static struct mirrored *find(const struct behind *b, const char *key)
{
	struct mirrored *const *node = tfind(key, &b->tree, key_first);

	return node ? *node : NULL;
}

static struct mirrored *find_or_add(struct behind *b, const char *key)
{
	struct mirrored *e = find(b, key);
	size_t len = strlen(key) + 1;

	if (e)
		return e;
	e = calloc(1, sizeof(*e) + len);
	if (!e)
		return NULL;
	memcpy(e->key, key, len);
	e->gone = true;
	if (!tsearch(e, &b->tree, by_key)) {
		free(e);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&b->all, e, entry);
	return e;
}

static void mirrored_free(void *arg)
{
	struct mirrored *e = arg;

	free(e->want);
	free(e);
}

/* Dirty or not, by what is known now; an entry that nobody needs any more goes. */
static void settle(struct behind *b, struct mirrored *e)
{
	bool dirty = e->want_hash != e->seen_hash;

	if (dirty && !e->is_dirty) {
		TAILQ_INSERT_TAIL(&b->dirty, e, queued);
		b->n_dirty++;
	} else if (!dirty && e->is_dirty) {
		TAILQ_REMOVE(&b->dirty, e, queued);
		b->n_dirty--;
	}
	e->is_dirty = dirty;
	/* Until the watch has caught up, the revision must be remembered. */
	if (dirty || e->want || e->sent || !e->gone)
		return;
	tdelete(e, &b->tree, by_key);
	TAILQ_REMOVE(&b->all, e, entry);
	mirrored_free(e);
}

int behind_new(const struct behind_config *config, struct behind **ret)
{
	struct behind *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->config = *config;
	TAILQ_INIT(&b->all);
	TAILQ_INIT(&b->dirty);
	*ret = b;
	return 0;
}

void behind_free(struct behind *b)
{
	if (!b)
		return;
	store_cancel(b->call);
	tdestroy(b->tree, mirrored_free);
	free(b);
}

size_t behind_pending(const struct behind *b)
{
	return b->n_dirty;
}

int behind_want(struct behind *b, const char *key, const char *value)
{
	AUTO(free) char *copy = strdup(value);
	struct mirrored *e = copy ? find_or_add(b, key) : NULL;

	if (!e)
		return -ENOMEM;
	free(e->want);
	e->want = TAKE(copy);
	e->want_hash = hash(value, strlen(value));
	settle(b, e);
	return 0;
}

void behind_drop(struct behind *b, const char *key)
{
	struct mirrored *e = find(b, key);

	if (!e)
		return;
	free(TAKE(e->want));
	e->want_hash = 0;
	settle(b, e);
}

int behind_seen(struct behind *b, const char *key, const char *value, size_t len, int64_t revision)
{
	struct mirrored *e = find_or_add(b, key);

	if (!e)
		return -ENOMEM;
	if (revision < e->revision)
		return 0;
	e->revision = revision;
	e->gone = false;
	e->seen_hash = hash(value, len);
	settle(b, e);
	return 0;
}

void behind_gone(struct behind *b, const char *key, int64_t revision)
{
	struct mirrored *e = find(b, key);

	if (!e || revision < e->revision)
		return;
	e->revision = revision;
	e->gone = true;
	e->seen_hash = 0;
	settle(b, e);
}

bool behind_told(const struct behind *b, const char *key)
{
	const struct mirrored *e = find(b, key);

	return b->in_sync && (!e || (!e->is_dirty && !e->sent));
}

void behind_restart(struct behind *b)
{
	struct mirrored *e, *next;

	b->in_sync = false;
	for (e = TAILQ_FIRST(&b->all); e; e = next) {
		next = TAILQ_NEXT(e, entry);
		e->revision = 0;
		e->seen_hash = 0;
		e->gone = true;
		settle(b, e);
	}
}

void behind_in_sync(struct behind *b, bool in_sync)
{
	b->in_sync = in_sync;
}

/* --- sending -------------------------------------------------------------------------------- */

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct behind *b = arg;
	bool written = !reply->err && reply->succeeded;

	b->call = NULL;
	for (size_t i = 0; i < b->n_batch; i++) {
		struct mirrored *e = b->batch[i];

		e->sent = false;
		/* The watch would tell the same a moment later; until then it must not look dirty.
		 */
		if (written && reply->revision >= e->revision) {
			e->revision = reply->revision;
			e->seen_hash = e->sent_hash;
			/* A delete of what never was there brings no event. */
			e->gone = e->gone && !e->sent_hash;
		}
		settle(b, e);
	}
	b->n_batch = 0;
	if (written && b->config.written)
		b->config.written(b->config.arg);
	if (written)
		behind_kick(b);
	else if (reply->err != -ECANCELED && b->config.refused)
		b->config.refused(reply, b->config.arg);
}

static int send_batch(struct behind *b, int64_t fence)
{
	struct store_op ops[STORE_TXN_MAX];
	struct mirrored *e;
	size_t n = 0;

	for (e = TAILQ_FIRST(&b->dirty); e && n < STORE_TXN_MAX; e = TAILQ_NEXT(e, queued)) {
		ops[n] = e->want ? op_put(e->key, e->want) : op_delete(e->key);
		e->sent = true;
		e->sent_hash = e->want_hash;
		b->batch[n++] = e;
	}
	b->n_batch = n;
	/* However often it is applied, the outcome is the same: the store repeats it for us. */
	return store_txn(b->config.store,
			 &(struct store_txn){ TXN_IF(if_unchanged(b->config.fence_key, fence)),
					      .success = ops, .n_success = n, .repeatable = true },
			 STORE_FOREVER, on_reply, b, &b->call);
}

void behind_kick(struct behind *b)
{
	int64_t fence = b->config.fence(b->config.arg);

	if (b->call || !b->n_dirty || !b->in_sync || !fence)
		return;
	if (send_batch(b, fence) == 0)
		return;
	for (size_t i = 0; i < b->n_batch; i++)
		b->batch[i]->sent = false;
	b->n_batch = 0;
	b->call = NULL;
}
