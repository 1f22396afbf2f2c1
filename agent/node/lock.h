/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One agent per run directory and per network namespace: locked files that only root can open.
 *
 * Two agents in one network namespace would each remove the other's routes, and two in one
 * run directory would give the same addresses. The kernel ends a lock with its holder, so a
 * file that is left over blocks nothing. A name that any user can bind, such as an abstract
 * socket, would let that user keep the agent from starting.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define LOCK_FILE "agent.lock"
/* Where agents of one network namespace meet, whatever their --run-dir is. */
#define LOCK_COMMON_DIR "/run/roost"

struct lock {
	int run, net; /* descriptors or -1 */
};
#define LOCK_NONE                                                                                  \
	{                                                                                          \
		-1, -1                                                                             \
	}

/*
 * Takes RUN_DIR/agent.lock, and in common_dir (NULL: LOCK_COMMON_DIR) the lock of this network
 * namespace, until lock_drop(). -EBUSY with the holder's pid in the sentence, or another negative
 * errno. A common directory that cannot be written is an error only if it is the run directory.
 */
int lock_take(const char *run_dir, const char *common_dir, struct lock *ret, struct err *err);
void lock_drop(struct lock *lock);
/* Whether an agent of this run directory runs, and in our network namespace. */
bool lock_is_held_here(const char *run_dir);

/* The decision alone: whether a directory or file of these attributes is safe to lock in. */
int lock_owner_check(const char *path, const struct stat *st, uid_t self, struct err *err);
