/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the agent has been away, as far as plugins know.
 *
 *   STATUS without an answer -> [cni_away] -> <folder of the socket>/away: since when
 *
 * A kubelet makes a node NotReady when STATUS fails, and evicts its pods later. An agent that is
 * restarted or upgraded is away for seconds, up to a minute as a DaemonSet, and what runs does not
 * need it. So STATUS reports its absence only when that lasts. The first STATUS that finds no agent
 * notes the time (CLOCK_BOOTTIME), the next answer, or the agent itself at its start, removes the
 * note. Where no agent ever listened there is no socket, and nothing is waited for.
 */
#pragma once

#include <stdbool.h>

#define CNI_AWAY_FILE "away"
#define CNI_AWAY_S    120

/* Nobody answered now: whether that is so for less than CNI_AWAY_S. */
bool cni_away_short(const char *socket);
/* The agent answered. */
void cni_away_over(const char *socket);
