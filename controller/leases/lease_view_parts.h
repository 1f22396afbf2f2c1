/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of lease_view.c and lease_log.c. */
#pragma once

#include "controller/leases/lease_view.h"
#include "lib/model/model.h"

/* A lease as it was last told. */
struct shown {
	struct prefix block;
	char *text, *attrs, *holder; /* text NULL: there is none */
	int64_t created;             /* the revision in which it was given */
};
void shown_done(struct shown *s);

struct lease_network {
	char name[NAME_TEXT]; /* "": the list of networks */
	struct shown *shown;  /* by block */
	size_t n_shown, shown_room;
	/* A ring; the oldest at first. */
	struct lease_change **changes;
	size_t first, n_changes;
	struct lease_change *open; /* that of the revision which is being told */
	int64_t floor;             /* from here on every change is known */
	const struct pool_view *pool;
	bool had_pool;
	void *answer;
	void (*done)(void *answer);
};

int lease_network_new(const char *name, int64_t floor, void (*done)(void *),
		      struct lease_network **ret);
void lease_network_free(struct lease_network *n);
AUTO_DEFINE(struct lease_network *, lease_network_free)

/* Brings the lease of a block up to date. Takes what it holds. */
int lease_network_show(struct lease_network *n, struct shown *lease);
/* Its texts are taken. */
int lease_network_tell(struct lease_network *n, const struct lease_event *event);
/* What is open becomes the change of this revision: 1, 0 if nothing is, -ENOMEM. */
int lease_network_close(struct lease_network *n, int64_t revision);
/* Since when this etcd is followed: after it went back, older revisions are another's. */
int64_t lease_view_began(const struct lease_view *v);
/* Nothing is known of before this revision any more. */
void lease_network_forget(struct lease_network *n, int64_t revision);
