/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/record.h"

#include <errno.h>
#include <string.h>

const struct record *record_of(enum key_kind kind)
{
	static const struct record *const all[] = {
		&config_record,       &pool_record,
		&extent_record,       &node_record,
		&spec_record,         &removed_record,
		&recovery_record,     &block_record,
		&host_block_record,   &address_record_type,
		&peer_record,         &filter_record,
		&leader_record,       &pool_status_record,
		&static_route_record, &static_route_status_record,
		&history_record,
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->kind == kind)
			return all[i];
	return NULL;
}

/* Parts have no rule of their own any more: key_parse() has checked them. */
static const struct field part_field;

static int copy_part(const struct record_part *p, const struct key *key, void *record)
{
	const char *from = (const char *)key + p->from;
	char *at = (char *)record + p->at;

	if (p->type == &field_text) {
		*(char **)at = strdup(from);
		return *(char **)at ? 0 : -ENOMEM;
	}
	memcpy(at, from, p->type == &field_prefix ? sizeof(struct prefix) : sizeof(struct address));
	return 0;
}

static int identify(const struct record *type, const char *text, void *record, struct err *err)
{
	char shown[SHOW_TEXT];
	struct key key;

	if (key_parse(text, &key) < 0 || key.kind != type->kind)
		return err_set(err, -EINVAL, "\"%s\" is not a key of the form %s",
			       text_show(text, shown), key_pattern(type->kind));
	for (size_t i = 0; i < type->n_parts; i++)
		if (copy_part(&type->parts[i], &key, record) < 0)
			return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int read_fields(const struct record *type, struct json_object *object, void *record,
		       struct err *err)
{
	struct json_at root = json_root(object, err);
	int r = fields_init(type->fields, type->n_fields, record);

	if (r < 0)
		return err_set(err, r, "out of memory");
	r = fields_read(type->fields, type->n_basis, &root, record);
	if (r < 0)
		return r;
	if (type->derive)
		type->derive(record, record);
	r = fields_read(type->fields + type->n_basis, type->n_fields - type->n_basis, &root,
			record);
	if (r < 0)
		return r;
	return type->check ? type->check(record, err) : 0;
}

int record_decode(const struct record *type, const char *key, const char *json, size_t len,
		  void *ret, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO(free) void *record = calloc(1, type->size);
	int r;

	if (!record)
		return err_set(err, -ENOMEM, "out of memory");
	r = identify(type, key, record, err);
	if (r == 0) {
		r = json_parse(json, len, &object, err);
		if (r == 0)
			r = read_fields(type, object, record, err);
		if (r < 0)
			err_wrap(err, r, "%s", key);
	}
	if (r < 0) {
		record_done(type, record);
		return r;
	}
	memcpy(ret, record, type->size);
	return 0;
}

int record_encode(const struct record *type, const void *record, char **ret)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	AUTO(free) void *usual = calloc(1, type->size);
	int r;

	if (!object || !usual)
		return -ENOMEM;
	r = fields_init(type->fields, type->n_fields, usual);
	if (r == 0 && type->derive)
		type->derive(record, usual);
	if (r == 0)
		r = fields_write(type->fields, type->n_fields, record, usual, object);
	fields_done(type->fields, type->n_fields, usual);
	return r < 0 ? r : json_print(object, ret);
}

bool record_equal(const struct record *type, const void *a, const void *b)
{
	for (size_t i = 0; i < type->n_parts; i++) {
		const struct record_part *p = &type->parts[i];

		if (!p->type->equal(&part_field, (const char *)a + p->at, (const char *)b + p->at))
			return false;
	}
	return fields_equal(type->fields, type->n_fields, a, b);
}

void record_done(const struct record *type, void *record)
{
	for (size_t i = 0; i < type->n_parts; i++) {
		const struct record_part *p = &type->parts[i];

		if (p->type->done)
			p->type->done(&part_field, (char *)record + p->at);
	}
	fields_done(type->fields, type->n_fields, record);
	memset(record, 0, type->size);
}
