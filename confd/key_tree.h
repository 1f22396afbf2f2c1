/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of etcd as the data of a template: keys are the folders of a tree.
 *
 *   etcd's keys and values -> [tree] -> JSON -> mustache
 *
 * Pure. Under the prefix /a/ the key /a/b/c with the value 5 is {"b":{"c":5}}. A value that is
 * a JSON object, array or boolean is parsed, so is a number if it would be printed as it is
 * written; everything else is a text, byte for byte. Names are kept verbatim. The same keys
 * give the same JSON, whatever the order in which they came.
 *
 * Names that begin with '@' are added, because Mustache walks through lists only and knows no
 * name of a member:
 *
 *   @list   in every folder: its members in the order of their names, each as an object
 *   @name   in every object that is a member of a folder: the member's name
 *   @last   likewise: whether it is the last of its folder
 *   @value  the value of a key that is a folder as well, or that is no object in a @list
 *
 * so {{#node.@list}}{{@name}} {{ipv4}}{{/node.@list}} says what it seems to. A key with a part
 * that is called so loses to ours. The 17th part of a key and what follows it are one name: members
 * are shared with their @list, so the tree as text doubles with each part.
 */
#pragma once

#include <stddef.h>

#include "lib/json/json.h"

#define TREE_DEPTH_MAX 16

struct key_tree;

int key_tree_new(struct key_tree **ret);
void key_tree_free(struct key_tree *t);
AUTO_DEFINE(struct key_tree *, key_tree_free)

/* 0 or -ENOMEM. The value need not end with a NUL. */
int key_tree_put(struct key_tree *t, const char *key, const char *value, size_t len);
void key_tree_remove(struct key_tree *t, const char *key);
size_t key_tree_count(const struct key_tree *t);
/* Whether it is there and means the same. */
bool key_tree_holds(const struct key_tree *t, const char *key, const char *value, size_t len);
/* What "from" has of a key; nothing if it has none, or "to" has one already. 0 or -ENOMEM. */
int key_tree_copy(struct key_tree *to, const struct key_tree *from, const char *key);
/* Some key, borrowed; NULL: there is none. */
const char *key_tree_any(const struct key_tree *t);

/* Keys that do not begin with the prefix are left out. 0 or -ENOMEM. */
int key_tree_json(const struct key_tree *t, const char *prefix, struct json_object **ret);
