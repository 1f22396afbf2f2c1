/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the caller of a watch has been told: each key and its revision.
 *
 *   etcd's lists and events -> [store_view] -> what is news to the caller
 *
 * Pure. This is what makes a watch survive anything: a list is compared with
 * it and only the difference goes on; an event that it has already is dropped.
 * It holds keys and revisions, no values: about a hundred bytes a key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/auto.h"

struct store_view;

int store_view_new(struct store_view **ret);
void store_view_free(struct store_view *v);
AUTO_DEFINE(struct store_view *, store_view_free)

size_t store_view_count(const struct store_view *v);
bool store_view_knows(const struct store_view *v, const char *key, int64_t mod_revision);

/*
 * A list begins: every key not listed until its end will be found missing. A
 * list that was begun and not ended is forgotten. With "anew" revisions prove
 * nothing, because etcd was replaced or restored: every key listed is news.
 */
void store_view_list_begin(struct store_view *v, bool anew);
/* 1 if it is news, 0 if known, -ENOMEM; -ESTALE if it was known at a higher revision, which proves
 * that etcd went back. */
int store_view_listed(struct store_view *v, const char *key, int64_t mod_revision);
/*
 * Tells the keys that are gone, in order, and forgets them; revision is the
 * list's. -ENOMEM: nothing was told, end it again later.
 */
int store_view_list_end(struct store_view *v, int64_t revision,
			void (*gone)(const char *key, int64_t revision, void *arg), void *arg);

/* Events: 1 if it is news, 0 if told before, -ENOMEM. */
int store_view_put(struct store_view *v, const char *key, int64_t mod_revision);
int store_view_deleted(struct store_view *v, const char *key, int64_t mod_revision);
