/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_wire.h"

#include <errno.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/json/json.h"

/* --- fields: absent means zero, another type is an error ------------------------------------ */

static int checked(int r, struct err *err)
{
	if (r >= 0 || r == -ENOMEM)
		return r < 0 ? r : 0;
	return err_wrap(err, -EBADMSG, "etcd's reply");
}

static int get_object(struct json_object *o, const char *name, struct json_object **ret,
		      struct err *err)
{
	struct json_at root = json_root(o, err), at = json_member(&root, name);

	*ret = at.value;
	return checked(json_read_object(at), err);
}

static int get_array(struct json_object *o, const char *name, struct json_object **ret,
		     struct err *err)
{
	struct json_at root = json_root(o, err), at = json_member(&root, name);
	size_t n;

	*ret = at.value;
	return checked(json_read_array(at, &n), err);
}

static int get_bool(struct json_object *o, const char *name, bool *ret, struct err *err)
{
	struct json_at root = json_root(o, err);

	*ret = false;
	return checked(json_read_bool(json_member(&root, name), ret), err);
}

static int get_text(struct json_object *o, const char *name, const char **ret, size_t *ret_len,
		    struct err *err)
{
	struct json_at root = json_root(o, err);

	*ret = NULL;
	if (checked(json_read_text(json_member(&root, name), SIZE_MAX, ret), err) < 0)
		return -EBADMSG;
	if (ret_len)
		*ret_len = *ret ? strlen(*ret) : 0;
	return 0;
}

static int get_unsigned(struct json_object *o, const char *name, uint64_t *ret, struct err *err)
{
	struct json_at root = json_root(o, err);

	*ret = 0;
	return checked(json_read_uint64(json_member(&root, name), ret), err);
}

static int wrong(struct err *err, const char *name, const char *what)
{
	return err_set(err, -EBADMSG, "etcd's reply: field \"%s\" is not %s", name, what);
}

/* Revisions, counts, lease ids: below 2^63. */
static int get_number(struct json_object *o, const char *name, int64_t *ret, struct err *err)
{
	uint64_t n;
	int r = get_unsigned(o, name, &n, err);

	if (r == 0 && n > INT64_MAX)
		r = wrong(err, name, "a number below 2^63");
	*ret = r < 0 ? 0 : (int64_t)n;
	return r;
}

static int get_header(struct json_object *reply, struct etcd_header *ret, struct err *err)
{
	struct json_object *h;
	int r = get_object(reply, "header", &h, err);

	*ret = (struct etcd_header){ 0 };
	if (r < 0 || !h)
		return r;
	r = get_unsigned(h, "cluster_id", &ret->cluster_id, err);
	r = r ?: get_unsigned(h, "member_id", &ret->member_id, err);
	r = r ?: get_number(h, "revision", &ret->revision, err);
	return r ?: get_unsigned(h, "raft_term", &ret->raft_term, err);
}

/* --- keys and values ------------------------------------------------------------------------ */

void etcd_kvs_done(struct etcd_kvs *kvs)
{
	free(kvs->v);
	free(kvs->bytes);
	*kvs = (struct etcd_kvs){ 0 };
}

/* Room for all keys and values of an array of kvs, each with its NUL. */
static int measure(struct json_object *const *items, size_t n, size_t *ret, struct err *err)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++) {
		const char *text;
		size_t key = 0, value = 0;
		int r;

		if (!json_object_is_type(items[i], json_type_object))
			return wrong(err, "kvs", "a list of objects");
		r = get_text(items[i], "key", &text, &key, err);
		r = r ?: get_text(items[i], "value", &text, &value, err);
		if (r < 0)
			return r;
		total += key / 4 * 3 + value / 4 * 3 + 2;
	}
	*ret = total;
	return 0;
}

static int take_bytes(struct json_object *o, const char *name, char **at, const char **ret,
		      size_t *ret_len, struct err *err)
{
	const char *text;
	size_t len;
	ssize_t n;
	int r = get_text(o, name, &text, &len, err);

	if (r < 0)
		return r;
	n = base64_decode(text ?: "", len, *at);
	if (n < 0)
		return wrong(err, name, "base64");
	*ret = *at;
	*ret_len = (size_t)n;
	*at += n;
	*(*at)++ = '\0';
	return 0;
}

static int decode_kv(struct json_object *o, char **at, struct etcd_kvs *kvs, struct err *err)
{
	struct store_kv *kv = &kvs->v[kvs->n];
	int r = take_bytes(o, "key", at, &kv->key, &kvs->last_key_len, err);

	r = r ?: take_bytes(o, "value", at, &kv->value, &kv->value_len, err);
	r = r ?: get_number(o, "create_revision", &kv->create_revision, err);
	r = r ?: get_number(o, "mod_revision", &kv->mod_revision, err);
	r = r ?: get_number(o, "version", &kv->version, err);
	r = r ?: get_number(o, "lease", &kv->lease, err);
	if (r < 0)
		return r;
	kvs->last_key = kv->key;
	if (strlen(kv->key) == kvs->last_key_len && kvs->last_key_len)
		kvs->n++;
	else
		kvs->skipped++;
	return 0;
}

