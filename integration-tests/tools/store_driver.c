/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store, driven from a test: one JSON command per line on stdin, one JSON
 * object per line on stdout for every reply, event and notice.
 *
 *   store-driver --etcd URL[,URL] [--cacert F --cert F --key F] [--user U --password-file F]
 *
 *   {"id":1,"op":"put","key":"/a","value":"1","lease":7,"timeout":2000}
 *   {"id":2,"op":"get","key":"/a"}          {"id":3,"op":"delete","key":"/a"}
 *   {"id":4,"op":"list","key":"/"}          (all keys that start so; add "quiet" for the count
 * only)
 *   {"id":5,"op":"txn","compare":[{"key":"/a","target":"mod","relation":"=","number":3}],
 *    "success":[{"put":"/a","value":"2"},{"delete":"/b"},{"get":"/c"}],"failure":[...],
 *    "repeatable":false,"fence":0,"witness":0}            (fence, witness: as a settled txn)
 *   {"id":6,"op":"grant","ttl":10,"lease":5}  {"op":"keepalive","lease":5}
 * {"op":"revoke","lease":5}
 *   {"id":7,"op":"watch","key":"/","quiet":true}   {"id":7,"op":"unwatch"}   (quiet: count only)
 *   {"id":8,"op":"stats"}                   {"op":"quit"}
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "integration-tests/tools/json_lines.h"
#include "lib/etcd/store_etcd.h"
#include "lib/store/store_stats.h"

#define MAX_WATCHES 64

struct driver {
	sd_event *event;
	struct store *store;
	struct watch {
		struct driver *driver;
		struct store_watch *handle;
		int64_t id;
		uint64_t puts, deletes;
		bool quiet;
	} watches[MAX_WATCHES];
};

/* One request under way. */
struct request {
	int64_t id;
	bool quiet;
	size_t keys;
};

/* --- output --------------------------------------------------------------------------------- */

static struct json_object *about(const char *kind, int64_t id)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, kind, json_object_new_int64(id));
	return o;
}

static struct json_object *kv_object(const struct store_kv *kv)
{
	struct json_object *o = json_object_new_object();

	line_text(o, "key", kv->key);
	json_object_object_add(o, "value",
			       json_object_new_string_len(kv->value, (int)kv->value_len));
	line_number(o, "create", kv->create_revision);
	line_number(o, "mod", kv->mod_revision);
	line_number(o, "version", kv->version);
	line_number(o, "lease", kv->lease);
	return o;
}

static void add_reply(struct json_object *o, const struct store_reply *reply, bool quiet)
{
	struct json_object *ops = json_object_new_array();

	line_text(o, "err", reply->err ? strerrorname_np(-reply->err) : "");
	line_text(o, "text", reply->text);
	line_bool(o, "unknown", reply->unknown);
	line_bool(o, "succeeded", reply->succeeded);
	line_number(o, "revision", reply->revision);
	line_number(o, "lease", reply->lease);
	line_number(o, "ttl", reply->ttl);
	for (size_t i = 0; !quiet && i < reply->n_ops; i++) {
		struct json_object *op = json_object_new_object();
		struct json_object *kvs = json_object_new_array();

		for (size_t k = 0; k < reply->ops[i].n; k++)
			json_object_array_add(kvs, kv_object(&reply->ops[i].kvs[k]));
		line_number(op, "count", reply->ops[i].count);
		json_object_object_add(op, "kvs", kvs);
		json_object_array_add(ops, op);
	}
	json_object_object_add(o, "ops", ops);
}

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct request *q = arg;
	struct json_object *o;

	for (size_t i = 0; i < reply->n_ops; i++)
		q->keys += reply->ops[i].n;
	if (reply->more && q->quiet)
		return;
	o = about("reply", q->id);
	add_reply(o, reply, q->quiet);
	line_number(o, "keys", (int64_t)q->keys);
	line_bool(o, "more", reply->more);
	line_end(o);
	if (!reply->more)
		free(q);
}

static void on_settled(const struct store_settled *settled, void *arg)
{
	struct request *q = arg;
	struct json_object *o = about("reply", q->id);

	add_reply(o, settled->reply, false);
	line_text(o, "outcome", store_outcome_name(settled->outcome));
	line_bool(o, "was_lost", settled->was_lost);
	line_number(o, "fence_revision", settled->fence_revision);
	json_object_object_add(o, "witness", settled->witness ? kv_object(settled->witness) : NULL);
	line_end(o);
	free(q);
}

