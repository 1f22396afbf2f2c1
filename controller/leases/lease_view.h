/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a lease server knows: the blocks, nodes, pools of etcd as leases, and their last changes.
 *
 *   one watch -> [lease_view] -> snapshots, changes for long polls; decisions (lease_decide)
 *
 * Pure. One watch carries all, so that changes of several kinds of keys come in the order of their
 * revisions: a cursor is such a revision, and means the same to every server. What one revision
 * changes travels together, under one cursor. After a listing anew the difference is one change at
 * the revision of the list; after a restore of etcd nothing older than that is known any more.
 */
#pragma once

#include "controller/leases/lease_network.h"
#include "controller/state/mirror.h"
#include "ipam/allocator/pool_records.h"

struct lease_view {
	struct mirror mirror; /* its revision is what a cursor is */
	void (*done)(void *answer);
	bool in_sync, anew, failed;
	size_t n_leases, n_indexes; /* blocks of holders, and what they have as index */
	bool went_back;             /* etcd did, once at least */
	int64_t began;              /* the revision from which on it was followed after that */
	uint32_t before;            /* the highest number of a recovery that was known then */
	uint32_t number;            /* of the recovery that stands in etcd */
	char recovery[ID_TEXT];
	bool recovering;       /* it is open, or cannot be read */
	bool changed;          /* since the last settling */
	int64_t open_revision; /* of what is being told */
	/* What the pools and settings of the mirror mean. */
	struct config_vxlan vxlan;
	struct pool_records pools;
	ARRAY(struct lease_network *) networks; /* the first: the list of them */
};

/* done: releases an answer that a user has kept in a change or network. May be NULL. */
int lease_view_new(void (*done)(void *answer), struct lease_view **ret);
void lease_view_free(struct lease_view *v);
AUTO_DEFINE(struct lease_view *, lease_view_free)

/* --- from the watch; keys are relative ------------------------------------------------------ */

/* Which keys: from .. up to but not including end. */
#define LEASE_VIEW_FROM "block/"
#define LEASE_VIEW_END  "removed/"

void lease_view_put(struct lease_view *v, const char *key, const struct store_kv *kv);
void lease_view_deleted(struct lease_view *v, const char *key, int64_t revision);
void lease_view_listing(struct lease_view *v);
void lease_view_in_sync(struct lease_view *v, int64_t revision);
/* Another etcd, or an older one: what is to come does not follow from what was. */
void lease_view_doubt(struct lease_view *v);
/* All that has come is whole: true if there are changes since the last call. -ENOMEM shows as not
 * being in sync. */
bool lease_view_settle(struct lease_view *v);

/* --- what there is -------------------------------------------------------------------------- */

bool lease_view_ready(const struct lease_view *v);
/* Whether etcd went back and the recovery has not ended: no block is given away. */
bool lease_view_recovering(const struct lease_view *v);
/* Whether some holder's index has no block: its lease was lost. Quick, and may be wrong where a
 * block also lacks its index. */
bool lease_view_lost(const struct lease_view *v);
/* Its id, once it was begun; "": it was not yet, or there is none. */
const char *lease_view_recovery(const struct lease_view *v);
/* Which pool a network's leases come from; NULL: none. */
const struct pool_view *lease_view_pool(const struct lease_view *v, const char *network);
/* Of any name; NULL: it has neither a pool for leases nor ever had one. "": the list of networks.
 */
struct lease_network *lease_view_network(const struct lease_view *v, const char *name);

/* The text of a whole answer. One: of that subnet alone; if there is no lease, it is removed. */
int lease_view_snapshot(const struct lease_view *v, const struct lease_network *n,
			const struct prefix *one, char **ret);
/* The same of who saw a lease at a cursor that is not remembered: one that is not there any more,
 * or was given anew since, is removed. */
int lease_view_since(const struct lease_view *v, const struct lease_network *n,
		     const struct prefix *one, int64_t cursor, char **ret);
/* [{"Subnet","PublicIP"}] */
int lease_view_reservations(const struct lease_view *v, const char *network, char **ret);
