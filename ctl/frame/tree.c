/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/frame/tree.h"

#include <errno.h>

struct tree tree_new(void)
{
	struct tree t = { .object = json_object_new_object() };

	t.failed = !t.object;
	return t;
}

void tree_add(struct tree *t, const char *name, struct json_object *value)
{
	if (value && t->object && json_object_object_add(t->object, name, value) == 0)
		return;
	json_object_put(value);
	t->failed = true;
}

void tree_share(struct tree *t, const char *name, struct json_object *value)
{
	if (value)
		tree_add(t, name, json_object_get(value));
}

void tree_text(struct tree *t, const char *name, const char *text)
{
	tree_add(t, name, json_object_new_string(text));
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

struct json_object *tree_texts(const struct texts *texts)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < texts->n; i++)
		json_object_array_add(array, json_object_new_string(texts->v[i]));
	return array;
}

int tree_end(struct tree *t, struct json_object **ret)
{
	if (t->failed) {
		json_object_put(t->object);
		t->object = NULL;
	}
	*ret = t->object;
	t->object = NULL;
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
