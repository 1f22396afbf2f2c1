/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/kept.h"

void kept_done(struct kept *k)
{
	key_tree_free(k->lost);
	*k = (struct kept){ 0 };
}

size_t kept_count(const struct kept *k)
{
	return k->lost ? key_tree_count(k->lost) : 0;
}

static void is_back(struct kept *k, const char *key)
{
	if (k->lost)
		key_tree_remove(k->lost, key);
}

static int is_lost(struct kept *k, const struct key_tree *tree, const char *key)
{
	int r = k->lost ? 0 : key_tree_new(&k->lost);

	/* One that was lost before keeps the value that it had then. */
	return r ?: key_tree_copy(k->lost, tree, key);
}

int kept_put(struct kept *k, const struct key_tree *tree, bool listing, const char *key,
	     const char *value, size_t len)
{
	if (!listing || (k->lost && key_tree_holds(k->lost, key, value, len))) {
		is_back(k, key);
		return 0;
	}
	return key_tree_holds(tree, key, value, len) ? 0 : is_lost(k, tree, key);
}

int kept_deleted(struct kept *k, const struct key_tree *tree, bool listing, const char *key)
{
	if (listing)
		return is_lost(k, tree, key);
	is_back(k, key);
	return 0;
}
