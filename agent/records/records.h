/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's state: etcd's records, decoded once, one watch for each prefix.
 *
 *   etcd ─> watch ─> [records] ─┬─> routing, overlay, static routes: marked, they read when they run
 *   the file of this boot ──────┘─> addresses, registration: each event
 *
 * A room says which keys it wants: a prefix such as "node/", or one key such as "node/n1". A want
 * inside another shares its watch. What nobody wants any more is forgotten and not watched. One
 * table (records.c) says what is kept of each kind of key; of the other kinds only events pass by.
 *
 * Damage: a record that cannot be decoded does not replace a good one. Health reports it under the
 * record's key until it is repaired or deleted.
 *
 * A vanished key is not a command. Nodes, extents and blocks count on for a while (RECORD_LINGERS):
 * the living write them again, and a block that another node has claimed changes hands at once. When
 * etcd was replaced or restored these count on much longer, and every other record stays in force
 * until it is written again (RECORD_LOST). A reader that needs what etcd has now takes those that
 * stand.
 */
#pragma once

#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/model/keys.h"
#include "lib/model/model.h"
#include "lib/store/store.h"

enum record_state {
	RECORD_STANDS,  /* etcd has it, or the file of this boot does */
	RECORD_LINGERS, /* its key vanished; it counts until its time is over */
	RECORD_LOST     /* it vanished with etcd's data and counts until it is written again */
};

struct record_entry {
	char *name; /* the key without the kind's part: "web", "default/web"; "" for config */
	const void *value; /* the last good one, a struct pool, peer, ...; NULL: none was good */
	char *text;  /* JSON of value, or the damaged one without it; only of what is remembered */
	char *wrong; /* etcd has a damaged one: why */
	int64_t created, modified; /* revisions; created -1: from the file and not confirmed yet */
	enum record_state state;
	uint64_t until; /* RECORD_LINGERS */
};

/* The value of KEY_BLOCK: there are many, so only this is kept. */
struct block_place {
	struct prefix block;
	const char *node, *pool; /* one piece of memory, at node */
};

enum record_news {
	RECORD_PUT,     /* etcd has it so */
	RECORD_GONE,    /* its key vanished; entry says what counts on */
	RECORD_DROPPED, /* its time is over */
	RECORD_LISTED   /* all that is wanted has been listed, for the first time or again */
};

struct record_event {
	enum record_news news;
	const char *key;           /* relative; NULL with RECORD_LISTED */
	const struct key *parsed;  /* the same */
	const struct store_kv *kv; /* RECORD_PUT, as etcd has it; NULL from records_put() */
	int64_t revision;
	const struct record_entry
		*entry; /* NULL: nothing counts on, or nothing is kept of the kind */
	bool changed;   /* what counts is not what it was */
};
/* The event is borrowed. May call all functions of this header. */
typedef void record_fn(const struct record_event *e, void *arg);

struct records;
struct record_want;

struct records_options {
	struct store *store;
	struct timers *timers;
	struct health *health;
	const char *prefix; /* of the keys */
	const char *node;   /* this one, whose spec/ is remembered */
	uint32_t minute;    /* in ms; shorter in tests */
};

/* Watches nothing yet. */
int records_new(const struct records_options *options, struct records **ret);
void records_free(struct records *r);
AUTO_DEFINE(struct records *, records_free)

/*
 * keys: a prefix with its '/', or one key. fn hears of what happens from now on, never from within
 * this call. 0 or -errno.
 */
int records_want(struct records *r, const char *keys, record_fn *fn, void *arg,
		 struct record_want **ret);
void records_unwant(struct record_want *w); /* NULL: nothing */
/* It has been listed once. */
bool records_listed(const struct record_want *w);
/* The same, and since etcd was replaced or restored again. NULL: false. */
bool records_in_sync(const struct record_want *w);
/* The newest revision that its watch has shown; 0: none since etcd was replaced or restored. */
int64_t records_seen(const struct record_want *w);

/* Pass on the store's notices, before any other room hears of them. */
void records_notice(struct records *r, enum store_notice notice);
/*
 * A record that did not come by a watch: from the file (created -1; dropped if the first list lacks
 * it), or just written by this agent. 0 or -ENOMEM.
 */
int records_put(struct records *r, const char *key, const char *text, size_t len, int64_t created);

/* In the order of their keys, damaged ones included; valid until the next event. */
size_t records_count(const struct records *r, enum key_kind kind);
const struct record_entry *records_at(const struct records *r, enum key_kind kind, size_t i);
const struct record_entry *records_entry(const struct records *r, enum key_kind kind,
					 const char *name);
/* The value that counts, or NULL. */
const void *records_find(const struct records *r, enum key_kind kind, const char *name);
/* All values that count; free() the list. 0 or -ENOMEM. */
int records_list(const struct records *r, enum key_kind kind, const void ***ret, size_t *ret_n);
/* The relative key of an entry. */
void records_key(enum key_kind kind, const char *name, char text[KEY_TEXT]);

/* Keeps a value beyond the next event. Each keep needs its drop; NULL is fine. */
const void *record_keep(const void *value);
void record_drop(const void *value);
