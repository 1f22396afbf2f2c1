/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as far as kubeconfig files have it, as a JSON tree: one reader serves both.
 *
 * Pure, over libyaml. One document, a mapping at its top. Of plain scalars true and false
 * become booleans, null, ~ and nothing become null; everything else is text, also what looks
 * like a number: a token of digits stays one. Anchors, aliases and merge keys are refused:
 * nobody writes them there, and they can make a small file a large tree.
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

#include "lib/base/err.h"

/* 0, -ENOMEM or -EINVAL with "line 7, column 3: ..."; release *ret with json_object_put(). */
int kube_yaml_parse(const char *text, size_t len, struct json_object **ret, struct err *err);
