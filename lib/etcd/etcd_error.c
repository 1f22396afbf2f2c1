/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_wire.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/json/json_stream.h"

/* gRPC's own numbers. */
enum {
	GRPC_CANCELED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID = 3,
	GRPC_DEADLINE = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_PERMISSION = 7,
	GRPC_EXHAUSTED = 8,
	GRPC_PRECONDITION = 9,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
	ANY_CODE = -1
};

enum { ELSEWHERE = 1, MAYBE_DONE = 2, LOGIN = 4 };

/*
 * First match decides. One code means several things (8 is an overload, a
 * full disk or too large a message), so a part of the message goes with it.
 */
static const struct rule {
	int code;
	const char *part;
	int err;
	int flags;
} rules[] = {
	{ GRPC_UNAUTHENTICATED, "", -EKEYREJECTED, LOGIN },
	{ GRPC_INVALID, "auth store is old", -EKEYREJECTED, LOGIN },
	{ GRPC_INVALID, "user name is empty", -EKEYREJECTED, LOGIN },
	{ GRPC_INVALID, "authentication failed", -EKEYREJECTED, 0 },
	{ GRPC_INVALID, "too large", -E2BIG, 0 },
	{ GRPC_INVALID, "", -EINVAL, 0 },
	{ GRPC_PERMISSION, "", -EACCES, 0 },
	{ GRPC_NOT_FOUND, "", -ENOENT, 0 },
	{ GRPC_OUT_OF_RANGE, "future", -ERANGE, 0 },
	{ GRPC_OUT_OF_RANGE, "compacted", -ESTALE, 0 },
	{ GRPC_EXHAUSTED, "larger than max", -E2BIG, 0 },
	{ GRPC_EXHAUSTED, "space exceeded", -ENOSPC, 0 },
	{ GRPC_EXHAUSTED, "too many requests", -EAGAIN, ELSEWHERE },
	{ GRPC_PRECONDITION, "lease already exists", -EEXIST, 0 },
	{ GRPC_PRECONDITION, "authentication is not enabled", -ENOTSUP, 0 },
	/* Turned away before it was proposed: certainly not done. */
	{ GRPC_UNAVAILABLE, "no leader", -EAGAIN, ELSEWHERE },
	{ GRPC_UNAVAILABLE, "timed out", -ETIMEDOUT, ELSEWHERE | MAYBE_DONE },
	{ GRPC_UNAVAILABLE, "", -EAGAIN, ELSEWHERE | MAYBE_DONE },
	{ GRPC_DEADLINE, "", -ETIMEDOUT, ELSEWHERE | MAYBE_DONE },
	{ GRPC_UNKNOWN, "deadline exceeded", -ETIMEDOUT, ELSEWHERE | MAYBE_DONE },
	{ GRPC_CANCELED, "", -EAGAIN, ELSEWHERE | MAYBE_DONE },
	{ ANY_CODE, "", -EIO, MAYBE_DONE },
};

static int64_t code_of(struct json_object *o)
{
	struct json_object *v;

	if ((json_object_object_get_ex(o, "code", &v) ||
	     json_object_object_get_ex(o, "grpc_code", &v)) &&
	    json_object_is_type(v, json_type_int))
		return json_object_get_int64(v);
	return ANY_CODE;
}

/* "message" in every version; 3.4 calls it "error" as well. */
static const char *message_of(struct json_object *o)
{
	struct json_object *v;

	if ((json_object_object_get_ex(o, "message", &v) ||
	     json_object_object_get_ex(o, "error", &v)) &&
	    json_object_is_type(v, json_type_string))
		return json_object_get_string(v);
	return "";
}

static struct etcd_error by_rules(int64_t code, const char *message)
{
	const struct rule *r = rules;
	struct etcd_error e;

	while (r->code != ANY_CODE && (r->code != code || !strstr(message, r->part)))
		r++;
	e = (struct etcd_error){
		.err = r->err,
		.elsewhere = r->flags & ELSEWHERE,
		.maybe_done = r->flags & MAYBE_DONE,
		.login_again = r->flags & LOGIN,
	};
	snprintf(e.text, sizeof(e.text), "%s", *message ? message : "etcd gave no reason");
	return e;
}

/* A proxy, another server, or etcd's own plain texts (404, 405). */
static struct etcd_error by_status(long status, const char *body, size_t len)
{
	struct etcd_error e = {
		.err = status / 100 == 2 ? -EBADMSG : -EIO,
		.elsewhere = status / 100 == 5,
		.maybe_done = status / 100 != 4,
	};
	int n = snprintf(e.text, sizeof(e.text), "HTTP status %ld: ", status);

	for (size_t i = 0; i < len && i < 100 && body[i] != '\n'; i++)
		e.text[n++] = isprint((unsigned char)body[i]) ? body[i] : '?';
	e.text[n] = '\0';
	return e;
}

struct etcd_error etcd_classify(long http_status, const char *body, size_t len)
{
	AUTO(json_put) struct json_object *o = NULL;
	struct json_object *inner;

	if (json_stream_single(64 * 1024, body, len, &o, NULL) < 0)
		return by_status(http_status, body, len);

	/* Streams and their like wrap the error once more. */
	if (json_object_object_get_ex(o, "error", &inner) &&
	    json_object_is_type(inner, json_type_object))
		return by_rules(code_of(inner), message_of(inner));
	if (code_of(o) == ANY_CODE && !*message_of(o))
		return by_status(http_status, body, len);
	return by_rules(code_of(o), message_of(o));
}
