/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON written in order, as one line of text: no tree, no error to look at per field.
 *
 *   struct json_out out = { 0 };
 *   json_out_open(&out, NULL, '{');
 *   json_out_text(&out, "name", "web");
 *   json_out_close(&out, '}');
 *   r = json_out_take(&out, &text);          0, or -ENOMEM for whatever failed on the way
 *
 * Pure. The name is NULL for the root and for elements of an array. Commas are put where
 * they belong; that the brackets match is the caller's affair. Texts must be UTF-8.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/prefix.h"

struct json_out {
	char *text;
	size_t len, room;
	bool failed;
};

void json_out_open(struct json_out *out, const char *name, char bracket); /* '{' or '[' */
void json_out_close(struct json_out *out, char bracket);                  /* '}' or ']' */
void json_out_text(struct json_out *out, const char *name, const char *text);
void json_out_some_text(struct json_out *out, const char *name,
			const char *text); /* NULL, "": nothing */
void json_out_number(struct json_out *out, const char *name, int64_t number);
void json_out_bool(struct json_out *out, const char *name, bool value);
void json_out_address(struct json_out *out, const char *name, const struct address *a);
void json_out_some_address(struct json_out *out, const char *name,
			   const struct address *a); /* family 0: nothing */
void json_out_prefix(struct json_out *out, const char *name, const struct prefix *p);

/* Hands the text over, free() it; out is empty again, also on failure. */
int json_out_take(struct json_out *out, char **ret);
