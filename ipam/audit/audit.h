/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit: what does not fit together in the addresses of a cluster, and on one node.
 *
 *   all keys at one revision ─┐
 *   what a node holds ────────┴─> [audit] -> findings -> people, or repairs -> etcd
 *
 * Pure. For roostctl, which shows and asks, and for whoever keeps house in a cluster. Each finding
 * keeps what it was concluded from: keys with their revisions, and keys that were absent. A repair
 * is one transaction that compares just that, so a state that has changed meanwhile refuses it.
 *
 * Repaired is only what is certain: the record of a block says who owns it; an index follows from
 * it; what nobody can use any more goes. In doubt an address counts as in use, and a finding says
 * why it is left alone. A missing node record proves nothing: only removed/<node> with "now" does.
 */
#pragma once

#include "ipam/attachments/leaks.h"
#include "lib/store/txn.h"

/* --- findings ------------------------------------------------------------------------------- */

enum finding_kind {
	/* From etcd alone. */
	FINDING_UNDECODABLE,
	FINDING_BLOCK_WITHOUT_INDEX,
	FINDING_INDEX_WITHOUT_BLOCK,
	FINDING_FOREIGN_INDEX, /* the block is another node's, which has no index */
	FINDING_TWO_INDEXES,
	FINDING_ADDRESS_OUTSIDE,
	FINDING_BLOCK_OUTSIDE,
	FINDING_EXTENT_MISSING,
	FINDING_OVERLAPPING_BLOCKS,
	FINDING_OVERLAPPING_EXTENTS,
	FINDING_UNUSED_EXTENT,
	FINDING_DELETED_POOL,
	FINDING_NO_NODE,
	FINDING_STATUS_WITHOUT_NODE,
	/* From a node. */
	FINDING_LEAK,
	FINDING_STRAY_LINK,
	FINDING_STRAY_ROUTE,
	FINDING_ATTACHMENT_WITHOUT_KEY,
	FINDING_KEY_WITHOUT_ATTACHMENT,
	FINDING_LOST_BLOCK,
	FINDING_BLOCK_WITHOUT_FILE,
	FINDING_FILE_WITHOUT_BLOCK,
	FINDING_KINDS
};
/* "block-without-index"; -EINVAL for a name that is none. */
const char *finding_kind_name(enum finding_kind kind);
int finding_kind_parse(const char *name, enum finding_kind *ret);
bool finding_is_local(enum finding_kind kind);

/* note: nothing is wrong yet, or it goes by itself; error: an address may come to be used twice. */
enum finding_severity { SEVERITY_NOTE, SEVERITY_WARNING, SEVERITY_ERROR };
const char *finding_severity_name(enum finding_severity severity);

enum repair_how {
	REPAIR_NONE,
	REPAIR_TXN,  /* compares and ops, as one transaction */
	REPAIR_LINK, /* the link named in thing is deleted, if it is still the one of this index */
};

/* Room in a transaction for compares of whoever carries it out, such as of a leader's key. */
#define AUDIT_COMPARES_MAX (STORE_TXN_MAX - 8)

struct finding {
	enum finding_kind kind;
	enum finding_severity severity;
	char *thing;    /* a key relative to the prefix, or a path, link, route, attachment */
	char *sentence; /* what is wrong; names everything */
	char *todo;     /* with a repair: what it does; else what a person can do, or who will */
	char *left;     /* why it is not repaired; "" with a repair */
	enum repair_how repair;
	uint32_t link; /* of REPAIR_LINK */
	/* What it was concluded from. Keys are relative and owned, like all texts here. */
	struct txn txn;
};

struct findings {
	struct finding *v; /* by severity, the worst first, then by kind and thing */
	size_t n, room;
};
void findings_done(struct findings *f);
/* The same thing found to be wrong in the same way; NULL: not among them. */
const struct finding *findings_find(const struct findings *f, enum finding_kind kind,
				    const char *thing);
/* Those of a node that are not in again, a later look, go: they were on their way. */
void findings_keep_lasting(struct findings *f, const struct findings *again);

/* --- the whole state ------------------------------------------------------------------------ */

struct audit_block {
	const char *network, *pool, *state; /* as the agent names it: "owned", "lost", ... */
	struct prefix block;
	bool held; /* by the agent; else there is just a file */
	bool file;
};
struct audit_link {
	const char *name;
	uint32_t index;
	bool used; /* a route leads to it */
};
struct audit_route {
	struct prefix dst;
	const char *link; /* "": a blackhole */
};

/* What the agent of a node that answers, its files and its kernel hold. */
struct audit_local {
	const char *node;
	const struct sighting *sightings; /* one per attachment, marks too */
	size_t n_sightings;
	const struct audit_block *blocks;
	size_t n_blocks;
	bool kernel;                    /* links and routes were read */
	const struct audit_link *links; /* pod links that nobody is destroying */
	size_t n_links;
	const struct audit_route *routes; /* of our protocol number */
	size_t n_routes;
};

struct audit_input {
	const struct store_kv *kvs; /* sorted by key, which is relative: "block/default/..." */
	size_t n;
	/* At which all of it was read. A newer key is news that the rest has not heard: it and what
	 * follows from it are no findings. */
	int64_t revision;
	const char *now;                 /* for records that a repair writes */
	const char *kept;                /* until when a lost lease is kept for its holder */
	const struct audit_local *local; /* NULL: etcd alone */
};

/* 0 or -ENOMEM; *ret is set only on success. */
int audit(const struct audit_input *in, struct findings *ret);
