/* SPDX-License-Identifier: Apache-2.0 */
/* BIRD's state, asked for and read: one call for every `show` that status and metrics need. */
#pragma once

#include "confd/bird/bird_control.h"
#include "confd/bird/bird_reply.h"

enum bird_view {
	BIRD_VIEW_STATUS,        /* -> status */
	BIRD_VIEW_PROTOCOLS,     /* -> protocols, without details */
	BIRD_VIEW_PROTOCOLS_ALL, /* -> protocols */
	BIRD_VIEW_ROUTE_COUNT,   /* -> counts */
	BIRD_VIEW_BFD,           /* -> table, enum bird_bfd_column */
	BIRD_VIEW_OSPF,          /* -> table, enum bird_ospf_column */
	BIRD_VIEWS,
};
const char *bird_view_name(enum bird_view v); /* the command */

/* Until the return of the callback; what it wants to keep it takes out and leaves zeros. */
struct bird_answer {
	/* 0; -ECONNRESET, -ETIMEDOUT; -EREMOTEIO: BIRD refused; -EBADMSG: cannot be read; -ENOMEM.
	 */
	int err;
	const char *words; /* of a failure: a sentence, or BIRD's own; else "" */
	enum bird_view view;
	union {
		struct bird_status status;
		struct bird_protocols protocols;
		struct bird_counts counts;
		struct bird_table table;
	};
};
typedef void bird_answer_fn(struct bird_answer *answer, void *arg);

/* As bird_command(): -ENOTCONN, -ENOMEM. */
int bird_show(struct bird_control *c, enum bird_view view, bird_answer_fn *fn, void *arg);
