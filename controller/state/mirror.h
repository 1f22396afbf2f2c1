/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mirror: every key of ours as etcd has it, for decisions that need the whole.
 *
 *   one watch on the prefix -> [mirror] -> audit, removals, pools
 *
 * Pure. Sorted by key; keys are relative. Of three kinds only what decisions need is kept, because
 * there are many of them or they are long: of an address its boot and whether it is reserved, of a
 * node's status the pools that it calls full, of its report on a static route the outcome.
 */
#pragma once

#include "lib/model/keys.h"
#include "lib/store/store.h"

struct mirrored {
	struct store_kv kv; /* key and value point into text */
	enum key_kind kind; /* KEY_KINDS: not ours */
	/* block: its owner; status of a node: full pools, each with a blank behind; report on a
	 * static route: "applied", "error" or "" */
	const char *note;
	char text[];
};

struct mirror {
	struct mirrored **v;
	size_t n, room;
	int64_t revision; /* up to which everything is known */
};

void mirror_done(struct mirror *m);
/* key: relative; the rest from kv. 0 or -ENOMEM. */
int mirror_put(struct mirror *m, const char *key, const struct store_kv *kv);
void mirror_delete(struct mirror *m, const char *key);

/* NULL: absent. */
const struct mirrored *mirror_find(const struct mirror *m, const char *key);
/* The first key that is not below this text. */
size_t mirror_from(const struct mirror *m, const char *key);
/* The entry at i; NULL: it does not begin so, or i is the end. */
const struct mirrored *mirror_at(const struct mirror *m, size_t i, const char *beginning);
/* Each entry whose key begins so, as e. */
#define MIRROR_EACH(m, e, beginning)                                                               \
	for (size_t e##_at = mirror_from(m, beginning); e##_at != SIZE_MAX; e##_at = SIZE_MAX)     \
		for (const struct mirrored *e; (e = mirror_at(m, e##_at, beginning)); e##_at++)
size_t mirror_count(const struct mirror *m, const char *beginning);
/* All as one array, for the audit: 0 or -ENOMEM; free() it. */
int mirror_kvs(const struct mirror *m, struct store_kv **ret);

/* The last part of a key such as node/<node>. */
const char *mirrored_name(const struct mirrored *e);
