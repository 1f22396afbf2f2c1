/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of apply: one record, an array of them, or several one after the other, with comments or
 * not. Pure.
 *
 *   text -> [records_text] -> for each: kind, name, fields
 */
#pragma once

#include "ctl/records/kind.h"

/* fields is without kind and name, and borrowed. A negative return ends it. */
typedef int records_text_fn(const struct kind *kind, const char *name, struct json_object *fields,
			    void *arg, struct err *err);

/* 0; what fn returned; -EINVAL with a sentence that names the record by its number; -ENOMEM. */
int records_text(const char *text, size_t len, records_text_fn *fn, void *arg, struct err *err);
