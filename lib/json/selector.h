/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one selector grammar: which nodes does a record mean?
 *
 *   zone == 'a' && disk != 'hdd' && (tier in {'web','db'} || has(gpu)) && !has(old) && all()
 *
 *   expr  := and { "||" and }          and  := unary { "&&" unary }
 *   unary := "!" unary | "(" expr ")" | "all()" | "has(" key ")"
 *          | key ("==" | "!=") string | key ["not"] "in" "{" [string {"," string}] "}"
 *
 * Keys [A-Za-z0-9./_-]{1,317}, strings in ' or " around [A-Za-z0-9._-]{0,63}.
 * Blanks (space, tab, line ends) may stand between any two of these. "has" and
 * "all" are special only before "(", "in" and "not" only after a key, so all
 * four may be keys. "!" binds tighter than "&&", "&&" tighter than "||".
 * An absent label is unequal to everything and in no set: "!=" and "not in"
 * hold for it. The empty selector (or only blanks) means all. Pure: parsed
 * once, evaluated without allocation, as often as labels change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

struct label {
	const char *key, *value;
};

/* Sorted by key or not; n small. */
struct labels {
	const struct label *v;
	size_t n;
};

struct selector;

/*
 * 0, -ENOMEM, or -EINVAL with "column 7: ..." (1-based, bytes) in err. Depth (of "(" and
 * "!" together) is limited to 64 and length to 4096 bytes. *ret is set only on success; release it
 * with selector_free().
 */
int selector_parse(const char *text, struct selector **ret, struct err *err);
void selector_free(struct selector *s);
AUTO_DEFINE(struct selector *, selector_free)

/* A NULL selector means all. */
bool selector_matches(const struct selector *s, const struct labels *labels);
/* The label that every node has without a record saying so. */
#define LABEL_HOSTNAME "kubernetes.io/hostname"
/* The same of a node: whatever its record says, its label kubernetes.io/hostname is its name. */
bool selector_selects(const struct selector *s, const struct labels *labels, const char *node);

/* The character sets, for those who write labels: records and command line. */
bool label_key_valid(const char *key);
bool label_value_valid(const char *value);
