/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is printed: a json-c tree, as JSON or for people.
 *
 *   verb -> tree -> [out] -> table, or JSON
 *
 * A verb makes one tree, whatever the format: an array of objects for a list, an object for
 * "show". As JSON it is printed as it is, so its field names are the interface for scripts: stable,
 * in camelCase, absent rather than null. As a table only the columns that the verb names are shown.
 * Printing into a FILE is all that is not pure here.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>

#include "ctl/frame/settings.h"

struct out_column {
	const char *title; /* in capitals; NULL ends the columns */
	const char *field; /* in the row, with dots into objects: "agent.version" */
	bool wide;         /* only with -o wide */
};
#define COLUMN(title, field)                                                                       \
	{                                                                                          \
		(title), (field), false                                                            \
	}
#define WIDE(title, field)                                                                         \
	{                                                                                          \
		(title), (field), true                                                             \
	}
#define COLUMNS_END                                                                                \
	{                                                                                          \
		NULL, NULL, false                                                                  \
	}

struct out {
	FILE *to;
	enum out_format format;
	bool colour;
	bool dry_run; /* nothing was done: what is printed as done says so */
};

/* Colours only on a terminal, without NO_COLOR and --no-color. */
struct out out_make(FILE *to, const struct ctl_settings *s);

/* An array of objects. none is said instead of an empty table (NULL: only the titles). */
int out_list(const struct out *out, struct json_object *array, const struct out_column *columns,
	     const char *none);
/* Any tree, as JSON whatever the format. */
int out_json(const struct out *out, struct json_object *value);
/* The same on one line: for --watch. */
int out_json_line(const struct out *out, struct json_object *value);
/* An object: "field:  value" lines, objects inside it further in, arrays of objects as tables. */
int out_show(const struct out *out, struct json_object *object);
/* One sentence of something done: "pool web created"; JSON {"kind":, "name":, "done":}. */
int out_done(const struct out *out, const char *kind, const char *name, const char *done);
/* Only for people: nothing in JSON. */
void out_say(const struct out *out, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A value as one cell: texts as they are, lists with commas, yes and no, "-" for what is absent or
 * empty; free() it. NULL: out of memory. */
char *out_cell(struct json_object *value);
/* The value at "agent.version", or NULL. */
struct json_object *out_at(struct json_object *object, const char *field);
/* The text, or the number, at "agent.version"; "" or 0 for what is absent or of another type. */
const char *out_text(struct json_object *object, const char *field);
long long out_number(struct json_object *object, const char *field);
/* The escape sequence for a word of good, doubtful or bad news, or "". */
const char *out_colour_of(const char *word);
