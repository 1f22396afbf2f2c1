/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After etcd went back to an older state, or was emptied: who says what, in which order.
 *
 *   notice of the store, the record `recovery`, what the nodes' records say -> [recovery] -> a step
 *
 * Pure. What etcd says of blocks is then older than what nodes use. So:
 *   1. The first one to notice opens a recovery, with an id that nobody has seen before.
 *   2. While it is open nobody claims a block that he did not hold, gives one back, or believes a
 *      block's record that he does not remember. Controllers free nothing.
 *   3. Each node claims again what it holds, and takes back from the restored owner what its pods
 *      use. Then it writes the id into its own record: it has spoken.
 *   4. The recovery ends when all nodes have spoken that were registered before or are now. Where
 *      one stays silent it ends when the longest promise (reclaimAfter) has passed: from then on a
 *      silent node gives no address any more. A controller that has followed etcd knows the blocks
 *      of silent nodes, writes them again and waits only for the living.
 * Addresses of blocks at hand are given throughout: the proof from before counts (authority.h).
 */
#pragma once

#include <stdbool.h>

struct recovery_seen {
	bool noticed;  /* etcd went back, and no recovery since then is known to this agent */
	bool present;  /* the record */
	bool readable; /* else it counts as open: it stops what it may be there to stop */
	bool done;
	bool old;    /* not above those known before etcd went back: a restore brought it along */
	bool longer; /* this agent knows of a longer promise than the record names */
	bool registered;
	bool certain;    /* registered, and of each block that we hold it is certain whose it is */
	bool spoken;     /* our own record carries the id */
	bool all_spoken; /* so do those of all nodes that we know of, from before and now */
	bool witness;    /* what we know of nodes from before is complete */
	bool waited;     /* the longest promise has passed since we first saw it */
};

enum recovery_step {
	RECOVERY_NONE,   /* none is open */
	RECOVERY_BEGIN,  /* open one */
	RECOVERY_ACCEPT, /* one has begun and ended since etcd went back, without us */
	RECOVERY_EXTEND, /* write the longer promise into it */
	RECOVERY_ASSERT, /* make certain whose our blocks are */
	RECOVERY_SPEAK,  /* write its id into our record */
	RECOVERY_WAIT,   /* for others */
	RECOVERY_END     /* close it */
};
const char *recovery_step_name(enum recovery_step step);
enum recovery_step recovery_decide(const struct recovery_seen *seen);
