/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One network: its leases as they were last told, and its last changes.
 *
 *   lease_view -> [lease_network] -> snapshots and changes, for lease_polls
 *
 * A removed lease is followed by all that its holder still has. flannel's clients keep one
 * forwarding entry for each MAC of a tunnel, and delete it with any lease of that MAC.
 */
#pragma once

#include "ipam/allocator/pools.h"
#include "lib/base/array.h"
#include "lib/model/model.h"

/* As many as etcd's second version kept; who is further behind is given the whole. */
#define LEASE_CHANGES_MAX 1000

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

/* A lease as it was last told. */
struct shown {
	struct prefix block;
	char *text, *attrs, *holder; /* text NULL: there is none */
	int64_t created;             /* the revision in which it was given */
};
void shown_done(struct shown *s);

struct lease_network {
	char name[NAME_TEXT];                 /* "": the list of networks */
	ARRAY(struct shown) shown;            /* by block */
	ARRAY(struct lease_change *) changes; /* the oldest at first */
	struct lease_change *open;            /* that of the revision which is being told */
	int64_t floor;                        /* from here on every change is known */
	const struct pool_view *pool;         /* which its leases come from; NULL: none */
	bool had_pool;
	/* Where a user may keep the answer with the snapshot; dropped with the next change. */
	void *answer;
	void (*done)(void *answer);
};

int lease_network_new(const char *name, int64_t floor, void (*done)(void *),
		      struct lease_network **ret);
void lease_network_free(struct lease_network *n);

/* Brings the lease of a block up to date. Takes what it holds. */
int lease_network_show(struct lease_network *n, struct shown *lease);
/* NULL: there is none. */
const struct shown *lease_network_find(const struct lease_network *n, const struct prefix *block);
/* Its texts are taken. */
int lease_network_tell(struct lease_network *n, const struct lease_event *event);
/* What is open becomes the change of this revision: 1, 0 if nothing is, -ENOMEM. */
int lease_network_close(struct lease_network *n, int64_t revision);
/* Nothing is known of before this revision any more. */
void lease_network_forget(struct lease_network *n, int64_t revision);

/* Whether all changes after this revision are known. One in the future is for the caller. */
bool lease_network_remembers(const struct lease_network *n, int64_t cursor);
/* The first after it; one: that concerns this subnet. Without, renewals are no changes. */
struct lease_change *lease_network_after(const struct lease_network *n, int64_t cursor,
					 const struct prefix *one);
int lease_change_render(const struct lease_change *change, const struct prefix *one, char **ret);
/* The event of a lease that is not there any more. */
int lease_removed_render(const struct prefix *block, char **ret);
