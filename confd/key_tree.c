/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/key_tree.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdbool.h>
#include <string.h>

#include "lib/json/json_feed.h"

AUTO_DEFINE(struct json_tokener *, json_tokener_free)

/* --- keys and values ------------------------------------------------------------------------ */

struct pair {
	char *key;
	struct json_object *value;
};
struct key_tree {
	void *root;
	size_t n;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static void pair_free(void *pair)
{
	struct pair *e = pair;

	if (!e)
		return;
	json_object_put(e->value);
	free(e->key);
	free(e);
}
AUTO_DEFINE(struct pair *, pair_free)

int key_tree_new(struct key_tree **ret)
{
	struct key_tree *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*ret = t;
	return 0;
}

void key_tree_free(struct key_tree *t)
{
	if (!t)
		return;
	tdestroy(t->root, pair_free);
	free(t);
}

size_t key_tree_count(const struct key_tree *t)
{
	return t->n;
}

/* --- what a value means --------------------------------------------------------------------- */

static bool only_blanks(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr(" \t\r\n", text[i]))
			return false;
	return true;
}

/* json-c cuts numbers to their type: only what survives is one. */
static bool stays(struct json_object *number, const char *text, size_t len)
{
	const char *printed = json_object_to_json_string_ext(number, JSON_C_TO_STRING_PLAIN);

	return printed && strlen(printed) == len && memcmp(printed, text, len) == 0;
}

static bool is_wanted(struct json_object *value, const char *text, size_t len)
{
	switch (json_object_get_type(value)) {
	case json_type_object:
	case json_type_array:
	case json_type_boolean:
		return true;
	case json_type_int:
	case json_type_double:
		return stays(value, text, len);
	case json_type_null:
	case json_type_string:
		break;
	}
	return false;
}

/* NULL: it is a text, or there is no memory, which the text then runs into as well. */
static struct json_object *parse(const char *text, size_t len)
{
	AUTO(json_tokener_free) struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH_MAX);
	AUTO(json_put) struct json_object *value = NULL;
	size_t end;

	if (!tok)
		return NULL;
	value = json_feed(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8, text, len, &end);
	/* A number might go on: only a byte behind it tells that it does not. */
	if (json_tokener_get_error(tok) == json_tokener_continue) {
		value = json_tokener_parse_ex(tok, "", 1);
		end = len;
	}
	if (json_tokener_get_error(tok) != json_tokener_success ||
	    !only_blanks(text + end, len - end) || !is_wanted(value, text, len))
		return NULL;
	return TAKE(value);
}

static struct json_object *read_value(const char *text, size_t len)
{
	static const char starts[] = "{[-0123456789tf \t\r\n";
	struct json_object *value = NULL;

	if (len > INT_MAX - 1)
		return NULL;
	if (len && text[0] && strchr(starts, text[0]))
		value = parse(text, len);
	return value ?: json_object_new_string_len(text, (int)len);
}

int key_tree_put(struct key_tree *t, const char *key, const char *value, size_t len)
{
	AUTO(pair_free) struct pair *e = calloc(1, sizeof(*e));
	struct pair **at;

	if (!e)
		return -ENOMEM;
	e->key = strdup(key);
	e->value = read_value(value, len);
	if (!e->key || !e->value)
		return -ENOMEM;
	at = tsearch(e, &t->root, by_key);
	if (!at)
		return -ENOMEM;
	if (*at == e) {
		t->n++;
	} else {
		pair_free(*at);
		*at = e;
	}
	e = NULL;
	return 0;
}

void key_tree_remove(struct key_tree *t, const char *key)
{
	struct pair wanted = { .key = (char *)(uintptr_t)key };
	struct pair **at = tfind(&wanted, &t->root, by_key), *found = at ? *at : NULL;

	if (!found)
		return;
	tdelete(found, &t->root, by_key);
	pair_free(found);
	t->n--;
}

static const struct pair *find(const struct key_tree *t, const char *key)
{
	struct pair wanted = { .key = (char *)(uintptr_t)key };
	struct pair *const *at = tfind(&wanted, &t->root, by_key);

	return at ? *at : NULL;
}

bool key_tree_holds(const struct key_tree *t, const char *key, const char *value, size_t len)
{
	const struct pair *e = find(t, key);
	AUTO(json_put) struct json_object *other = e ? read_value(value, len) : NULL;

	return other && json_object_equal(e->value, other);
}

int key_tree_copy(struct key_tree *to, const struct key_tree *from, const char *key)
{
	const struct pair *e = find(from, key);
	struct pair *copy;

	if (!e || find(to, key))
		return 0;
	copy = calloc(1, sizeof(*copy));
	if (copy)
		copy->key = strdup(key);
	if (!copy || !copy->key || !tsearch(copy, &to->root, by_key)) {
		pair_free(copy);
		return -ENOMEM;
	}
	/* Values are never changed in place. */
	copy->value = json_object_get(e->value);
	to->n++;
	return 0;
}

