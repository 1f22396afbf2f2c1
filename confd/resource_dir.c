/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/resource_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "lib/base/files.h"

#define SUFFIX ".json"

struct load {
	const char *folder, *only;
	resource_bad_fn *bad;
	void *arg;
	struct texts names; /* owned, without the suffix */
	struct resources loaded;
};

void resources_done(struct resources *r)
{
	for (size_t i = 0; i < r->n; i++)
		resource_done(&r->v[i]);
	free(r->v);
	*r = (struct resources){ 0 };
}

static void load_done_auto(struct load *l)
{
	for (size_t i = 0; i < l->names.n; i++)
		free((void *)(uintptr_t)l->names.v[i]);
	free(l->names.v);
	resources_done(&l->loaded);
}

/* --- which ---------------------------------------------------------------------------------- */

static int note(int dir, const char *name, void *arg)
{
	size_t n = strlen(name), s = strlen(SUFFIX);
	struct load *l = arg;
	const char **grown;

	if (n <= s || strcmp(name + n - s, SUFFIX) != 0)
		return 0;
	if (l->only && (strlen(l->only) != n - s || memcmp(l->only, name, n - s) != 0))
		return 0;
	grown = reallocarray(l->names.v, l->names.n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->names.v = grown;
	grown[l->names.n] = strndup(name, n - s);
	return grown[l->names.n] ? (int)(l->names.n++, 0) : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* --- what they say -------------------------------------------------------------------------- */

static const struct resource *same_dest(const struct resources *all, const char *dest)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].dest ?: "", dest) == 0)
			return &all->v[i];
	return NULL;
}

static int read_one(const struct load *l, const char *path, const char *name, struct resource *ret,
		    struct err *err)
{
	AUTO_DONE(resource_done) struct resource r = { 0 };
	AUTO(free) char *text = NULL;
	const struct resource *other;
	size_t len = 0;
	int rc = file_read(AT_FDCWD, path, JSON_SIZE_MAX, &text, &len);

	if (rc < 0) {
		err_set(err, rc, "%s", strerror(-rc));
		return rc;
	}
	rc = resource_read(name, text, len, &r, err);
	if (rc < 0)
		return rc;
	other = same_dest(&l->loaded, r.dest);
	if (other)
		return err_set(err, -EEXIST, "%s is the file of %s already", r.dest, other->name);
	*ret = r;
	r = (struct resource){ 0 };
	return 0;
}

static int read_all(struct load *l)
{
	l->loaded.v = calloc(l->names.n + 1, sizeof(*l->loaded.v));
	if (!l->loaded.v)
		return -ENOMEM;
	for (size_t i = 0; i < l->names.n; i++) {
		const char *name = l->names.v[i];
		struct err err = { "" };
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s" SUFFIX, l->folder, name);
		if (read_one(l, path, name, &l->loaded.v[l->loaded.n], &err) < 0) {
			err_wrap(&err, 0, "%s", path);
			l->bad(name, err.text, l->arg);
		} else {
			l->loaded.n++;
		}
	}
	return 0;
}

int resources_load(const char *folder, const char *only, resource_bad_fn *bad, void *arg,
		   struct resources *ret, struct err *err)
{
	AUTO(load_done) struct load l = { .folder = folder, .only = only, .bad = bad, .arg = arg };
	AUTO(close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : dir_each(dir, note, &l);

	if (r < 0)
		return err_set(err, r, "%s: %s", folder, strerror(-r));
	if (only && l.names.n == 0)
		return err_set(err, -ENOENT, "%s has no resource \"%s\"", folder, only);
	if (l.names.n)
		qsort(l.names.v, l.names.n, sizeof(*l.names.v), by_name);
	r = read_all(&l);
	if (r < 0)
		return err_set(err, r, "out of memory");
	*ret = l.loaded;
	l.loaded = (struct resources){ 0 };
	return 0;
}
