/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals: which removed nodes may lose what they have, and what is to be done next.
 *
 *   mirror, time -> [decide_removals] -> plans; states for people
 *
 * Pure. removed/<node> is the only cause. While a status stands the agent lives: nothing is taken,
 * it is told. Else it waits until `reclaimAfter` has passed since this leader first saw the node
 * both removed and silent. What an earlier leader saw does not count: the node may have lived in
 * between, and one that has just been cut off goes on giving addresses for nearly as long. A new
 * registration is a sign of life too. With "now" it does not wait, unless the node has registered
 * after that was written.
 *
 * First node/<node> goes, by a transaction that compares it, the absence of the status, and the
 * removal. Every claim and release of the node's agent compares that record, so nothing that it
 * still has under way is applied after this. All that follows compares that it is still absent: an
 * agent that comes back registers, and whatever is left then stays. Blocks and their indexes go
 * first, then addresses and what else lies below host/<node>/; with the last of it spec/<node>
 * and removed/<node>.
 */
#pragma once

#include "controller/state/mirror.h"
#include "controller/state/plan.h"

enum removal_state {
	REMOVAL_ALIVE,   /* its lease lives: told, nothing else */
	REMOVAL_WAITING, /* silent, not for long enough */
	REMOVAL_RECLAIM, /* may be taken */
	REMOVAL_STATES
};
const char *removal_state_name(enum removal_state state);

struct removal {
	char *node;
	enum removal_state state;
	uint64_t since;        /* ms, of the last sign of life; 0: it lives */
	int64_t node_revision; /* MOD of node/<node> at that time */
	int64_t removed_revision;
	uint64_t wait; /* ms: what its record promises; UINT64_MAX: for ever */
	size_t blocks; /* of one that may be taken: what is left */
};

/* What is remembered from one pass to the next; sorted by node. */
struct removals {
	struct removal *v;
	size_t n, room;
};
void removals_done(struct removals *r);

/*
 * Brings the list up to date: 0 or -ENOMEM. now in ms of a clock that runs on while the machine
 * sleeps; usual: reclaimAfter in s of a node whose record says nothing of it, or that has none;
 * minute: ms of one.
 */
int removals_update(struct removals *r, const struct mirror *m, uint64_t now, uint32_t usual,
		    uint32_t minute);
/* When a state changes though nothing else does; UINT64_MAX: never. */
uint64_t removals_next(const struct removals *r);
/* The next transaction of each that may be taken and of which busy() says no. */
void removals_plan(struct removals *r, const struct mirror *m,
		   bool (*busy)(const char *subject, void *arg), void *arg, struct plans *ret);
