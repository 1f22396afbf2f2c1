/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_json.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static bool look_up(struct json_object *object, const char *name, struct json_object **ret)
{
	bool found = false;

	if (!json_object_is_type(object, json_type_object))
		return false;
	json_object_object_foreach(object, key, value) {
		if (strcasecmp(key, name) == 0) {
			*ret = value;
			found = true;
		}
	}
	return found;
}

struct json_at cni_member(const struct json_at *object, const char *name)
{
	struct json_at at = { .up = object, .name = name, .err = object->err };

	look_up(object->value, name, &at.value);
	return at;
}

bool cni_has(const struct json_at *object, const char *name)
{
	struct json_object *value;

	return look_up(object->value, name, &value);
}

struct json_at cni_root(struct json_object *object, struct cni_error *e)
{
	return json_root(object, &e->msg);
}

int cni_wrong(struct cni_error *e, struct json_at at, enum json_type wanted)
{
	bool other_type = at.value && !json_object_is_type(at.value, wanted);

	e->code = other_type ? CNI_CODE_DECODE : CNI_CODE_CONFIG;
	return -EINVAL;
}

int cni_no_memory(struct cni_error *e)
{
	cni_fail(e, CNI_CODE_IO, "out of memory");
	return -ENOMEM;
}

static bool blank(struct json_at at)
{
	return !at.required && json_object_is_type(at.value, json_type_string) &&
	       json_object_get_string_len(at.value) == 0;
}

int cni_read_text(struct cni_error *e, struct json_at at, const char **ret)
{
	int r = blank(at) ? 0 : json_read_text(at, JSON_STRING_MAX, ret);

	return r < 0 ? cni_wrong(e, at, json_type_string) : r;
}

int cni_read_address(struct cni_error *e, struct json_at at, struct address *ret)
{
	int r = blank(at) ? 0 : json_read_address(at, ret);

	return r < 0 ? cni_wrong(e, at, json_type_string) : r;
}

int cni_read_host_prefix(struct cni_error *e, struct json_at at, struct prefix *ret)
{
	int r = blank(at) ? 0 : json_read_host_prefix(at, ret);

	return r < 0 ? cni_wrong(e, at, json_type_string) : r;
}

int cni_read_array(struct cni_error *e, struct json_at at, size_t *ret)
{
	int r = json_read_array(at, ret);

	return r < 0 ? cni_wrong(e, at, json_type_array) : r;
}

int cni_read_object(struct cni_error *e, struct json_at at)
{
	int r = json_read_object(at);

	return r < 0 ? cni_wrong(e, at, json_type_object) : r;
}

int cni_read_texts(struct cni_error *e, struct json_at at, struct texts *ret)
{
	int r = json_read_texts(at, JSON_STRING_MAX, &ret->v, &ret->n);

	if (r == -ENOMEM)
		return cni_no_memory(e);
	if (r < 0)
		e->code = CNI_CODE_DECODE; /* the list or one of its elements is of another type */
	return r;
}