const char *key_tree_any(const struct key_tree *t)
{
	return t->root ? (*(struct pair *const *)t->root)->key : NULL;
}

/* --- the tree ------------------------------------------------------------------------------- */

/* Tells folders from values that are objects. */
static char folder_mark;

static bool is_folder(struct json_object *o)
{
	return o && json_object_is_type(o, json_type_object) &&
	       json_object_get_userdata(o) == &folder_mark;
}

static struct json_object *folder_new(void)
{
	struct json_object *o = json_object_new_object();

	if (o)
		json_object_set_userdata(o, &folder_mark, NULL);
	return o;
}

/* Takes value over, also on failure. */
static int add(struct json_object *object, const char *name, struct json_object *value)
{
	if (value && json_object_object_add(object, name, value) == 0)
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

/* The folder of this name, made if absent, put around the value if there is one. */
static int enter(struct json_object *in, const char *name, struct json_object **ret)
{
	AUTO(json_put) struct json_object *fresh = NULL;
	struct json_object *there = NULL;
	int r;

	if (json_object_object_get_ex(in, name, &there) && is_folder(there)) {
		*ret = there;
		return 0;
	}
	fresh = folder_new();
	if (!fresh)
		return -ENOMEM;
	if (there && add(fresh, "@value", json_object_get(there)) < 0)
		return -ENOMEM;
	*ret = fresh;
	r = add(in, name, fresh);
	fresh = NULL;
	return r;
}

static int place(struct json_object *root, const char *path, struct json_object *value)
{
	AUTO(free) char *copy = strdup(path);
	struct json_object *in = root, *there = NULL;
	char *name = copy, *slash;
	int r;

	if (!copy)
		return -ENOMEM;
	for (unsigned depth = 1; depth < TREE_DEPTH_MAX && (slash = strchr(name, '/')); depth++) {
		*slash = '\0';
		r = enter(in, name, &in);
		if (r < 0)
			return r;
		name = slash + 1;
	}
	if (json_object_object_get_ex(in, name, &there) && is_folder(there))
		return add(there, "@value", json_object_get(value));
	return add(in, name, json_object_get(value));
}

/* A member as an element of @list; objects are shared, not copied. */
static struct json_object *as_element(struct json_object *member)
{
	struct json_object *o;

	if (json_object_is_type(member, json_type_object))
		return json_object_get(member);
	o = json_object_new_object();
	if (o && add(o, "@value", json_object_get(member)) < 0) {
		json_object_put(o);
		return NULL;
	}
	return o;
}

static int append(struct json_object *list, const char *name, struct json_object *member)
{
	struct json_object *o = as_element(member);

	if (!o || json_object_array_add(list, o) < 0) {
		json_object_put(o);
		return -ENOMEM;
	}
	return add(o, "@name", json_object_new_string(name));
}

static int mark_last(struct json_object *list)
{
	size_t n = json_object_array_length(list);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = add(json_object_array_get_idx(list, i), "@last",
			json_object_new_boolean(i + 1 == n));
	return r;
}

static int add_lists(struct json_object *folder)
{
	AUTO(json_put) struct json_object *list = json_object_new_array();
	int r = list ? 0 : -ENOMEM;

	json_object_object_foreach(folder, name, member) {
		if (strcmp(name, "@value") == 0 || strcmp(name, "@list") == 0)
			continue;
		r = r ?: is_folder(member) ? add_lists(member) : 0;
		r = r ?: append(list, name, member);
	}
	r = r ?: mark_last(list);
	return r ?: add(folder, "@list", TAKE(list));
}

struct walk {
	const char *prefix;
	struct json_object *root;
	int r;
};

/* Values are copied: what is added to them must not pile up in ours. */
static void visit(const void *node, VISIT which, void *arg)
{
	const struct pair *e = *(struct pair *const *)node;
	AUTO(json_put) struct json_object *copy = NULL;
	struct walk *w = arg;
	size_t n = strlen(w->prefix);

	if ((which != postorder && which != leaf) || w->r < 0 || strncmp(e->key, w->prefix, n) != 0)
		return;
	w->r = json_object_deep_copy(e->value, &copy, NULL) < 0 ? -ENOMEM : 0;
	w->r = w->r ?: place(w->root, e->key + n, copy);
}

int key_tree_json(const struct key_tree *t, const char *prefix, struct json_object **ret)
{
	AUTO(json_put) struct json_object *root = folder_new();
	struct walk w = { prefix, root, root ? 0 : -ENOMEM };
	int r;

	twalk_r(t->root, visit, &w);
	r = w.r < 0 ? w.r : add_lists(root);
	if (r < 0)
		return r;
	*ret = TAKE(root);
	return 0;
}
