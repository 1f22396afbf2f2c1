/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write-behind: etcd's keys under host/<self>/address/ follow the attachments.
 *
 *   allocator -> want, drop ─┐
 *                            ├─> [behind] -> one transaction at a time, at most 128 keys -> etcd
 *   watch -> seen, gone ─────┘
 *
 * Holds for each key what it should be and a hash of what etcd was last seen
 * to hold; whatever differs is dirty and gets written or deleted, in the order
 * it became so. So an outage, a late write, a key changed or made by hand all
 * mend themselves in the same way. Writes compare our registration, so that a
 * node that was removed leaves nothing behind. Nothing is sent before in_sync:
 * until then it is unknown what is there.
 */
#pragma once

#include "lib/store/store.h"

struct behind;

struct behind_config {
	struct store *store;
	/* Key and MOD revision of our node record; 0: not registered, wait. */
	const char *fence_key;
	int64_t (*fence)(void *arg);
	/*
	 * Nothing was written: etcd refuses (reply->err), or the fence was not the expected one.
	 * behind_kick() after a while, not at once. May be NULL.
	 */
	void (*refused)(const struct store_reply *reply, void *arg);
	/* A transaction was applied. May be NULL. */
	void (*written)(void *arg);
	void *arg;
};
int behind_new(const struct behind_config *config, struct behind **ret);
void behind_free(struct behind *b);

/* What should be. Keys are whole, values are copied. 0 or -ENOMEM. Then behind_kick(). */
int behind_want(struct behind *b, const char *key, const char *value);
void behind_drop(struct behind *b, const char *key);

/* What is, by the watch. */
int behind_seen(struct behind *b, const char *key, const char *value, size_t len, int64_t revision);
void behind_gone(struct behind *b, const char *key, int64_t revision);
void behind_in_sync(struct behind *b, bool in_sync);
/* Another cluster, or an older state of ours: forget what was seen; it is listed anew. */
void behind_restart(struct behind *b);

/* Whether etcd has this key as it should be, as far as is known. */
bool behind_told(const struct behind *b, const char *key);

/* Sends what is dirty, if nothing is under way. Cheap to call. */
void behind_kick(struct behind *b);
/* Keys that etcd does not have as they should be. */
size_t behind_pending(const struct behind *b);
