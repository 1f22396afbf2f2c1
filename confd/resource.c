/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/resource.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "confd/template_dir.h"
#include "lib/base/files.h"
#include "lib/daemon/options.h"
#include "lib/json/json_comments.h"

static const char *const fields[] = { "template", "dest",   "mode",     "owner", "group",
				      "prefix",   "keys",   "prefixes", "check", "reload",
				      "timeout",  "escape", "strict" };

static int refuse_unknown(struct json_object *doc, struct err *err)
{
	char shown[SHOW_TEXT];

	json_object_object_foreach(doc, name, value) {
		bool known = false;

		for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
			known |= strcmp(fields[i], name) == 0;
		if (!known)
			return err_set(err, -EINVAL, "unknown field \"%s\"",
				       text_show(name, shown));
	}
	return 0;
}

/* The check's sentence has no place yet. */
static int placed(struct json_at at, int r, struct err *err)
{
	return r < 0 ? err_wrap(err, r, "field \"%s\"", at.name) : r;
}

static int read_checked(struct json_at at, name_check_fn *check, struct err *err, const char **ret)
{
	int r = json_read_text(at, PATH_MAX - 1, ret);

	return r > 0 ? placed(at, check(*ret, err), err) : r;
}

/* --- single fields -------------------------------------------------------------------------- */

static int source_check(const char *text, struct err *err)
{
	return text[0] == '/' ? path_check(text, err) : template_name_check(text, err);
}

static int prefix_check(const char *text, struct err *err)
{
	return strcmp(text, "/") == 0 ? 0 : key_prefix_check(text, err);
}

static int read_mode(struct json_at at, mode_t *ret)
{
	const char *text;
	char *end;
	int r = json_read_text(at, 8, &text);
	unsigned long mode;

	if (r <= 0)
		return r;
	mode = strtoul(text, &end, 8);
	if (text[0] != '0' || *end || mode > 0777)
		return json_refuse(at, "is not a mode: octal digits in quotes, as \"0640\"");
	*ret = (mode_t)mode;
	return 1;
}

static int read_escape(struct json_at at, bool *ret)
{
	const char *text;
	int r = json_read_text(at, 8, &text);

	if (r <= 0)
		return r;
	if (strcmp(text, "html") != 0 && strcmp(text, "none") != 0)
		return json_refuse(at, "is not one of: none, html");
	*ret = text[0] == 'h';
	return 1;
}

static int read_timeout(struct json_at at, uint32_t *ret)
{
	int64_t seconds;
	int r = json_read_integer(at, 1, 600, &seconds);

	if (r > 0)
		*ret = (uint32_t)seconds * 1000;
	return r;
}

/* --- keys ----------------------------------------------------------------------------------- */

static int check_key(struct json_at at, const char *text, bool may_be_empty)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= 0x20 || text[i] > 0x7e)
			return json_refuse(at, "has characters that no key of ours has");
	if (n > 512 || (n == 0 && !may_be_empty))
		return json_refuse(at, "is not a key: 1 to 512 characters");
	return 0;
}

static int read_keys(struct json_at at, bool may_be_empty, struct texts *ret)
{
	const char **v = NULL;
	size_t n = 0;
	int r = json_read_texts(at, 512, &v, &n);

	if (r <= 0)
		return r;
	ret->v = v;
	ret->n = n;
	for (size_t i = 0; i < n; i++)
		if (check_key(json_element(&at, i), v[i], may_be_empty) < 0)
			return -EINVAL;
	return 1;
}

/* --- commands ------------------------------------------------------------------------------- */

/* The path is put into a shell's line without quotes: only what means the same in and out of them. */
static int command_path_check(const char *text, struct err *err)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "/._-+:@%,=";
	char shown[SHOW_TEXT];

	if (text[strspn(text, set)] == '\0')
		return 0;
	return err_set(
		err, -EINVAL,
		"\"%s\" has characters that a shell might act on: give the command as a list "
		"of words",
		text_show(text, shown));
}

char *command_fill(const char *text, const char *path)
{
	size_t n = 0, len = strlen(path);
	const char *hole;
	char *ret, *to;

	for (hole = text; (hole = strstr(hole, "{}")); hole += 2)
		n++;
	ret = to = malloc(strlen(text) + n * len + 1);
	if (!ret)
		return NULL;
	for (; (hole = strstr(text, "{}")); text = hole + 2) {
		to = mempcpy(to, text, (size_t)(hole - text));
		to = mempcpy(to, path, len);
	}
	memcpy(to, text, strlen(text) + 1);
	return ret;
}

static int read_words(struct json_at at, struct command_text *ret)
{
	const char **v = NULL;
	size_t n = 0;
	int r = json_read_texts(at, JSON_STRING_MAX, &v, &n);

	if (r <= 0)
		return r;
	ret->words = (struct texts){ v, n };
	if (n == 0 || v[0][0] == '\0')
		return json_refuse(at, "is not a command: the program, then its arguments");
	return 1;
}

static int read_command(struct json_at at, const char *dest, struct err *err,
			struct command_text *ret)
{
	int r;

