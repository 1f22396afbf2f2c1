/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fields of records are made of in C, beside numbers and plain texts.
 * Records that were decoded own what these point to, and release it as a whole.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/mac.h"
#include "lib/base/names.h"
#include "lib/base/prefix.h"
#include "lib/json/selector.h"

/* v owns its elements when it was read; in a record made by hand it may point anywhere. */
struct texts {
	const char **v;
	size_t n;
};
struct addresses {
	struct address *v;
	size_t n;
};
struct prefixes {
	struct prefix *v;
	size_t n;
};
/* As written, and ready to ask; parsed may be NULL, which means all. */
struct selector_text {
	const char *text;
	struct selector *parsed;
};
/* Sorted by key; the texts lie in store. */
struct label_map {
	struct label *v;
	size_t n;
	char *store;
};
/* A flag that may be left to another record. */
enum maybe { MAYBE_UNSET, MAYBE_NO, MAYBE_YES };
/* Whom a BGP session goes to; zone is an interface and only a link-local address has one. */
struct neighbour {
	struct address address; /* or family 0 */
	char zone[IF_NAME_TEXT];
};
