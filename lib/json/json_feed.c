/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json_feed.h"

#include <stdbool.h>

static bool beyond_ascii(char c)
{
	return (unsigned char)c >= 0x80;
}

static size_t run_length(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && beyond_ascii(text[i]) == beyond_ascii(text[0]))
		i++;
	return i;
}

struct json_object *json_feed(struct json_tokener *tok, int flags, const char *text, size_t n,
			      size_t *ret_end)
{
	struct json_object *object;
	size_t at = 0;

	do {
		size_t run = run_length(text + at, n - at);
		bool wide = run && beyond_ascii(text[at]);

		json_tokener_set_flags(tok, wide ? flags & ~JSON_TOKENER_STRICT : flags);
		object = json_tokener_parse_ex(tok, text + at, (int)run);
		*ret_end = at + json_tokener_get_parse_end(tok);
		at += run;
	} while (at < n && json_tokener_get_error(tok) == json_tokener_continue);
	return object;
}
