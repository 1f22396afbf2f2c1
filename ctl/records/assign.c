/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/records/assign.h"

#include <errno.h>
#include <string.h>

#include "lib/base/nearest.h"

#define FIELD_TEXT 128

/* --- one value ------------------------------------------------------------------------------ */

static int typed(const struct field *f, const char *text, struct json_object **ret,
		 struct err *err);

/* JSON of any type: our parser wants an object around it. */
static int json_value(const char *text, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *around = NULL;
	AUTO(free) char *copy = NULL;
	struct json_object *value;
	int r;

	if (asprintf(&copy, "{\"\":%s}", text) < 0)
		return -ENOMEM;
	r = json_parse(copy, strlen(copy), &around, err);
	if (r < 0)
		return r;
	if (!json_object_object_get_ex(around, "", &value) || json_object_object_length(around) > 1)
		return err_set(err, -EINVAL, "not valid JSON");
	*ret = json_object_get(value);
	return 0;
}

static int text_value(const char *text, size_t len, struct json_object **ret)
{
	*ret = json_object_new_string_len(text, (int)len);
	return *ret ? 0 : -ENOMEM;
}

/* What is no number stays a text: decoding refuses it with its own sentence. */
static int number_value(const char *text, struct json_object **ret)
{
	size_t n = strspn(text + (*text == '-'), "0123456789");
	const char *digits = text + (*text == '-');

	if (n == 0 || n > 18 || digits[n])
		return text_value(text, strlen(text), ret);
	*ret = json_object_new_int64(strtoll(text, NULL, 10));
	return *ret ? 0 : -ENOMEM;
}

static int flag_value(const char *text, struct json_object **ret)
{
	bool yes = strcmp(text, "true") == 0 || strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "false") != 0 && strcmp(text, "no") != 0)
		return text_value(text, strlen(text), ret);
	*ret = json_object_new_boolean(yes);
	return *ret ? 0 : -ENOMEM;
}

static int list_value(const struct field *f, const char *text, struct json_object **ret,
		      struct err *err)
{
	AUTO(json_put) struct json_object *array = NULL;

	if (*text == '[')
		return json_value(text, ret, err);
	array = json_object_new_array();
	if (!array)
		return -ENOMEM;
	for (;;) {
		size_t n = *text == '{' ? strlen(text) : strcspn(text, ",");
		AUTO(free) char *part = strndup(text, n);
		struct json_object *element = NULL;
		int r = part ? typed(f->fields, part, &element, err) : -ENOMEM;

		if (r < 0)
			return r;
		if (json_object_array_add(array, element) < 0) {
			json_object_put(element);
			return -ENOMEM;
		}
		if (!text[n])
			break;
		text += n + 1;
	}
	*ret = TAKE(array);
	return 0;
}

/* "zone=a,disk=ssd" */
static int labels_value(const char *text, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();

	if (!object)
		return -ENOMEM;
	while (*text) {
		size_t n = strcspn(text, ","), name = strcspn(text, "=,");
		AUTO(free) char *key = strndup(text, name);
		struct json_object *value = NULL;

		if (text[name] != '=')
			return err_set(err, -EINVAL, "labels have the form key=value,key=value");
		if (!key || text_value(text + name + 1, n - name - 1, &value) < 0)
			return -ENOMEM;
		json_object_object_add(object, key, value);
		text += n + (text[n] == ',');
	}
	*ret = TAKE(object);
	return 0;
}

static int typed(const struct field *f, const char *text, struct json_object **ret, struct err *err)
{
	if (f->type == &field_number)
		return number_value(text, ret);
	if (f->type == &field_flag || f->type == &field_maybe)
		return flag_value(text, ret);
	if (f->type == &field_list)
		return list_value(f, text, ret, err);
	if (f->type == &field_object || *text == '{' ||
	    (f->type == &field_selector && *text == '['))
		return json_value(text, ret, err);
	if (f->type == &field_labels)
		return labels_value(text, ret, err);
	return text_value(text, strlen(text), ret);
}

/* --- where it goes -------------------------------------------------------------------------- */

static const struct field *find(const struct field *fields, size_t n, const char *name, size_t len)
{
	for (const struct field *f = fields; f < fields + n; f++)
		if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
			return f;
	return NULL;
}

static int unknown(const struct field *fields, size_t n, const char *path, const char *name,
		   size_t len, struct err *err)
{
	struct nearest near = nearest_to(name, len);
	char shown[SHOW_TEXT];
	int before = (int)(name - path);

	for (const struct field *f = fields; f < fields + n; f++)
		nearest_try(&near, f->name);
	text_show(path, shown);
	if (near.name[0])
		return err_set(err, -EINVAL, "unknown field \"%s\": perhaps \"%.*s%s\"?", shown,
			       before, path, near.name);
	return err_set(err, -EINVAL, "unknown field \"%s\"", shown);
}

