/* SPDX-License-Identifier: Apache-2.0 */
/* A list printed once, or again whenever etcd says that something under it has changed. */
#include <errno.h>
#include <string.h>

#include "ctl/ctl.h"
#include "lib/json.h"
#include "lib/keys.h"

#define QUIET_US    100000U /* changes that come together are printed together */
#define WATCHES_MAX 8

struct watching {
	bool dirty;
};

static void on_put(const struct store_kv *kv, void *arg)
{
	(void)kv;
	((struct watching *)arg)->dirty = true;
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	(void)key;
	(void)revision;
	((struct watching *)arg)->dirty = true;
}

static void on_in_sync(int64_t revision, void *arg)
{
	(void)revision;
	((struct watching *)arg)->dirty = true;
}

static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };

static int start_watches(struct ctl *ctl, struct watching *w, struct err *err)
{
	const char *const *watches = ctl->command->list->watches;
	struct store *store = NULL;
	int r = ctl_store(ctl, &store, err);

	for (size_t i = 0; r == 0 && watches[i]; i++) {
		AUTO(free) char *end = NULL;
		struct store_watch *watch;
		char full[KEY_FULL_TEXT];

		if (key_full(ctl->settings->etcd.prefix, watches[i], full) < 0)
			return err_set(err, -EINVAL, "--prefix is too long");
		end = store_prefix_end(full);
		r = end ? store_watch(store, full, end, &handlers, w, &watch) : -ENOMEM;
		if (r < 0)
			return err_set(err, r, "out of memory");
	}
	return r;
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
	r = out_list_again(&ctl->out, array, list->columns, list->none);
	fflush(ctl->out.to);
	free(*last);
	*last = TAKE(text);
	return r;
}

/* Without handlers on the signals: an interrupt ends it, as it should. */
static int watch(struct ctl *ctl, struct err *err)
{
	struct watching w = { .dirty = true };
	AUTO(free) char *last = NULL;
	int r = start_watches(ctl, &w, err);

	while (r >= 0 && !ferror(ctl->out.to)) {
		AUTO(json_put) struct json_object *array = NULL;

		if (w.dirty) {
			w.dirty = false;
			r = ctl->command->list->read(ctl, &array, err);
			r = r < 0 ? r : print_if_new(ctl, array, &last);
		} else {
			r = sd_event_run(ctl->event, UINT64_MAX);
			/* What comes in the next moment belongs to it. */
			while (r >= 0 && w.dirty && sd_event_run(ctl->event, QUIET_US) > 0)
				;
		}
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
	r = list->read(ctl, &array, err);
	return r < 0 ? r : out_list(&ctl->out, array, list->columns, list->none);
}
