/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds a lease: a node that exists in etcd alone, named after its public address.
 *
 *   lease server -> node/lease-192.0.2.5, block/... -> agents' overlays, as any other node
 *
 * Pure. Such a node has no agent: no status, no session, nothing that could give back a block. Who
 * counts, asks or peers with nodes leaves these out.
 */
#pragma once

#include "lib/model/model.h"

/* s: for no longer does a holder count on a lease that was confirmed, nor on its expiration. */
#define LEASE_PROMISE_MAX 3600

/* machine and boot of such a node's record. */
#define LEASE_MACHINE "lease"

/* "lease-192.0.2.5", "lease-2001-db8--5"; text holds NODE_NAME_TEXT bytes. Returns text. */
const char *lease_holder_name(const struct address *public_ip, char *text);
/* By the name alone: for those who have no record at hand. */
bool lease_holder_is(const char *node);
/* By its record. */
bool node_is_lease(const struct node *node);

/*
 * The record of a holder; mac may be zero. recovery: for which it has said what it holds, "": none.
 * The text is the caller's: 0 or -ENOMEM.
 */
int lease_holder_record(const struct address *public_ip, const struct mac *mac,
			const char *recovery, char **ret);
