/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a new plan does to what runs, as measured with BIRD 2.0, 2.17 and 3.1:
 * nearly every option of a session restarts it; filters, next hop self or keep
 * and BFD do not. Options of the kernel protocols would withdraw our own blocks
 * for an instant, so the templates keep them as they are: ECMP is always on, with
 * a limit, and the limit may change.
 */
#pragma once

#include "agent/bird/desired_bird.h"

enum bird_flap_kind {
	BIRD_RESTARTS,  /* a session goes down and comes back */
	BIRD_REMOVED,   /* a session goes away */
	BIRD_WITHDRAWS, /* a block is withdrawn, for an instant or for good */
};
struct bird_flap {
	enum bird_flap_kind kind;
	char what[PREFIX_TEXT + BIRD_NAME_TEXT]; /* protocol or block */
	const char *why;                         /* "holdTime changes" */
};
struct bird_flaps {
	struct bird_flap *v;
	size_t n, room;
};
/* What loading `after` does to what runs by `before`, beyond adding. 0 or -ENOMEM. */
int bird_flaps(const struct bird_plan *before, const struct bird_plan *after,
	       struct bird_flaps *ret);
void bird_flaps_done(struct bird_flaps *flaps);
