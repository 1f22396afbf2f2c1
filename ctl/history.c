/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history: who did what. Each entry of the log has the revision of what was written with it, so the
 * older versions that etcd still has are shown with their author.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/etcd_ask.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/kind.h"
#include "lib/base/base64.h"
#include "lib/json/json.h"
#include "lib/model/model.h"

#define VERSIONS_MAX 50

static void add_entry(struct tree *t, const struct history_entry *e)
{
	tree_text(t, "when", e->when);
	tree_text(t, "user", e->user);
	tree_text(t, "host", e->host);
	if (e->sudo_user[0])
		tree_printf(t, "sudoUser", "%s (claimed)", e->sudo_user);
	tree_text(t, "command", e->command);
}

/* What it did to this key; NULL: nothing. */
static const char *done_to(const struct history_entry *e, const char *key, bool beginning)
{
	for (size_t i = 0; i < e->changes.n; i++)
		if (beginning ? strncmp(e->changes.v[i].key, key, strlen(key)) == 0
			      : strcmp(e->changes.v[i].key, key) == 0)
			return e->changes.v[i].done;
	return NULL;
}

/* --- the log -------------------------------------------------------------------------------- */

static int log_row(const struct ctl_kv *kv, const char *key, bool beginning,
		   struct json_object *array)
{
	AUTO_DONE(history_entry_done) struct history_entry e = { 0 };
	struct tree t;

	if (history_entry_decode(KV_ARGS(kv), &e, NULL) < 0 ||
	    (key && !done_to(&e, key, beginning)))
		return 0;
	t = tree_new();
	add_entry(&t, &e);
	tree_open(&t, "changes", '[');
	for (size_t i = 0; i < e.changes.n; i++)
		tree_printf(&t, NULL, "%s %s", e.changes.v[i].key, e.changes.v[i].done);
	tree_close(&t);
	tree_number(&t, "revision", kv->mod_revision);
	return tree_end_in(&t, array);
}

/* --- versions of one record ----------------------------------------------------------------- */

static const struct ctl_kv *entry_of(const struct ctl_kvs *log, int64_t revision)
{
	for (size_t i = 0; i < log->n; i++)
		if (log->v[i].mod_revision == revision)
			return &log->v[i];
	return NULL;
}

static int version_row(const struct ctl_kvs *log, const char *key, int64_t revision,
		       const char *value, struct json_object *array)
{
	AUTO_DONE(history_entry_done) struct history_entry e = { 0 };
	const struct ctl_kv *entry = entry_of(log, revision);
	struct tree t = tree_new();

	if (entry && history_entry_decode(KV_ARGS(entry), &e, NULL) == 0) {
		add_entry(&t, &e);
		tree_some_text(&t, "done", done_to(&e, key, false));
	}
	tree_number(&t, "revision", revision);
	tree_some_text(&t, "record", value);
	return tree_end_in(&t, array);
}

/* The record as it was at a revision; 0: now. 1: it was absent, or etcd has compacted that. */
static int read_at(struct ctl *ctl, const char *key, int64_t revision, char **ret, int64_t *ret_mod,
		   struct err *err)
{
	AUTO(json_put) struct json_object *answer = NULL;
	char full[KEY_FULL_TEXT], coded[BASE64_LENGTH(KEY_FULL_TEXT) + 1];
	struct json_object *kvs, *kv;
	const char *value;
	struct tree t = tree_new();
	ssize_t r;

