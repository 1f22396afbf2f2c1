/* SPDX-License-Identifier: Apache-2.0 */
/* create, edit, set, delete and show of the records that operators write. */
#include "ctl/records/record_verbs.h"

#include <errno.h>
#include <string.h>

#include "ctl/frame/verbs.h"
#include "ctl/records/assign.h"
#include "ctl/records/effect.h"
#include "ctl/records/record_fields.h"
#include "lib/json/tree.h"
#include "lib/model/model.h"

const struct ctl_kvs *world_of(const struct world *world, const struct kind *kind)
{
	switch (kind->key) {
	case KEY_POOL:
		return &world->pools;
	case KEY_PEER:
		return &world->peers;
	case KEY_FILTER:
		return &world->filters;
	default:
		return NULL;
	}
}

int record_need(const struct ctl_kvs *kvs, const struct kind *kind, const char *key,
		const struct ctl_kv **ret, struct err *err)
{
	*ret = ctl_find(kvs, key);
	if (*ret)
		return 0;
	return err_set(err, -ENOENT, "there is no %s %s: see roostctl %s list", kind->name,
		       key + strlen(kind->beginning), kind->name);
}

/* One verb at work: the record that its noun and first argument name, and all it depends on. */
struct work {
	const struct kind *kind;
	const char *name; /* "" for config */
	char key[KEY_TEXT];
	struct world world;
	struct ctl_kvs own;       /* of kinds that the world does not have */
	const struct ctl_kvs *in; /* one of the two: where the record is, if it is there */
	const struct ctl_kv *kv;  /* NULL: absent */
};

static void work_done(struct work *w)
{
	world_done(&w->world);
	ctl_kvs_done(&w->own);
}

static int work_name(struct ctl *ctl, struct work *w, struct err *err)
{
	w->kind = kind_find(ctl->command->noun);
	w->name = kind_is_single(w->kind) ? "" : ctl->args[0];
	return kind_key(w->kind, w->name, w->key, err);
}

static int work_read(struct ctl *ctl, struct work *w, struct err *err)
{
	int r;

	world_done(&w->world);
	ctl_kvs_done(&w->own);
	r = world_read(ctl, &w->world, err);
	w->in = world_of(&w->world, w->kind);
	if (r == 0 && !w->in) {
		r = ctl_read_one(ctl, w->key, &w->own, err);
		w->in = &w->own;
	}
	if (r == 0)
		w->kv = ctl_find(w->in, w->key);
	return r;
}

/* A pool whose blocks are cut otherwise. */
static void tell_extent(const struct work *w, const char *value)
{
	AUTO_DONE(pool_done) struct pool pool = { 0 };
	AUTO_DONE(extent_done) struct extent extent = { 0 };
	const struct ctl_kv *kv;
	struct err err = { "" };
	char key[KEY_TEXT];

	if (pool_decode(w->key, value, strlen(value), &pool, &err) < 0 ||
	    key_extent(key, pool.network, pool.name) < 0)
		return;
	kv = ctl_find(&w->world.extents, key);
	if (kv && extent_decode(KV_ARGS(kv), &extent, &err) == 0 &&
	    pool_differs_from_extent(&pool, &extent, &err) < 0)
		fprintf(stderr, "roostctl: note: %s\n", err.text);
}

/* What is no error, but its operator should know. */
static void tell(struct ctl *ctl, const struct work *w, const char *value)
{
	if (w->kind->key == KEY_POOL)
		tell_extent(w, value);
	if (w->kind->key == KEY_STATIC_ROUTE)
		route_notes(ctl, &w->world, w->key, value);
}

/* Checks and writes one record's new text. */
static int work_put(struct ctl *ctl, struct work *w, struct json_object *object, struct err *err)
{
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	char *value = NULL;
	int r;

	if (json_print(object, &value) < 0 ||
	    change_list_add(&changes, w->kind, w->key, value, w->kv ? w->kv->mod_revision : 0) < 0)
		return -ENOMEM;
	r = change_check(changes.v, changes.n, &w->world, err);
	r = r < 0 ? r : effect_consent(ctl, changes.v, changes.n, &w->world, NULL, err);
	r = r < 0 ? r : change_write(ctl, changes.v, changes.n, &w->world, err);
	for (size_t i = 0; r == 0 && i < changes.n; i++)
		tell(ctl, w, changes.v[i].value);
	return r;
}

