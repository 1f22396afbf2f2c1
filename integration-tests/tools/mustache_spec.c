/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mustache-spec FILE...: runs the cases of the Mustache specification's JSON files.
 *
 * Each case is template, data and partials with the text that must come out. Prints those that
 * fail, a line per file, and "N passed, N failed" at the end; exits 1 if one fails.
 */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "confd/mustache/mustache.h"
#include "lib/json/json.h"

static const char *text_of(struct json_object *object, const char *name)
{
	return json_object_get_string(json_object_object_get(object, name)) ?: "";
}

/* The template itself goes by a name that no partial has. */
static int load(const char *name, char **ret_text, size_t *ret_len, void *test, struct err *err)
{
	struct json_object *partials = json_object_object_get(test, "partials");
	struct json_object *text = NULL;

	if (strcmp(name, "the template") == 0)
		text = json_object_object_get(test, "template");
	else if (partials)
		text = json_object_object_get(partials, name);
	if (!text)
		return -ENOENT;
	*ret_text = strdup(json_object_get_string(text));
	*ret_len = (size_t)json_object_get_string_len(text);
	return *ret_text ? 0 : -ENOMEM;
}

static bool passes(struct json_object *test)
{
	const struct mustache_options o = { .html = true };
	AUTO(mustache_set_free) struct mustache_set *set = NULL;
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	size_t len;
	int r = mustache_set_new(load, test, &set);

	if (r == 0)
		r = mustache_render(set, "the template", json_object_object_get(test, "data"), &o,
				    &text, &len, &err);
	if (r == 0 && strcmp(text, text_of(test, "expected")) == 0)
		return true;
	printf("FAIL %s: %s\n", text_of(test, "name"), text_of(test, "desc"));
	printf("  template %s\n", json_object_to_json_string_ext(test, JSON_C_TO_STRING_PLAIN));
	printf("  printed  %s%s\n", text ?: "nothing: ", err.text);
	return false;
}

static int run_file(char *path, size_t *passed, size_t *failed)
{
	AUTO(json_put) struct json_object *file = json_object_from_file(path);
	struct json_object *tests;
	size_t n, good = 0;

	if (!file || !json_object_object_get_ex(file, "tests", &tests)) {
		fprintf(stderr, "%s: %s\n", path, json_util_get_last_err() ?: "no tests in it");
		return -EINVAL;
	}
	n = json_object_array_length(tests);
	for (size_t i = 0; i < n; i++)
		good += passes(json_object_array_get_idx(tests, i));
	printf("%-24s %zu of %zu\n", basename(path), good, n);
	*passed += good;
	*failed += n - good;
	return 0;
}

int main(int argc, char **argv)
{
	size_t passed = 0, failed = 0;

	for (int i = 1; i < argc; i++)
		if (run_file(argv[i], &passed, &failed) < 0)
			return 1;
	printf("%zu passed, %zu failed\n", passed, failed);
	return failed > 0;
}
