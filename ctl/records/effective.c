/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/records/effective.h"

#include <errno.h>
#include <string.h>

#include "lib/model/model.h"

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
