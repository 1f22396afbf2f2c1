/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a byte stream into JSON objects: etcd's watch stream, and replies
 * that are parsed while they arrive.
 *
 * Pure. Never relies on where chunks end; blanks and line feeds between the
 * objects are skipped. Whatever is not a sequence of objects within the
 * limits ends the stream for good: nothing after a broken object is trusted.
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

#include "lib/base/err.h"

struct json_stream;

/* The object is borrowed; a negative return ends the stream with it. */
typedef int json_stream_fn(struct json_object *object, void *arg);

/* max_object: bytes of one object's text. Depth is limited to 16: etcd needs 8. */
int json_stream_new(size_t max_object, json_stream_fn *fn, void *arg, struct json_stream **ret);
/* The same with another limit: other people's objects nest deeper. */
int json_stream_new_deep(size_t max_object, int max_depth, json_stream_fn *fn, void *arg,
			 struct json_stream **ret);
void json_stream_free(struct json_stream *s);
AUTO_DEFINE(struct json_stream *, json_stream_free)

/*
 * 0, or for good: -EBADMSG (not JSON, not an object, not UTF-8, too deep),
 * -EMSGSIZE (an object over the limit), or what fn returned.
 */
int json_stream_feed(struct json_stream *s, const char *data, size_t n, struct err *err);

/* The one object that data consists of; release it with json_object_put(). Errors as above. */
int json_stream_single(size_t max_object, const char *data, size_t n, struct json_object **ret,
		       struct err *err);

/* 0 if the stream may end here, -EBADMSG if it was cut within an object. */
int json_stream_end(struct json_stream *s, struct err *err);