/* --- create --------------------------------------------------------------------------------- */

static int create_once(struct ctl *ctl, struct work *w, struct err *err)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	int r;

	if (!object)
		return -ENOMEM;
	r = assign_all(record_of(w->kind->key), ctl->args + 1, ctl->n_args - 1, object, err);
	r = r < 0 ? r : work_read(ctl, w, err);
	if (r < 0)
		return r;
	if (w->kv)
		return err_set(
			err, -EEXIST,
			"%s %s exists already: change it with roostctl %s edit %s FIELD=VALUE",
			w->kind->name, w->name, w->kind->name, w->name);
	return work_put(ctl, w, object, err);
}

int record_create(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(work_done) struct work w = { 0 };
	int r = work_name(ctl, &w, err);

	for (int i = 0; r == 0 && i < CHANGE_TRIES; i++) {
		r = create_once(ctl, &w, err);
		if (r != -EBUSY)
			break;
		r = i + 1 < CHANGE_TRIES ? 0 : r;
	}
	return r < 0 ? r : out_done(&ctl->out, w.kind->name, w.name, "created");
}

/* --- edit, set ------------------------------------------------------------------------------ */

static int parse_stored(const struct work *w, struct json_object **ret, struct err *err)
{
	int r;

	if (!w->kv) {
		*ret = json_object_new_object();
		return *ret ? 0 : -ENOMEM;
	}
	r = json_parse(w->kv->value, w->kv->value_len, ret, err);
	return r < 0 ? err_wrap(err, r, "%s", w->key) : 0;
}

/* 1: nothing to change. */
static int edit_fields(struct ctl *ctl, struct work *w, const char *const *fields, size_t n,
		       struct err *err)
{
	AUTO(json_put) struct json_object *old = NULL, *object = NULL;
	int r = parse_stored(w, &old, err);

	r = r < 0 ? r : parse_stored(w, &object, err);
	r = r < 0 ? r : assign_all(record_of(w->kind->key), fields, n, object, err);
	if (r < 0)
		return r;
	if (w->kv && json_object_equal(old, object))
		return 1;
	return work_put(ctl, w, object, err);
}

static int refuse_unknown(const struct work *w, struct json_object *object, struct err *err)
{
	const struct record *type = record_of(w->kind->key);
	char field[128];

	return assign_unknown(type, object, field) ? assign_refuse_unknown(type, field, err) : 0;
}

static int edit_by_hand(struct ctl *ctl, struct work *w, struct err *err)
{
	AUTO(json_put) struct json_object *old = NULL, *object = NULL;
	AUTO(free) char *path = NULL;
	struct err why;
	int r = parse_stored(w, &old, err);

	r = r < 0 ? r : editor_edit(old, &object, &path, err);
	if (r == 0 && w->kv && json_object_equal(old, object))
		r = 1;
	if (r == 0)
		r = refuse_unknown(w, object, err);
	if (r == 0)
		r = work_put(ctl, w, object, err);
	if (path && r >= 0)
		unlink(path);
	if (path && r < 0) {
		why = *err;
		err_set(err, r, "%s; your text is in %s", why.text, path);
	}
	return r;
}

static int edit(struct ctl *ctl, struct work *w, const char *const *fields, size_t n,
		struct err *err)
{
	int r = 0;

	for (int i = 0; i < CHANGE_TRIES; i++) {
		r = work_read(ctl, w, err);
		if (r == 0 && !w->kv && !kind_is_single(w->kind))
			r = record_need(w->in, w->kind, w->key, &w->kv, err);
		if (r < 0)
			return r;
		r = n ? edit_fields(ctl, w, fields, n, err) : edit_by_hand(ctl, w, err);
		if (r != -EBUSY || n == 0)
			break;
	}
	return r;
}

