/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recovery (agent/addresses/recovery_decide.h), led by a controller that remembers.
 *
 *   mirror before etcd went back -> [memory] ─┐
 *   mirror now, the record `recovery` ────────┴> [decide_recovery] -> plans
 *
 * Pure. A leader that followed etcd until it went back knows who was alive and who owned which
 * block. So it waits for the living alone: when all of them have spoken, the records and blocks of
 * the others are written again as they were, and the recovery ends. So their names, too, are nobody
 * else's until the time has passed that their records promise. A leader that knows less than some
 * node knew leaves it to the agents, and so does one that remembers nothing.
 */
#pragma once

#include "controller/state/mirror.h"
#include "controller/state/plan.h"
#include "lib/model/model.h"

struct memory_block {
	char *key, *value, *owner;
};
struct memory_node {
	char *key, *value;
	uint64_t machine; /* node_machine() */
	bool alive;
};
/* What the last leadership of this process knew at its end. */
struct memory_of_blocks {
	struct memory_block *blocks;  /* by key */
	struct memory_block *extents; /* by key, of nobody */
	struct memory_node *nodes;    /* by key */
	size_t n_blocks, n_extents, n_nodes;
	uint32_t longest; /* promise of all of them, s */
	int64_t revision; /* up to which everything was known; 0: nothing is remembered */
};
void memory_of_blocks_done(struct memory_of_blocks *m);
/* 0 or -ENOMEM; then nothing is remembered. */
int memory_of_blocks_take(struct memory_of_blocks *m, const struct mirror *mirror);

enum recovery_state {
	RECOVERY_STATE_NONE,    /* none is open */
	RECOVERY_STATE_AGENTS,  /* open, and left to the agents */
	RECOVERY_STATE_WAITING, /* for nodes that were alive */
	RECOVERY_STATE_WRITING, /* blocks of those that are silent */
	RECOVERY_STATE_ENDING
};
const char *recovery_state_name(enum recovery_state state);

/*
 * why gets a sentence for people while one is open. waited: it has been so for as long as the
 * longest promise that it names.
 */
enum recovery_state recovery_plan(const struct memory_of_blocks *memory, const struct mirror *m,
				  bool waited, struct plans *ret, struct err *why);
/* Opens one: etcd went back, and nobody else has. longest in s. */
void recovery_begin(const struct memory_of_blocks *memory, const struct mirror *m, const char *id,
		    uint32_t number, uint32_t longest, const char *now, struct plans *ret);
/* Its number and the longest promise in s; false: there is none that can be read. */
bool recovery_numbers(const struct mirror *m, uint32_t *ret_number, uint32_t *ret_longest);
/* Whether this block was written in that one. */
bool recovery_wrote(const struct mirrored *block, const char *id);
/* Whether one is open, or cannot be read: then nothing changes hands. */
bool recovery_is_open(const struct mirror *m);
