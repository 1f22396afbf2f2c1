/* SPDX-License-Identifier: Apache-2.0 */
/* get and apply: records as they are stored, out and in. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/verbs.h"
#include "ctl/records/assign.h"
#include "ctl/records/change.h"
#include "ctl/records/effect.h"
#include "ctl/records/record_verbs.h"
#include "ctl/records/records_text.h"
#include "lib/json/tree.h"

/* --- apply ---------------------------------------------------------------------------------- */

struct applying {
	struct ctl *ctl;
	struct world world;
	struct change_list changes;   /* those that change something */
	struct json_object *outcomes; /* {"kind", "name", "done"} of all */
};

static void applying_done(struct applying *a)
{
	world_done(&a->world);
	change_list_done(&a->changes);
	json_object_put(a->outcomes);
}

static int add_outcome(struct applying *a, const struct kind *kind, const char *name,
		       const char *done)
{
	struct tree t = tree_new();

	tree_text(&t, "kind", kind->name);
	tree_some_text(&t, "name", name);
	tree_text(&t, "done", done);
	if (a->ctl->settings->dry_run)
		tree_bool(&t, "dryRun", true);
	return tree_end_in(&t, a->outcomes);
}

static bool is_twice(const struct applying *a, const char *key)
{
	for (size_t i = 0; i < a->changes.n; i++)
		if (strcmp(a->changes.v[i].key, key) == 0)
			return true;
	return false;
}

static int compare_stored(struct applying *a, const struct kind *kind, const char *key,
			  struct json_object *fields, struct ctl_kvs *own,
			  const struct ctl_kv **ret, bool *ret_same, struct err *err)
{
	AUTO(json_put) struct json_object *old = NULL;
	const struct ctl_kvs *in = world_of(&a->world, kind);
	int r = in ? 0 : ctl_read_one(a->ctl, key, own, err);

	if (r < 0)
		return r;
	*ret = ctl_find(in ?: own, key);
	*ret_same = *ret && json_parse((*ret)->value, (*ret)->value_len, &old, NULL) == 0 &&
		    json_object_equal(old, fields);
	return 0;
}

static int apply_one(const struct kind *kind, const char *name, struct json_object *fields,
		     void *arg, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs own = { 0 };
	struct applying *a = arg;
	const struct ctl_kv *kv = NULL;
	char key[KEY_TEXT], field[128];
	char *value = NULL;
	bool same = false;
	int r = kind_key(kind, name, key, err);

	r = r < 0 ? r : compare_stored(a, kind, key, fields, &own, &kv, &same, err);
	if (r < 0)
		return r;
	/* What is stored already is no news: get | apply must go through. */
	if (!same && assign_unknown(record_of(kind->key), fields, field)) {
		assign_refuse_unknown(record_of(kind->key), field, err);
		return err_wrap(err, -EINVAL, "%s", key);
	}
	if (is_twice(a, key))
		return err_set(err, -EINVAL, "%s appears twice", key);
	r = json_print(fields, &value);
	if (r == 0)
		r = change_list_add(&a->changes, kind, key, value, kv ? kv->mod_revision : 0);
	if (r == 0)
		r = add_outcome(a, kind, name, same ? "unchanged" : kv ? "changed" : "created");
	return r;
}

/* Records that stay as they are were checked with the others, but are not written. */
static void drop_unchanged(struct applying *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->changes.n; i++) {
		struct json_object *done = out_at(json_object_array_get_idx(a->outcomes, i),
						  "done");

		if (strcmp(json_object_get_string(done), "unchanged") == 0)
			free(a->changes.v[i].value);
		else
			a->changes.v[kept++] = a->changes.v[i];
	}
	a->changes.n = kept;
}

static int apply_text(struct ctl *ctl, const char *text, size_t len, struct json_object **ret,
		      struct err *err)
{
	AUTO_DONE(applying_done)
	struct applying a = { .ctl = ctl, .outcomes = json_object_new_array() };
	int r;

	if (!a.outcomes)
		return -ENOMEM;
	r = world_read(ctl, &a.world, err);
	r = r < 0 ? r : records_text(text, len, apply_one, &a, err);
	r = r < 0 ? r : change_check(a.changes.v, a.changes.n, &a.world, err);
	if (r < 0)
		return r;
	drop_unchanged(&a);
	if (a.changes.n)
		r = effect_consent(ctl, a.changes.v, a.changes.n, &a.world, NULL, err);
	if (r == 0 && a.changes.n)
		r = change_write(ctl, a.changes.v, a.changes.n, &a.world, err);
	if (r == 0)
		*ret = TAKE(a.outcomes);
	return r;
}

