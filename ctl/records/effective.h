/* SPDX-License-Identifier: Apache-2.0 */
/* A record with every default filled in, as JSON: what holds, not what was typed. Pure. */
#pragma once

#include "lib/model/record.h"

/* Adds to object. 0, -ENOMEM, or -EINVAL with the sentence of decoding. What is absent and has no
 * default stays absent. */
int effective(const struct record *type, const char *key, const char *json, size_t len,
	      struct json_object *object, struct err *err);
