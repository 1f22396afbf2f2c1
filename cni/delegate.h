/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another plugin, run as the specification says a delegate is run.
 *
 *   verb -> [delegate] -> fork, exec, pipes of its own -> its result or its error
 *
 * It gets our environment and the whole of our stdin. It never holds our stdout or
 * stderr: a runtime waits for the end of both, and so would wait for whatever the
 * delegate leaves behind. It dies with us, at the deadline, and with all that it started in
 * its process group.
 */
#pragma once

#include <limits.h>

#include "lib/cni/cni_main.h"

/* Where a delegate lies: the first folder of CNI_PATH with an executable file of that name. */
int delegate_find(const char *folders, const char *name, char ret[PATH_MAX]);

/*
 * verb: that of the call, or another, to undo. 0 with what it printed, free() it; negative with e
 * filled, in the delegate's own words if it has some: -ETIMEDOUT when it had to be ended.
 */
int delegate_run(const struct cni_call *call, const char *program, enum cni_verb verb,
		 const struct deadline *deadline, char **ret, size_t *ret_len, struct cni_error *e);
