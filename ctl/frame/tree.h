/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small hands for the trees that verbs make: members by name, in one line each.
 *
 * A lack of memory is remembered in the tree's maker, not told by each call: tree_end() says it.
 */
#pragma once

#include "lib/json/json.h"
#include "lib/json/values.h"

struct tree {
	struct json_object *object;
	bool failed;
};

struct tree tree_new(void);
void tree_text(struct tree *t, const char *name, const char *text);
void tree_some_text(struct tree *t, const char *name, const char *text); /* NULL, "": nothing */
void tree_number(struct tree *t, const char *name, int64_t number);
void tree_bool(struct tree *t, const char *name, bool value);
/* Takes value, which may be NULL for out of memory. */
void tree_add(struct tree *t, const char *name, struct json_object *value);
/* Counts another reference. NULL: nothing. */
void tree_share(struct tree *t, const char *name, struct json_object *value);
void tree_prefix(struct tree *t, const char *name, const struct prefix *p); /* family 0: nothing */
void tree_address(struct tree *t, const char *name, const struct address *a);
/* The members of from in object too, replacing those of equal name. */
void tree_merge(struct json_object *object, struct json_object *from);
/* A new array of strings, or NULL: for tree_add(). */
struct json_object *tree_texts(const struct texts *texts);
/* Hands the object over. 0, or -ENOMEM and *ret NULL. */
int tree_end(struct tree *t, struct json_object **ret);
/* The same into an array. */
int tree_end_in(struct tree *t, struct json_object *array);
