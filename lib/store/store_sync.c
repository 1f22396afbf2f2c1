/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store_sync.h"

#include "lib/store/store_ops.h"

struct waiting {
	store_reply_fn *fn;
	void *arg;
	struct err *err;
	bool done;
	int result;
};

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct waiting *w = arg;

	if (reply->err)
		err_set(w->err, reply->err, "%s", reply->text);
	if (w->fn)
		w->fn(reply, w->arg);
	w->result = reply->err;
	w->done = !reply->more;
}

static int wait_for(struct store *s, struct waiting *w, int started, struct store_call **call)
{
	if (started < 0)
		return err_set(w->err, started, "the request could not be sent");
	while (!w->done) {
		int r = s->ops->turn(s, 1000);

		if (r < 0) {
			store_cancel(*call);
			return err_set(w->err, r, "the event loop failed");
		}
	}
	return w->result;
}

int store_sync_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct err *err)
{
	struct waiting w = { fn, arg, err, false, 0 };
	struct store_call *call = NULL;

	return wait_for(s, &w, store_txn(s, txn, timeout_ms, on_reply, &w, &call), &call);
}

int store_sync_list(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		    store_reply_fn *fn, void *arg, struct err *err)
{
	struct waiting w = { fn, arg, err, false, 0 };
	struct store_call *call = NULL;

	return wait_for(s, &w, store_list(s, key, range_end, timeout_ms, on_reply, &w, &call),
			&call);
}

int store_sync_get(struct store *s, const char *key, uint32_t timeout_ms, store_reply_fn *fn,
		   void *arg, struct err *err)
{
	struct waiting w = { fn, arg, err, false, 0 };
	struct store_call *call = NULL;

	return wait_for(s, &w, store_get(s, key, timeout_ms, on_reply, &w, &call), &call);
}

int store_sync_put(struct store *s, const char *key, const char *value, int64_t lease,
		   uint32_t timeout_ms, struct err *err)
{
	struct waiting w = { NULL, NULL, err, false, 0 };
	struct store_call *call = NULL;

	return wait_for(s, &w, store_put(s, key, value, lease, timeout_ms, on_reply, &w, &call),
			&call);
}

int store_sync_delete(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		      struct err *err)
{
	struct waiting w = { NULL, NULL, err, false, 0 };
	struct store_call *call = NULL;

	return wait_for(s, &w, store_delete(s, key, range_end, timeout_ms, on_reply, &w, &call),
			&call);
}
