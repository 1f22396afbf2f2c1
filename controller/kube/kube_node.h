/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Kubernetes Node object means to us: name, UID, labels, pod CIDRs.
 *
 *   kube_list, kube_watch -> [kube_node] -> kube_view -> handlers
 *
 * Pure. Everything else of the object (managedFields, a status of a hundred
 * kilobytes) is not looked at, so a heartbeat gives an equal digest. What does
 * not fit our rules is left out and counted, never bent.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/json/values.h"

struct kube_node {
	char *name, *uid;
	struct label_map labels;
	struct prefixes pod_cidrs; /* in Kubernetes' order: the first is the primary family's */
	bool deleting;             /* it has a deletionTimestamp; that is no deletion yet */
	size_t labels_left_out, pod_cidrs_left_out;
};

/*
 * 0, -ENOMEM, or -EINVAL with a sentence: no Node, or one whose name or UID cannot be ours.
 * *ret is set only on success; release what it holds with kube_node_done().
 */
int kube_node_read(struct json_object *object, struct kube_node *ret, struct err *err);
void kube_node_done(struct kube_node *n);

/* Equal for equal contents; of the things above alone. -ENOMEM. */
int kube_node_digest(const struct kube_node *n, struct hash *ret);
