/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leases of a server as the records that everything above the store reads.
 *
 *   lease server -> lease_reply -> [lease_mirror] -> keys in memory -> watches
 *
 *   its network       config (vxlan, no routing protocol), pool/lease, extent/<network>/lease
 *   another's lease   block/<network>/<subnet> of node lease-<public address>, and that node's
 *                     record with the MAC of its tunnel's end
 *   our own           block/ of this node and its index under host/
 *
 * Ours is what has our public address. A table holds the leases; a key is written only when
 * what it says has changed, and each call makes at most one revision. No clock, no I/O.
 */
#pragma once

#include "lib/base/array.h"
#include "lib/lease/lease_reply.h"
#include "lib/store/memory_etcd.h"

/* The pool that all leases lie in: the server does not tell its own name for it. */
#define LEASE_POOL "lease"

struct lease_table {
	struct lease **v;
	size_t n, room;
};

struct lease_mirror {
	struct memory_etcd *etcd;
	const char *prefix, *network, *node; /* borrowed; the network is "default", not "_" */
	struct address self;                 /* our public address; family 0: not known yet */
	struct lease_network cut;
	uint32_t reclaim_after; /* s; 0: the network is not known yet */
	/* The same leases twice: by subnet; by holder, then subnet. */
	struct lease_table by_subnet, by_holder;
	bool changed;
};

void lease_mirror_init(struct lease_mirror *m, struct memory_etcd *etcd, const char *prefix,
		       const char *network, const char *node);
void lease_mirror_done(struct lease_mirror *m);

/* Each tells whether any key has changed. */
bool lease_mirror_network(struct lease_mirror *m, const struct lease_network *network);
/* How long a lease lasts that was just given: what config's reclaimAfter follows from. */
bool lease_mirror_lasts(struct lease_mirror *m, int64_t seconds);
bool lease_mirror_changes(struct lease_mirror *m, const struct lease_changes *changes);
bool lease_mirror_put(struct lease_mirror *m, const struct lease *lease);
bool lease_mirror_self(struct lease_mirror *m, const struct address *self);
/* Out of the table; the keys are the caller's affair. */
void lease_mirror_forget(struct lease_mirror *m, const struct prefix *subnet);

/* Of ours: the first by subnet, the next after it; NULL: none, no more. */
const struct lease *lease_mirror_own(const struct lease_mirror *m, const struct lease *after);
const struct lease *lease_mirror_find(const struct lease_mirror *m, const struct prefix *subnet);
bool lease_is_own(const struct lease_mirror *m, const struct lease *lease);
