/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our table of nftables, `inet roost`, kept as it should be; every other table is left alone.
 *
 *   desire() -> desired_firewall (pure) -> text ─┐
 *   netlink: a program changed the table ─────────┴─> pass ─> child (libnftables) ─> health, counts
 *
 * The pass decides by what was last read; whatever has to be read or set is done by a
 * child, by one transaction, so that no packet meets half a table. Before open nothing is done at
 * all: a table that an earlier agent left goes on working.
 */
#pragma once

#include "agent/firewall/firewall_netlink.h"
#include "lib/base/pass.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"

struct firewall;

struct firewall_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	const char *library; /* "libnftables.so.1" */
	uint32_t minute;     /* in ms; shorter in tests: the table is looked at every ten of it */
	/* What should be, from the state as it is now; 0 or -errno. free() the lists. */
	int (*desire)(struct firewall_wants *ret, void *arg);
	/* Something that status shows has changed. */
	void (*changed)(void *arg);
	void *arg;
};

int firewall_new(const struct firewall_options *options, struct firewall **ret);
void firewall_free(struct firewall *f);
AUTO_DEFINE(struct firewall *, firewall_free)

/* The state is complete: from now on the table is set. */
void firewall_open(struct firewall *f);
/* Something in the state has changed. */
void firewall_mark(struct firewall *f);

struct firewall_stats {
	unsigned wanted, held;      /* parts; held: as the kernel showed them last */
	size_t nat, pools;          /* prefixes that are wanted in each */
	uint64_t repairs, failures; /* what another program had changed; tries that set nothing */
};
/* Why pods are not protected on this node; NULL: they are, as far as is known. */
const char *firewall_lacks(const struct firewall *f);
/* All packets that were dropped since the agent found or made the table. */
struct firewall_drops firewall_drops(struct firewall *f);
struct firewall_stats firewall_stats(const struct firewall *f);
struct pass_stats firewall_passes(const struct firewall *f);
