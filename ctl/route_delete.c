/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route delete: the record is marked, every node withdraws the route and then its status, and who
 * finds no status left removes the record: the last node, the controller, or this program.
 */
#include <errno.h>
#include <string.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/record_verbs.h"
#include "lib/base/clock.h"
#include "lib/model/model.h"

struct deletion {
	struct ctl *ctl;
	const struct kind *kind;
	const char *name;
	char key[KEY_TEXT], status[KEY_TEXT];
	struct ctl_kvs record, statuses;
};

static void deletion_done(struct deletion *d)
{
	ctl_kvs_done(&d->record);
	ctl_kvs_done(&d->statuses);
}

static int look(struct deletion *d, struct err *err)
{
	int r;

	ctl_kvs_done(&d->record);
	ctl_kvs_done(&d->statuses);
	r = ctl_read_one(d->ctl, d->key, &d->record, err);
	return r < 0 ? r : ctl_read(d->ctl, d->status, &d->statuses, err);
}

/* The names of those who still report it; free() it. NULL: out of memory. */
static char *reporters(const struct deletion *d)
{
	enum { MOST = 10 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (size_t i = 0; i < d->statuses.n && i < MOST; i++)
		fprintf(out, "%s%s", i ? ", " : "", d->statuses.v[i].key + strlen(d->status));
	if (d->statuses.n > MOST)
		fprintf(out, " and %zu more", d->statuses.n - MOST);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* --- transactions --------------------------------------------------------------------------- */

/* The record with its mark. Of one that is no JSON at all only the mark can be kept. */
static int marked(const struct ctl_kv *kv, char **ret)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct json_object *mark;
	char now[TIME_TEXT];

	if (json_parse(kv->value, kv->value_len, &object, NULL) < 0)
		object = json_object_new_object();
	mark = object ? json_object_new_string(clock_utc_text(now)) : NULL;
	if (!mark)
		return -ENOMEM;
	if (json_object_object_add(object, "deleting", mark) < 0) {
		json_object_put(mark);
		return -ENOMEM;
	}
	return json_print(object, ret);
}

static bool is_marked(const struct ctl_kv *kv)
{
	AUTO_DONE(static_route_head_done) struct static_route_head head = { 0 };

	return static_route_head_decode(KV_ARGS(kv), &head, NULL) == 0 && head.deleting[0];
}

static int mark(struct deletion *d, struct err *err)
{
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	const struct ctl_kv *kv = &d->record.v[0];
	char *value = NULL;

	if (is_marked(kv))
		return 0;
	if (marked(kv, &value) < 0 ||
	    change_list_add(&changes, d->kind, d->key, value, kv->mod_revision) < 0)
		return -ENOMEM;
	return change_write(d->ctl, changes.v, changes.n, NULL, err);
}

/* Marked, and nobody reports it any more: -EBUSY if that is not so when etcd looks. */
static int finish(struct deletion *d, struct err *err)
{
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	const struct ctl_kv *kv = &d->record.v[0];

	if (change_list_add(&changes, d->kind, d->key, NULL, kv->mod_revision) < 0)
		return -ENOMEM;
	changes.v[0].unless = d->status;
	return change_write(d->ctl, changes.v, changes.n, NULL, err);
}

/* --- by and by ------------------------------------------------------------------------------ */

/* 1: it is gone. 0: nodes still report it. */
static int go_on(struct deletion *d, struct err *err)
{
	for (int i = 0; i < CHANGE_TRIES; i++) {
		int r = look(d, err);

		if (r < 0)
			return r;
		if (d->record.n == 0)
			return 1;
		if (!is_marked(&d->record.v[0])) {
			r = mark(d, err);
			if (r < 0 && r != -EBUSY)
				return r;
			continue;
		}
		if (d->statuses.n)
			return 0;
		r = finish(d, err);
		if (r != -EBUSY)
			return r < 0 ? r : 1;
	}
	return err_set(err, -EBUSY, "route %s keeps changing: try again", d->name);
}

static int wait_for_all(struct deletion *d, struct err *err)
{
	const char *const watched[] = { d->key, d->status, NULL };
	struct ctl_watch watch = { 0 };
	size_t last = 0;
	int r = ctl_watch(d->ctl, watched, &watch, err);

	while (r == 0) {
		AUTO(free) char *who = NULL;

		r = go_on(d, err);
		if (r != 0)
			break;
		who = reporters(d);
		if (who && d->statuses.n != last)
			fprintf(stderr, "waiting for %s\n", who);
		last = d->statuses.n;
		r = ctl_watch_next(d->ctl, &watch);
	}
	return r;
}

static int delete_gently(struct deletion *d, struct err *err)
{
	AUTO(free) char *names = reporters(d);
	bool dry_run = d->ctl->settings->dry_run;
	int r;

	fprintf(stderr,
		"route %s: %zu %s%s%s%s; each withdraws it, and the last one deletes the record\n",
		d->name, d->statuses.n, d->statuses.n == 1 ? "node reports it" : "nodes report it",
		d->statuses.n ? " (" : "", names ?: "", d->statuses.n ? ")" : "");
	r = ctl_ask(d->ctl, "Delete it?", err);
	/* A rehearsal shows the first step, and there is nothing to wait for. */
	r = r < 0 ? r : dry_run ? mark(d, err) : go_on(d, err);
	if (r == 0 && !dry_run && d->ctl->settings->wait)
		r = wait_for_all(d, err);
	if (r < 0)
		return r;
	return out_done(&d->ctl->out, d->kind->name, d->name, r ? "deleted" : "deleting");
}

/* --- at once -------------------------------------------------------------------------------- */

/* One transaction: what there is room for, from *at on. */
static int remove_some(struct deletion *d, size_t *at, struct err *err)
{
	enum { PORTION = 100 };
	AUTO_DONE(change_list_done) struct change_list changes = { 0 };
	int r = 0;

	if (*at == 0 && d->record.n)
		r = change_list_add(&changes, d->kind, d->key, NULL, d->record.v[0].mod_revision);
	for (; r == 0 && *at < d->statuses.n && changes.n < PORTION; ++*at)
		r = change_list_add(&changes, d->kind, d->statuses.v[*at].key, NULL,
				    d->statuses.v[*at].mod_revision);
	if (r < 0)
		return r;
	return changes.n ? change_write(d->ctl, changes.v, changes.n, NULL, err) : 0;
}

/* The record goes with the first, so that nobody reports anew. */
static int remove_all(struct deletion *d, struct err *err)
{
	size_t at = 0;
	int r;

	do
		r = remove_some(d, &at, err);
	while (r == 0 && at < d->statuses.n);
	return r;
}

static int delete_by_force(struct deletion *d, struct err *err)
{
	AUTO(free) char *who = reporters(d);
	int r;

	fprintf(stderr,
		"route %s: the record is deleted at once, and with it the reports of %zu %s%s%s. A "
		"node whose agent is down keeps the route in its kernel until the agent starts "
		"again\n",
		d->name, d->statuses.n, d->statuses.n == 1 ? "node" : "nodes",
		d->statuses.n ? ": " : "", who ?: "");
	r = ctl_ask(d->ctl, "Delete it?", err);
	for (int i = 0; r == 0 && i < CHANGE_TRIES; i++) {
		r = remove_all(d, err);
		if (r != -EBUSY)
			break;
		r = look(d, err);
		r = r < 0 ? r : i + 1 < CHANGE_TRIES ? 0 : -EBUSY;
	}
	return r < 0 ? r : out_done(&d->ctl->out, d->kind->name, d->name, "deleted");
}

int route_delete(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(deletion_done)
	struct deletion d = { .ctl = ctl, .kind = kind_find("route"), .name = ctl->args[0] };
	bool force = ctl->settings->force;
	int r = kind_key(d.kind, d.name, d.key, err);

	if (r == 0 && force && ctl->settings->wait)
		return err_set(err, CTL_USAGE, "--force does not wait: omit --wait");
	r = r < 0 ? r : keys_of_static_route_status(d.status, d.name);
	r = r < 0 ? r : look(&d, err);
	if (r < 0)
		return r;
	if (d.record.n == 0 && !(force && d.statuses.n)) {
		const struct ctl_kv *none;

		return record_need(&d.record, d.kind, d.key, &none, err);
	}
	return force ? delete_by_force(&d, err) : delete_gently(&d, err);
}
