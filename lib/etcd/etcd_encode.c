/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_wire.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/json/json_stream.h"

/* A request is a tree; once a step failed for want of memory, ok stays false and no text is made.
 */
struct builder {
	bool ok;
};

static struct json_object *object(struct builder *b)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		b->ok = false;
	return o;
}

static void add(struct builder *b, struct json_object *o, const char *name, struct json_object *v)
{
	if (v && b->ok &&
	    json_object_object_add_ex(o, name, v, JSON_C_OBJECT_ADD_CONSTANT_KEY) == 0)
		return;
	json_object_put(v);
	b->ok = false;
}

static void add_text(struct builder *b, struct json_object *o, const char *name, const char *text)
{
	add(b, o, name, json_object_new_string(text));
}

static void add_number(struct builder *b, struct json_object *o, const char *name, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	add_text(b, o, name, text);
}

static void add_true(struct builder *b, struct json_object *o, const char *name, bool v)
{
	if (v)
		add(b, o, name, json_object_new_boolean(true));
}

static void add_bytes(struct builder *b, struct json_object *o, const char *name, const char *data,
		      size_t n)
{
	AUTO(free) char *text = malloc(BASE64_LENGTH(n) + 1);

	if (!text) {
		b->ok = false;
		return;
	}
	base64_encode(data, n, text);
	add_text(b, o, name, text);
}

static void add_key(struct builder *b, struct json_object *o, const char *name, const char *key)
{
	if (key)
		add_bytes(b, o, name, key, strlen(key));
}

static char *to_text(struct builder *b, struct json_object *o)
{
	const char *text = NULL;
	char *copy = NULL;

	if (b->ok)
		text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
								 JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		copy = strdup(text);
	json_object_put(o);
	return copy;
}

char *etcd_encode_range(const struct etcd_range *range)
{
	struct builder b = { true };
	struct json_object *o = object(&b);

	add_bytes(&b, o, "key", range->key, range->key_len);
	add_key(&b, o, "range_end", range->range_end);
	if (range->limit)
		add_number(&b, o, "limit", range->limit);
	if (range->revision)
		add_number(&b, o, "revision", range->revision);
	add_true(&b, o, "keys_only", range->keys_only);
	add_true(&b, o, "serializable", range->serializable);
	return to_text(&b, o);
}

static const char *const target_names[] = {
	[STORE_VALUE] = "VALUE",
	[STORE_VERSION] = "VERSION",
	[STORE_CREATE_REVISION] = "CREATE",
	[STORE_MOD_REVISION] = "MOD",
	[STORE_LEASE] = "LEASE",
};
static const char *const number_names[] = {
	[STORE_VERSION] = "version",
	[STORE_CREATE_REVISION] = "create_revision",
	[STORE_MOD_REVISION] = "mod_revision",
	[STORE_LEASE] = "lease",
};
static const char *const relation_names[] = {
	[STORE_EQUAL] = "EQUAL",
	[STORE_NOT_EQUAL] = "NOT_EQUAL",
	[STORE_GREATER] = "GREATER",
	[STORE_LESS] = "LESS",
};

static struct json_object *compare(struct builder *b, const struct store_compare *c)
{
	struct json_object *o = object(b);

	add_text(b, o, "target", target_names[c->target]);
	add_text(b, o, "result", relation_names[c->relation]);
	add_key(b, o, "key", c->key);
	add_key(b, o, "range_end", c->range_end);
	if (c->target == STORE_VALUE)
		add_bytes(b, o, "value", c->value, c->value_len);
	else
		add_number(b, o, number_names[c->target], c->number);
	return o;
}

static void put_fields(struct builder *b, struct json_object *o, const struct store_op *op)
{
	if (!op->keep_value)
		add_bytes(b, o, "value", op->value, op->value_len);
	add_true(b, o, "ignore_value", op->keep_value);
	if (op->lease && !op->keep_lease)
		add_number(b, o, "lease", op->lease);
	add_true(b, o, "ignore_lease", op->keep_lease);
}

static void get_fields(struct builder *b, struct json_object *o, const struct store_op *op)
{
	if (op->limit)
		add_number(b, o, "limit", op->limit);
	add_true(b, o, "keys_only", op->keys_only);
	add_true(b, o, "count_only", op->count_only);
	if (op->newest_first) {
		add_text(b, o, "sort_target", "MOD");
		add_text(b, o, "sort_order", "DESCEND");
	}
}

static struct json_object *operation(struct builder *b, const struct store_op *op)
{
	static const char *const names[] = {
		[STORE_GET] = "request_range",
		[STORE_PUT] = "request_put",
		[STORE_DELETE] = "request_delete_range",
	};
	struct json_object *outer = object(b), *o = object(b);

	add_key(b, o, "key", op->key);
	add_key(b, o, "range_end", op->range_end);
	if (op->kind == STORE_PUT)
		put_fields(b, o, op);
	else if (op->kind == STORE_GET)
		get_fields(b, o, op);
	add(b, outer, names[op->kind], o);
	return outer;
}

static void append(struct builder *b, struct json_object *array, struct json_object *v)
{
	if (v && b->ok && json_object_array_add(array, v) == 0)
		return;
	json_object_put(v);
	b->ok = false;
}

static void add_operations(struct builder *b, struct json_object *o, const char *name,
			   const struct store_op *ops, size_t n)
{
	struct json_object *array;

	if (!n)
		return;
	array = json_object_new_array();
	b->ok = b->ok && array;
	for (size_t i = 0; i < n; i++)
		append(b, array, operation(b, &ops[i]));
	add(b, o, name, array);
}

char *etcd_encode_txn(const struct store_txn *txn)
{
	struct builder b = { true };
	struct json_object *o = object(&b);

	if (txn->n_compares) {
		struct json_object *array = json_object_new_array();

		b.ok = b.ok && array;
		for (size_t i = 0; i < txn->n_compares; i++)
			append(&b, array, compare(&b, &txn->compares[i]));
		add(&b, o, "compare", array);
	}
	add_operations(&b, o, "success", txn->success, txn->n_success);
	add_operations(&b, o, "failure", txn->failure, txn->n_failure);
	return to_text(&b, o);
}

char *etcd_encode_grant(int64_t id, int64_t ttl)
{
	struct builder b = { true };
	struct json_object *o = object(&b);

	add_number(&b, o, "ID", id);
	add_number(&b, o, "TTL", ttl);
	return to_text(&b, o);
}

char *etcd_encode_lease(int64_t id)
{
	struct builder b = { true };
	struct json_object *o = object(&b);

	add_number(&b, o, "ID", id);
	return to_text(&b, o);
}

char *etcd_encode_login(const char *user, const char *password)
{
	struct builder b = { true };
	struct json_object *o = object(&b);

	add_text(&b, o, "name", user);
	add_text(&b, o, "password", password);
	return to_text(&b, o);
}

char *etcd_encode_watch(int64_t watch_id, const char *key, const char *range_end,
			int64_t start_revision)
{
	struct builder b = { true };
	struct json_object *outer = object(&b), *o = object(&b);

	add_number(&b, o, "watch_id", watch_id);
	add_key(&b, o, "key", key);
	add_key(&b, o, "range_end", range_end);
	add_number(&b, o, "start_revision", start_revision);
	add_true(&b, o, "fragment", true);
	add_true(&b, o, "progress_notify", true);
	add(&b, outer, "create_request", o);
	return to_text(&b, outer);
}
