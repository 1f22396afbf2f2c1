/* SPDX-License-Identifier: Apache-2.0 */
/* Watches of etcd, and lists: printed once, or again whenever something below them changes. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/ctl.h"
#include "lib/json/json.h"
#include "lib/model/keys.h"

#define QUIET_US 100000U /* changes that come together are told together */

static void on_put(const struct store_kv *kv, void *arg)
{
	((struct ctl_watch *)arg)->dirty = true;
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	((struct ctl_watch *)arg)->dirty = true;
}

static void on_in_sync(int64_t revision, void *arg)
{
	((struct ctl_watch *)arg)->dirty = true;
}

static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };

int ctl_watch(struct ctl *ctl, const char *const *beginnings, struct ctl_watch *w, struct err *err)
{
	struct store *store = NULL;
	int r = ctl_store(ctl, &store, err);

	for (size_t i = 0; r == 0 && beginnings[i]; i++) {
		AUTO(free) char *end = NULL;
		struct store_watch *watch;
		char full[KEY_FULL_TEXT];

		if (key_full(ctl->settings->etcd.prefix, beginnings[i], full) < 0)
			return err_set(err, -EINVAL, "--prefix is too long");
		end = store_prefix_end(full);
		r = end ? store_watch(store, full, end, &handlers, w, &watch) : -ENOMEM;
		if (r < 0)
			return r;
	}
	return r;
}

int ctl_watch_next(struct ctl *ctl, struct ctl_watch *w)
{
	int r = 0;

	while (r >= 0 && !w->dirty)
		r = sd_event_run(ctl->event, UINT64_MAX);
	while (r >= 0 && sd_event_run(ctl->event, QUIET_US) > 0)
		;
	w->dirty = false;
	return r < 0 ? r : 0;
}

/* --- lists ---------------------------------------------------------------------------------- */

int ctl_rows(struct ctl *ctl, const char *beginning, command_row_fn *row, void *arg,
	     struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	int r = array ? ctl_read(ctl, beginning, &kvs, err) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < kvs.n; i++)
		r = row(&kvs.v[i], arg, array);
	if (r == 0)
		*ret = TAKE(array);
	return r;
}

static int read_list(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	const struct command_list *list = ctl->command->list;

	return list->read ? list->read(ctl, ret, err)
			  : ctl_rows(ctl, list->beginning, list->row, ctl, ret, err);
}

/* Only what differs from the last time; *last is the text of that. */
static int print_if_new(struct ctl *ctl, struct json_object *array, char **last)
{
	const struct command_list *list = ctl->command->list;
	AUTO(free) char *text = NULL;
	int r = 0;

	text = strdup(json_object_to_json_string_ext(array, JSON_C_TO_STRING_PLAIN) ?: "");
	if (!text)
		return -ENOMEM;
	if (*last && strcmp(*last, text) == 0)
		return 0;
	if (*last && ctl->out.format != OUT_JSON)
		fputc('\n', ctl->out.to);
	r = ctl->out.format == OUT_JSON ? out_json_line(&ctl->out, array)
					: out_list(&ctl->out, array, list->columns, list->none);
	fflush(ctl->out.to);
	free(*last);
	*last = TAKE(text);
	return r;
}

static int watch(struct ctl *ctl, struct err *err)
{
	const struct command_list *list = ctl->command->list;
	struct ctl_watch w = { 0 };
	AUTO(free) char *last = NULL;
	int r = ctl_watch(ctl, list->watches ?: (const char *const[]){ list->beginning, NULL }, &w,
			  err);

	while (r >= 0 && !ferror(ctl->out.to)) {
		AUTO(json_put) struct json_object *array = NULL;

		r = read_list(ctl, &array, err);
		r = r < 0 ? r : print_if_new(ctl, array, &last);
		r = r < 0 ? r : ctl_watch_next(ctl, &w);
	}
	return r < 0 ? r : 0;
}

int ctl_list(struct ctl *ctl, struct err *err)
{
	const struct command_list *list = ctl->command->list;
	AUTO(json_put) struct json_object *array = NULL;
	int r;

	if (ctl->settings->watch)
		return watch(ctl, err);
	r = read_list(ctl, &array, err);
	return r < 0 ? r : out_list(&ctl->out, array, list->columns, list->none);
}
