/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the bytes knows just strings and brackets; whether it is JSON is decided by
 * json-c, for the envelope and for each item. Every byte goes to one of the two but for the commas
 * between items.
 */
#include "controller/kube/kube_list.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/json/json_stream.h"

#define MAX_ENVELOPE (256 * 1024)
#define MAX_DEPTH    64

enum place {
	ENVELOPE,
	ITEMS, /* in the array, between two items */
	ITEM,
};

struct kube_list {
	struct json_stream *items;
	kube_item_fn *fn;
	void *arg;
	int from_fn;
	int failed;
	enum place place;
	unsigned depth; /* of brackets, from the outermost */
	bool in_string, escaped;
	bool item_may_come, item_must_come;
	bool items_seen;
	/* The last string of the outermost object: a member's name, when a value follows. */
	char name[8];
	size_t name_len;
	char *envelope;
	size_t len, room;
};

static int on_item(struct json_object *item, void *arg)
{
	struct kube_list *l = arg;

	l->from_fn = l->fn(item, l->arg);
	return l->from_fn;
}

int kube_list_new(size_t max_item, kube_item_fn *fn, void *arg, struct kube_list **ret)
{
	AUTO(kube_list_free) struct kube_list *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->fn = fn;
	l->arg = arg;
	r = json_stream_new_deep(max_item, MAX_DEPTH, on_item, l, &l->items);
	if (r < 0)
		return r;
	*ret = TAKE(l);
	return 0;
}

void kube_list_free(struct kube_list *l)
{
	if (!l)
		return;
	json_stream_free(l->items);
	free(l->envelope);
	free(l);
}

static int keep(struct kube_list *l, char c, struct err *err)
{
	if (l->len == l->room) {
		size_t room = l->room ? l->room * 2 : 1024;
		char *grown = l->room < MAX_ENVELOPE ? realloc(l->envelope, room) : NULL;

		if (l->room >= MAX_ENVELOPE)
			return err_set(err, -EMSGSIZE,
				       "more than %d bytes beside the items of the list",
				       MAX_ENVELOPE);
		if (!grown)
			return err_set(err, -ENOMEM, "out of memory");
		l->envelope = grown;
		l->room = room;
	}
	l->envelope[l->len++] = c;
	return 0;
}

/* Strings and brackets, wherever they stand. True: the byte is a bracket, outside of strings. */
static bool follow(struct kube_list *l, char c)
{
	if (l->in_string) {
		if (l->escaped)
			l->escaped = false;
		else if (c == '\\')
			l->escaped = true;
		else if (c == '"')
			l->in_string = false;
		return false;
	}
	if (c == '"') {
		l->in_string = true;
		return false;
	}
	if (c == '{' || c == '[') {
		l->depth++;
		return true;
	}
	if (c == '}' || c == ']') {
		l->depth -= l->depth > 0;
		return true;
	}
	return false;
}

static int in_envelope(struct kube_list *l, char c, struct err *err)
{
	bool was_string = l->in_string;
	bool bracket = follow(l, c);

	if (l->depth == 1 && !was_string && l->in_string)
		l->name_len = 0;
	else if (l->depth == 1 && l->in_string && l->name_len < sizeof(l->name))
		l->name[l->name_len++] = c;
	if (bracket && c == '[' && l->depth == 2 && l->name_len == 5 &&
	    memcmp(l->name, "items", 5) == 0) {
		/* Of equal names the last would win: what was told already cannot be taken back. */
		if (l->items_seen)
			return err_set(err, -EBADMSG, "the list has its items twice");
		l->items_seen = true;
		l->place = ITEMS;
		l->item_may_come = true;
		l->item_must_come = false;
	}
	return keep(l, c, err);
}

static int between_items(struct kube_list *l, char c, struct err *err)
{
	if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
		return 0;
	if (c == ']' && !l->item_must_come) {
		l->depth--;
		l->place = ENVELOPE;
		return keep(l, c, err);
	}
	if (c == ',' && !l->item_may_come) {
		l->item_may_come = l->item_must_come = true;
		return 0;
	}
	if (c == '{' && l->item_may_come) {
		l->item_may_come = l->item_must_come = false;
		l->depth++;
		l->place = ITEM;
		return 0;
	}
	return err_set(err, -EBADMSG, "not JSON: byte 0x%02x between the items of the list",
		       (unsigned char)c);
}

/* How many bytes from here belong to the item under way. */
static size_t item_bytes(struct kube_list *l, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (follow(l, data[i]) && l->depth == 2) {
			l->place = ITEMS;
			return i + 1;
		}
	}
	return n;
}

static int feed_item(struct kube_list *l, const char *data, size_t n, struct err *err)
{
	int r = json_stream_feed(l->items, data, n, err);

	/* Brackets that close what they did not open: json-c sees that, we do not. */
	if (r == 0 && l->place == ITEMS)
		r = json_stream_end(l->items, err);
	if (r < 0 && !l->from_fn)
		err_wrap(err, r, "an item of the list");
	return r;
}

static int feed(struct kube_list *l, const char *data, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		if (l->place == ENVELOPE) {
			r = in_envelope(l, data[i], err);
			continue;
		}
		if (l->place == ITEMS) {
			r = between_items(l, data[i], err);
			if (l->place == ITEM && r == 0)
				r = feed_item(l, &data[i], 1, err);
			continue;
		}
		size_t some = item_bytes(l, data + i, n - i);

		r = feed_item(l, data + i, some, err);
		i += some - 1;
	}
	return r;
}

int kube_list_feed(struct kube_list *l, const char *data, size_t n, struct err *err)
{
	if (l->failed)
		return err_set(err, l->failed, "the list failed before");
	l->failed = feed(l, data, n, err);
	return l->failed;
}

int kube_list_end(struct kube_list *l, struct json_object **ret, struct err *err)
{
	if (l->failed)
		return err_set(err, l->failed, "the list failed before");
	if (l->place != ENVELOPE)
		return err_set(err, -EBADMSG, "cut off within the items of a list");
	return json_stream_single(MAX_ENVELOPE, l->envelope ?: "", l->len, ret, err);
}
