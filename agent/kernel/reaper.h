/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links that are to be destroyed, in groups, by a child.
 *
 *   detach: link into DOOMED_GROUP -> [reaper_kick] -> child: RTM_DELLINK by group -> events
 *
 * The kernel needs some 20 ms in the caller for one link and hardly more for a
 * group, so a child does it that waits on a socket: forked before the agent holds
 * anything, it dies with the agent and is started again if it dies alone. That a link
 * is gone is known by netlink's events, not here. A group is small, because the
 * kernel holds the lock that every ADD needs while it takes a group apart; and
 * between two groups pods that are being added go first.
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/timers.h"
#include "lib/daemon/health.h"

struct reaper;

/* Forks the child; call it early. */
int reaper_new(struct reaper **ret);
/* The loop comes later. failed: not all could be destroyed, kick again after a while. */
int reaper_start(struct reaper *r, sd_event *event, struct timers *timers, struct health *health);
void reaper_free(struct reaper *r);
AUTO_DEFINE(struct reaper *, reaper_free)

/* There are links in DOOMED_GROUP. */
void reaper_kick(struct reaper *r);

/* A pod is being added: no group is begun for a moment, until it is added. */
void reaper_adding(struct reaper *r);
void reaper_added(struct reaper *r);

/* The child's; 0: none at the moment. */
pid_t reaper_pid(const struct reaper *r);

struct reaper_stats {
	uint64_t rounds, destroyed, failures;
};
struct reaper_stats reaper_stats(const struct reaper *r);

/* What the child does at each request: one group of links. In the caller's network namespace. */
struct reaped {
	int32_t result; /* 0 or -errno of the first that could not be destroyed */
	uint32_t destroyed;
	bool more; /* there may be others: ask again */
	struct err why;
};
void reap(struct reaped *ret);
