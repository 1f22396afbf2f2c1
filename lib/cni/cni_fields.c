/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_fields.h"

#include <errno.h>
#include <strings.h>

struct json_at cni_root(struct json_object *object, struct cni_error *e)
{
	struct json_at root = json_root(object, &e->msg);

	root.as_go = true;
	return root;
}

int cni_no_memory(struct cni_error *e)
{
	cni_fail(e, CNI_CODE_IO, "out of memory");
	return -ENOMEM;
}

int cni_read(struct cni_error *e, int r)
{
	if (r == -ENOMEM)
		return cni_no_memory(e);
	if (r >= 0)
		return r;
	e->code = r == -EBADMSG ? CNI_CODE_DECODE : CNI_CODE_CONFIG;
	return -EINVAL;
}

bool cni_has(struct json_object *object, const char *name)
{
	if (!json_object_is_type(object, json_type_object))
		return false;
	json_object_object_foreach(object, key, value)
		if (strcasecmp(key, name) == 0)
			return true;
	return false;
}

static int said_init(const struct field *f, void *at)
{
	*(int64_t *)at = -1;
	return 0;
}

static int said_read(const struct field *f, struct json_at in, void *at)
{
	int r = json_read_integer(in, 0, UINT32_MAX, at);

	return r < 0 ? r : 0;
}

const struct field_type field_said = { .init = said_init, .read = said_read };
