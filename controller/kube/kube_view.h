/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Nodes the caller was told of, and as what: a digest each, no contents.
 *
 *   list, watch -> [kube_view] -> is it news?
 *
 * Pure. A list is compared with it and only the difference goes on; what a complete list no longer
 * has is named, and what becomes of it is decided elsewhere (kube_doubt.c).
 */
#pragma once

#include <stddef.h>

#include "lib/base/auto.h"
#include "lib/base/hash.h"

struct kube_view;

enum kube_news {
	KUBE_NO_NEWS,
	KUBE_NEWS,      /* tell it */
	KUBE_OTHER_UID, /* another Node of that name is known: nothing was changed */
};

int kube_view_new(struct kube_view **ret);
void kube_view_free(struct kube_view *v);
AUTO_DEFINE(struct kube_view *, kube_view_free)
size_t kube_view_count(const struct kube_view *v);

/* An enum kube_news, or -ENOMEM. The list under way has seen the name in any case. */
int kube_view_take(struct kube_view *v, const char *name, const char *uid, struct hash digest);
/* The same for a Node that the caller knows from elsewhere; KUBE_NEWS: was not known. */
int kube_view_expect(struct kube_view *v, const char *name, const char *uid);
/* NULL: not known. Lives until the entry is forgotten. */
const char *kube_view_uid(const struct kube_view *v, const char *name);
/* Seen by the list under way, without a word on its contents. */
void kube_view_seen(struct kube_view *v, const char *name);
/* Only with that UID. */
void kube_view_forget(struct kube_view *v, const char *name, const char *uid);

void kube_view_list_begin(struct kube_view *v);
/* Each that the list did not have; fn does not change the view. A negative return ends it. */
typedef int kube_missing_fn(const char *name, const char *uid, void *arg);
int kube_view_list_end(struct kube_view *v, kube_missing_fn *fn, void *arg);