int record_edit(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(work_done) struct work w = { 0 };
	size_t named;
	int r = work_name(ctl, &w, err);

	if (r < 0)
		return r;
	named = kind_is_single(w.kind) ? 0 : 1;
	r = edit(ctl, &w, ctl->args + named, ctl->n_args - named, err);
	return r < 0 ? r : out_done(&ctl->out, w.kind->name, w.name, r ? "unchanged" : "changed");
}

/* --- delete --------------------------------------------------------------------------------- */

static int touched(struct ctl *ctl, const struct work *w, char **ret, struct err *err)
{
	if (w->kind->key == KEY_POOL)
		return pool_touched(ctl, w->name, ret, err);
	if (asprintf(ret, "%s %s%s", w->kind->name, w->name,
		     w->kind->key == KEY_PEER ? ": its sessions end on every node that has them"
					      : ": no peer uses it") < 0)
		return -ENOMEM;
	return 0;
}

int record_delete(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(work_done) struct work w = { 0 };
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	AUTO(free) char *text = NULL;
	int r = work_name(ctl, &w, err);

	r = r < 0 ? r : work_read(ctl, &w, err);
	r = r < 0 ? r : record_need(w.in, w.kind, w.key, &w.kv, err);
	if (r == 0 && change_list_add(&changes, w.kind, w.key, NULL, w.kv->mod_revision) < 0)
		r = -ENOMEM;
	r = r < 0 ? r : change_check(changes.v, changes.n, &w.world, err);
	r = r < 0 ? r : touched(ctl, &w, &text, err);
	if (r < 0)
		return r;
	fprintf(stderr, "%s\n", text);
	r = effect_consent(ctl, changes.v, changes.n, &w.world, "Delete it?", err);
	r = r < 0 ? r : change_write(ctl, changes.v, changes.n, &w.world, err);
	return r < 0 ? r : out_done(&ctl->out, w.kind->name, w.name, "deleted");
}

/* --- show, rows ----------------------------------------------------------------------------- */

static int show_tree(const struct kind *kind, const char *key, const char *value, size_t len,
		     struct json_object *object, struct err *err)
{
	struct err why = { "" };
	int r = effective(record_of(kind->key), key, value, len, object, &why);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		json_object_object_add(object, "state", json_object_new_string("invalid"));
		json_object_object_add(object, "problem", json_object_new_string(why.text));
	}
	return 0;
}

int record_show(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	AUTO_DONE(work_done) struct work w = { 0 };
	int r = work_name(ctl, &w, err);

	r = r < 0 ? r : ctl_read_one(ctl, w.key, &w.own, err);
	if (r == 0 && !kind_is_single(w.kind))
		r = record_need(&w.own, w.kind, w.key, &w.kv, err);
	if (r < 0)
		return r;
	w.kv = ctl_find(&w.own, w.key);
	if (!object)
		return -ENOMEM;
	if (*w.name)
		json_object_object_add(object, "name", json_object_new_string(w.name));
	/* No config at all means its defaults. */
	r = show_tree(w.kind, w.key, w.kv ? w.kv->value : "{}", w.kv ? w.kv->value_len : 2, object,
		      err);
	return r < 0 ? r : out_show(&ctl->out, object);
}

int record_row(const struct kind *kind, const struct ctl_kv *kv, struct json_object *array)
{
	struct tree t = tree_new();
	int r = 0;

	tree_text(&t, "name", kv->key + strlen(kind->beginning));
	if (!t.failed)
		r = show_tree(kind, kv->key, kv->value, kv->value_len, t.object, NULL);
	if (!t.failed && !out_at(t.object, "state")) {
		struct json_object *off = out_at(t.object, "disabled");

		tree_text(&t, "state", json_object_get_boolean(off) ? "disabled" : "ok");
	}
	if (r < 0)
		t.failed = true;
	return tree_end_in(&t, array);
}
