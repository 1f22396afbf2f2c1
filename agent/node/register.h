/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration: the key node/<node>, which is this agent's fence.
 *
 *   identity -> [register] -> fence -> claims, releases, status
 *
 * One reading of node/, status/node/, removed/ of our name and of recovery, in one txn,
 * then one of:
 *   absent                          created
 *   of this machine                 updated; its CREATE revision stays
 *   of another machine, silent for  deleted, then created: another CREATE revision, so that
 *   the time that it promises       nothing the other still has under way applies
 *   of another machine, else        refused; read again every 15 s
 * register_decide.h says what "this machine" is. The silence is counted by this agent alone, by
 * its own readings: the record unchanged and no status, in each of them. A gap begins it again.
 * Each write compares what was read (absent, or the MOD revision), and may thus be
 * repeated until a reply comes: a late copy finds its compare broken. A compare
 * that fails means reading again, never that something was or was not written.
 *
 * The record carries a promise, reclaimAfter: for so long after a proof (agent/addresses/authority.h) nobody
 * takes the name or the node's blocks. Who takes them reads it in the record that he deletes. While
 * a write of another value is not confirmed, the lower one of both counts.
 *
 * While registered the key is watched. Vanished: registered again at once. Same
 * value, other MOD revision: a fencing write of our own, the revision is taken
 * over. Changed by hand: written back. Written by another agent (other machine,
 * boot or start): we are displaced, and from then on wait as one refused, even if
 * the machine is ours; two machines cloned from one image would otherwise take
 * turns for ever. After another cluster or an older revision answers, the fence
 * is void until registered again; a name that was ours until then is taken back even from a record
 * of another machine, because a restore brought that back.
 *
 * removed/<node> does not stop registration: an agent that comes back registers
 * again, which breaks the compares of a reclaim under way ("node/ is still absent",
 * "MOD as read"), and finds what it lost. Being removed means to drain: no new
 * addresses, give back what no pod uses. The agent deletes that key only where it states that the
 * machine is off whose name this one takes over; else who wants the node back does (operator,
 * or controller for a new Kubernetes UID).
 */
#pragma once

#include "agent/records/records.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/model/model.h"
#include "lib/store/store.h"

#define REGISTER_RETRY_S 15
/* What a record promises that says nothing of it. */
#define REGISTER_PROMISE_S 3600

/* The revisions that claims and releases compare. */
struct fence {
	const char *key; /* with the prefix */
	int64_t create_revision, mod_revision;
};

struct register_handlers {
	/* Another CREATE revision than before: list the blocks anew. The same, without
	 * unregistered() in between: just the MOD revision moved, claims may go on. */
	void (*registered)(const struct fence *fence, void *arg);
	/* No claim from now on. */
	void (*unregistered)(const char *why, void *arg);
	/* The record is another's, or gone: no proof from before this moment counts. */
	void (*lost)(const char *why, void *arg);
	/* Whether a proof from before still counts (agent/addresses/authority.h). */
	bool (*holds)(void *arg);
	/* NULL: no longer. Absent at first; told at every change. */
	void (*removed)(const struct node_removed *removed, void *arg);
};

struct registration;

struct register_options {
	struct store *store;
	struct records *records; /* of this store; hears its notices first */
	struct timers *timers;
	struct health *health;
	const char *prefix;
	uint32_t minute;         /* in ms; shorter in tests */
	const struct node *node; /* as it shall be written; copied */
	const struct register_handlers *handlers;
	void *arg;
};

/* Starts at once; everything comes by callback. */
int register_new(const struct register_options *options, struct registration **ret);
void register_free(struct registration *r);
AUTO_DEFINE(struct registration *, register_free)

/* NULL while not registered, and while it is read again after a doubt. */
const struct fence *register_fence(const struct registration *r);
/*
 * A settled txn raised the fence, or found it raised or absent (0): store_settled.fence_revision.
 * It is read before it is believed: one who took the name over may have raised it. Meanwhile
 * there is no fence; registered() follows.
 */
void register_raised(struct registration *r, int64_t mod_revision);
/*
 * What the record says of this node's end of the overlay from now on: written by comparing, and
 * the CREATE revision stays. Until this is called for the first time, what an earlier agent of this
 * machine wrote there stands.
 */
int register_set_vtep(struct registration *r, const struct node_vtep *vtep);
/*
 * What the record shall promise from now on, in seconds. Until this is called for the first time,
 * what an earlier agent of this machine promised stands.
 */
int register_set_promise(struct registration *r, uint32_t seconds);
/* The lowest promise that the record may carry at this moment. */
uint32_t register_promise(const struct registration *r);
/* This node has said what it holds, for the recovery with this id. */
int register_set_recovery(struct registration *r, const char *id);
/* Pass on the store's notices. */
void register_notice(struct registration *r, enum store_notice notice, const char *text);
/* Why not registered; "" if it is. */
const char *register_reason(const struct registration *r);
/* Whether removed/<node> stands. */
bool register_removed(const struct registration *r);
