/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json.h"

#include <errno.h>
#include <inttypes.h>
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

static const char *type_noun(enum json_type type)
{
	switch (type) {
	case json_type_null:
		return "null";
	case json_type_boolean:
		return "true or false";
	case json_type_double:
		return "a fraction";
	case json_type_int:
		return "an integer";
	case json_type_object:
		return "an object";
	case json_type_array:
		return "an array";
	case json_type_string:
		return "a string";
	}
	return "something else";
}

/* 1 if there is a value of that type, 0 if none. */
static int present(struct json_at at, enum json_type type)
{
	if (!at.value && !at.required)
		return 0;
	if (at.as_go && !at.required && type == json_type_string &&
	    json_object_is_type(at.value, json_type_string) &&
	    json_object_get_string_len(at.value) == 0)
		return 0;
	if (!at.value)
		return json_wrong(at, at.name ? "is missing" : "null is not allowed here");
	if (json_object_is_type(at.value, type))
		return 1;
	json_refuse(at, "is %s, not %s", type_noun(json_object_get_type(at.value)),
		    type_noun(type));
	return at.as_go ? -EBADMSG : -EINVAL;
}

int json_read_text(struct json_at at, size_t max, const char **ret)
{
	int r = present(at, json_type_string);
	const char *text = NULL;
	size_t len;

	if (r <= 0)
		return r;
	text = json_object_get_string(at.value);
	len = (size_t)json_object_get_string_len(at.value);
	/* The code is spelt out for the static analyser, which sees one file at a time. */
	if (len > max) {
		json_wrong(at, "%zu bytes are more than %zu", len, max);
		return -EINVAL;
	}
	if (strlen(text) != len) {
		json_refuse(at, "contains a NUL");
		return -EINVAL;
	}
	*ret = text;
	return 1;
}

int json_read_bool(struct json_at at, bool *ret)
{
	int r = present(at, json_type_boolean);

	if (r > 0)
		*ret = json_object_get_boolean(at.value);
	return r;
}

/*
 * json-c 0.16 cuts what exceeds 64 bits to the nearest end without a word, so the two ends
 * themselves cannot be trusted and count as out of range.
 */
static int whole_int64(struct json_object *value, int64_t *ret)
{
	int64_t i = json_object_get_int64(value);

	if (i == INT64_MIN || (i == INT64_MAX && json_object_get_uint64(value) != INT64_MAX))
		return -ERANGE;
	*ret = i;
	return 0;
}

int json_read_integer(struct json_at at, int64_t min, int64_t max, int64_t *ret)
{
	int r = present(at, json_type_int);
	int64_t i;

	if (r <= 0)
		return r;
	if (whole_int64(at.value, &i) < 0 || i < min || i > max)
		return json_refuse(at, "is not between %" PRId64 " and %" PRId64, min, max);
	*ret = i;
	return 1;
}

int json_read_address(struct json_at at, struct address *ret)
{
	const char *text = NULL;
	int r = json_read_text(at, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r;
	if (address_parse(text, ret) < 0)
		return json_refuse(at, "is not an address such as \"10.1.0.5\" or \"fd00::5\"");
	return 1;
}

int json_read_host_prefix(struct json_at at, struct prefix *ret)
{
	const char *text = NULL;
	int r = json_read_text(at, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r;
	if (prefix_parse_host(text, ret) < 0)
		return json_refuse(at, "is not an address with its prefix length, such as "
				       "\"192.0.2.7/24\" or \"fd00::7/64\"");
	return 1;
}

int json_read_prefix(struct json_at at, struct prefix *ret)
{
	char text[PREFIX_TEXT];
	struct prefix p, masked;
	const char *in;
	int r = json_read_text(at, JSON_STRING_MAX, &in);

	if (r <= 0)
		return r;
	if (prefix_parse_host(in, &p) < 0)
		return json_refuse(at, "is not a prefix such as \"10.1.0.0/16\" or "
				       "\"fd00:1::/64\"");
	if (prefix_has_host_bits(&p)) {
		masked = prefix_mask(&p);
		return json_refuse(at, "has host bits set: write %s", prefix_print(&masked, text));
	}
	*ret = p;
	return 1;
}

int json_read_time(struct json_at at, char *text)
{
	const char *in;
	int r = json_read_text(at, JSON_STRING_MAX, &in);

	if (r <= 0)
		return r;
	if (time_check(in, NULL) < 0)
		return json_refuse(at, "is not a time in UTC such as \"2026-11-16T02:45:55Z\"");
	memcpy(text, in, strlen(in) + 1);
	return 1;
}

int json_read_array(struct json_at at, size_t *ret)
{
	int r = present(at, json_type_array);

	if (r > 0)
		*ret = json_object_array_length(at.value);
	return r;
}

int json_read_object(struct json_at at)
{
	return present(at, json_type_object);
}

int json_read_texts(struct json_at at, size_t max, const char ***ret, size_t *ret_n)
{
	AUTO(free) const char **v = NULL;
	size_t n;
	int r = json_read_array(at, &n);

	if (r <= 0)
		return r;
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return err_set(at.err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		r = json_read_text(json_element(&at, i), max, &v[i]);
		if (r < 0)
			return r;
	}
	*ret = TAKE(v);
	*ret_n = n;
	return 1;
}

/* --- numbers of 64 bits --------------------------------------------------------------------- */

/* One or more digits, no leading zero: the only way to write the number. */
static bool plain_digits(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && text[n] == '\0' && (text[0] != '0' || n == 1);
}

static int number_text(struct json_at at, const char **ret)
{
	return json_read_text(at, 20, ret); /* the digits of 2^64, or of -2^63 with its sign */
}

int json_read_int64(struct json_at at, int64_t *ret)
{
	const char *text = NULL;
	int64_t i;
	int r;

	if (json_object_is_type(at.value, json_type_int)) {
		if (whole_int64(at.value, ret) < 0)
			return json_refuse(at, "is beyond 64 bits");
		return 1;
	}
	r = number_text(at, &text);
	if (r <= 0)
		return r;
	if (!plain_digits(text + (text[0] == '-')) || strcmp(text, "-0") == 0)
		return json_refuse(at, "is not an integer");
	errno = 0;
	i = strtoll(text, NULL, 10);
	if (errno)
		return json_refuse(at, "is beyond 64 bits");
	*ret = i;
	return 1;
}

int json_read_uint64(struct json_at at, uint64_t *ret)
{
	const char *text = NULL;
	uint64_t u;
	int r;

	if (json_object_is_type(at.value, json_type_int)) {
		u = json_object_get_uint64(at.value);
		if (json_object_get_int64(at.value) < 0)
			return json_refuse(at, "is negative");
		if (u == UINT64_MAX) /* json-c may have cut it: see whole_int64() */
			return json_refuse(at, "is beyond 64 bits");
		*ret = u;
		return 1;
	}
	r = number_text(at, &text);
	if (r <= 0)
		return r;
	if (!plain_digits(text))
		return json_refuse(at, "is not a number of digits alone");
	errno = 0;
	u = strtoull(text, NULL, 10);
	if (errno)
		return json_refuse(at, "is beyond 64 bits");
	*ret = u;
	return 1;
}
