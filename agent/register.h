/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registration: the key node/<node>, which is this agent's fence.
 *
 *   identity -> [register] -> fence -> claims, releases, status
 *
 * One reading of node/, status/node/ and removed/ of our name, in one txn,
 * then one of:
 *   absent                        created
 *   of this machine               updated; its CREATE revision stays
 *   of another, without a status  deleted, then created: another CREATE revision, so
 *                                 that nothing the other still has under way applies
 *   of another, with a status     refused; read again every 15 s
 * Each write compares what was read (absent, or the MOD revision), and may thus be
 * repeated until a reply comes: a late copy finds its compare broken. A compare
 * that fails means reading again, never that something was or was not written.
 *
 * While registered the key is watched. Vanished: registered anew at once. Same
 * value, other MOD revision: a fencing write of our own, the revision is taken
 * over. Changed by hand: written back. Written by another agent (other machine,
 * boot or start): we are displaced, and from then on wait as one refused, even if
 * the machine id is ours; two machines cloned from one image would otherwise take
 * turns for ever. After another cluster or an older revision answers, the fence
 * is void until registered again.
 *
 * removed/<node> does not stop registration: an agent that comes back registers
 * anew, which breaks the compares of a reclaim under way ("node/ is still absent",
 * "MOD as read"), and finds what it lost. Being removed means to drain: no new
 * addresses, give back what no pod uses. The agent never deletes that key; whoever
 * wants the node back does (operator, or controller for a new Kubernetes UID).
 */
#pragma once

#include "lib/health.h"
#include "lib/model.h"
#include "lib/store.h"
#include "lib/timers.h"

#define REGISTER_RETRY_MS 15000

/* The revisions that claims and releases compare. */
struct fence {
	const char *key; /* with the prefix */
	int64_t create_revision, mod_revision;
};

struct register_handlers {
	/* Another CREATE revision than before: list the blocks anew. The same, without
	 * unregistered() in between: just the MOD revision moved, claims may go on. */
	void (*registered)(const struct fence *fence, void *arg);
	/* No claim from now on; what is owned is served further. */
	void (*unregistered)(const char *why, void *arg);
	/* NULL: no longer. Absent at first; told at every change. */
	void (*removed)(const struct node_removed *removed, void *arg);
};

struct registration;

struct register_options {
	struct store *store;
	struct timers *timers;
	struct health *health;
	const char *prefix;
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
/* Pass on the store's notices. */
void register_notice(struct registration *r, enum store_notice notice, const char *text);
/* Why not registered; "" if it is. */
const char *register_reason(const struct registration *r);
/* Whether removed/<node> stands. */
bool register_removed(const struct registration *r);