static int decode_kvs(struct json_object *const *items, size_t n, struct etcd_kvs *ret,
		      struct err *err)
{
	struct etcd_kvs kvs = { 0 };
	size_t room = 0;
	char *at;
	int r = measure(items, n, &room, err);

	if (r < 0)
		return r;
	kvs.v = calloc(n ?: 1, sizeof(*kvs.v));
	kvs.bytes = at = malloc(room ?: 1);
	r = kvs.v && at ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = decode_kv(items[i], &at, &kvs, err);
	if (r < 0)
		etcd_kvs_done(&kvs);
	else
		*ret = kvs;
	return r;
}

/* The items of a list, as an array that the caller frees. */
static int items_of(struct json_object *list, struct json_object ***ret, size_t *ret_n)
{
	size_t n = list ? json_object_array_length(list) : 0;
	struct json_object **v = calloc(n ?: 1, sizeof(struct json_object *));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = json_object_array_get_idx(list, i);
	*ret = v;
	*ret_n = n;
	return 0;
}

/* --- replies -------------------------------------------------------------------------------- */

void etcd_reply_done(struct etcd_reply *r)
{
	for (size_t i = 0; r->kvs && i < r->n_ops; i++)
		etcd_kvs_done(&r->kvs[i]);
	free(r->kvs);
	free(r->ops);
	*r = (struct etcd_reply){ 0 };
}

static int room_for_ops(struct etcd_reply *r, size_t n)
{
	r->ops = calloc(n ?: 1, sizeof(*r->ops));
	r->kvs = calloc(n ?: 1, sizeof(*r->kvs));
	r->n_ops = n;
	return r->ops && r->kvs ? 0 : -ENOMEM;
}

static int range_into(struct json_object *o, struct etcd_reply *ret, size_t i, struct err *err)
{
	AUTO(free) struct json_object **items = NULL;
	struct json_object *list;
	size_t n = 0;
	int r = get_array(o, "kvs", &list, err);

	r = r ?: items_of(list, &items, &n);
	r = r ?: decode_kvs(items, n, &ret->kvs[i], err);
	r = r ?: get_number(o, "count", &ret->ops[i].count, err);
	if (r < 0)
		return r;
	ret->ops[i].kind = STORE_GET;
	ret->ops[i].kvs = ret->kvs[i].v;
	ret->ops[i].n = ret->kvs[i].n;
	return 0;
}

static int finish(int r, struct etcd_reply *reply, struct etcd_reply *ret)
{
	if (r < 0)
		etcd_reply_done(reply);
	else
		*ret = *reply;
	return r;
}

int etcd_decode_range(struct json_object *reply, struct etcd_reply *ret, struct err *err)
{
	struct etcd_reply d = { 0 };
	int r = room_for_ops(&d, 1);

	r = r ?: get_header(reply, &d.header, err);
	r = r ?: range_into(reply, &d, 0, err);
	r = r ?: get_bool(reply, "more", &d.more, err);
	return finish(r, &d, ret);
}

static int operation_into(struct json_object *o, struct etcd_reply *ret, size_t i, struct err *err)
{
	struct json_object *range = NULL, *put = NULL, *del = NULL;
	int r;

	if (!json_object_is_type(o, json_type_object))
		return wrong(err, "responses", "a list of objects");
	r = get_object(o, "response_range", &range, err);
	r = r ?: get_object(o, "response_put", &put, err);
	r = r ?: get_object(o, "response_delete_range", &del, err);
	if (r < 0)
		return r;
	if (range)
		return range_into(range, ret, i, err);
	if (put) {
		ret->ops[i].kind = STORE_PUT;
		return 0;
	}
	if (!del)
		return err_set(err, -EBADMSG, "etcd's reply: an operation of no known kind");
	ret->ops[i].kind = STORE_DELETE;
	return get_number(del, "deleted", &ret->ops[i].count, err);
}

int etcd_decode_txn(struct json_object *reply, struct etcd_reply *ret, struct err *err)
{
	struct etcd_reply d = { 0 };
	struct json_object *list;
	int r = get_array(reply, "responses", &list, err);

	r = r ?: room_for_ops(&d, list ? json_object_array_length(list) : 0);
	r = r ?: get_header(reply, &d.header, err);
	r = r ?: get_bool(reply, "succeeded", &d.succeeded, err);
	for (size_t i = 0; r == 0 && i < d.n_ops; i++)
		r = operation_into(json_object_array_get_idx(list, i), &d, i, err);
	if (r == 0 && !d.header.revision)
		r = err_set(err, -EBADMSG, "etcd's reply to a transaction has no revision");
	return finish(r, &d, ret);
}

static int decode_lease(struct json_object *reply, struct etcd_reply *ret, struct err *err)
{
	struct etcd_reply d = { 0 };
	int r = get_header(reply, &d.header, err);

	r = r ?: get_number(reply, "ID", &d.lease, err);
	r = r ?: get_number(reply, "TTL", &d.ttl, err);
	return finish(r, &d, ret);
}

