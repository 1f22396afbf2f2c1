/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After etcd went back: which keys of a resource are not what they were, so its file is kept.
 *
 *   store: listing, put(), deleted() -> [kept] -> how many keys were lost
 *
 * Pure. What a listing after a restore no longer has, or has with another value, was lost: nobody
 * asked for that. A key is back when a listing has it with its former value, or when somebody
 * writes or deletes it after the listing: that is meant. Call before the tree itself is changed.
 */
#pragma once

#include "confd/key_tree.h"

struct kept {
	struct key_tree *lost; /* with their former values; NULL: none */
};
void kept_done(struct kept *k);

/* listing: the first one since etcd went back brings it. 0 or -ENOMEM. */
int kept_put(struct kept *k, const struct key_tree *tree, bool listing, const char *key,
	     const char *value, size_t len);
int kept_deleted(struct kept *k, const struct key_tree *tree, bool listing, const char *key);

size_t kept_count(const struct kept *k);
