/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/records/record_fields.h"

#include <errno.h>
#include <string.h>

#include "ctl/records/kind.h"
#include "lib/model/model.h"

const struct record *fields_of_noun(const char *noun)
{
	const struct kind *kind = kind_find(noun);

	return kind ? record_of(kind->key) : NULL;
}

static const char *simple_form(const struct field *f)
{
	static const struct {
		const struct field_type *type;
		const char *form;
	} forms[] = {
		{ &field_text, "text" },
		{ &field_flag, "true or false" },
		{ &field_maybe, "true or false" },
		{ &field_address, "address" },
		{ &field_prefix, "prefix" },
		{ &field_host_prefix, "address/length" },
		{ &field_range, "prefix or address" },
		{ &field_time, "time" },
		{ &field_mac, "MAC address" },
		{ &field_selector, "selector" },
		{ &field_labels, "labels" },
		{ &field_neighbour, "address" },
		{ &field_object, "JSON object" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (forms[i].type == f->type)
			return forms[i].form;
	return "value";
}

#define FORM_TEXT 96

const char *field_form(const struct field *f, char *text)
{
	char element[FORM_TEXT];
	size_t n = 0;

	if (f->type == &field_number && f->max < UINT32_MAX)
		snprintf(text, FORM_TEXT, "%u to %u", f->or_zero ? 0 : f->min, f->max);
	else if (f->type == &field_number)
		snprintf(text, FORM_TEXT, "number");
	else if (f->type == &field_list)
		snprintf(text, FORM_TEXT, "list, each: %.80s", field_form(f->fields, element));
	else if (f->type == &field_only)
		field_form(f->fields, text);
	else if (f->type == &field_choice)
		for (size_t i = 0; f->choices[i] && n < FORM_TEXT; i++)
			n += (size_t)snprintf(text + n, FORM_TEXT - n, "%s%s", n ? " or " : "",
					      f->choices[i]);
	else
		snprintf(text, FORM_TEXT, "%s", simple_form(f));
	return text;
}

static void print_fields(FILE *out, const struct field *fields, size_t n, const char *before)
{
	for (const struct field *f = fields; f < fields + n; f++) {
		char form[FORM_TEXT], name[96];

		snprintf(name, sizeof(name), "%s%s", before, f->name);
		if (f->type == &field_object) {
			snprintf(name + strlen(name), sizeof(name) - strlen(name), ".");
			print_fields(out, f->fields, f->n_fields, name);
			continue;
		}
		fprintf(out, "  %-26s %s%s\n", name, field_form(f, form),
			f->required ? ", required" : "");
	}
}

char *fields_text(const char *noun)
{
	const struct record *record = fields_of_noun(noun);
	char *text = NULL;
	size_t len;
	FILE *out = record ? open_memstream(&text, &len) : NULL;

	if (!out)
		return NULL;
	print_fields(out, record->fields, record->n_fields, "");
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- the values that hold ------------------------------------------------------------------- */

/* Types whose zero is no value but the lack of one. */
static bool is_absent(const struct field *f, const void *at)
{
	static const struct field_type *const types[] = {
		&field_address, &field_prefix, &field_host_prefix, &field_range,
		&field_time,    &field_mac,    &field_neighbour,   &field_maybe,
	};
	static const char zero[64];

	/* What another line says. */
	if (f->type == &field_only)
		return true;
	if (f->type == &field_number)
		return *(const uint32_t *)at == UNSET;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (f->type == types[i])
			return f->type->equal(f, at, zero);
	return false;
}

static int write_all(const struct field *fields, size_t n, const char *record,
		     struct json_object *object)
{
	for (const struct field *f = fields; f < fields + n; f++) {
		struct json_object *value = NULL;
		int r = 0;

		if (is_absent(f, record + f->at))
			continue;
		if (f->type == &field_object) {
			value = json_object_new_object();
			r = value ? write_all(f->fields, f->n_fields, record + f->at, value)
				  : -ENOMEM;
		} else {
			r = f->type->write(f, record + f->at, record + f->at, &value);
		}
		if (r == 0 && json_object_object_add(object, f->name, value) == 0)
			continue;
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

int effective(const struct record *type, const char *key, const char *json, size_t len,
	      struct json_object *object, struct err *err)
{
	AUTO(free) void *record = calloc(1, type->size);
	int r;

	if (!record)
		return -ENOMEM;
	r = record_decode(type, key, json, len, record, err);
	if (r < 0)
		return r;
	r = write_all(type->fields, type->n_fields, record, object);
	record_done(type, record);
	return r;
}
