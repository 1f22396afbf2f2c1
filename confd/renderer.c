/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/renderer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/files.h"
#include "lib/base/names.h"

/* --- templates by name ---------------------------------------------------------------------- */

#define SUFFIX ".mustache"

/* A path that was looked at, and what was there; all zero: nothing. */
struct seen {
	char *path;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct template_dir {
	char *folders[TEMPLATE_DIRS_MAX];
	size_t n_folders;
	struct seen *seen;
	size_t n_seen;
};

int template_dir_new(const char *const *folders, size_t n, struct template_dir **ret)
{
	AUTO(template_dir_free) struct template_dir *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (n > TEMPLATE_DIRS_MAX)
		return -EINVAL;
	for (; t->n_folders < n; t->n_folders++) {
		t->folders[t->n_folders] = strdup(folders[t->n_folders]);
		if (!t->folders[t->n_folders])
			return -ENOMEM;
	}
	*ret = TAKE(t);
	return 0;
}

static void forget(struct template_dir *t)
{
	for (size_t i = 0; i < t->n_seen; i++)
		free(t->seen[i].path);
	free(TAKE(t->seen));
	t->n_seen = 0;
}

void template_dir_free(struct template_dir *t)
{
	if (!t)
		return;
	forget(t);
	for (size_t i = 0; i < t->n_folders; i++)
		free(t->folders[i]);
	free(t);
}

/* --- names ---------------------------------------------------------------------------------- */

static bool has_suffix(const char *name)
{
	size_t n = strlen(name), s = strlen(SUFFIX);

	return n > s && strcmp(name + n - s, SUFFIX) == 0;
}

int template_name_check(const char *name, struct err *err)
{
	char shown[SHOW_TEXT];
	bool good = *name && strlen(name) <= 200;

	for (const char *part = name; part && good; part = strchr(part, '/')) {
		part += part != name;
		/* "", "." and "..": not the start of a name. Hidden files are no templates. */
		good = *part && *part != '/' && *part != '.';
	}
	for (const char *p = name; *p && good; p++)
		good = (unsigned char)*p >= 0x20 && *p != 0x7f;
	if (good)
		return 0;
	return err_set(err, -EINVAL,
		       "\"%s\" is not the name of a template: parts separated by '/', none empty, "
		       "none beginning with '.', at most 200 bytes",
		       text_show(name, shown));
}

/* --- files ---------------------------------------------------------------------------------- */

static struct seen look(const char *path)
{
	struct seen s = { 0 };
	struct stat st;

	if (stat(path, &st) < 0)
		return s;
	return (struct seen){
		.dev = st.st_dev, .ino = st.st_ino, .size = st.st_size, .mtime = st.st_mtim
	};
}

static bool same(const struct seen *a, const struct seen *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec;
}

/* Before it is read: what changes in between is then seen as a change. The first look counts. */
static int remember(struct template_dir *t, const char *path)
{
	struct seen *grown, s;

	for (size_t i = 0; i < t->n_seen; i++)
		if (strcmp(t->seen[i].path, path) == 0)
			return 0;
	grown = reallocarray(t->seen, t->n_seen + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->seen = grown;
	s = look(path);
	s.path = strdup(path);
	if (!s.path)
		return -ENOMEM;
	t->seen[t->n_seen++] = s;
	return 0;
}

bool template_dir_changed(struct template_dir *t)
{
	for (size_t i = 0; i < t->n_seen; i++) {
		struct seen now = look(t->seen[i].path);

		if (!same(&now, &t->seen[i])) {
			forget(t);
			return true;
		}
	}
	return false;
}

/* Symbolic links are the operator's business: that is how Kubernetes mounts files. */
static int read_template(const char *path, char **ret, size_t *ret_len, struct err *err)
{
	char real[PATH_MAX];
	int r = realpath(path, real) ? file_read(AT_FDCWD, real, TEMPLATE_SIZE_MAX, ret, ret_len)
				     : -errno;

	if (r == -ENOENT || r == -ENOTDIR)
		return -ENOENT;
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int template_dir_load(const char *name, char **ret_text, size_t *ret_len, void *arg,
		      struct err *err)
{
	struct template_dir *t = arg;
	char path[PATH_MAX];
	int r = template_name_check(name, err);

	for (size_t i = 0; i < t->n_folders && r == 0; i++) {
		if (snprintf(path, sizeof(path), "%s/%s%s", t->folders[i], name,
			     has_suffix(name) ? "" : SUFFIX) >= (int)sizeof(path))
			return err_set(err, -ENAMETOOLONG, "%s: the path is too long", name);
		r = remember(t, path);
		r = r ?: read_template(path, ret_text, ret_len, err);
		if (r != -ENOENT)
			return r;
		r = 0;
	}
	return r ?: err_set(err, -ENOENT, "there is no template \"%s\"", name);
}

/* --- one template, ready to be rendered ----------------------------------------------------- */

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
