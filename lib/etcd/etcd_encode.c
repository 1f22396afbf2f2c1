/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_wire.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/json_out.h"

/* 64-bit numbers are texts. */
static void add_number(struct json_out *out, const char *name, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	json_out_text(out, name, text);
}

static void add_true(struct json_out *out, const char *name, bool v)
{
	if (v)
		json_out_bool(out, name, true);
}

static void add_bytes(struct json_out *out, const char *name, const char *data, size_t n)
{
	AUTO(free) char *text = malloc(BASE64_LENGTH(n) + 1);

	if (!text) {
		out->failed = true;
		return;
	}
	base64_encode(data, n, text);
	json_out_text(out, name, text);
}

static void add_key(struct json_out *out, const char *name, const char *key)
{
	if (key)
		add_bytes(out, name, key, strlen(key));
}

static struct json_out open_request(void)
{
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	return out;
}

static char *take_request(struct json_out *out)
{
	char *text;

	json_out_close(out, '}');
	return json_out_take(out, &text) < 0 ? NULL : text;
}

char *etcd_encode_range(const struct etcd_range *range)
{
	struct json_out out = open_request();

	add_bytes(&out, "key", range->key, range->key_len);
	add_key(&out, "range_end", range->range_end);
	if (range->limit)
		add_number(&out, "limit", range->limit);
	if (range->revision)
		add_number(&out, "revision", range->revision);
	add_true(&out, "keys_only", range->keys_only);
	add_true(&out, "serializable", range->serializable);
	return take_request(&out);
}

static void add_compare(struct json_out *out, const struct store_compare *c)
{
	static const char *const targets[] = {
		[STORE_VALUE] = "VALUE",
		[STORE_VERSION] = "VERSION",
		[STORE_CREATE_REVISION] = "CREATE",
		[STORE_MOD_REVISION] = "MOD",
		[STORE_LEASE] = "LEASE",
	};
	static const char *const numbers[] = {
		[STORE_VERSION] = "version",
		[STORE_CREATE_REVISION] = "create_revision",
		[STORE_MOD_REVISION] = "mod_revision",
		[STORE_LEASE] = "lease",
	};
	static const char *const relations[] = {
		[STORE_EQUAL] = "EQUAL",
		[STORE_NOT_EQUAL] = "NOT_EQUAL",
		[STORE_GREATER] = "GREATER",
		[STORE_LESS] = "LESS",
	};

	json_out_open(out, NULL, '{');
	json_out_text(out, "target", targets[c->target]);
	json_out_text(out, "result", relations[c->relation]);
	add_key(out, "key", c->key);
	add_key(out, "range_end", c->range_end);
	if (c->target == STORE_VALUE)
		add_bytes(out, "value", c->value, c->value_len);
	else
		add_number(out, numbers[c->target], c->number);
	json_out_close(out, '}');
}

static void add_operation(struct json_out *out, const struct store_op *op)
{
	static const char *const names[] = {
		[STORE_GET] = "request_range",
		[STORE_PUT] = "request_put",
		[STORE_DELETE] = "request_delete_range",
	};

	json_out_open(out, NULL, '{');
	json_out_open(out, names[op->kind], '{');
	add_key(out, "key", op->key);
	add_key(out, "range_end", op->range_end);
	if (op->kind == STORE_PUT) {
		if (!op->keep_value)
			add_bytes(out, "value", op->value, op->value_len);
		add_true(out, "ignore_value", op->keep_value);
		if (op->lease && !op->keep_lease)
			add_number(out, "lease", op->lease);
		add_true(out, "ignore_lease", op->keep_lease);
	} else if (op->kind == STORE_GET) {
		if (op->limit)
			add_number(out, "limit", op->limit);
		add_true(out, "keys_only", op->keys_only);
		add_true(out, "count_only", op->count_only);
		if (op->newest_first) {
			json_out_text(out, "sort_target", "MOD");
			json_out_text(out, "sort_order", "DESCEND");
		}
	}
	json_out_close(out, '}');
	json_out_close(out, '}');
}

static void add_operations(struct json_out *out, const char *name, const struct store_op *ops,
			   size_t n)
{
	if (!n)
		return;
	json_out_open(out, name, '[');
	for (size_t i = 0; i < n; i++)
		add_operation(out, &ops[i]);
	json_out_close(out, ']');
}

char *etcd_encode_txn(const struct store_txn *txn)
{
	struct json_out out = open_request();

	if (txn->n_compares) {
		json_out_open(&out, "compare", '[');
		for (size_t i = 0; i < txn->n_compares; i++)
			add_compare(&out, &txn->compares[i]);
		json_out_close(&out, ']');
	}
	add_operations(&out, "success", txn->success, txn->n_success);
	add_operations(&out, "failure", txn->failure, txn->n_failure);
	return take_request(&out);
}

char *etcd_encode_grant(int64_t id, int64_t ttl)
{
	struct json_out out = open_request();

	add_number(&out, "ID", id);
	add_number(&out, "TTL", ttl);
	return take_request(&out);
}

char *etcd_encode_lease(int64_t id)
{
	struct json_out out = open_request();

	add_number(&out, "ID", id);
	return take_request(&out);
}

char *etcd_encode_login(const char *user, const char *password)
{
	struct json_out out = open_request();

	json_out_text(&out, "name", user);
	json_out_text(&out, "password", password);
	return take_request(&out);
}

char *etcd_encode_watch(int64_t watch_id, const char *key, const char *range_end,
			int64_t start_revision)
{
	struct json_out out = open_request();

	json_out_open(&out, "create_request", '{');
	add_number(&out, "watch_id", watch_id);
	add_key(&out, "key", key);
	add_key(&out, "range_end", range_end);
	add_number(&out, "start_revision", start_revision);
	add_true(&out, "fragment", true);
	add_true(&out, "progress_notify", true);
	json_out_close(&out, '}');
	return take_request(&out);
}
