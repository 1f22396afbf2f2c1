/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits the text of a Kubernetes list into its items and the envelope around them.
 *
 *   {"kind":"NodeList","metadata":{...},"items":[ {...}, {...} ]}
 *
 *   bytes -> [kube_list] -> each item by itself, then {"kind":...,"metadata":...,"items":[]}
 *
 * Pure. A page of 500 Nodes is tens of megabytes as a tree, one Node is not: so the
 * reply is cut while it arrives, in any pieces, and memory is bounded by one item. The
 * members may come in any order. Any other JSON object is all envelope, as a Status is.
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

#include "lib/base/err.h"

struct kube_list;

/* The item is borrowed; a negative return ends the list with it. */
typedef int kube_item_fn(struct json_object *item, void *arg);

/* max_item: bytes of one item's text. */
int kube_list_new(size_t max_item, kube_item_fn *fn, void *arg, struct kube_list **ret);
void kube_list_free(struct kube_list *l);
AUTO_DEFINE(struct kube_list *, kube_list_free)

/* 0, or for good: -EBADMSG, -EMSGSIZE, -ENOMEM with a sentence, or what fn returned. */
int kube_list_feed(struct kube_list *l, const char *data, size_t n, struct err *err);
/* The whole has come: the envelope, to release with json_object_put(). Errors as above. */
int kube_list_end(struct kube_list *l, struct json_object **ret, struct err *err);
