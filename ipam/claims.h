/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks, claimed and released by transaction: the one place where nodes must agree.
 *
 *   allocator wants a block -> [claims] -> store -> allocator gets it, or the reason why not
 *
 * A claim compares that the block is absent, that our node record is the one
 * we registered (the fence), and that the pool's extent is what we know or
 * still to be made by this very claim; it puts block and index (and extent)
 * together. A release compares the block's revision and the fence and deletes both. Either
 * ends with a certain outcome, whatever happens to replies; until then the
 * block serves nothing. Errors of etcd are waited out, so a claim started
 * while etcd is away ends when it is back; cancel it if nobody waits.
 */
#pragma once

#include "ipam/allocator/allocator.h"
#include "lib/model/model.h"
#include "lib/store/store.h"

struct claims;
struct claims_call;

struct claims_config {
	struct store *store;
	const char *prefix, *node; /* borrowed */
	/* MOD revision of our node record; 0: not registered, nothing can be claimed. */
	int64_t (*fence)(void *arg);
	/* Settling a lost reply has raised it; 0: found absent. */
	void (*fence_moved)(int64_t revision, void *arg);
	void *arg;
};
int claims_new(const struct claims_config *config, struct claims **ret);
/* Drops what is under way without a callback. */
void claims_free(struct claims *c);

struct claim {
	const struct block_need *need; /* copied; in a result: block is the one tried last */
	int64_t extent_revision;       /* CREATE revision of the pool's extent; 0: there is none */
	int64_t extents_seen;          /* without one: extents are known up to this revision */
	/* In a recovery: its id, for the block's record; whose record to replace, at which
	 * MOD revision. NULL and 0: none. */
	const char *recovery, *owner;
	int64_t replaces;
	/* MOD revision of the record `recovery` as it is known, 0: there is none. A claim that was
	 * decided before etcd went back, or before that was settled, is refused. */
	int64_t recovery_seen;
	int64_t fence; /* as the owner knew it then: for the owner, when it hears that it has changed */
};

enum claim_outcome {
	CLAIM_DONE,
	CLAIM_FULL,  /* every usable block of the pool is taken */
	CLAIM_TAKEN, /* the asked-for one belongs to another node */
	CLAIM_STALE, /* our registration or the extents have changed: look again, then claim again
		      */
	CLAIM_FAILED /* etcd refuses; text says why */
};

struct claim_result {
	const struct claim *claim; /* as it was asked for, and until the callback returns */
	enum claim_outcome outcome;
	struct prefix block;
	bool found; /* DONE: it was ours before, at the time of asking; look before you use it */
	int64_t revision;        /* MOD revision of the block, for its release */
	int64_t extent_revision; /* CREATE revision of the extent, made by this claim or known; 0: ?
				  */
	unsigned tries;          /* transactions sent */
	char owner[NODE_NAME_TEXT];
	char text[NODE_NAME_TEXT + 128];
};
typedef void claim_fn(const struct claim_result *result, void *arg);

/* 0 or -ENOMEM, -EINVAL. fn comes from the loop, exactly once, unless cancelled. */
int claims_claim(struct claims *c, const struct claim *claim, claim_fn *fn, void *arg,
		 struct claims_call **ret);

/*
 * Whether one with this callback is under way: in this pool, for just that block, or for any with
 * NULL; or that tries for this block at the moment.
 */
bool claims_has(const struct claims *c, claim_fn *by, const char *pool,
		const struct prefix *specific);
bool claims_tries(const struct claims *c, claim_fn *by, const char *network,
		  const struct prefix *block);

/* true: the block is nobody's now, or another's. false: it is still ours, at this revision. */
typedef void release_fn(bool released, int64_t revision, const char *text, void *arg);
/* -ENOTCONN: not registered. */
int claims_release(struct claims *c, const char *network, const struct prefix *block,
		   int64_t revision, release_fn *fn, void *arg, struct claims_call **ret);

/* No callback will come; what was sent may still be applied, and is then seen by the watch. */
void claims_cancel(struct claims_call *call);
void claims_cancel_all(struct claims *c);
/* Whether a claim or a release is under way. */
bool claims_busy(const struct claims *c);

struct claims_stats {
	uint64_t tried, claimed, released, settled, listed;
};
struct claims_stats claims_stats(const struct claims *c);
