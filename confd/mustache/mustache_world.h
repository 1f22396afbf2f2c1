/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests: templates in an array, the one to render is "t", and what must come of it. */
#pragma once

#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "confd/mustache/mustache.h"
#include "lib/json/json.h"

struct world {
	struct {
		const char *name, *text;
	} v[6];
	const char *fail; /* this one cannot be read */
	unsigned loads, misses;
};

static const struct mustache_options verbatim;
static const struct mustache_options strict = { .strict = true };

static int world_load(const char *name, char **ret_text, size_t *ret_len, void *arg,
		      struct err *err)
{
	struct world *world = arg;

	if (world->fail && strcmp(name, world->fail) == 0)
		return err_set(err, -EACCES, "the disk says no");
	for (size_t i = 0; i < ARRAY_SIZE(world->v) && world->v[i].name; i++) {
		if (strcmp(world->v[i].name, name) != 0)
			continue;
		/* Without a NUL: reading beyond the end is found. */
		*ret_len = strlen(world->v[i].text);
		*ret_text = malloc(*ret_len ?: 1);
		assert_non_null(*ret_text);
		memcpy(*ret_text, world->v[i].text, *ret_len);
		world->loads++;
		return 0;
	}
	world->misses++;
	return -ENOENT;
}

/* A const one must outlive the set and is not counted in. */
static struct mustache_set *world_set(const struct world *world)
{
	struct mustache_set *set = NULL;

	assert_int_equal(mustache_set_new(world_load, (void *)(uintptr_t)world, &set), 0);
	return set;
}

static struct json_object *json_of(const char *text)
{
	struct json_object *data = json_tokener_parse(text);

	assert_non_null(data);
	return data;
}

static void expect_of(const struct world *world, struct json_object *data,
		      const struct mustache_options *o, const char *want)
{
	struct world copy = *world;
	AUTO(mustache_set_free) struct mustache_set *set = world_set(&copy);
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	size_t len;

	if (mustache_render(set, "t", data, o, &text, &len, &err) < 0)
		fail_msg("%s: %s", world->v[0].text, err.text);
	assert_string_equal(text, want);
	assert_int_equal(len, strlen(want));
}

static void expect_error(const struct world *world, const char *json,
			 const struct mustache_options *o, int code, const char *want)
{
	struct world copy = *world;
	AUTO(json_put) struct json_object *data = json_of(json);
	AUTO(mustache_set_free) struct mustache_set *set = world_set(&copy);
	char *text = NULL;
	struct err err = { "" };
	size_t len;

	assert_int_equal(mustache_render(set, "t", data, o, &text, &len, &err), code);
	assert_null(text);
	assert_true(err.text[0] != '\0');
	if (want)
		assert_string_equal(err.text, want);
	/* Again, for what it remembers; and without a place for the sentence. */
	assert_int_equal(mustache_render(set, "t", data, o, &text, &len, NULL), code);
}

static inline void expect_world(const struct world *world, const char *json, const char *want)
{
	AUTO(json_put) struct json_object *data = json_of(json);

	expect_of(world, data, &verbatim, want);
}

static inline void expect(const char *template, const char *json, const char *want)
{
	expect_world(&(struct world){ .v = { { "t", template } } }, json, want);
}
