/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/renderer.h"

#include <errno.h>
#include <string.h>

#include "confd/template_dir.h"

struct renderer {
	char *name;
	struct template_dir *dir;
	struct mustache_set *set;
};

/* "/a/b.mustache" is b.mustache, looked for in /a first. */
static int open_folders(struct renderer *r, const char *source, const char *folder)
{
	const char *slash = strrchr(source, '/');
	AUTO(free) char *beside = NULL;
	const char *folders[2] = { folder };
	size_t n = 1;

	if (source[0] == '/') {
		beside = strndup(source, (size_t)(slash - source));
		if (!beside)
			return -ENOMEM;
		folders[0] = beside;
		folders[n++] = folder;
		source = slash + 1;
	}
	r->name = strdup(source);
	return r->name ? template_dir_new(folders, n, &r->dir) : -ENOMEM;
}

int renderer_new(const char *source, const char *folder, struct renderer **ret)
{
	AUTO(renderer_free) struct renderer *r = calloc(1, sizeof(*r));
	int rc = r ? open_folders(r, source, folder) : -ENOMEM;

	if (rc < 0)
		return rc;
	*ret = TAKE(r);
	return 0;
}

void renderer_free(struct renderer *r)
{
	if (!r)
		return;
	mustache_set_free(r->set);
	template_dir_free(r->dir);
	free(r->name);
	free(r);
}

int renderer_run(struct renderer *r, struct json_object *data, const struct mustache_options *o,
		 char **ret, size_t *ret_len, struct err *err)
{
	int rc = 0;

	if (template_dir_changed(r->dir))
		mustache_set_free(TAKE(r->set));
	if (!r->set)
		rc = mustache_set_new(template_dir_load, r->dir, &r->set);
	rc = rc ?: mustache_render(r->set, r->name, data, o, ret, ret_len, err);
	/* A template that failed to load may be remembered so; the next time looks again. */
	if (rc < 0)
		mustache_set_free(TAKE(r->set));
	return rc;
}
