/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One input is a template, two partials and the data, with a byte 0xff between them; a first byte
 * chooses the options. Whatever they are, rendering ends within its limits, says what is
 * wrong and where, and comes to the same a second time.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "confd/mustache/mustache.h"
#include "lib/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#define MAX_OUTPUT 20000

struct parts {
	struct {
		const uint8_t *data;
		size_t len;
	} v[4];
};

static const char *const names[] = { "t", "p", "q" };

static void cut(const uint8_t *data, size_t size, struct parts *ret)
{
	*ret = (struct parts){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(ret->v); i++) {
		const uint8_t *end = size ? memchr(data, 0xff, size) : NULL;

		ret->v[i].data = data;
		ret->v[i].len = end ? (size_t)(end - data) : size;
		if (!end)
			return;
		size -= ret->v[i].len + 1;
		data = end + 1;
	}
}

static int load(const char *name, char **ret_text, size_t *ret_len, void *arg, struct err *err)
{
	const struct parts *parts = arg;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		*ret_len = parts->v[i].len;
		*ret_text = malloc(*ret_len ?: 1);
		MUST(*ret_text);
		if (*ret_len > 0)
			memcpy(*ret_text, parts->v[i].data, *ret_len);
		return 0;
	}
	return -ENOENT;
}

static struct json_object *parse_data(const struct parts *parts)
{
	AUTO(free) char *text = NULL;

	if (parts->v[3].len == 0)
		return json_tokener_parse("{\"a\":{\"b\":[1,2]},\"l\":[{\"x\":1},{\"x\":\"<\"},[]],"
					  "\"n\":\"p\",\"m\":\"q\",\"x\":\"y\\nz\",\"e\":[],"
					  "\"f\":false,\"o\":null}");
	text = strndup((const char *)parts->v[3].data, parts->v[3].len);
	MUST(text);
	return json_tokener_parse(text);
}

static void check_failure(int r, const struct err *err)
{
	unsigned line = 0, column = 0;
	const char *colon = strchr(err->text, ':');

	MUST(r == -EINVAL || r == -EFBIG || r == -ELOOP);
	MUST(colon && sscanf(colon, ":%u:%u: ", &line, &column) == 2);
	MUST(line > 0 && column > 0);
}

static int render(const struct parts *parts, struct json_object *data,
		  const struct mustache_options *o, char **ret, size_t *ret_len)
{
	AUTO(mustache_set_free) struct mustache_set *set = NULL;
	AUTO(free) char *again = NULL;
	struct parts copy = *parts;
	struct err err = { "" };
	size_t len = 0;
	int r;

	MUST(mustache_set_new(load, &copy, &set) == 0);
	r = mustache_render(set, "t", data, o, ret, ret_len, &err);
	if (r < 0)
		check_failure(r, &err);
	MUST(mustache_render(set, "t", data, o, &again, &len, &err) == r);
	if (r == 0) {
		MUST(*ret_len <= MAX_OUTPUT && (*ret)[*ret_len] == '\0');
		MUST(len == *ret_len && memcmp(again, *ret, len) == 0);
	}
	r = mustache_check(set, "t", &err);
	if (r < 0)
		check_failure(r, &err);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t choice = size > 0 ? data[0] : 0;
	struct mustache_options o = {
		.html = choice & 1,
		.max_output = MAX_OUTPUT,
		.max_depth = choice & 2 ? 1000 : 0,
	};
	AUTO(json_put) struct json_object *tree = NULL;
	AUTO(free) char *lenient = NULL;
	AUTO(free) char *strict = NULL;
	struct parts parts;
	size_t lenient_len, strict_len;

	cut(data + (size > 0), size - (size > 0), &parts);
	tree = parse_data(&parts);
	render(&parts, tree, &o, &lenient, &lenient_len);
	o.strict = true;
	render(&parts, tree, &o, &strict, &strict_len);
	/* Strictness refuses; it never changes what is printed. */
	if (strict)
		MUST(lenient && lenient_len == strict_len &&
		     memcmp(lenient, strict, strict_len) == 0);
	return 0;
}
