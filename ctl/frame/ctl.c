/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/frame/ctl.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/cni/local_client.h"
#include "lib/daemon/program.h"
#include "lib/json/json.h"
#include "lib/model/keys.h"
#include "lib/store/store_sync.h"

/* --- etcd ----------------------------------------------------------------------------------- */

static int open_store(struct ctl *ctl, struct err *err)
{
	struct err warning = { "" };
	int r = sd_event_default(&ctl->event);

	if (r < 0)
		return err_set(err, r, "no event loop: %s", strerror(-r));
	r = store_open(ctl->event, &ctl->settings->etcd, NULL, &ctl->store, &warning, err);
	if (warning.text[0])
		fprintf(stderr, "roostctl: %s\n", warning.text);
	return r;
}

int ctl_store(struct ctl *ctl, struct store **ret, struct err *err)
{
	int r = ctl->store ? 0 : open_store(ctl, err);

	if (r == 0)
		*ret = ctl->store;
	return r;
}

void ctl_kvs_done(struct ctl_kvs *kvs)
{
	for (size_t i = 0; i < kvs->n; i++) {
		free(kvs->v[i].key);
		free(kvs->v[i].value);
	}
	array_done(kvs);
}

struct reading {
	struct ctl_kvs *kvs;
	size_t prefix;
	bool failed;
};

static bool take_kv(struct reading *reading, const struct store_kv *kv)
{
	struct ctl_kvs *kvs = reading->kvs;
	struct ctl_kv *new = array_add(kvs);

	if (!new)
		return false;
	*new = (struct ctl_kv){
		.key = strdup(kv->key + reading->prefix),
		.value = malloc(kv->value_len + 1),
		.value_len = kv->value_len,
		.create_revision = kv->create_revision,
		.mod_revision = kv->mod_revision,
		.lease = kv->lease,
	};
	if (!new->key || !new->value)
		return false;
	memcpy(new->value, kv->value, kv->value_len);
	new->value[kv->value_len] = '\0';
	return true;
}

static void on_page(const struct store_reply *reply, void *arg)
{
	struct reading *reading = arg;

	if (reply->err || reply->n_ops == 0)
		return;
	reading->kvs->revision = reply->revision;
	for (size_t i = 0; i < reply->ops[0].n && !reading->failed; i++)
		reading->failed = !take_kv(reading, &reply->ops[0].kvs[i]);
}

int ctl_etcd_failed(int r, struct err *err)
{
	struct err said;

	if (!err || (r != -ENOTCONN && r != -ETIMEDOUT && r != -EAGAIN))
		return r;
	said = *err;
	return err_set(err, r, "%s; check that etcd is running and that --etcd is right",
		       said.text);
}

static int read_range(struct ctl *ctl, const char *key, bool many, struct ctl_kvs *ret,
		      struct err *err)
{
	struct reading reading = { ret, strlen(ctl->settings->etcd.prefix), false };
	AUTO(free) char *end = NULL;
	char full[KEY_FULL_TEXT];
	struct store *store = NULL;
	int r = ctl_store(ctl, &store, err);

	if (r < 0)
		return r;
	r = key_full(ctl->settings->etcd.prefix, key, full);
	if (r < 0)
		return err_set(err, r, "the key %s%s is too long", ctl->settings->etcd.prefix, key);
	end = many ? store_prefix_end(full) : NULL;
	if (many && !end)
		return -ENOMEM;
	r = many ? store_sync_list(store, full, end, ctl->timeout_ms, on_page, &reading, err)
		 : store_sync_get(store, full, ctl->timeout_ms, on_page, &reading, err);
	if (r < 0)
		return ctl_etcd_failed(r, err);
	return reading.failed ? -ENOMEM : 0;
}

int ctl_read(struct ctl *ctl, const char *beginning, struct ctl_kvs *ret, struct err *err)
{
	return read_range(ctl, beginning, true, ret, err);
}

int ctl_read_one(struct ctl *ctl, const char *key, struct ctl_kvs *ret, struct err *err)
{
	return read_range(ctl, key, false, ret, err);
}

const struct ctl_kv *ctl_find(const struct ctl_kvs *kvs, const char *key)
{
	return array_find(kvs->v, kvs->n, kv, strcmp(kv->key, key));
}

/* --- the agent ------------------------------------------------------------------------------ */

static int agent_refused(unsigned status, struct json_object *reply, struct err *err)
{
	struct json_object *text = out_at(reply, "error");

	return err_set(err, -EREMOTEIO, "the agent answers %u: %s", status,
		       text ? json_object_get_string(text) : "no reason given");
}

int ctl_agent(struct ctl *ctl, const char *method, const char *path, const char *body,
	      unsigned *ret_status, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *reply = NULL;
	const char *socket = ctl->settings->socket;
	unsigned status = 0;
	int r = local_call(socket, method, path, body, 10000, &status, &reply, err);

	if (r == -EACCES)
		return err_set(err, r, "%s belongs to root: try again as root", socket);
	if (r < 0)
		return r;
	if (status >= 400 && !ret_status)
		return agent_refused(status, reply, err);
	if (ret_status)
		*ret_status = status;
	*ret = TAKE(reply);
	return 0;
}

/* --- people --------------------------------------------------------------------------------- */

int ctl_ask(struct ctl *ctl, const char *question, struct err *err)
{
	char answer[16] = "";

	if (ctl->settings->yes || ctl->settings->dry_run)
		return 0;
	if (!isatty(STDIN_FILENO))
		return err_set(err, CTL_USAGE,
			       "not done: there is no terminal to ask on; use --yes");
	fprintf(stderr, "%s [y/N] ", question);
	fflush(stderr);
	if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return err_set(err, -ECANCELED, "not done");
}
