/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records that routing follows from: decoded once, kept until they really are gone.
 *
 *   etcd: peer/, filter/, node/, spec/, block/ -> watches ─┐             ┌─> routing
 *   addresses' part: config, pool/, extent/ ───────────────┴─> [records] ┴─> overlay
 *
 * One watch for whoever wants a kind, and none that nobody wants. A damaged
 * record does not take the place of a good one. A key that vanishes is not a
 * command: nodes, extents and others' blocks count on for a while, in which
 * whoever lives writes them again (a block that somebody else has claimed is his
 * at once); and when etcd itself was exchanged or restored, these count on much
 * longer, and everything else that it no longer has until it is written again.
 */
#pragma once

#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/model/model.h"
#include "lib/store/store.h"

enum route_kind {
	ROUTE_PEER,
	ROUTE_FILTER,
	ROUTE_NODE,
	ROUTE_SPEC,
	ROUTE_BLOCK,
	ROUTE_CONFIG,
	ROUTE_POOL,
	ROUTE_EXTENT,
	ROUTE_KINDS
};

/* What is kept of block/: there are many of them. */
struct block_place {
	struct prefix block;
	const char *node, *pool; /* one piece of memory, at node */
};

struct route_records;

struct route_records_options {
	struct store *store;
	struct timers *timers;
	struct health *health;
	const char *prefix; /* of the keys */
	uint32_t minute;    /* in ms; shorter in tests */
	/* Something of that kind is different. */
	void (*changed)(enum route_kind kind, void *arg);
	/* One that is watched here vanished and counts on for now; may be NULL. */
	void (*vanished)(enum route_kind kind, const void *record, void *arg);
	void *arg;
};

/* Watches nothing yet. */
int route_records_new(const struct route_records_options *options, struct route_records **ret);
void route_records_free(struct route_records *r);
AUTO_DEFINE(struct route_records *, route_records_free)

/* Watched while anybody wants it; after the last one nothing of it is known. 0 or -errno. */
int route_records_want(struct route_records *r, enum route_kind kind, bool wanted);
/* What the watches here do not bring: the relative key's record; value NULL: it is gone. */
void route_records_take(struct route_records *r, const char *key, const char *value, size_t len);
void route_records_notice(struct route_records *r, enum store_notice notice);
/* A kind that is watched here has been listed whole. */
bool route_records_synced(const struct route_records *r, enum route_kind kind);

/*
 * In the order of their keys; valid until the next event. Each is a struct peer, filter, ...; of
 * ROUTE_BLOCK a struct block_place.
 */
size_t route_records_count(const struct route_records *r, enum route_kind kind);
const void *route_record(const struct route_records *r, enum route_kind kind, size_t i);
/* By the key without its first part: "web", "default/web"; "" for config. NULL: none. */
const void *route_record_find(const struct route_records *r, enum route_kind kind,
			      const char *name);
