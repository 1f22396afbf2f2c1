/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file: a JSON object with a field for each option.
 *
 * It may have comments as in C and C++ (lib/json/json_comments.h); everything else is
 * as strict as it is for records.
 */
#include <errno.h>
#include <string.h>

#include "lib/daemon/options_parts.h"
#include "lib/json/json.h"
#include "lib/json/json_comments.h"

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
	bool yes = false;
	int64_t value = 0;
	int r;

	if (def->kind == OPTION_NUMBER) {
		r = json_read_integer(at, def->min, def->max, &value);
		snprintf(number, sizeof(number), "%lld", (long long)value);
		text = number;
	} else if (def->kind == OPTION_FLAG) {
		r = json_read_bool(at, &yes);
		text = yes ? "yes" : "no";
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

		if (!def && table->borrowed_file)
			continue;
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

	r = json_blank_comments(copy, len, err);
	r = r ?: json_parse(copy, len, &object, err);
	return r ?: read_fields(table, object, record, err);
}
