/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no room sees alone: that packets of pods really go where records and BIRD mean them to.
 *
 *   identity, kernel: addresses, routes of others ─┐
 *   records: extents of pools ─────────────────────┼─> [checks] ─> health
 *   nftables: chains on the hook forward ──────────┘
 *
 * Every few seconds, from what the agent holds already; nftables is asked for its generation alone
 * while nothing changes there. Nothing is changed.
 */
#pragma once

#include "agent/addresses/ipam.h"
#include "agent/kernel/kernel.h"
#include "agent/node/identity.h"
#include "agent/records/records.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"

struct checks;

/* All borrowed. */
struct checks_options {
	struct timers *timers;
	struct health *health;
	struct records *records;
	struct kernel *kernel;
	struct ipam *ipam;
	const struct identity *identity;
	bool configured; /* the node's address, by --address: it may be on no interface (1:1 NAT) */
};

int checks_new(const struct checks_options *options, struct checks **ret);
void checks_free(struct checks *c);
AUTO_DEFINE(struct checks *, checks_free)
