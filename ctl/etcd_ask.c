/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/etcd_ask.h"

#include <errno.h>
#include <string.h>

#include "lib/etcd/store_etcd.h"
#include "lib/store/store_ops.h"

struct asked {
	struct err *err;
	int result; /* 1: not answered yet */
};

static void on_asked(const struct store_reply *reply, void *arg)
{
	struct asked *a = arg;

	a->result = reply->err && strstr(reply->text, "already exists") ? -EEXIST : reply->err;
	if (reply->err)
		err_set(a->err, a->result, "%s", reply->text);
}

int etcd_ask(struct ctl *ctl, const char *path, struct tree *body, struct json_object **ret,
	     struct err *err)
{
	AUTO(json_put) struct json_object *answer = NULL;
	AUTO(free) char *text = NULL;
	struct asked asked = { err, 1 };
	struct store *store = NULL;
	int r = tree_end_text(body, &text);

	r = r ?: ctl_store(ctl, &store, err);
	if (r < 0)
		return r;
	r = store_etcd_ask(store, path, text, ctl->timeout_ms, on_asked, &asked, &answer, NULL);
	while (store && r >= 0 && asked.result > 0)
		r = store->ops->turn(store, 1000);
	r = r < 0 ? r : asked.result;
	if (r == 0 && ret)
		*ret = TAKE(answer);
	return ctl_etcd_failed(r, err);
}
