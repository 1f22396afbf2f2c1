/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan as the data tree that templates/ render.
 *
 *   desired_bird -> [bird_tree] -> mustache
 *
 * Every name that a template asks for is always there: false, or an empty list,
 * where it does not apply, because rendering is strict. Where 0 is a value the
 * number lies in an object of its own. docs/ROUTING.md lists the names for those
 * who write templates.
 */
#pragma once

#include "agent/bird/desired_bird.h"
#include "lib/base/array.h"

/* A filter as BIRD gets it; record is NULL for the built-in rule alone. */
struct bird_filter {
	char name[BIRD_NAME_TEXT]; /* without the family's digit */
	bool import;
	bool verify_owner;    /* of the neighbour; only with import */
	uint32_t prepend_asn; /* 0: prepending is left out */
	const struct filter *record;
};

/* The plan while it is made. */
struct bird_making {
	const struct bird_input *in;
	const struct peer **peers; /* by name; those over BIRD_SELECTORS_MAX are left out */
	size_t n_peers, peer;      /* the one that makes offers now */
	size_t node_offers;        /* where those of the present node begin */
	bool *twins;               /* by peer: it was said that others have its neighbours */
	uint32_t asn;              /* own */
	struct address cluster_id; /* own; family 0: no reflector */
	bool transit;              /* routes of one neighbour go to another: a reflector's job */
	ARRAY(struct bird_filter) filters;
	const char *ospf_password, *rip_password; /* in the secrets, or NULL */
	bool ospf, rip;                           /* may run: what they need is there */
	struct bird_plan plan;
};

/* Whether blocks of that extent are routed and announced to neighbours. */
bool bird_extent_announced(const struct bird_extent *e);

/* From m->plan, filters and the rest into m->plan.tree. 0 or -ENOMEM. */
int bird_tree(struct bird_making *m);
