/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/frame/watch.h"

#include <errno.h>

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
			return err_set(err, r, "out of memory");
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
