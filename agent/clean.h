/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roostd --clean: the last step of a removal. What is ours in this node's kernel goes, and the
 * program ends.
 *
 *   lock, BIRD's socket -> nobody keeps it any more
 *   kernel_view -> delta (nothing is wanted) -> apply: routes, neighbours, tunnels; pod links
 *   table inet roost; BIRD's routes and bird.conf; forwarding as it was found
 *
 * Only what is recognisable as ours, so no memory is needed, and a clean that was interrupted is
 * repeated. Routes of BIRD are ours as long as bird.conf is: BIRD keeps them in the kernel when it
 * ends, for its next start. So bird.conf goes after them.
 */
#pragma once

#include "agent/settings.h"

/* 0; -EBUSY: an agent or its BIRD runs; or another -errno. With the reason. */
int clean(const struct settings *settings, struct err *err);

/* Files in the run directory: the agent switched forwarding on, and it had been off. */
#define CLEAN_FORWARDING4 "forwarding4-was-off"
#define CLEAN_FORWARDING6 "forwarding6-was-off"
