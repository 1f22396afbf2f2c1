/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes, whole and in pieces, must come out as the same objects, the
 * same decoded messages and the same failure. The first byte seeds the pieces.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/etcd/etcd_wire.h"
#include "lib/json/json_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT 2000

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A checksum of all that came out. */
struct outcome {
	uint64_t sum;
	size_t objects;
	int result;
	struct err err;
};

static void add(struct outcome *o, const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		o->sum = (o->sum ^ ((const uint8_t *)data)[i]) * 1099511628211u;
}

static void add_number(struct outcome *o, int64_t n)
{
	add(o, &n, sizeof(n));
}

static void add_kv(struct outcome *o, const struct store_kv *kv)
{
	MUST(kv->key[0] && !kv->value[kv->value_len]);
	MUST(kv->create_revision >= 0 && kv->mod_revision >= 0);
	MUST(kv->version >= 0 && kv->lease >= 0);
	add(o, kv->key, strlen(kv->key) + 1);
	add(o, kv->value, kv->value_len);
	add_number(o, kv->create_revision);
	add_number(o, kv->mod_revision);
	add_number(o, kv->version);
	add_number(o, kv->lease);
}

static void add_kvs(struct outcome *o, const struct etcd_kvs *kvs)
{
	for (size_t i = 0; i < kvs->n; i++)
		add_kv(o, &kvs->v[i]);
	add_number(o, (int64_t)kvs->skipped);
	if (kvs->last_key)
		add(o, kvs->last_key, kvs->last_key_len);
	else
		MUST(kvs->n == 0 && kvs->skipped == 0);
}

static void decode_watch(struct outcome *o, struct json_object *object)
{
	struct etcd_watch_message m = { 0 };
	struct err err = { "" };
	int r = etcd_decode_watch(object, &m, &err);

	MUST(r == 0 || r == -EBADMSG || r == -EPROTO);
	MUST((r == 0) == (err.text[0] == '\0'));
	add_number(o, r);
	add(o, err.text, strlen(err.text));
	MUST(m.watch_id >= -1 && m.compact_revision >= 0 && m.header.revision >= 0);
	add_number(o, m.watch_id);
	add_number(o, m.header.revision);
	add_number(o, m.created | m.canceled << 1 | m.fragment << 2);
	add_kvs(o, &m.kvs);
	etcd_watch_message_done(&m);
}

static void decode_reply(struct outcome *o, struct json_object *object,
			 int (*decode)(struct json_object *, struct etcd_reply *, struct err *))
{
	struct etcd_reply reply = { 0 };
	struct err err = { "" };
	int r = decode(object, &reply, &err);

	MUST(r == 0 || r == -EBADMSG);
	MUST((r == 0) == (err.text[0] == '\0'));
	MUST(r == 0 || (!reply.ops && !reply.n_ops));
	add_number(o, r);
	for (size_t i = 0; i < reply.n_ops; i++) {
		MUST(reply.ops[i].count >= 0);
		add_number(o, reply.ops[i].count);
		add_kvs(o, &reply.kvs[i]);
	}
	MUST(reply.lease >= 0 && reply.ttl >= 0);
	etcd_reply_done(&reply);
}

static int take(struct json_object *object, void *arg)
{
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	struct outcome *o = arg;
	const char *token;

	o->objects++;
	add(o, text, strlen(text));
	decode_watch(o, object);
	decode_reply(o, object, etcd_decode_range);
	decode_reply(o, object, etcd_decode_txn);
	decode_reply(o, object, etcd_decode_grant);
	decode_reply(o, object, etcd_decode_keepalive);
	decode_reply(o, object, etcd_decode_revoke);
	if (etcd_decode_login(object, &token, NULL) == 0)
		MUST(*token && !strpbrk(token, "\r\n"));
	return 0;
}

/* Each piece in memory of its own size, so that one byte too many is seen. */
static struct outcome feed(const uint8_t *data, size_t size, unsigned seed)
{
	AUTO(json_stream_free) struct json_stream *s = NULL;
	struct outcome o = { .sum = 14695981039346656037u };

	MUST(json_stream_new(LIMIT, take, &o, &s) == 0);
	while (size && o.result == 0) {
		size_t n = size;
		char *piece;

		if (seed) {
			seed = seed * 1103515245u + 12345u;
			n = seed >> 16 & 31 ? (seed >> 16 & 31) : 1;
			n = n < size ? n : size;
		}
		piece = malloc(n);
		MUST(piece);
		memcpy(piece, data, n);
		o.result = json_stream_feed(s, piece, n, &o.err);
		free(piece);
		data += n;
		size -= n;
	}
	o.result = o.result ?: json_stream_end(s, &o.err);
	MUST(o.result == 0 || o.result == -EBADMSG || o.result == -EMSGSIZE);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, pieces;

	if (!size)
		return 0;
	whole = feed(data + 1, size - 1, 0);
	pieces = feed(data + 1, size - 1, data[0] + 1u);
	/* json-c takes a broken number ("1-0") for the part before, if a piece ends there. */
	if (strstr(whole.err.text, "number") || strstr(pieces.err.text, "number"))
		return 0;
	MUST(whole.objects == pieces.objects);
	MUST(whole.sum == pieces.sum);
	/* Broken and too large at once: which is seen first depends on the pieces. */
	MUST(!whole.result == !pieces.result);
	return 0;
}
