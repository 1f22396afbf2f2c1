/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records that routing follows from: decoded once, kept until they really are gone.
 *
 *   etcd: peer/, filter/, node/, spec/ -> watches ─┐
 *   addresses' part: config, pool/, extent/ ───────┴─> [route_records] -> routing -> desired_bird
 *
 * A damaged record does not take the place of a good one. A key that vanishes is
 * not a command: nodes and extents count on for a while, in which whoever lives
 * writes them again; and when etcd itself was exchanged or restored, everything
 * that it no longer has stays in force until it is written again.
 */
#pragma once

#include "lib/health.h"
#include "lib/model.h"
#include "lib/store.h"
#include "lib/timers.h"

enum route_kind {
	ROUTE_PEER,
	ROUTE_FILTER,
	ROUTE_NODE,
	ROUTE_SPEC,
	ROUTE_CONFIG,
	ROUTE_POOL,
	ROUTE_EXTENT,
	ROUTE_KINDS
};

struct route_records;

struct route_records_options {
	struct store *store;
	struct timers *timers;
	struct health *health;
	const char *prefix; /* of the keys */
	/* Something is different. */
	void (*changed)(void *arg);
	void *arg;
};

int route_records_new(const struct route_records_options *options, struct route_records **ret);
void route_records_free(struct route_records *r);
AUTO_DEFINE(struct route_records *, route_records_free)

/* What the watches here do not bring: the relative key's record; value NULL: it is gone. */
void route_records_take(struct route_records *r, const char *key, const char *value, size_t len);
void route_records_notice(struct route_records *r, enum store_notice notice);
/* All of the watches have listed what there is. */
bool route_records_in_sync(const struct route_records *r);
/* The same of one that is watched here. */
bool route_records_synced(const struct route_records *r, enum route_kind kind);

/* In the order of their keys; valid until the next event. Each is a struct peer, filter, ... */
size_t route_records_count(const struct route_records *r, enum route_kind kind);
const void *route_record(const struct route_records *r, enum route_kind kind, size_t i);
/* By the key without its first part: "web", "default/web"; "" for config. NULL: none. */
const void *route_record_find(const struct route_records *r, enum route_kind kind,
			      const char *name);
