/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct tree tree_new(void)
{
	struct tree t = { .object = json_object_new_object() };

	t.failed = !t.object;
	return t;
}

void tree_add(struct tree *t, const char *name, struct json_object *value)
{
	int r = -1;

	if (value && t->object && json_object_is_type(t->object, json_type_array))
		r = json_object_array_add(t->object, value);
	else if (value && t->object && name)
		r = json_object_object_add_ex(t->object, name, value,
					      t->literal_names
						      ? JSON_C_OBJECT_ADD_KEY_IS_NEW |
								JSON_C_OBJECT_KEY_IS_CONSTANT
						      : 0);
	if (r == 0)
		return;
	json_object_put(value);
	t->failed = true;
}

/* What could not be made is open all the same, so that every tree_close() has its own. */
void tree_open(struct tree *t, const char *name, char bracket)
{
	struct json_object *inner = bracket == '[' ? json_object_new_array()
						   : json_object_new_object();
	bool made = !t->failed && t->depth < JSON_DEPTH_MAX;

	if (made)
		tree_add(t, name, inner);
	else
		json_object_put(inner);
	if (t->depth < JSON_DEPTH_MAX)
		t->outer[t->depth] = t->object;
	t->depth++;
	t->failed = t->failed || !made;
	t->object = t->failed ? NULL : inner;
}

void tree_close(struct tree *t)
{
	t->depth--;
	if (t->depth < JSON_DEPTH_MAX)
		t->object = t->outer[t->depth];
}

void tree_share(struct tree *t, const char *name, struct json_object *value)
{
	if (value)
		tree_add(t, name, json_object_get(value));
}

void tree_text(struct tree *t, const char *name, const char *text)
{
	tree_add(t, name, json_object_new_string(text ?: ""));
}

void tree_printf(struct tree *t, const char *name, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	tree_add(t, name, text ? json_object_new_string(text) : NULL);
	free(text);
}

void tree_some_text(struct tree *t, const char *name, const char *text)
{
	if (text && *text)
		tree_text(t, name, text);
}

void tree_number(struct tree *t, const char *name, int64_t number)
{
	tree_add(t, name, json_object_new_int64(number));
}

void tree_bool(struct tree *t, const char *name, bool value)
{
	tree_add(t, name, json_object_new_boolean(value));
}

void tree_prefix(struct tree *t, const char *name, const struct prefix *p)
{
	char text[PREFIX_TEXT];

	if (p->address.family)
		tree_text(t, name, prefix_print(p, text));
}

void tree_address(struct tree *t, const char *name, const struct address *a)
{
	char text[ADDRESS_TEXT];

	if (a->family)
		tree_text(t, name, address_print(a, text));
}

void tree_merge(struct json_object *object, struct json_object *from)
{
	json_object_object_foreach(from, name, value)
		json_object_object_add(object, name, json_object_get(value));
}

void tree_texts(struct tree *t, const char *name, const struct texts *texts)
{
	tree_open(t, name, '[');
	for (size_t i = 0; i < texts->n; i++)
		tree_text(t, NULL, texts->v[i]);
	tree_close(t);
}

int tree_end(struct tree *t, struct json_object **ret)
{
	while (t->depth)
		tree_close(t);
	if (t->failed) {
		json_object_put(t->object);
		t->object = NULL;
	}
	*ret = TAKE(t->object);
	return t->failed ? -ENOMEM : 0;
}

int tree_end_in(struct tree *t, struct json_object *array)
{
	struct json_object *object;
	int r = tree_end(t, &object);

	if (r == 0 && json_object_array_add(array, object) < 0) {
		json_object_put(object);
		r = -ENOMEM;
	}
	return r;
}

int tree_end_text(struct tree *t, char **ret)
{
	AUTO(json_put) struct json_object *object = NULL;
	int r = tree_end(t, &object);

	return r ?: json_print(object, ret);
}
