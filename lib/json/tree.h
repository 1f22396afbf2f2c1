/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON trees made in order: members by name, one line each, no error to look at per member.
 *
 *   struct tree t = tree_new();                  an object
 *   tree_text(&t, "name", "web");
 *   tree_open(&t, "blocks", '[');                what follows goes into the array
 *   for (...) {
 *           tree_open(&t, NULL, '{');
 *           tree_prefix(&t, "block", &b->prefix);
 *           tree_close(&t);
 *   }
 *   tree_close(&t);
 *   r = tree_end(&t, &object);                   0, or -ENOMEM for whatever failed on the way
 *
 * Pure. The name is NULL in an array. Where only the text is wanted, json_out.h makes it without a
 * tree. Texts must be UTF-8.
 */
#pragma once

#include "lib/json/json.h"
#include "lib/json/values.h"

struct tree {
	struct json_object *object; /* the innermost that is open */
	struct json_object *outer[JSON_DEPTH_MAX];
	unsigned depth;
	bool failed;
	bool literal_names; /* set it for a large tree: all names are literals, each once in its object */
};

struct tree tree_new(void);                                     /* with an object open */
void tree_open(struct tree *t, const char *name, char bracket); /* '{' or '[' */
void tree_close(struct tree *t);

void tree_text(struct tree *t, const char *name, const char *text);      /* NULL counts as "" */
void tree_some_text(struct tree *t, const char *name, const char *text); /* NULL, "": nothing */
void tree_printf(struct tree *t, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
void tree_number(struct tree *t, const char *name, int64_t number);
void tree_bool(struct tree *t, const char *name, bool value);
void tree_prefix(struct tree *t, const char *name, const struct prefix *p); /* family 0: nothing */
void tree_address(struct tree *t, const char *name, const struct address *a); /* the same */
void tree_texts(struct tree *t, const char *name, const struct texts *texts); /* an array */
/* Takes value, which may be NULL for out of memory. */
void tree_add(struct tree *t, const char *name, struct json_object *value);
/* Counts another reference. NULL: nothing. */
void tree_share(struct tree *t, const char *name, struct json_object *value);
/* The members of from in object too, replacing those of equal name. */
void tree_merge(struct json_object *object, struct json_object *from);

/* Hands the object over. 0, or -ENOMEM and *ret NULL. All that is open is closed. */
int tree_end(struct tree *t, struct json_object **ret);
/* The same into an array; as one line of text, free() it. */
int tree_end_in(struct tree *t, struct json_object *array);
int tree_end_text(struct tree *t, char **ret);