/* The object inside, made if it is not there. */
static struct json_object *enter(struct json_object *object, const char *name)
{
	struct json_object *inner = NULL;

	if (json_object_object_get_ex(object, name, &inner) &&
	    json_object_is_type(inner, json_type_object))
		return inner;
	inner = json_object_new_object();
	if (inner && json_object_object_add(object, name, inner) < 0) {
		json_object_put(inner);
		return NULL;
	}
	return inner;
}

static int set(struct json_object *object, const struct field *f, const char *name,
	       const char *text, struct err *err)
{
	struct json_object *value = NULL;
	int r = 0;

	if (!*text) {
		json_object_object_del(object, name);
		return 0;
	}
	r = f ? typed(f, text, &value, err) : text_value(text, strlen(text), &value);
	if (r == 0 && json_object_object_add(object, name, value) < 0) {
		json_object_put(value);
		r = -ENOMEM;
	}
	return r;
}

/* path is the whole of what stands before the '=', name the part that is looked at now. */
static int walk(const struct field *fields, size_t n, const char *path, const char *name,
		const char *text, struct json_object *object, struct err *err)
{
	size_t len = strcspn(name, ".");
	const struct field *f = find(fields, n, name, len);
	struct json_object *inner;

	if (!f)
		return unknown(fields, n, path, name, len, err);
	if (!name[len])
		return set(object, f, f->name, text, err);
	if (f->type != &field_object && f->type != &field_labels)
		return err_set(err, -EINVAL, "field \"%s\" has no fields inside: \"%s\"", f->name,
			       path);
	inner = enter(object, f->name);
	if (!inner)
		return -ENOMEM;
	if (f->type == &field_labels) /* a label's key may have dots itself */
		return set(inner, NULL, name + len + 1, text, err);
	return walk(f->fields, f->n_fields, path, name + len + 1, text, inner, err);
}

int assign(const struct record *type, const char *word, struct json_object *object, struct err *err)
{
	size_t len = strcspn(word, "=");
	AUTO(free) char *path = strndup(word, len);
	char shown[SHOW_TEXT];
	int r;

	if (!path)
		return -ENOMEM;
	if (!word[len] || len == 0)
		return err_set(err, -EINVAL, "\"%s\" is not of the form FIELD=VALUE",
			       text_show(word, shown));
	err_set(err, 0, "%s", "");
	r = walk(type->fields, type->n_fields, path, path, word + len + 1, object, err);
	if (r == -ENOMEM)
		return r;
	if (r < 0 && strncmp(err->text, "unknown", 7) != 0 && strncmp(err->text, "field", 5) != 0)
		err_wrap(err, r, "field \"%s\"", text_show(path, shown));
	return r;
}

int assign_all(const struct record *type, const char *const *words, size_t n,
	       struct json_object *object, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = assign(type, words[i], object, err);
	return r;
}

/* --- what is there and unknown -------------------------------------------------------------- */

static bool unknown_in(const struct field *fields, size_t n, struct json_object *object,
		       const char *before, char *ret);

static bool unknown_inside(const struct field *f, struct json_object *value, const char *path,
			   char *ret)
{
	bool found = false;

	if (f->type == &field_object && json_object_is_type(value, json_type_object))
		return unknown_in(f->fields, f->n_fields, value, path, ret);
	if (f->type == &field_list && json_object_is_type(value, json_type_array))
		for (size_t i = 0; i < json_object_array_length(value) && !found; i++)
			found = unknown_inside(f->fields, json_object_array_get_idx(value, i), path,
					       ret);
	return found;
}

static bool unknown_in(const struct field *fields, size_t n, struct json_object *object,
		       const char *before, char *ret)
{
	json_object_object_foreach(object, name, value) {
		const struct field *f = find(fields, n, name, strlen(name));
		char path[FIELD_TEXT];

		snprintf(path, sizeof(path), "%s%s%s", before, *before ? "." : "", name);
		if (!f) {
			memcpy(ret, path, sizeof(path));
			return true;
		}
		if (unknown_inside(f, value, path, ret))
			return true;
	}
	return false;
}

bool assign_unknown(const struct record *type, struct json_object *object, char *field)
{
	return unknown_in(type->fields, type->n_fields, object, "", field);
}

int assign_refuse_unknown(const struct record *type, const char *field, struct err *err)
{
	const struct field *fields = type->fields;
	size_t n = type->n_fields;
	const char *name = field;

	for (size_t len; name[len = strcspn(name, ".")]; name += len + 1) {
		const struct field *f = find(fields, n, name, len);

		if (!f)
			break;
		if (f->type == &field_list)
			f = f->fields;
		fields = f->fields;
		n = f->n_fields;
	}
	return unknown(fields, n, field, name, strlen(name), err);
}