int etcd_decode_grant(struct json_object *reply, struct etcd_reply *ret, struct err *err)
{
	return decode_lease(reply, ret, err);
}

int etcd_decode_keepalive(struct json_object *reply, struct etcd_reply *ret, struct err *err)
{
	struct json_object *result;
	int r = get_object(reply, "result", &result, err);

	if (r < 0)
		return r;
	if (!result)
		return err_set(err, -EBADMSG, "etcd's reply to a keep-alive has no result");
	return decode_lease(result, ret, err);
}

int etcd_decode_revoke(struct json_object *reply, struct etcd_reply *ret, struct err *err)
{
	struct etcd_reply d = { 0 };

	return finish(get_header(reply, &d.header, err), &d, ret);
}

int etcd_decode_login(struct json_object *reply, const char **ret_token, struct err *err)
{
	const char *token;
	int r = get_text(reply, "token", &token, NULL, err);

	if (r < 0)
		return r;
	/* It goes into a header line. */
	if (!token || !*token || strpbrk(token, "\r\n"))
		return err_set(err, -EBADMSG, "etcd's reply to the login has no usable token");
	*ret_token = token;
	return 0;
}

/* --- watch ---------------------------------------------------------------------------------- */

void etcd_watch_message_done(struct etcd_watch_message *m)
{
	etcd_kvs_done(&m->kvs);
}

static int stream_error(struct json_object *error, struct err *err)
{
	const char *text;

	if ((get_text(error, "message", &text, NULL, NULL) < 0 || !text) &&
	    (get_text(error, "error", &text, NULL, NULL) < 0 || !text))
		text = "an error without a message";
	return err_set(err, -EPROTO, "etcd ended the stream: %.200s", text);
}

/* etcd says it twice: by the type and by the version, which only a living key has. */
static int check_type(struct json_object *event, struct json_object *kv, struct err *err)
{
	const char *type;
	int64_t version = 0;
	int r = get_text(event, "type", &type, NULL, err);

	r = r ?: get_number(kv, "version", &version, err);
	if (r < 0)
		return r;
	if ((type && strcmp(type, "DELETE") == 0) != (version == 0))
		return err_set(err, -EBADMSG, "etcd's stream: an event of type %.20s, version %lld",
			       type ?: "PUT", (long long)version);
	return 0;
}

static int decode_events(struct json_object *list, struct etcd_watch_message *m, struct err *err)
{
	AUTO(free) struct json_object **items = NULL;
	size_t n = 0;
	int r = items_of(list, &items, &n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct json_object *kv;

		if (!json_object_is_type(items[i], json_type_object))
			return wrong(err, "events", "a list of objects");
		r = get_object(items[i], "kv", &kv, err);
		if (r == 0 && !kv)
			return err_set(err, -EBADMSG, "etcd's stream: an event without a key");
		r = r ?: check_type(items[i], kv, err);
		items[i] = kv;
	}
	return r ?: decode_kvs(items, n, &m->kvs, err);
}

/* -1 stands for a watch that was refused. */
static int get_watch_id(struct json_object *o, int64_t *ret, struct err *err)
{
	struct json_object *v;

	if (json_object_object_get_ex(o, "watch_id", &v) && v &&
	    strcmp(json_object_get_string(v), "-1") == 0) {
		*ret = -1;
		return 0;
	}
	return get_number(o, "watch_id", ret, err);
}

static int decode_message(struct json_object *o, struct etcd_watch_message *m, struct err *err)
{
	struct json_object *events;
	int r = get_header(o, &m->header, err);

	r = r ?: get_watch_id(o, &m->watch_id, err);
	r = r ?: get_bool(o, "created", &m->created, err);
	r = r ?: get_bool(o, "canceled", &m->canceled, err);
	r = r ?: get_bool(o, "fragment", &m->fragment, err);
	r = r ?: get_number(o, "compact_revision", &m->compact_revision, err);
	r = r ?: get_text(o, "cancel_reason", &m->cancel_reason, NULL, err);
	r = r ?: get_array(o, "events", &events, err);
	return r ?: decode_events(events, m, err);
}

int etcd_decode_watch(struct json_object *message, struct etcd_watch_message *ret, struct err *err)
{
	struct etcd_watch_message m = { 0 };
	struct json_object *error, *result;
	int r = get_object(message, "result", &result, err);

	if (r < 0)
		return r;
	/* Refused before it began, it is an error as of any other call: a text, or just a code. */
	if (json_object_object_get_ex(message, "error", &error))
		return stream_error(json_object_is_type(error, json_type_object) ? error : message,
				    err);
	if (json_object_object_get_ex(message, "code", NULL))
		return stream_error(message, err);
	if (!result)
		return err_set(err, -EBADMSG, "etcd's stream: neither a result nor an error");
	r = decode_message(result, &m, err);
	if (r < 0)
		etcd_watch_message_done(&m);
	else
		*ret = m;
	return r;
}
