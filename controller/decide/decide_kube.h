/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubernetes' Nodes against spec/ and removed/: what is copied, and who counts as removed.
 *
 *   kube: node(), gone(), in_sync() -> [decide_kube] + mirror -> plans, an alarm
 *
 * Pure. Labels, UID and (if asked for) pod CIDRs of a Node go into spec/<node>; what operators
 * wrote there beside them stays. A node is removed only if its UID was recorded in spec/<node>, a
 * GET has said that just that Node is gone, and this has lasted a minute. If by then more than a
 * tenth of all recorded nodes (and more than two) are gone, or several and none is left, nothing is
 * removed: that is a wrong API server or a wiped one far more often than the truth, and an operator
 * can still remove them one by one. Nodes of a wrong cluster do not count as left, because no agent
 * of their name is registered. A Node of the same name with another UID takes the removal back.
 */
#pragma once

#include "controller/kube/kube_node.h"
#include "controller/state/mirror.h"
#include "controller/state/plan.h"

/* Who a removal says it is by. */
#define KUBE_BY "kubernetes"

struct kube_seen {
	char *name, *uid;
	char *spec;     /* a record of just what Kubernetes says; NULL: it is gone */
	uint64_t since; /* gone: when that was heard, in ms */
};

struct kube_nodes {
	struct kube_seen *v; /* by name */
	size_t n, room;
	bool in_sync;   /* at least one complete list was told */
	bool pod_cidrs; /* they are copied too */
};
void kube_nodes_done(struct kube_nodes *k);

/* From the client's handlers: 0 or -ENOMEM. */
int kube_nodes_put(struct kube_nodes *k, const struct kube_node *node);
int kube_nodes_gone(struct kube_nodes *k, const char *name, const char *uid, uint64_t now);

/* Nothing before in_sync. alarm: why less is done than could be; "": nothing is wrong. */
void kube_decide(const struct kube_nodes *k, const struct mirror *m, uint64_t now, uint64_t minute,
		 const char *utc, struct plans *ret, struct err *alarm);
/* Calls fn for each node that etcd remembers and no Node stands for: the client should look. */
void kube_expected(const struct kube_nodes *k, const struct mirror *m,
		   void (*fn)(const char *name, const char *uid, void *arg), void *arg);
