/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/json_tree.h"

void json_tree_put(struct json_tree *t, struct json_object *object, const char *key,
		   struct json_object *value)
{
	const unsigned plain_key = JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT;

	if (value && object && json_object_object_add_ex(object, key, value, plain_key) == 0)
		return;
	json_object_put(value);
	t->failed = true;
}

void json_tree_text(struct json_tree *t, struct json_object *object, const char *key,
		    const char *text)
{
	json_tree_put(t, object, key, json_object_new_string(text));
}

void json_tree_number(struct json_tree *t, struct json_object *object, const char *key,
		      uint32_t number)
{
	json_tree_put(t, object, key, json_object_new_int64(number));
}

void json_tree_flag(struct json_tree *t, struct json_object *object, const char *key, bool flag)
{
	json_tree_put(t, object, key, json_object_new_boolean(flag));
}

void json_tree_address(struct json_tree *t, struct json_object *object, const char *key,
		       const struct address *a)
{
	char text[ADDRESS_TEXT];

	json_tree_text(t, object, key, address_print(a, text));
}

struct json_object *json_tree_object(struct json_tree *t, struct json_object *object,
				     const char *key, bool there)
{
	struct json_object *inner = there ? json_object_new_object() : NULL;

	if (!there)
		json_tree_flag(t, object, key, false);
	else
		json_tree_put(t, object, key, inner);
	return t->failed ? NULL : inner;
}

void json_tree_one(struct json_tree *t, struct json_object *object, const char *key, bool there,
		   const char *inner, uint32_t number)
{
	struct json_object *o = json_tree_object(t, object, key, there);

	if (o)
		json_tree_number(t, o, inner, number);
}

struct json_object *json_tree_list(struct json_tree *t, struct json_object *object, const char *key)
{
	struct json_object *list = json_object_new_array();

	json_tree_put(t, object, key, list);
	return t->failed ? NULL : list;
}

void json_tree_append(struct json_tree *t, struct json_object *list, struct json_object *value)
{
	if (value && list && json_object_array_add(list, value) == 0)
		return;
	json_object_put(value);
	t->failed = true;
}

struct json_object *json_tree_append_object(struct json_tree *t, struct json_object *list)
{
	struct json_object *o = json_object_new_object();

	json_tree_append(t, list, o);
	return t->failed ? NULL : o;
}

void json_tree_text_or(struct json_tree *t, struct json_object *object, const char *key,
		       const char *text)
{
	if (text && text[0])
		json_tree_text(t, object, key, text);
	else
		json_tree_flag(t, object, key, false);
}
