/* SPDX-License-Identifier: Apache-2.0 */
/* Names: what they find in the context stack, and how messages show them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "confd/mustache/mustache_parts.h"
#include "lib/base/names.h"

static bool member(struct json_object *object, const char *name, struct json_object **ret)
{
	return json_object_is_type(object, json_type_object) &&
	       json_object_object_get_ex(object, name, ret);
}

bool mustache_find(const struct mustache_context *top, const struct mustache_node *node,
		   struct json_object **ret, uint32_t *ret_resolved)
{
	const char *part = node->name.text;
	struct json_object *value = top->value;
	uint32_t resolved = 0;

	if (node->parts > 0) {
		while (top && !member(top->value, part, &value))
			top = top->up;
		/* Only the first part is looked for in the outer contexts. */
		for (resolved = top ? 1 : 0; resolved > 0 && resolved < node->parts; resolved++) {
			part += strlen(part) + 1;
			if (!member(value, part, &value))
				break;
		}
	}
	*ret_resolved = resolved;
	if (resolved < node->parts)
		return false;
	*ret = value;
	return true;
}

/* Absent, null, false and the empty list are false; the empty text and 0 are values. */
bool mustache_is_true(struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return false;
	case json_type_boolean:
		return json_object_get_boolean(value);
	case json_type_array:
		return json_object_array_length(value) > 0;
	default:
		return true;
	}
}

/* name is not cut yet: its dots stand where the node has NULs. */
bool mustache_name_is(const struct mustache_node *node, const char *name, size_t len)
{
	if (node->name.len != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (node->name.text[i] != name[i] && (node->name.text[i] != '\0' || name[i] != '.'))
			return false;
	return true;
}

static const char *show(const char *from, size_t len, char *text)
{
	char joined[MUSTACHE_NAME_TEXT + 1];
	size_t n = len < sizeof(joined) - 1 ? len : sizeof(joined) - 1;

	_Static_assert(MUSTACHE_NAME_TEXT >= SHOW_TEXT, "text_show() writes so much");
	for (size_t i = 0; i < n; i++)
		joined[i] = from[i] ?: '.';
	joined[n] = '\0';
	return text_show(joined, text);
}

static const char *part_at(const struct mustache_node *node, uint32_t n)
{
	const char *part = node->name.text;

	while (n-- > 0)
		part += strlen(part) + 1;
	return part;
}

const char *mustache_name_show(const struct mustache_node *node, char *text)
{
	return show(node->name.text, node->name.len, text);
}

const char *mustache_parts_show(const struct mustache_node *node, uint32_t n, char *text)
{
	const char *last = part_at(node, n - 1);

	return show(node->name.text, (size_t)(last - node->name.text) + strlen(last), text);
}

const char *mustache_part_show(const struct mustache_node *node, uint32_t n, char *text)
{
	const char *part = part_at(node, n);

	return show(part, strlen(part), text);
}

int mustache_wrong(struct err *err, int code, const struct mustache_template *t, uint32_t line,
		   uint32_t column, const char *fmt, ...)
{
	char name[SHOW_TEXT];
	char sentence[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%s:%u:%u: %s", text_show(t->name, name), line, column, sentence);
}
