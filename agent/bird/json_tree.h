/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A json-c tree written without an error to look at per field: one flag says at
 * the end that memory ran out somewhere. Keys are literals; values are taken.
 */
#pragma once

#include "lib/json/json.h"

struct json_tree {
	bool failed;
};

void json_tree_put(struct json_tree *t, struct json_object *object, const char *key,
		   struct json_object *value);
void json_tree_text(struct json_tree *t, struct json_object *object, const char *key,
		    const char *text);
/* false for NULL and "". */
void json_tree_text_or(struct json_tree *t, struct json_object *object, const char *key,
		       const char *text);
void json_tree_number(struct json_tree *t, struct json_object *object, const char *key,
		      uint32_t number);
void json_tree_flag(struct json_tree *t, struct json_object *object, const char *key, bool flag);
void json_tree_address(struct json_tree *t, struct json_object *object, const char *key,
		       const struct address *a);
/* An object inside, or false; NULL when it is false or there is no memory. */
struct json_object *json_tree_object(struct json_tree *t, struct json_object *object,
				     const char *key, bool there);
/* An object of one number, or false: where 0 is a value too. */
void json_tree_one(struct json_tree *t, struct json_object *object, const char *key, bool there,
		   const char *inner, uint32_t number);
struct json_object *json_tree_list(struct json_tree *t, struct json_object *object,
				   const char *key);
void json_tree_append(struct json_tree *t, struct json_object *list, struct json_object *value);
struct json_object *json_tree_append_object(struct json_tree *t, struct json_object *list);
