/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the agent's socket, which a network configuration may name, is one of the installation.
 *
 *   cni_conf -> [cni_place] -> a request to the socket, a note beside it
 *
 * Who may write a network configuration is not always root: with Multus it is any writer of a
 * namespace. Its "socket" decides where root makes folders and files, and who answers for the
 * agent. So the folder must be the default one, or one of /run itself in which an agent of root
 * ran. Elsewhere, as in a volume of a pod, that pod's root could have made all of it.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

/* 0, or -EPERM with a sentence. */
int cni_place_check(const char *socket, struct err *err);

/* The path alone: whether the socket lies in a folder of /run. */
bool cni_place_is_of_run(const char *socket);