static void on_put(const struct store_kv *kv, void *arg)
{
	struct watch *w = arg;
	struct json_object *o;

	w->puts++;
	if (w->quiet)
		return;
	o = about("put", w->id);
	json_object_object_add(o, "kv", kv_object(kv));
	line_end(o);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	struct watch *w = arg;
	struct json_object *o;

	w->deletes++;
	if (w->quiet)
		return;
	o = about("deleted", w->id);
	line_text(o, "key", key);
	line_number(o, "revision", revision);
	line_end(o);
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct watch *w = arg;
	struct json_object *o = about("in_sync", w->id);

	line_number(o, "revision", revision);
	line_number(o, "puts", (int64_t)w->puts);
	line_number(o, "deletes", (int64_t)w->deletes);
	line_end(o);
}

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	struct json_object *o = json_object_new_object();

	line_text(o, "notice", store_notice_name(notice));
	line_text(o, "text", text);
	line_end(o);
}

/* --- input ---------------------------------------------------------------------------------- */

static size_t take_ops(struct json_object *command, const char *name, struct store_op *ops)
{
	struct json_object *list;
	size_t n;

	if (!json_object_object_get_ex(command, name, &list))
		return 0;
	n = json_object_array_length(list);
	for (size_t i = 0; i < n && i < STORE_TXN_MAX; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);
		struct store_op *op = &ops[i];

		*op = (struct store_op){ .kind = STORE_GET };
		if ((op->key = command_text(o, "put")))
			op->kind = STORE_PUT;
		else if ((op->key = command_text(o, "delete")))
			op->kind = STORE_DELETE;
		else
			op->key = command_text(o, "get");
		op->value = command_text(o, "value") ?: "";
		op->value_len = strlen(op->value);
		op->lease = command_number(o, "lease");
		op->range_end = command_text(o, "range_end");
		op->keep_value = command_flag(o, "keep_value");
		op->keep_lease = command_flag(o, "keep_lease");
		op->keys_only = command_flag(o, "keys_only");
		op->count_only = command_flag(o, "count_only");
		op->newest_first = command_flag(o, "newest_first");
		op->limit = command_number(o, "limit");
	}
	return n;
}

static size_t take_compares(struct json_object *command, struct store_compare *compares)
{
	static const char *const targets[] = { "value", "version", "create", "mod", "lease" };
	static const char *const relations[] = { "=", "!=", ">", "<" };
	struct json_object *list;
	size_t n;

	if (!json_object_object_get_ex(command, "compare", &list))
		return 0;
	n = json_object_array_length(list);
	for (size_t i = 0; i < n && i < STORE_TXN_MAX; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);
		struct store_compare *c = &compares[i];

		*c = (struct store_compare){ .key = command_text(o, "key") };
		c->range_end = command_text(o, "range_end");
		c->number = command_number(o, "number");
		c->value = command_text(o, "value") ?: "";
		c->value_len = strlen(c->value);
		for (unsigned t = 0; t < ARRAY_SIZE(targets); t++)
			if (strcmp(command_text(o, "target") ?: "", targets[t]) == 0)
				c->target = t;
		for (unsigned t = 0; t < ARRAY_SIZE(relations); t++)
			if (strcmp(command_text(o, "relation") ?: "=", relations[t]) == 0)
				c->relation = t;
	}
	return n;
}

static int do_txn(struct driver *d, struct json_object *command, struct request *q)
{
	static struct store_compare compares[STORE_TXN_MAX];
	static struct store_op success[STORE_TXN_MAX], failure[STORE_TXN_MAX];
	struct json_object *fence;
	struct store_txn txn = {
		.compares = compares,
		.n_compares = take_compares(command, compares),
		.success = success,
		.n_success = take_ops(command, "success", success),
		.failure = failure,
		.n_failure = take_ops(command, "failure", failure),
		.repeatable = command_flag(command, "repeatable"),
	};

	if (json_object_object_get_ex(command, "fence", &fence))
		return store_txn_settled(d->store, &txn, (size_t)json_object_get_int64(fence),
					 (size_t)command_number(command, "witness"), on_settled, q,
					 NULL);
	return store_txn(d->store, &txn, (uint32_t)command_number(command, "timeout"), on_reply, q,
			 NULL);
}

static int do_watch(struct driver *d, struct json_object *command, int64_t id)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	const char *key = command_text(command, "key");
	AUTO(free) char *end = store_prefix_end(key);

	for (size_t i = 0; i < MAX_WATCHES; i++) {
		struct watch *w = &d->watches[i];

		if (w->handle)
			continue;
		*w = (struct watch){ .driver = d,
				     .id = id,
				     .quiet = command_flag(command, "quiet") };
		return store_watch(d->store, key, end, &handlers, w, &w->handle);
	}
	return -ENOSPC;
}

static void do_unwatch(struct driver *d, int64_t id)
{
	for (size_t i = 0; i < MAX_WATCHES; i++)
		if (d->watches[i].handle && d->watches[i].id == id)
			store_unwatch(TAKE(d->watches[i].handle));
}

