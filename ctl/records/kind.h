/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of records by the names that operators type, and one record in the form of get and
 * apply: {"kind": "pool", "name": "web", ...fields}.
 *
 * Pure.
 */
#pragma once

#include "lib/json/json.h"
#include "lib/model/record.h"

struct kind {
	const char *name; /* "pool"; NULL ends the table */
	enum key_kind key;
	const char *beginning; /* of its keys; the whole key where there is just one: config */
	bool written;          /* by operators: apply takes it */
	name_check_fn *check;  /* of its name, where that is one word */
};

extern const struct kind kinds[];
/* NULL: no such kind. */
const struct kind *kind_find(const char *name);
/* 0 or CTL_USAGE with a sentence that names the nearest, or all. */
int kind_need(const char *name, const struct kind **ret, struct err *err);
bool kind_is_single(const struct kind *kind);

/* name is what follows the beginning; "" for config. text holds KEY_TEXT bytes. -EINVAL with the
 * sentence of the name's rule. */
int kind_key(const struct kind *kind, const char *name, char *text, struct err *err);
/* Whether the key is of this kind, and if so its name. */
const char *kind_name(const struct kind *kind, const char *key);

/* The stored text as an object with kind and name in front. -EINVAL with a sentence. */
int kind_object(const struct kind *kind, const char *key, const char *json, size_t len,
		struct json_object **ret, struct err *err);
