/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_entries.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"

struct static_entry *static_find(const struct static_entries *t, const char *name)
{
	struct static_entry **e = array_find(t->v, t->n, x, strcmp((*x)->name, name));

	return e ? *e : NULL;
}

static void head_free(struct static_route_head *h)
{
	if (h)
		static_route_head_done(h);
	free(h);
}

static void entry_free(struct static_entry *e)
{
	record_drop(e->good);
	record_drop(e->now);
	head_free(e->head);
	free(e->broken);
	free(e->why);
	free(e->status);
	free(e->state);
	free(e->written);
	free(e->name);
	free(e);
}

void static_entries_done(struct static_entries *t)
{
	for (size_t i = 0; i < t->n; i++)
		entry_free(t->v[i]);
	array_done(t);
}

static struct static_entry *add(struct static_entries *t, const char *name)
{
	size_t i = array_place(t->v, t->n, x, strcmp((*x)->name, name));
	struct static_entry *e = calloc(1, sizeof(*e)), **at;

	if (!e)
		return NULL;
	e->name = strdup(name);
	at = e->name ? array_insert(t, i) : NULL;
	if (!at) {
		entry_free(e);
		return NULL;
	}
	*at = e;
	return e;
}

void static_drop(struct static_entries *t, struct static_entry *e)
{
	size_t i = array_place(t->v, t->n, x, strcmp((*x)->name, e->name));

	array_remove(t, i);
	entry_free(e);
}

/* What can be read of a record that makes no sense, and why it makes none. */
static int take_broken(struct static_entry *e, const char *key, const struct store_kv *kv,
		       const char *why)
{
	struct static_route_head *head = calloc(1, sizeof(*head));

	e->broken = strdup(why);
	if (!head || !e->broken) {
		free(head);
		return -ENOMEM;
	}
	if (static_route_head_decode(key, kv->value, kv->value_len, head, NULL) == 0)
		e->head = head;
	else
		free(head);
	return 0;
}

int static_take(struct static_entries *t, const char *key, const struct store_kv *kv,
		const struct record_entry *record, struct static_entry **ret)
{
	struct static_entry *e = static_find(t, record->name) ?: add(t, record->name);

	if (!e)
		return -ENOMEM;
	e->life = STATIC_LIVES;
	/* A new word about it: whoever only watched it being taken away puts it there once more. */
	if (e->mod_revision != kv->mod_revision)
		e->away = false;
	e->create_revision = kv->create_revision;
	e->mod_revision = kv->mod_revision;
	*ret = e;
	record_drop(TAKE(e->now));
	head_free(TAKE(e->head));
	free(TAKE(e->broken));
	if (record->wrong)
		return take_broken(e, key, kv, record->wrong);
	e->now = record_keep(record->value);
	return 0;
}

bool static_is_deleting(const struct static_entry *e)
{
	return e->life == STATIC_GONE || (e->now && e->now->deleting[0]) ||
	       (e->head && e->head->deleting[0]);
}

const struct selector *static_selector(const struct static_entry *e)
{
	if (e->now)
		return e->now->node_selector.parsed;
	return e->head && e->head->selector_known ? e->head->node_selector.parsed : NULL;
}
