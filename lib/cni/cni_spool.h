/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes for an agent that is away: a DEL that it shall carry out later.
 *
 *   plugin -> [cni_spool] -> <folder of the socket>/spool/<boottime>-<pid>.json -> agent
 *
 * The form is that of docs/API.md. A note frees only what was assigned before
 * it was written, so one that nobody read for long does no harm.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/cni/cni_conf.h"
#include "lib/cni/cni_env.h"

#define CNI_NOTE_NAME 40

/*
 * Makes the folder (0700) if it is missing. 0 with the folder, to close(), and the note's name in
 * it, for file_remove() when the agent turned up after all; or a negative errno with the place in
 * err.
 */
int cni_spool_release(const struct cni_conf *conf, const struct cni_env *env, int *ret_folder,
		      char ret_name[CNI_NOTE_NAME], struct err *err);
