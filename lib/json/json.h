/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON read strictly: every refusal names the field, the value and the rule.
 *
 *   text -> json_parse -> json_root -> json_member -> json_read_text, ...
 *
 * Pure, over json-c, which is lenient by itself: it cuts numbers to their type,
 * turns strings into numbers and numbers into strings. Here a value of another
 * type is an error and nothing is converted. A JSON null counts as an absent
 * field, unknown fields are nobody's business. Two things json-c does not let us
 * see: of equal names in one object the last wins, and a name ends at a NUL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/base/err.h"
#include "lib/base/prefix.h"

/* json_object_put() under a name for AUTO(). */
static inline void json_put(struct json_object *object)
{
	json_object_put(object);
}
AUTO_DEFINE(struct json_object *, json_put)

/* etcd's own limit for one value, and more nesting than any record has. */
#define JSON_SIZE_MAX  (1536U * 1024U)
#define JSON_DEPTH_MAX 16
/* Where a reader is given no tighter limit for a string. */
#define JSON_STRING_MAX 4095U

/*
 * The whole of text (len bytes, no NUL needed) is one JSON object in valid UTF-8, without
 * comments. 0, -ENOMEM, -E2BIG or -EINVAL with "not valid JSON at byte 17: ..." in err.
 */
int json_parse(const char *text, size_t len, struct json_object **ret, struct err *err);
/* The same with another limit than that of one value. */
int json_parse_large(const char *text, size_t len, size_t max, struct json_object **ret,
		     struct err *err);

/* One line without blanks and with plain slashes, as it is put into etcd; free() it. */
int json_print(struct json_object *object, char **ret);

/*
 * A place in a document: the value there and the way to it, for messages such as
 * field "routes[1].dst". Cheap, lives on the stack, and must not outlive its parent.
 */
struct json_at {
	struct json_object *value; /* NULL: absent or null */
	const struct json_at *up;
	const char *name; /* NULL: the root or an element of an array */
	size_t index;
	bool required;
	/*
	 * As programs in Go write and read it, for all below too: names match without regard to case, of
	 * several the last counts, and an empty string where a value may be absent means absent.
	 */
	bool as_go;
	struct err *err;
};

struct json_at json_root(struct json_object *object, struct err *err);
struct json_at json_member(const struct json_at *object, const char *name);
/* The same, but absence is an error. */
struct json_at json_need(const struct json_at *object, const char *name);
struct json_at json_element(const struct json_at *array, size_t i);

/* -EINVAL with: field "a.b[3]": and what the format says. */
int json_wrong(struct json_at at, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same with the value itself in front: field "x": 33 is not ... */
int json_refuse(struct json_at at, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * The readers return 1 when the field is there and good, 0 when it is absent (*ret is then
 * left alone, so it may hold the default), -EINVAL with a sentence otherwise; with as_go
 * -EBADMSG for a value of another type.
 */

/* At most max bytes, no NUL inside; *ret lives as long as the document. */
int json_read_text(struct json_at at, size_t max, const char **ret);
int json_read_bool(struct json_at at, bool *ret);
/* A JSON integer: neither 1.0 nor "1" is one. */
int json_read_integer(struct json_at at, int64_t min, int64_t max, int64_t *ret);
int json_read_address(struct json_at at, struct address *ret);
int json_read_prefix(struct json_at at, struct prefix *ret);      /* without host bits */
int json_read_host_prefix(struct json_at at, struct prefix *ret); /* "192.0.2.7/24" */
/* RFC 3339 in UTC as time_check() of lib/base/names.h wants it; text holds TIME_TEXT bytes. */
int json_read_time(struct json_at at, char *text);
/* The number of elements; reach them with json_element(). */
int json_read_array(struct json_at at, size_t *ret);
/* Only says whether it is one; go on with json_member(&at, ...). */
int json_read_object(struct json_at at);
/* An array of strings, each at most max bytes. *ret is a NULL-ended array to free() itself; the
 * strings live as long as the document. -ENOMEM too. */
int json_read_texts(struct json_at at, size_t max, const char ***ret, size_t *ret_n);

/*
 * etcd's gateway writes 64-bit numbers as strings of digits; a JSON integer is taken as well.
 * No sign but a '-' where negative numbers exist, no leading zero, nothing clamped.
 */
int json_read_int64(struct json_at at, int64_t *ret);
int json_read_uint64(struct json_at at, uint64_t *ret);
