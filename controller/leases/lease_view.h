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
 *
 * A removed lease is followed by all that its holder still has. flannel's clients keep one
 * forwarding entry for each MAC of a tunnel, and delete it with any lease of that MAC.
 */
#pragma once

#include "controller/state/mirror.h"
#include "ipam/allocator/choose.h"

/* As many as etcd's second version kept; who is further behind is given the whole. */
#define LEASE_CHANGES_MAX 1000

struct lease_view;
struct lease_network;

/* One lease, or one network, that came or went. */
struct lease_event {
	struct prefix subnet;
	bool removed;
	bool renewal; /* only its expiration is another */
	bool again;   /* nothing of it has changed: told for those who forget it, see above */
	char *text;   /* as in the answer's events */
	char *holder; /* of one that is removed: whose it was; NULL: of a network */
};

struct lease_change {
	int64_t revision;
	struct lease_event *v;
	size_t n;
	bool renewals_only;
	void *answer; /* the user's own, see below */
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
int64_t lease_view_revision(const struct lease_view *v);
const struct mirror *lease_view_mirror(const struct lease_view *v);
const struct config_vxlan *lease_view_vxlan(const struct lease_view *v);
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

/* --- what changed --------------------------------------------------------------------------- */

/* Whether all changes after this revision are known. One in the future is for the caller. */
bool lease_network_remembers(const struct lease_network *n, int64_t cursor);
/* The first after it; one: that concerns this subnet. Without, renewals are no changes. */
struct lease_change *lease_network_after(const struct lease_network *n, int64_t cursor,
					 const struct prefix *one);
int lease_change_render(const struct lease_change *change, const struct prefix *one, char **ret);
/* Where a user may keep the answer with the snapshot; it is dropped with the next change. */
void **lease_network_answer(struct lease_network *n);
const char *lease_network_name(const struct lease_network *n);

/* for (i = 0; (n = lease_view_nth(v, i)); i++): those with leases, for the metrics. */
const struct lease_network *lease_view_nth(const struct lease_view *v, size_t i);
size_t lease_network_leases(const struct lease_network *n);