	if (key_full(ctl->settings->etcd.prefix, key, full) < 0)
		return err_set(err, -EINVAL, "--prefix is too long");
	base64_encode(full, strlen(full), coded);
	tree_text(&t, "key", coded);
	if (revision)
		tree_number(&t, "revision", revision);
	r = etcd_ask(ctl, "/v3/kv/range", &t, &answer, err);
	if (r < 0)
		return revision && (r == -ESTALE || r == -ERANGE) ? 1 : (int)r;
	kvs = out_at(answer, "kvs");
	if (!kvs || json_object_array_length(kvs) == 0)
		return 1;
	kv = json_object_array_get_idx(kvs, 0);
	*ret_mod = strtoll(out_text(kv, "mod_revision"), NULL, 10);
	value = out_text(kv, "value");
	*ret = calloc(1, strlen(value) + 1);
	if (!*ret)
		return -ENOMEM;
	r = base64_decode(value, strlen(value), *ret);
	return r < 0 ? err_set(err, -EBADMSG, "etcd answers with a value that is not base64") : 0;
}

/* The newest entry about the key before a revision: 0, there is none. */
static int64_t logged_before(const struct ctl_kvs *log, const char *key, int64_t before)
{
	for (size_t i = log->n; i > 0; i--) {
		AUTO_DONE(history_entry_done) struct history_entry e = { 0 };
		const struct ctl_kv *kv = &log->v[i - 1];

		if (kv->mod_revision < before && history_entry_decode(KV_ARGS(kv), &e, NULL) == 0 &&
		    done_to(&e, key, false))
			return kv->mod_revision;
	}
	return 0;
}

/* From the newest back: as far as etcd goes with the record, then what the log has. */
static int add_versions(struct ctl *ctl, const struct ctl_kvs *log, const char *key,
			struct json_object *array, struct err *err)
{
	int64_t before = INT64_MAX;

	for (int i = 0; i < VERSIONS_MAX && before > 1; i++) {
		AUTO(free) char *value = NULL;
		int64_t revision = 0;
		int r = read_at(ctl, key, i ? before - 1 : 0, &value, &revision, err);

		if (r < 0)
			return r;
		if (r == 1)
			revision = logged_before(log, key, before);
		if (revision == 0)
			return 0;
		if (version_row(log, key, revision, value, array) < 0)
			return -ENOMEM;
		before = revision;
	}
	return 0;
}

static const struct out_column log_columns[] = {
	COLUMN("WHEN", "when"),       COLUMN("USER", "user"),
	COLUMN("HOST", "host"),       COLUMN("SUDO", "sudoUser"),
	COLUMN("COMMAND", "command"), WIDE("CHANGES", "changes"),
	WIDE("REVISION", "revision"), COLUMNS_END,
};

static const struct out_column version_columns[] = {
	COLUMN("REVISION", "revision"), COLUMN("WHEN", "when"),
	COLUMN("USER", "user"),         COLUMN("HOST", "host"),
	COLUMN("SUDO", "sudoUser"),     COLUMN("COMMAND", "command"),
	COLUMN("RECORD", "record"),     COLUMNS_END,
};

static int by_revision(const void *a, const void *b)
{
	const struct ctl_kv *x = a, *y = b;

	return (x->mod_revision > y->mod_revision) - (x->mod_revision < y->mod_revision);
}

int history_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs log = { 0 };
	const struct kind *kind = NULL;
	char key[KEY_TEXT];
	bool one = ctl->n_args > 1 || (ctl->n_args && strcmp(ctl->args[0], "config") == 0);
	int r = ctl->n_args ? kind_need(ctl->args[0], &kind, err) : 0;

	r = r < 0 || !one ? r : kind_key(kind, ctl->n_args > 1 ? ctl->args[1] : "", key, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_HISTORY, &log, err);
	if (r < 0 || !array)
		return r < 0 ? r : -ENOMEM;
	/* The names of entries have the clocks of their hosts, the revisions are etcd's. */
	if (log.n)
		qsort(log.v, log.n, sizeof(*log.v), by_revision);
	if (one)
		r = add_versions(ctl, &log, key, array, err);
	for (size_t i = log.n; !one && r == 0 && i > 0; i--)
		r = log_row(&log.v[i - 1], kind ? kind->beginning : NULL, kind, array);
	return r < 0 ? r
		     : out_list(&ctl->out, array, one ? version_columns : log_columns,
				"roostctl has changed nothing that is still known");
}
