/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One agent per network namespace: an abstract unix socket as the lock.
 *
 * Abstract names belong to the network namespace, vanish with the process
 * however it ends, and need no file. Two agents in one namespace would each
 * remove the other's routes.
 */
#pragma once

#include "lib/base/err.h"

#define LOCK_NAME "roost-agent" /* "@roost-agent" in ss -x and /proc/net/unix */

/*
 * Takes the lock until *ret_fd is closed. -EBUSY with the holder's pid in the sentence, or
 * another negative errno. name NULL: LOCK_NAME.
 */
int lock_take(const char *name, int *ret_fd, struct err *err);
