/* SPDX-License-Identifier: Apache-2.0 */
/* The growing output, and scalars as text. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "confd/mustache/mustache_parts.h"

/* One byte more than is asked for, so that there is always room for the NUL. */
static int make_room(struct mustache_out *out, size_t len)
{
	size_t room = out->room ?: 4096;
	char *text;

	if (len > out->max - out->len)
		return -EFBIG;
	while (room <= out->len + len)
		room *= 2;
	text = realloc(out->text, room);
	if (!text)
		return -ENOMEM;
	out->text = text;
	out->room = room;
	return 0;
}

int mustache_out_add(struct mustache_out *out, const char *text, size_t len)
{
	int r;

	if (out->room - out->len <= len || len > out->max - out->len) {
		r = make_room(out, len);
		if (r < 0)
			return r;
	}
	if (len > 0)
		memcpy(out->text + out->len, text, len);
	out->len += len;
	return 0;
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	default:
		return NULL;
	}
}

int mustache_out_html(struct mustache_out *out, const char *text, size_t len)
{
	size_t done = 0;
	int r;

	for (size_t i = 0; i < len; i++) {
		const char *e = entity(text[i]);

		if (!e)
			continue;
		r = mustache_out_add(out, text + done, i - done);
		if (r == 0)
			r = mustache_out_add(out, e, strlen(e));
		if (r < 0)
			return r;
		done = i + 1;
	}
	return mustache_out_add(out, text + done, len - done);
}

static struct piece integer(struct json_object *value, char *room)
{
	int64_t number = json_object_get_int64(value);
	int n;

	/* Above the largest int64 only the other reader tells the truth. */
	if (number < 0)
		n = snprintf(room, MUSTACHE_NUMBER_TEXT, "%" PRId64, number);
	else
		n = snprintf(room, MUSTACHE_NUMBER_TEXT, "%" PRIu64, json_object_get_uint64(value));
	return (struct piece){ room, (size_t)n };
}

/* One that was read from text prints as it was written; one that was computed, as short as it
 * can be without becoming another number. */
static struct piece decimal(struct json_object *value, char *room)
{
	double number = json_object_get_double(value);
	int n = 0;

	if (json_object_get_userdata(value) || !isfinite(number)) {
		const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);

		return (struct piece){ text, text ? strlen(text) : 0 };
	}
	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(room, MUSTACHE_NUMBER_TEXT, "%.*g", digits, number);
		if (strtod(room, NULL) == number)
			break;
	}
	return (struct piece){ room, (size_t)n };
}

struct piece mustache_scalar(struct json_object *value, char *room)
{
	switch (json_object_get_type(value)) {
	case json_type_string:
		return (struct piece){ json_object_get_string(value),
				       (size_t)json_object_get_string_len(value) };
	case json_type_int:
		return integer(value, room);
	case json_type_double:
		return decimal(value, room);
	case json_type_boolean:
		return json_object_get_boolean(value) ? (struct piece){ "true", 4 }
						      : (struct piece){ "false", 5 };
	default:
		return (struct piece){ "", 0 };
	}
}
