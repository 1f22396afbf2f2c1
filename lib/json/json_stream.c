/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json_stream.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/json/json_feed.h"

#define MAX_DEPTH 16
/* json-c's tokener keeps its largest string buffer for ever: make a new one after a big object. */
#define KEEP_TOKENER_BELOW (256 * 1024)

struct json_stream {
	struct json_tokener *tokener;
	json_stream_fn *fn;
	void *arg;
	size_t max_object, in_object;
	int max_depth;
	bool inside;
	int failed;
	/* Bytes that the character under way still lacks, and what the next one may be. */
	uint8_t utf8_left, utf8_low, utf8_high;
};

int json_stream_new(size_t max_object, json_stream_fn *fn, void *arg, struct json_stream **ret)
{
	return json_stream_new_deep(max_object, MAX_DEPTH, fn, arg, ret);
}

int json_stream_new_deep(size_t max_object, int max_depth, json_stream_fn *fn, void *arg,
			 struct json_stream **ret)
{
	struct json_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct json_stream){
		.tokener = json_tokener_new_ex(max_depth),
		.fn = fn,
		.arg = arg,
		.max_object = max_object,
		.max_depth = max_depth,
	};
	if (!s->tokener) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void json_stream_free(struct json_stream *s)
{
	if (!s)
		return;
	if (s->tokener)
		json_tokener_free(s->tokener);
	free(s);
}

static int fail(struct json_stream *s, int code)
{
	s->failed = code;
	return code;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/*
 * json-c's own check takes a character whose bytes come in two pieces for a broken one, and lets
 * overlong ones and surrogates pass.
 */
static bool is_utf8(struct json_stream *s, const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)data[i];

		if (s->utf8_left) {
			if (c < s->utf8_low || c > s->utf8_high)
				return false;
			s->utf8_left--;
			s->utf8_low = 0x80;
			s->utf8_high = 0xbf;
		} else if (c >= 0x80) {
			if (c < 0xc2 || c > 0xf4)
				return false;
			s->utf8_left = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
			s->utf8_low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
			s->utf8_high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
		}
	}
	return true;
}

static int object_complete(struct json_stream *s, struct json_object *object)
{
	size_t size = s->in_object;

	s->inside = false;
	s->in_object = 0;
	if (size > KEEP_TOKENER_BELOW) {
		json_tokener_free(s->tokener);
		s->tokener = json_tokener_new_ex(s->max_depth);
		if (!s->tokener)
			return -ENOMEM;
	} else {
		json_tokener_reset(s->tokener);
	}
	return s->fn(object, s->arg);
}

/* One step: feeds up to n bytes, ret_used of which belonged to the object under way. */
static int feed_object(struct json_stream *s, const char *data, size_t n, size_t *ret_used,
		       struct err *err)
{
	/* One byte more than allowed is enough to know that the object is too large. */
	size_t room = s->max_object - s->in_object + 1;
	size_t given = n < room ? n : room;
	AUTO(json_put) struct json_object *object = NULL;
	enum json_tokener_error state;
	size_t end;

	if (given > INT_MAX)
		given = INT_MAX;
	object = json_feed(s->tokener, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS,
			   data, given, &end);
	state = json_tokener_get_error(s->tokener);
	if (state != json_tokener_success && state != json_tokener_continue)
		return err_set(err, -EBADMSG, "not JSON: %s", json_tokener_error_desc(state));

	*ret_used = object ? end : given;
	/* json-c takes blanks after the object for a part of it. */
	while (object && is_blank(data[*ret_used - 1]))
		--*ret_used;
	s->in_object += *ret_used;
	if (!is_utf8(s, data, *ret_used))
		return err_set(err, -EBADMSG, "not JSON: not UTF-8");
	if (s->in_object > s->max_object)
		return err_set(err, -EMSGSIZE, "a message is larger than %zu bytes", s->max_object);
	return object ? object_complete(s, object) : 0;
}

int json_stream_feed(struct json_stream *s, const char *data, size_t n, struct err *err)
{
	if (s->failed)
		return err_set(err, s->failed, "the stream was given up earlier");

	while (n) {
		size_t used = 0;
		int r;

		if (!s->inside) {
			if (is_blank(*data)) {
				data++;
				n--;
				continue;
			}
			if (*data != '{')
				return fail(
					s,
					err_set(err, -EBADMSG,
						"not JSON: expected an object, found byte 0x%02x",
						(unsigned char)*data));
			s->inside = true;
		}
		r = feed_object(s, data, n, &used, err);
		if (r < 0)
			return fail(s, r);
		data += used;
		n -= used;
	}
	return 0;
}

int json_stream_end(struct json_stream *s, struct err *err)
{
	if (s->failed)
		return err_set(err, s->failed, "the stream was given up earlier");
	if (s->inside)
		return fail(s,
			    err_set(err, -EBADMSG, "cut off within a JSON object, after %zu bytes",
				    s->in_object));
	return 0;
}

struct single {
	struct json_object *object;
	struct err *err;
};

static int keep_only(struct json_object *object, void *arg)
{
	struct single *s = arg;

	if (s->object)
		return err_set(s->err, -EBADMSG, "more than one object");
	s->object = json_object_get(object);
	return 0;
}

int json_stream_single(size_t max_object, const char *data, size_t n, struct json_object **ret,
		       struct err *err)
{
	AUTO(json_stream_free) struct json_stream *stream = NULL;
	struct single only = { .err = err };
	int r = json_stream_new(max_object, keep_only, &only, &stream);

	r = r ?: json_stream_feed(stream, data, n, err);
	r = r ?: json_stream_end(stream, err);
	if (r == 0 && !only.object)
		r = err_set(err, -EBADMSG, "an empty reply");
	if (r == 0)
		*ret = only.object;
	else
		json_object_put(only.object);
	return r;
}
