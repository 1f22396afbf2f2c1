/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "lib/base/names.h"
#include "lib/json/json_feed.h"

AUTO_DEFINE(struct json_tokener *, json_tokener_free)

static bool only_blanks(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr(" \t\r\n", text[i]))
			return false;
	return true;
}

int json_parse_large(const char *text, size_t len, size_t max, struct json_object **ret,
		     struct err *err)
{
	AUTO(json_tokener_free) struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH_MAX);
	AUTO(json_put) struct json_object *object = NULL;
	enum json_tokener_error why;
	size_t end;

	if (!tok)
		return err_set(err, -ENOMEM, "out of memory");
	if (len > max)
		return err_set(err, -E2BIG, "%zu bytes of JSON are more than %zu", len, max);

	object = json_feed(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8, text, len, &end);
	why = json_tokener_get_error(tok);
	if (why == json_tokener_continue)
		return err_set(err, -EINVAL, "not a whole JSON object: ends at byte %zu", len);
	if (why != json_tokener_success)
		return err_set(err, -EINVAL, "not valid JSON at byte %zu: %s", end + 1,
			       json_tokener_error_desc(why));
	/* json-c takes a NUL for the end and would not look at what follows it. */
	if (!only_blanks(text + end, len - end))
		return err_set(err, -EINVAL, "not valid JSON at byte %zu: more than one value",
			       end + 1);
	if (!json_object_is_type(object, json_type_object))
		return err_set(err, -EINVAL, "not a JSON object");

	*ret = TAKE(object);
	return 0;
}

int json_parse(const char *text, size_t len, struct json_object **ret, struct err *err)
{
	return json_parse_large(text, len, JSON_SIZE_MAX, ret, err);
}

int json_print(struct json_object *object, char **ret)
{
	const char *text = json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	char *copy = text ? strdup(text) : NULL;

	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

/* --- places --------------------------------------------------------------------------------- */

struct json_at json_root(struct json_object *object, struct err *err)
{
	return (struct json_at){ .value = object, .err = err };
}

struct json_at json_member(const struct json_at *object, const char *name)
{
	struct json_at at = {
		.up = object, .name = name, .as_go = object->as_go, .err = object->err
	};

	if (!json_object_is_type(object->value, json_type_object))
		return at;
	if (!at.as_go) {
		json_object_object_get_ex(object->value, name, &at.value);
		return at;
	}
	json_object_object_foreach(object->value, key, value)
		if (strcasecmp(key, name) == 0)
			at.value = value;
	return at;
}

struct json_at json_need(const struct json_at *object, const char *name)
{
	struct json_at at = json_member(object, name);

	at.required = true;
	return at;
}

/* An element that is null is not absent: leaving it out would renumber the others. */
struct json_at json_element(const struct json_at *array, size_t i)
{
	return (struct json_at){ .value = json_object_array_get_idx(array->value, i),
				 .up = array,
				 .index = i,
				 .required = true,
				 .as_go = array->as_go,
				 .err = array->err };
}

/* "routes[1].dst" into text; returns how far it got. */
static size_t print_path(const struct json_at *at, char *text, size_t room)
{
	size_t n = at->up ? print_path(at->up, text, room) : 0;
	char shown[SHOW_TEXT];
	int more = 0;

	/* A label's name is as much a stranger's text as a value is. */
	if (at->name)
		more = snprintf(text + n, room - n, "%s%s", n ? "." : "",
				text_show(at->name, shown));
	else if (at->up)
		more = snprintf(text + n, room - n, "[%zu]", at->index);
	if (more > 0)
		n = n + (size_t)more < room ? n + (size_t)more : room - 1;
	return n;
}

/* The value as JSON, short and safe for a terminal. */
static const char *show(struct json_object *value, char *text)
{
	const char *json = json_object_to_json_string_ext(
		value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	return text_show(json ?: "?", text);
}

PRINTF_LIKE(3, 0)
static int wrong(const struct json_at *at, const char *value, const char *fmt, va_list ap)
{
	char path[128] = "", sentence[256];

	print_path(at, path, sizeof(path));
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	if (!path[0])
		return err_set(at->err, -EINVAL, "%s%s%s", value, *value ? " " : "", sentence);
	return err_set(at->err, -EINVAL, "field \"%s\": %s%s%s", path, value, *value ? " " : "",
		       sentence);
}

int json_wrong(struct json_at at, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = wrong(&at, "", fmt, ap);
	va_end(ap);
	return r;
}

int json_refuse(struct json_at at, const char *fmt, ...)
{
	char value[SHOW_TEXT];
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = wrong(&at, show(at.value, value), fmt, ap);
	va_end(ap);
	return r;
}
