/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_entries.h"

#include <errno.h>
#include <string.h>

static size_t place(const struct static_entries *t, const char *name)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(t->v[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct static_entry *static_find(const struct static_entries *t, const char *name)
{
	size_t i = place(t, name);

	return i < t->n && strcmp(t->v[i]->name, name) == 0 ? t->v[i] : NULL;
}

static void route_free(struct static_route *r)
{
	if (r)
		static_route_done(r);
	free(r);
}

static void head_free(struct static_route_head *h)
{
	if (h)
		static_route_head_done(h);
	free(h);
}

static void entry_free(struct static_entry *e)
{
	if (e->good != e->now)
		route_free(e->good);
	route_free(e->now);
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
	free(t->v);
	*t = (struct static_entries){ 0 };
}

static struct static_entry *add(struct static_entries *t, const char *name)
{
	struct static_entry *e = calloc(1, sizeof(*e));
	size_t i = place(t, name);

	if (e)
		e->name = strdup(name);
	if (e && e->name && t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 16;
		struct static_entry **grown = reallocarray(t->v, room, sizeof(*grown));

		if (grown) {
			t->v = grown;
			t->room = room;
		}
	}
	if (!e || !e->name || t->n == t->room) {
		if (e)
			entry_free(e);
		return NULL;
	}
	memmove(&t->v[i + 1], &t->v[i], (t->n - i) * sizeof(struct static_entry *));
	t->v[i] = e;
	t->n++;
	return e;
}

void static_drop(struct static_entries *t, struct static_entry *e)
{
	size_t i = place(t, e->name);

	t->n--;
	memmove(&t->v[i], &t->v[i + 1], (t->n - i) * sizeof(struct static_entry *));
	entry_free(e);
}

/* What is not now any more: gone, unless it still is what could be applied last. */
static void forget_now(struct static_entry *e)
{
	if (e->now != e->good)
		route_free(e->now);
	e->now = NULL;
	head_free(TAKE(e->head));
	free(TAKE(e->broken));
}

static int take_broken(struct static_entry *e, const char *key, const struct store_kv *kv,
		       const struct err *why)
{
	struct static_route_head *head = calloc(1, sizeof(*head));
	char *text = strdup(why->text);

	if (!head || !text) {
		free(head);
		free(text);
		return -ENOMEM;
	}
	forget_now(e);
	e->broken = text;
	if (static_route_head_decode(key, kv->value, kv->value_len, head, NULL) == 0)
		e->head = head;
	else
		free(head);
	return 0;
}

int static_take(struct static_entries *t, const char *key, const struct store_kv *kv,
		struct static_entry **ret)
{
	const char *name = key + strlen(KEYS_STATIC_ROUTE);
	struct static_route *fresh = calloc(1, sizeof(*fresh));
	struct static_entry *e = static_find(t, name) ?: add(t, name);
	struct err why = { "" };
	int r = fresh && e ? static_route_decode(key, kv->value, kv->value_len, fresh, &why)
			   : -ENOMEM;

	if (r == -ENOMEM) {
		free(fresh);
		return r;
	}
	e->life = STATIC_LIVES;
	/* A new word about it: whoever only watched it being taken away puts it there once more. */
	if (e->mod_revision != kv->mod_revision)
		e->away = false;
	e->create_revision = kv->create_revision;
	e->mod_revision = kv->mod_revision;
	*ret = e;
	if (r < 0) {
		free(fresh);
		return take_broken(e, key, kv, &why);
	}
	forget_now(e);
	e->now = fresh;
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
