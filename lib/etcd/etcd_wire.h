/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd's JSON gateway on the wire: requests to text, replies to structs.
 *
 * Pure. etcd silently ignores a field it does not know (a misspelt compare
 * means "compare with 0"), so each encoder is also tested against a live one.
 * Zero values are absent from replies; 64-bit numbers come as texts.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/store.h"

/* --- requests; the text is the caller's, NULL without memory -------------------------------- */

struct etcd_range {
	const char *key; /* bytes: the next page starts after a key that may hold anything */
	size_t key_len;
	const char *range_end;
	int64_t limit, revision;
	bool keys_only, serializable;
};
char *etcd_encode_range(const struct etcd_range *range);
char *etcd_encode_txn(const struct store_txn *txn);
char *etcd_encode_grant(int64_t id, int64_t ttl);
char *etcd_encode_lease(int64_t id); /* keep-alive and revoke */
char *etcd_encode_login(const char *user, const char *password);
/* One create_request; several in one body make several watches of one stream. */
char *etcd_encode_watch(int64_t watch_id, const char *key, const char *range_end,
			int64_t start_revision);

/* --- replies -------------------------------------------------------------------------------- */

struct etcd_header {
	uint64_t cluster_id, member_id;
	int64_t revision;   /* 0: not given */
	uint64_t raft_term; /* of the last entry that the member applied; 0: not given */
};

/* Keys and values of one reply, in one piece of memory. */
struct etcd_kvs {
	struct store_kv *v;
	size_t n;
	size_t skipped; /* keys with a NUL byte */
	char *bytes;
	const char *last_key; /* of all, also of skipped ones */
	size_t last_key_len;
};
void etcd_kvs_done(struct etcd_kvs *kvs);

struct etcd_reply {
	struct etcd_header header;
	struct store_op_reply *ops; /* as in struct store_reply */
	struct etcd_kvs *kvs;       /* of ops[i], one each */
	size_t n_ops;
	bool succeeded, more;
	int64_t lease, ttl;
};
void etcd_reply_done(struct etcd_reply *r);

/* 0, -ENOMEM or -EBADMSG with the reason. */
int etcd_decode_range(struct json_object *reply, struct etcd_reply *ret, struct err *err);
int etcd_decode_txn(struct json_object *reply, struct etcd_reply *ret, struct err *err);
int etcd_decode_grant(struct json_object *reply, struct etcd_reply *ret, struct err *err);
int etcd_decode_keepalive(struct json_object *reply, struct etcd_reply *ret, struct err *err);
int etcd_decode_revoke(struct json_object *reply, struct etcd_reply *ret, struct err *err);
int etcd_decode_login(struct json_object *reply, const char **ret_token, struct err *err);

/* One message of a watch stream. */
struct etcd_watch_message {
	struct etcd_header header;
	int64_t watch_id;
	bool created, canceled, fragment;
	int64_t compact_revision;
	const char *cancel_reason; /* borrowed from the JSON; NULL: none */
	/* One per event; a delete has version 0 and beside it just key and mod_revision. */
	struct etcd_kvs kvs;
};
void etcd_watch_message_done(struct etcd_watch_message *m);
/* -EPROTO with etcd's words if the message is an error that ends the stream. */
int etcd_decode_watch(struct json_object *message, struct etcd_watch_message *ret, struct err *err);

/* --- errors --------------------------------------------------------------------------------- */

struct etcd_error {
	int err;          /* as listed in store.h */
	bool elsewhere;   /* another member, or the same one later, may do it */
	bool maybe_done;  /* a write may have been applied, or may yet be */
	bool login_again; /* the token is not accepted any more */
	char text[256];
};
/*
 * What a reply that is no success means. Decides by the gRPC code and the
 * message, because HTTP statuses differ between etcd's versions.
 */
struct etcd_error etcd_classify(long http_status, const char *body, size_t len);
