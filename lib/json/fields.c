/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/fields.h"

#include <errno.h>
#include <string.h>

static void *inside(void *record, size_t at)
{
	return (char *)record + at;
}

static const void *inside_const(const void *record, size_t at)
{
	return (const char *)record + at;
}

int fields_init(const struct field *table, size_t n, void *record)
{
	for (const struct field *f = table; f < table + n; f++) {
		int r = f->type->init ? f->type->init(f, inside(record, f->at)) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_blank(const struct field *f, struct json_at at)
{
	return f->type->blank_is_absent && !f->required && (at.as_go || !f->initial_text) &&
	       json_object_is_type(at.value, json_type_string) &&
	       json_object_get_string_len(at.value) == 0;
}

int fields_read(const struct field *table, size_t n, const struct json_at *in, void *record)
{
	for (const struct field *f = table; f < table + n; f++) {
		struct json_at at = json_member(in, f->name);
		int r;

		if (!at.value && f->required)
			return json_wrong(at, "is missing");
		at.required = f->required;
		if (!at.value || is_blank(f, at))
			continue;
		r = f->type->read(f, at, inside(record, f->at));
		if (r == -ENOMEM)
			return err_set(in->err, r, "out of memory");
		if (r < 0)
			return r;
	}
	return 0;
}

/* Takes value, also when it fails. */
static int add_member(struct json_object *object, const char *name, struct json_object *value)
{
	if (json_object_object_add(object, name, value) == 0)
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

int fields_write(const struct field *table, size_t n, const void *record, const void *usual,
		 struct json_object *object)
{
	for (const struct field *f = table; f < table + n; f++) {
		const void *at = inside_const(record, f->at), *d = inside_const(usual, f->at);
		struct json_object *value = NULL;
		int r;

		if (!f->required && f->type->equal(f, at, d))
			continue;
		r = f->type->write(f, at, d, &value);
		if (r == 0)
			r = add_member(object, f->name, value);
		if (r < 0)
			return r;
	}
	return 0;
}

bool fields_equal(const struct field *table, size_t n, const void *a, const void *b)
{
	for (const struct field *f = table; f < table + n; f++)
		if (!f->type->equal(f, inside_const(a, f->at), inside_const(b, f->at)))
			return false;
	return true;
}

void fields_done(const struct field *table, size_t n, void *record)
{
	for (const struct field *f = table; f < table + n; f++)
		if (f->type->done)
			f->type->done(f, inside(record, f->at));
}

/* --- object: a struct inside the struct ----------------------------------------------------- */

static int object_init(const struct field *f, void *at)
{
	return fields_init(f->fields, f->n_fields, at);
}

static int object_read(const struct field *f, struct json_at in, void *at)
{
	int r = json_read_object(in);

	return r < 0 ? r : fields_read(f->fields, f->n_fields, &in, at);
}

static int object_write(const struct field *f, const void *at, const void *usual,
			struct json_object **ret)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	int r;

	if (!object)
		return -ENOMEM;
	r = fields_write(f->fields, f->n_fields, at, usual, object);
	if (r < 0)
		return r;
	*ret = TAKE(object);
	return 0;
}

static bool object_equal(const struct field *f, const void *a, const void *b)
{
	return fields_equal(f->fields, f->n_fields, a, b);
}

static void object_done(const struct field *f, void *at)
{
	fields_done(f->fields, f->n_fields, at);
}

const struct field_type field_object = {
	.init = object_init,
	.read = object_read,
	.write = object_write,
	.equal = object_equal,
	.done = object_done,
};

/* --- list: elements of one kind, in a struct of v and n ------------------------------------- */

struct any_list {
	char *v;
	size_t n;
};

static void list_done(const struct field *f, void *at)
{
	struct any_list *list = at;

	if (f->fields->type->done)
		for (size_t i = 0; i < list->n; i++)
			f->fields->type->done(f->fields, list->v + i * f->size);
	free(list->v);
	*list = (struct any_list){ 0 };
}

static int element_read(const struct field *f, struct json_at in, struct any_list *list)
{
	const struct field *e = f->fields;
	char *at = list->v + list->n * f->size;
	int r;

	list->n++; /* from here on list_done() releases it, half-read or not */
	r = e->type->init ? e->type->init(e, at) : 0;
	return r < 0 ? r : e->type->read(e, in, at);
}

static int list_read(const struct field *f, struct json_at in, void *at)
{
	struct any_list list = { 0 };
	size_t n;
	int r = json_read_array(in, &n);

	if (r < 0)
		return r;
	list.v = n ? calloc(n, f->size) : NULL;
	if (n && !list.v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r = element_read(f, json_element(&in, i), &list);
		if (r < 0) {
			list_done(f, &list);
			return r;
		}
	}
	list_done(f, at);
	*(struct any_list *)at = list;
	return 0;
}

static int elements_write(const struct field *f, const struct any_list *list, const void *usual,
			  struct json_object *array)
{
	for (size_t i = 0; i < list->n; i++) {
		struct json_object *value = NULL;
		int r = f->fields->type->write(f->fields, list->v + i * f->size, usual, &value);

		if (r < 0)
			return r;
		if (json_object_array_add(array, value) < 0) {
			json_object_put(value);
			return -ENOMEM;
		}
	}
	return 0;
}

static int list_write(const struct field *f, const void *at, const void *usual,
		      struct json_object **ret)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO(free) char *element = calloc(1, f->size);
	int r;

	(void)usual; /* the list's; an element has its own */
	if (!array || !element)
		return -ENOMEM;
	r = f->fields->type->init ? f->fields->type->init(f->fields, element) : 0;
	if (r == 0)
		r = elements_write(f, at, element, array);
	if (f->fields->type->done)
		f->fields->type->done(f->fields, element);
	if (r < 0)
		return r;
	*ret = TAKE(array);
	return 0;
}

static bool list_equal(const struct field *f, const void *a, const void *b)
{
	const struct any_list *x = a, *y = b;

	if (x->n != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (!f->fields->type->equal(f->fields, x->v + i * f->size, y->v + i * f->size))
			return false;
	return true;
}

const struct field_type field_list = {
	.read = list_read,
	.write = list_write,
	.equal = list_equal,
	.done = list_done,
};

/* --- only: a list of one, written as the element itself ------------------------------------- */

static int only_read(const struct field *f, struct json_at in, void *at)
{
	const struct field *list_of = f - 1;
	struct any_list *list = at;
	int r;

	if (list->n)
		return json_wrong(in, "\"%s\" is given too, only one of the two may be",
				  list_of->name);
	list->v = calloc(1, f->size);
	if (!list->v)
		return -ENOMEM;
	r = element_read(f, in, list);
	if (r < 0)
		list_done(f, list);
	return r;
}

/* The list's own line writes, compares and releases. */
static bool only_equal(const struct field *f, const void *a, const void *b)
{
	return true;
}

const struct field_type field_only = {
	.blank_is_absent = true,
	.read = only_read,
	.equal = only_equal,
};
