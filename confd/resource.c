/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/resource.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "confd/renderer.h"
#include "lib/base/files.h"
#include "lib/daemon/options.h"
#include "lib/json/fields.h"
#include "lib/json/json_comments.h"

/* --- single fields -------------------------------------------------------------------------- */

static int source_check(const char *text, struct err *err)
{
	return text[0] == '/' ? path_check(text, err) : template_name_check(text, err);
}

static int prefix_check(const char *text, struct err *err)
{
	return strcmp(text, "/") == 0 ? 0 : key_prefix_check(text, err);
}

static int mode_read(const struct field *f, struct json_at in, void *at)
{
	const char *text;
	char *end;
	int r = json_read_text(in, 8, &text);
	unsigned long mode;

	if (r < 0)
		return r;
	mode = strtoul(text, &end, 8);
	if (text[0] != '0' || *end || mode > 0777)
		return json_refuse(in, "is not a mode: octal digits in quotes, as \"0640\"");
	*(mode_t *)at = (mode_t)mode;
	return 0;
}

static int key_prefix_or_whole(const char *text, struct err *err)
{
	size_t n = strlen(text);
	char shown[SHOW_TEXT];

	for (size_t i = 0; i < n; i++)
		if (text[i] <= 0x20 || text[i] > 0x7e)
			return err_set(
				err, -EINVAL,
				"\"%s\" is not a key: it has a blank or a character outside ASCII",
				text_show(text, shown));
	if (n > 512)
		return err_set(err, -EINVAL, "\"%s\" is not a key: 1 to 512 characters",
			       text_show(text, shown));
	return 0;
}

static int key_check(const char *text, struct err *err)
{
	return *text ? key_prefix_or_whole(text, err)
		     : err_set(err, -EINVAL, "\"\" is not a key: 1 to 512 characters");
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

static const struct field word = { ELEMENT(borrowed) };
static const struct field words = { LIST(command_text, words, NULL, &word) };

static int command_read(const struct field *f, struct json_at in, void *at)
{
	struct command_text *command = at;
	int r;

	if (json_object_is_type(in.value, json_type_array)) {
		r = field_list.read(&words, in, &command->words);
		if (r == 0 && (command->words.n == 0 || !command->words.v[0][0]))
			r = json_refuse(in, "is not a command: the program, then its arguments");
		return r;
	}
	if (!json_object_is_type(in.value, json_type_string))
		return json_refuse(in,
				   "is not a command: a line for the shell, or a list of words");
	r = json_read_text(in, JSON_STRING_MAX, &command->line);
	if (r > 0 && command->line[strspn(command->line, " \t\n")] == '\0')
		return json_refuse(in, "is not a command");
	return r < 0 ? r : 0;
}

static const struct field bird_fields[] = {
	{ FIELD(resource, bird, "bird", borrowed), .required = true, .check = path_check },
};

/* Of the whole resource: a command, or BIRD's control socket. */
static int reload_read(const struct field *f, struct json_at in, void *at)
{
	struct resource *resource = at;

	if (!json_object_is_type(in.value, json_type_object))
		return command_read(f, in, &resource->reload);
	if (json_object_object_length(in.value) != 1)
		return json_refuse(in, "is not {\"bird\": \"/run/bird/bird.ctl\"}");
	return fields_read(bird_fields, ARRAY_SIZE(bird_fields), &in, at);
}

/* --- all together --------------------------------------------------------------------------- */

static const struct field_type field_mode = { .read = mode_read };
static const struct field_type field_command = { .read = command_read };
static const struct field_type field_reload = { .read = reload_read };
typedef mode_t field_c_mode;
typedef struct command_text field_c_command;

static const char *const escapes[] = { "none", "html", NULL };
static const struct field key = { ELEMENT(borrowed), .check = key_check };
static const struct field prefix = { ELEMENT(borrowed), .check = key_prefix_or_whole };
static const struct field fields[] = {
	{ FIELD(resource, source, "template", borrowed), .required = true, .check = source_check },
	{ FIELD(resource, dest, "dest", borrowed), .required = true, .check = path_check },
	{ FIELD(resource, mode, "mode", mode) },
	{ FIELD(resource, owner, "owner", borrowed), .check = word_check },
	{ FIELD(resource, group, "group", borrowed), .check = word_check },
	{ FIELD(resource, escape, "escape", choice), .choices = escapes },
	{ FIELD(resource, strict, "strict", flag) },
	{ FIELD(resource, prefix, "prefix", borrowed), .check = prefix_check },
	{ LIST(resource, keys, "keys", &key) },
	{ LIST(resource, prefixes, "prefixes", &prefix) },
	{ FIELD(resource, timeout_s, "timeout", number), .min = 1, .max = 600 },
	{ FIELD(resource, check, "check", command) },
	{ .name = "reload", .type = &field_reload },
};

static int refuse_unknown(struct json_object *doc, struct err *err)
{
	char shown[SHOW_TEXT];

	json_object_object_foreach(doc, name, value) {
		bool known = false;

		for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
			known |= strcmp(fields[i].name, name) == 0;
		if (!known)
			return err_set(err, -EINVAL, "unknown field \"%s\"",
				       text_show(name, shown));
	}
	return 0;
}

static int check_line(const char *name, const struct command_text *command, const char *dest,
		      struct err *err)
{
	if (!command->line || !strstr(command->line, "{}") || command_path_check(dest, err) == 0)
		return 0;
	return err_wrap(err, -EINVAL, "field \"%s\"", name);
}

static int read_all(struct resource *ret, struct err *err)
{
	struct json_at root = json_root(ret->doc, err);
	int r = refuse_unknown(ret->doc, err);

	r = r ?: fields_read(fields, ARRAY_SIZE(fields), &root, ret);
	if (r == 0 && ret->keys.n + ret->prefixes.n == 0)
		r = err_set(err, -EINVAL,
			    "neither \"keys\" nor \"prefixes\" says what to read from etcd");
	r = r ?: check_line("check", &ret->check, ret->dest, err);
	return r ?: check_line("reload", &ret->reload, ret->dest, err);
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
	struct resource r = {
		.name = strdup(name), .mode = 0640, .timeout_s = RESOURCE_TIMEOUT_S, .strict = true
	};
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
	other = same_dest(&l->loaded, r.dest ?: "");
	if (other)
		return err_set(err, -EEXIST, "%s is already the file of %s", r.dest, other->name);
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