	if (json_object_is_type(at.value, json_type_array))
		return read_words(at, ret);
	if (at.value && !json_object_is_type(at.value, json_type_string))
		return json_refuse(at,
				   "is not a command: a line for the shell, or a list of words");
	r = json_read_text(at, JSON_STRING_MAX, &ret->line);
	if (r <= 0)
		return r;
	if (ret->line[strspn(ret->line, " \t\n")] == '\0')
		return json_refuse(at, "is not a command");
	return strstr(ret->line, "{}") ? placed(at, command_path_check(dest, err), err) : 1;
}

static int read_reload(struct json_at at, struct resource *ret, struct err *err)
{
	struct json_at bird;

	if (!json_object_is_type(at.value, json_type_object))
		return read_command(at, ret->dest, err, &ret->reload);
	if (json_object_object_length(at.value) != 1)
		return json_refuse(at, "is not {\"bird\": \"/run/bird/bird.ctl\"}");
	bird = json_need(&at, "bird");
	return read_checked(bird, path_check, err, &ret->bird);
}

/* --- all together --------------------------------------------------------------------------- */

static int read_file_fields(const struct json_at *root, struct resource *ret, struct err *err)
{
	int r = read_checked(json_need(root, "template"), source_check, err, &ret->source);

	r = r < 0 ? r : read_checked(json_need(root, "dest"), path_check, err, &ret->dest);
	r = r < 0 ? r : read_mode(json_member(root, "mode"), &ret->mode);
	r = r < 0 ? r : read_checked(json_member(root, "owner"), word_check, err, &ret->owner);
	r = r < 0 ? r : read_checked(json_member(root, "group"), word_check, err, &ret->group);
	r = r < 0 ? r : read_escape(json_member(root, "escape"), &ret->html);
	return r < 0 ? r : json_read_bool(json_member(root, "strict"), &ret->strict);
}

static int read_key_fields(const struct json_at *root, struct resource *ret, struct err *err)
{
	int r = read_checked(json_member(root, "prefix"), prefix_check, err, &ret->prefix);

	r = r < 0 ? r : read_keys(json_member(root, "keys"), false, &ret->keys);
	r = r < 0 ? r : read_keys(json_member(root, "prefixes"), true, &ret->prefixes);
	if (r >= 0 && ret->keys.n + ret->prefixes.n == 0)
		return err_set(err, -EINVAL,
			       "neither \"keys\" nor \"prefixes\" says what to read from etcd");
	return r;
}

static int read_all(struct resource *ret, struct err *err)
{
	struct json_at root = json_root(ret->doc, err);
	int r = refuse_unknown(ret->doc, err);

	r = r < 0 ? r : read_file_fields(&root, ret, err);
	r = r < 0 ? r : read_key_fields(&root, ret, err);
	r = r < 0 ? r : read_timeout(json_member(&root, "timeout"), &ret->timeout_ms);
	r = r < 0 ? r : read_command(json_member(&root, "check"), ret->dest, err, &ret->check);
	r = r < 0 ? r : read_reload(json_member(&root, "reload"), ret, err);
	return r < 0 ? r : 0;
}

static int parse(const char *text, size_t len, struct resource *ret, struct err *err)
{
	AUTO(free) char *plain = NULL;
	int r;

	if (len > JSON_SIZE_MAX)
		return err_set(err, -E2BIG, "%zu bytes are too many for a resource", len);
	plain = malloc(len + 1);
	ret->text = strndup(text, len);
	if (!plain || !ret->text)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(plain, text, len);
	plain[len] = '\0';
	r = json_blank_comments(plain, len, err);
	return r ?: json_parse(plain, len, &ret->doc, err);
}

int resource_read(const char *name, const char *text, size_t len, struct resource *ret,
		  struct err *err)
{
	AUTO_DONE(resource_done)
	struct resource r = { .name = strdup(name),
			      .mode = 0640,
			      .timeout_ms = RESOURCE_TIMEOUT_MS,
			      .strict = true };
	int rc = r.name ? 0 : err_set(err, -ENOMEM, "out of memory");

	rc = rc ?: parse(text, len, &r, err);
	rc = rc ?: read_all(&r, err);
	if (rc < 0)
		return rc;
	*ret = r;
	r = (struct resource){ 0 };
	return 0;
}

void resource_done(struct resource *r)
{
	free(r->name);
	free(r->text);
	free(r->keys.v);
	free(r->prefixes.v);
	free(r->check.words.v);
	free(r->reload.words.v);
	json_object_put(r->doc);
	*r = (struct resource){ 0 };
}

/* --- a folder of them ----------------------------------------------------------------------- */

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

static const struct resource *same_dest(const struct resources *all, const char *dest)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].dest ?: "", dest) == 0)
			return &all->v[i];
	return NULL;
}

static int read_file(const struct load *l, const char *path, const char *name, struct resource *ret,
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

static int read_folder(struct load *l)
{
	l->loaded.v = calloc(l->names.n + 1, sizeof(*l->loaded.v));
	if (!l->loaded.v)
		return -ENOMEM;
	for (size_t i = 0; i < l->names.n; i++) {
		const char *name = l->names.v[i];
		struct err err = { "" };
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s" SUFFIX, l->folder, name);
		if (read_file(l, path, name, &l->loaded.v[l->loaded.n], &err) < 0) {
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
	r = read_folder(&l);
	if (r < 0)
		return err_set(err, r, "out of memory");
	*ret = l.loaded;
	l.loaded = (struct resources){ 0 };
	return 0;
}
