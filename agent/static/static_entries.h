/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static routes that etcd has records of, and what this node makes of each.
 *
 *   records -> [static_entries] -> static_decide -> kernel
 *                          `-> static_status -> static_report -> status/static-route/
 *
 * Pure. In the order of their names. A record that makes no sense does not take the place of the
 * one before: what could be applied last stays in force until something better comes.
 */
#pragma once

#include "agent/records/records.h"
#include "lib/model/keys.h"
#include "lib/model/model.h"
#include "lib/netlink/route.h"
#include "lib/store/store.h"

enum static_life {
	STATIC_LIVES,
	STATIC_DOUBTED, /* its key was deleted; whether by somebody who meant it is being asked */
	STATIC_LOST,    /* it vanished with etcd's data and stays in force */
	STATIC_GONE     /* it is to be withdrawn, and its status with it */
};

struct static_entry {
	char *name;
	enum static_life life;
	int64_t create_revision, mod_revision, deleted_at;
	/* Kept records. */
	const struct static_route *now;  /* as etcd has it; NULL: it makes no sense */
	const struct static_route *good; /* the last that could be applied, often now; or NULL */
	char *broken;                    /* why now is NULL */
	struct static_route_head *head;  /* what can be read of it all the same; or NULL */
	/* From our status of a former life: what there may be of it in the kernel. */
	struct prefix kept;
	uint32_t kept_table;

	/* By static_decide(). */
	bool selected; /* this node is meant, and the route is not to be deleted */
	bool wanted;   /* route is to be in the kernel, be it by what was good before */
	struct kroute route;
	char *why; /* what is wrong; NULL: nothing */
	/* By static_watch(): it was in the kernel as wanted; somebody took it, and it is left so.
	 */
	bool applied, away;
	struct kroute applied_route;

	/* By static_status(): JSON; NULL: there is to be none. */
	char *status;
	char *state; /* the part of it that since is about */
	char since[TIME_TEXT];
	struct static_route_tampered tampered;
	/* By static_report: what stands in etcd, NULL for nothing; when it was put, in ms. */
	char *written;
	bool unread;
	uint64_t put_at, remove_at;
};

struct static_entries {
	struct static_entry **v;
	size_t n, room;
	uint64_t tampered; /* with any of them, since the start */
};

void static_entries_done(struct static_entries *t);
struct static_entry *static_find(const struct static_entries *t, const char *name);
/* What etcd has now of this relative key. 0 or -ENOMEM; *ret is its entry. */
int static_take(struct static_entries *t, const char *key, const struct store_kv *kv,
		const struct record_entry *record, struct static_entry **ret);
/* For good. */
void static_drop(struct static_entries *t, struct static_entry *e);

struct static_counts {
	size_t records, selected, applied, errors;
	uint64_t tampered;
};

bool static_is_deleting(const struct static_entry *e);
/* Whom it means; NULL: all, also where that cannot be read. */
const struct selector *static_selector(const struct static_entry *e);
