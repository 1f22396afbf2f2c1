/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/bird/routing*.c. */
#pragma once

#include "agent/bird/bird_flaps.h"
#include "agent/bird/routing.h"
#include "agent/bird/routing_compare.h"
#include "agent/kernel/delta_kernel.h"
#include "confd/bird/bird_show.h"
#include "confd/bird_step.h"
#include "confd/mustache/mustache.h"
#include "confd/template_dir.h"
#include "lib/base/hash.h"
#include "lib/daemon/serve.h"

/* Sessions and blocks that are named in the log when a change disturbs them. */
#define FLAPS_TOLD 20

#define TAKE_PLAN(plan)                                                                            \
	({                                                                                         \
		struct bird_plan took_ = (plan);                                                   \
		(plan) = (struct bird_plan){ 0 };                                                  \
		took_;                                                                             \
	})

struct routing {
	struct routing_options o;
	struct identity self;
	struct route_records *records;
	bool extents_known, open;
	/* to BIRD */
	struct template_dir *templates;
	struct mustache_set *set;
	struct publish *publish;
	struct bird_plan meant, next; /* what BIRD should run now; what is on its way to it */
	bool has_meant, has_next;
	/* from BIRD */
	struct bird_step *step;
	struct bird_protocols runs; /* as it said last, */
	uint64_t runs_at;           /* at that time of the timers */
	struct routing_difference difference;
	bool accepted;             /* BIRD runs a file of ours: */
	struct hash accepted_hash; /* the text with this, */
	struct hash next_hash;     /* and what is on its way */
	int64_t configured; /* since when, by BIRD's own word; seconds since 1970, 0: unknown */
	struct status_session *sessions; /* of the last status */
	struct timer look;
	bool looking, again; /* and once more after it */
	bool mended;         /* a reload has answered the difference that is there */
	uint64_t detailed;   /* when the counts were last asked for; ms */
	/* CLOCK_MONOTONIC in ms, unlike timers: BIRD's own times do not count a machine's sleep */
	int64_t asked, reread; /* for the status; when another's configure was last answered */
	int64_t ours;          /* BIRD's last configure was not after that */
	bool knows_ours;
	/* routing_refeed.c: the route that went, by whom; 0: none did */
	struct prefix lost;
	uint32_t lost_by;
	struct timer refeed;
	struct holding refeeds;
};

/* routing.c: from what is known now, without telling anybody. */
int routing_plan(const struct routing *r, struct bird_plan *ret, struct err *err);
int routing_render(struct routing *r, const struct bird_plan *plan, char **ret, size_t *ret_len,
		   struct err *err);

/* routing_refeed.c */
void routing_refeed_new(struct routing *r);
void routing_refeed_done(struct routing *r);

/* routing_watch.c */
bool routing_session_up(const struct bird_protocol *p);
int routing_watch_new(struct routing *r);
void routing_watch_done(struct routing *r);
/* BIRD was told to configure: compare now rather than at the next time. */
void routing_asked_again(struct routing *r);