static void do_stats(const struct driver *d, int64_t id)
{
	struct json_object *o = about("stats", id);
	struct store_stats s;

	store_stats(d->store, &s);
	line_number(o, "requests", (int64_t)s.requests);
	line_number(o, "failed_attempts", (int64_t)s.failed_attempts);
	line_number(o, "logins", (int64_t)s.logins);
	line_number(o, "streams", (int64_t)s.streams);
	line_number(o, "events", (int64_t)s.events);
	line_number(o, "lists", (int64_t)s.lists);
	line_number(o, "revision", s.revision);
	line_text(o, "endpoint", s.endpoint);
	line_number(o, "peak_rss_kib", peak_rss_kib());
	line_end(o);
}

static int do_request(struct driver *d, struct json_object *c, const char *op, struct request *q)
{
	uint32_t timeout = (uint32_t)command_number(c, "timeout");
	const char *key = command_text(c, "key");
	int64_t lease = command_number(c, "lease");

	if (strcmp(op, "put") == 0)
		return store_put(d->store, key, command_text(c, "value") ?: "", lease, timeout,
				 on_reply, q, NULL);
	if (strcmp(op, "get") == 0)
		return store_get(d->store, key, timeout, on_reply, q, NULL);
	if (strcmp(op, "delete") == 0)
		return store_delete(d->store, key, command_text(c, "range_end"), timeout, on_reply,
				    q, NULL);
	if (strcmp(op, "list") == 0) {
		AUTO(free) char *end = store_prefix_end(key);

		return store_list(d->store, key, end, timeout, on_reply, q, NULL);
	}
	if (strcmp(op, "grant") == 0)
		return store_lease_grant(d->store, lease, command_number(c, "ttl"), timeout,
					 on_reply, q, NULL);
	if (strcmp(op, "keepalive") == 0)
		return store_lease_keepalive(d->store, lease, timeout, on_reply, q, NULL);
	if (strcmp(op, "revoke") == 0)
		return store_lease_revoke(d->store, lease, timeout, on_reply, q, NULL);
	if (strcmp(op, "txn") == 0)
		return do_txn(d, c, q);
	return -ENOSYS;
}

static int on_command(struct json_object *c, void *arg)
{
	struct driver *d = arg;
	const char *op = command_text(c, "op") ?: "";
	int64_t id = command_number(c, "id");
	struct request *q;
	int r = 0;

	if (strcmp(op, "stats") == 0) {
		do_stats(d, id);
	} else if (strcmp(op, "unwatch") == 0) {
		do_unwatch(d, id);
	} else if (strcmp(op, "watch") == 0) {
		r = do_watch(d, c, id);
	} else {
		q = calloc(1, sizeof(*q));
		if (!q)
			return -ENOMEM;
		q->id = id;
		q->quiet = command_flag(c, "quiet");
		r = do_request(d, c, op, q);
		if (r < 0)
			free(q);
	}
	if (r < 0) {
		struct json_object *o = about("reply", id);

		line_text(o, "err", strerrorname_np(-r));
		line_text(o, "text", "refused by the client");
		line_end(o);
	}
	return 0;
}

static const char *password_from(const char *path, char *buffer, size_t size)
{
	AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buffer, size - 1);

	if (n < 0)
		return NULL;
	buffer[n] = '\0';
	buffer[strcspn(buffer, "\n")] = '\0';
	return buffer;
}

static int parse_arguments(int argc, char **argv, struct store_etcd_options *o)
{
	static const struct option options[] = {
		{ "etcd", required_argument, NULL, 'e' },
		{ "cacert", required_argument, NULL, 'c' },
		{ "cert", required_argument, NULL, 'C' },
		{ "key", required_argument, NULL, 'k' },
		{ "user", required_argument, NULL, 'u' },
		{ "password-file", required_argument, NULL, 'p' },
		{ "name", required_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	static char password[256];
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'e':
			o->endpoints = optarg;
			break;
		case 'c':
			o->tls.cacert = optarg;
			break;
		case 'C':
			o->tls.cert = optarg;
			break;
		case 'k':
			o->tls.key = optarg;
			break;
		case 'u':
			o->user = optarg;
			break;
		case 'p':
			o->password = password_from(optarg, password, sizeof(password));
			break;
		case 'n':
			o->name = optarg;
			break;
		default:
			return -EINVAL;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct driver d;
	struct store_etcd_options options = { 0 };
	struct err err = { "" };
	int r = parse_arguments(argc, argv, &options);

	if (r == 0)
		r = sd_event_default(&d.event);
	if (r >= 0)
		r = store_etcd_new(d.event, &options, &d.store, &err);
	if (r >= 0)
		store_on_notice(d.store, on_notice, &d);
	if (r >= 0)
		r = json_lines_run(d.event, on_command, &d);
	if (r < 0)
		fprintf(stderr, "store-driver: %s\n", err.text[0] ? err.text : strerror(-r));
	store_free(d.store);
	sd_event_unref(d.event);
	return r == 0 ? 0 : 1;
}
