/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What BIRD runs against what it was meant to run.
 *
 *   bird_plan, `show protocols` -> [routing_compare] -> reload once, health, status
 *
 * Pure. Protocols are compared by name and kind, because names follow from what the
 * session is. What an operator's own snippets add is none of ours and no difference.
 */
#pragma once

#include "agent/bird/desired_bird.h"
#include "confd/bird/bird_reply.h"

struct routing_difference {
	size_t missing;  /* meant, and not there or of another kind: BIRD runs something else */
	size_t surplus;  /* of our naming, and not meant: likewise */
	size_t disabled; /* by an operator's hand, as `birdc disable` leaves them */
	size_t sessions, established;
	char first[BIRD_NAME_TEXT]; /* a name for the sentence: missing, surplus or disabled */
};
/* 0 or -ENOMEM. */
int routing_compare(const struct bird_plan *plan, const struct bird_protocols *runs,
		    struct routing_difference *ret);