static int read_input(const char *path, char **ret, size_t *ret_len, struct err *err)
{
	bool input = strcmp(path, "-") == 0;
	AUTO(fclose) FILE *in = fopen(input ? "/dev/stdin" : path, "re");
	AUTO(free) char *text = malloc(JSON_SIZE_MAX + 1);

	if (!in)
		return err_set(err, -EIO, "%s: %s", path, strerror(errno));
	if (!text)
		return -ENOMEM;
	*ret_len = fread(text, 1, JSON_SIZE_MAX + 1, in);
	if (ferror(in))
		return err_set(err, -EIO, "%s: %s", path, strerror(errno));
	*ret = TAKE(text);
	return 0;
}

int apply_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *outcomes = NULL;
	AUTO(free) char *text = NULL;
	size_t len = 0;
	int r;

	if (!ctl->settings->file[0])
		return err_set(
			err, CTL_USAGE,
			"apply needs -f FILE (- is standard input), see roostctl apply --help");
	r = read_input(ctl->settings->file, &text, &len, err);
	for (int i = 0; r == 0 && i < CHANGE_TRIES; i++) {
		r = apply_text(ctl, text, len, &outcomes, err);
		if (r != -EBUSY)
			break;
		r = i + 1 < CHANGE_TRIES ? 0 : r;
	}
	if (r < 0)
		return r;
	if (ctl->out.format == OUT_JSON)
		return out_json(&ctl->out, outcomes);
	for (size_t i = 0; r == 0 && i < json_object_array_length(outcomes); i++) {
		struct json_object *o = json_object_array_get_idx(outcomes, i),
				   *name = out_at(o, "name");

		r = out_done(&ctl->out, out_text(o, "kind"),
			     name ? json_object_get_string(name) : "", out_text(o, "done"));
	}
	return r;
}

/* --- get ------------------------------------------------------------------------------------ */

/* What is no JSON cannot be part of any: it is told, and counted by the return. */
static int get_one(const struct kind *kind, const struct ctl_kv *kv, struct json_object *array)
{
	struct json_object *object;
	struct err err = { "" };

	if (kind_object(kind, kv->key, kv->value, kv->value_len, &object, &err) < 0) {
		fprintf(stderr, "roostctl: %s\n", err.text);
		return 1;
	}
	if (json_object_array_add(array, object) < 0) {
		json_object_put(object);
		return -ENOMEM;
	}
	return 0;
}

static const struct out_column get_columns[] = {
	COLUMN("KIND", "kind"),
	COLUMN("NAME", "name"),
	COLUMN("FIELDS", "fields"),
	COLUMNS_END,
};

/* For people: all fields in one cell. */
static int get_table(struct ctl *ctl, struct json_object *array)
{
	AUTO(json_put) struct json_object *table = json_object_new_array();
	int r = 0;

	for (size_t i = 0; table && r == 0 && i < json_object_array_length(array); i++) {
		struct json_object *o = json_object_array_get_idx(array, i), *fields;
		struct tree t = tree_new();

		tree_share(&t, "kind", out_at(o, "kind"));
		tree_share(&t, "name", out_at(o, "name"));
		fields = json_object_new_object();
		if (fields) {
			tree_merge(fields, o);
			json_object_object_del(fields, "kind");
			json_object_object_del(fields, "name");
		}
		tree_add(&t, "fields", fields);
		r = tree_end_in(&t, table);
	}
	return table && r == 0 ? out_list(&ctl->out, table, get_columns, NULL) : -ENOMEM;
}

static int read_kind(struct ctl *ctl, const struct kind *kind, struct ctl_kvs *ret, struct err *err)
{
	char key[KEY_TEXT];
	int r;

	if (ctl->n_args < 2)
		return ctl_read(ctl, kind->beginning, ret, err);
	r = kind_key(kind, ctl->args[1], key, err);
	r = r < 0 ? r : ctl_read_one(ctl, key, ret, err);
	if (r == 0 && ret->n == 0)
		return err_set(err, -ENOENT, "there is no %s %s: see roostctl get %s", kind->name,
			       ctl->args[1], kind->name);
	return r;
}

int get_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	const struct kind *kind;
	bool unread = false;
	int r = kind_need(ctl->args[0], &kind, err);

	r = r < 0 ? r : read_kind(ctl, kind, &kvs, err);
	for (size_t i = 0; r >= 0 && array && i < kvs.n; i++) {
		if (!kind_name(kind, kvs.v[i].key))
			continue;
		r = get_one(kind, &kvs.v[i], array);
		unread = unread || r > 0;
	}
	if (r < 0 || !array)
		return r < 0 ? r : -ENOMEM;
	if (ctl->out.format != OUT_JSON)
		r = get_table(ctl, array);
	else if (ctl->n_args > 1 && json_object_array_length(array) == 1)
		r = out_json(&ctl->out, json_object_array_get_idx(array, 0));
	else
		r = out_json(&ctl->out, array);
	return r < 0 ? r : unread;
}
