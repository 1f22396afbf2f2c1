/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a noun's record, as help and completion show them. Pure. */
#pragma once

#include "lib/model/record.h"

/* The record that FIELD=VALUE arguments of a noun fill, or NULL. */
const struct record *fields_of_noun(const char *noun);
/* One line for each field; free() it. NULL: no such record, or out of memory. */
char *fields_text(const char *noun);
/* "number", "yes or no", "list of prefixes": what its value looks like; text holds 96 bytes. */
const char *field_form(const struct field *f, char *text);
