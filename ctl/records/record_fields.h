/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a noun's record: as help and completion show them, and the values that hold. Pure. */
#pragma once

#include "lib/model/record.h"

/* The record that FIELD=VALUE arguments of a noun fill, or NULL. */
const struct record *fields_of_noun(const char *noun);
/* One line for each field; free() it. NULL: no such record, or out of memory. */
char *fields_text(const char *noun);
/* "number", "yes or no", "list of prefixes": what its value looks like; text holds 96 bytes. */
const char *field_form(const struct field *f, char *text);

/* A record with every default filled in, as JSON: what holds, not what was typed. */
/* Adds to object. 0, -ENOMEM, or -EINVAL with the sentence of decoding. What is absent and has no
 * default stays absent. */
int effective(const struct record *type, const char *key, const char *json, size_t len,
	      struct json_object *object, struct err *err);
