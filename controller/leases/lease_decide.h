/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be done for who asks for, renews, reserves or gives back a lease.
 *
 *   view, call, wish -> [lease_decide] -> one guarded transaction, or the reason why not
 *
 * Pure. Whatever changes a holder's leases compares and puts the holder's node record, so of two
 * requests for one address, through whichever servers, the second sees the first. A block that is
 * claimed is compared to be absent, with its pool's extent as every claim has it. A view that is
 * behind makes a transaction that is refused; then it is decided anew.
 */
#pragma once

#include "controller/leases/lease_api.h"
#include "controller/leases/lease_caller.h"
#include "controller/leases/lease_view.h"
#include "controller/state/plan.h"

struct lease_clock {
	char now[TIME_TEXT], expires[TIME_TEXT]; /* of a lease that is given or renewed now */
	char recent[TIME_TEXT];                  /* the same of one that was a moment ago */
	char token[32];                          /* of a claim: nobody else's */
	uint64_t random;
	int64_t seconds; /* now, since 1970 */
};

enum lease_verdict {
	LEASE_DO,        /* the plan, then the answer */
	LEASE_REFUSED,   /* for good, or until somebody does something: err says what */
	LEASE_FORBIDDEN, /* to this client: err says why */
	LEASE_NO_MEMORY
};

struct lease_decision {
	struct plans plans;  /* just one */
	struct prefix block; /* that it is about */
	char *answer;        /* once it is applied; "" for those without a body */
	/* A renewal of what was renewed a moment ago, and says nothing new: the plan only reads. */
	bool repeated;
};
void lease_decision_done(struct lease_decision *d);

/*
 * busy: whether a block is being claimed by somebody else through us. again: an earlier transaction
 * of this request may have been applied.
 */
typedef bool lease_busy_fn(const char *network, const struct prefix *block, void *arg);
enum lease_verdict lease_decide(const struct lease_view *view, const struct lease_call *call,
				const struct lease_wish *wish, const struct lease_caller *caller,
				const struct lease_clock *clock, bool again, lease_busy_fn *busy,
				void *arg, struct lease_decision *ret, struct err *err);
