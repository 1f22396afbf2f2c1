/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and values as anybody may write them: a key to the first newline, its value to the next.
 * A tree is made of them, twice the same, and nothing is left of it when they are gone.
 */
#include <stdint.h>
#include <string.h>

#include "confd/key_tree.h"

static void each(struct key_tree *t, char *text, bool put)
{
	while (text) {
		const char *key = strsep(&text, "\n"), *value = text ? strsep(&text, "\n") : "";

		if (!put)
			key_tree_remove(t, key);
		else if (key_tree_put(t, key, value, strlen(value)) < 0)
			abort();
	}
}

static char *print(const struct key_tree *t)
{
	AUTO(json_put) struct json_object *o = NULL;
	char *text;

	if (key_tree_json(t, "/", &o) < 0 || json_print(o, &text) < 0)
		abort();
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(free) char *text = strndup((const char *)data, size);
	AUTO(free) char *again = strndup((const char *)data, size);
	AUTO(free) char *one = NULL;
	AUTO(free) char *two = NULL;
	AUTO(free) char *none = NULL;
	AUTO(key_tree_free) struct key_tree *t = NULL;

	if (!text || !again || key_tree_new(&t) < 0)
		return 0;
	each(t, text, true);
	one = print(t);
	two = print(t);
	each(t, again, false);
	none = print(t);
	if (strcmp(one, two) != 0 || strcmp(none, "{\"@list\":[]}") != 0 || key_tree_count(t) != 0)
		abort();
	return 0;
}
