/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repairs: what the audit found twice is mended.
 *
 *   this audit's findings, the last one's -> [decide_repairs] -> plans; counts by kind
 *
 * Pure. One look is not enough: what is on its way may look torn. So a finding is mended only if
 * the audit before concluded the same from the same revisions. What a removed node leaves is not
 * mended here: decide_removals takes it, with its own compares.
 */
#pragma once

#include "controller/state/plan.h"
#include "ipam/audit/audit.h"

struct repairs {
	struct findings last;
	size_t found[FINDING_KINDS];   /* by the last audit */
	uint64_t tried[FINDING_KINDS]; /* mended, or tried to */
};
/* tried[] stays: it is a counter of the process, whoever leads. */
void repairs_done(struct repairs *r);

/* Takes the findings. The plans' subjects are the things that were found. */
void repairs_decide(struct repairs *r, struct findings *now, struct plans *ret);
