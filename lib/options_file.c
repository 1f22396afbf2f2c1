/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file: a JSON object with a field for each option.
 *
 * It may have comments as in C and C++. They become blanks before the strict
 * reader sees the text, so that everything else stays as strict as it is for
 * records, and byte positions in messages stay true.
 */
#include <errno.h>
#include <string.h>

#include "lib/json.h"
#include "lib/options_parts.h"

static size_t after_string(const char *text, size_t i, size_t len)
{
	for (i++; i < len && text[i] != '"'; i++)
		if (text[i] == '\\')
			i++;
	return i + 1;
}

/* From the mark on; lines stay lines. -1: a comment without an end. */
static ssize_t blank_comment(char *text, size_t i, size_t len)
{
	bool line = text[i + 1] == '/';
	size_t end;
	char *stop;

	if (line) {
		stop = memchr(text + i, '\n', len - i);
		end = stop ? (size_t)(stop - text) : len;
	} else {
		stop = memmem(text + i + 2, len - i - 2, "*/", 2);
		if (!stop)
			return -1;
		end = (size_t)(stop - text) + 2;
	}
	for (; i < end; i++)
		if (text[i] != '\n')
			text[i] = ' ';
	return (ssize_t)end;
}

static int blank_comments(char *text, size_t len, struct err *err)
{
	size_t i = 0;

	while (i < len) {
		bool comment = text[i] == '/' && i + 1 < len &&
			       (text[i + 1] == '/' || text[i + 1] == '*');
		ssize_t end;

		if (text[i] == '"') {
			i = after_string(text, i, len);
			continue;
		}
		if (!comment) {
			i++;
			continue;
		}
		end = blank_comment(text, i, len);
		if (end < 0)
			return err_set(err, -EINVAL, "the comment at byte %zu has no end", i + 1);
		i = (size_t)end;
	}
	return 0;
}

/* --- fields --------------------------------------------------------------------------------- */

static int unknown_field(const struct option_table *table, const char *name, struct err *err)
{
	char shown[SHOW_TEXT], near[OPTION_NAME];

	text_show(name, shown);
	if (option_nearest(table, name, true, near))
		return err_set(err, -EINVAL, "unknown field \"%s\": perhaps \"%s\"?", shown, near);
	return err_set(err, -EINVAL, "unknown field \"%s\"", shown);
}

static int one_field(const struct option_def *def, struct json_at at, void *record, struct err *err)
{
	char number[24];
	const char *text;
	int64_t value = 0;
	int r;

	if (def->kind == OPTION_NUMBER) {
		r = json_read_integer(at, def->min, def->max, &value);
		snprintf(number, sizeof(number), "%lld", (long long)value);
		text = number;
	} else {
		r = json_read_text(at, JSON_STRING_MAX, &text);
	}
	if (r <= 0)
		return r;
	r = option_set(def, text, record, err);
	return r < 0 ? err_wrap(err, r, "field \"%s\"", at.name) : 0;
}

static int read_fields(const struct option_table *table, struct json_object *object, void *record,
		       struct err *err)
{
	struct json_at root = json_root(object, err);

	json_object_object_foreach(object, name, value) {
		const struct option_def *def = option_find(table, name, strlen(name), true);
		int r;

		(void)value;
		if (!def)
			return unknown_field(table, name, err);
		r = one_field(def, json_member(&root, name), record, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int options_from_file(const struct option_table *table, const char *text, size_t len, void *record,
		      struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO(free) char *copy = NULL;
	int r;

	if (len > JSON_SIZE_MAX)
		return err_set(err, -E2BIG, "%zu bytes are too many for a configuration file", len);
	copy = malloc(len + 1);
	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(copy, text, len);
	copy[len] = '\0';

	r = blank_comments(copy, len, err);
	r = r ?: json_parse(copy, len, &object, err);
	return r ?: read_fields(table, object, record, err);
}
