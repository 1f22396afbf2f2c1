/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator: everything an agent knows about addresses, and every decision about them.
 *
 *   etcd: pools, extents, labels --configure--.
 *   claims: blocks ------------- block_set ---+-> [allocator] -> assign, release
 *   files, routes, keys -- restore, mark -----'             `-> claims wanted, blocks to give back
 *
 * Pure: no I/O, no log, no clock; "now" is CLOCK_BOOTTIME in nanoseconds. One
 * address is never in two live attachments, by construction: it is given only
 * from a block in state OWNED in which nobody holds it. All of a request is given
 * or nothing. How an ADD goes:
 *
 *   for (;;) {
 *       allocator_assign(a, &request, &(struct assign_options){ .may_claim = true }, now, &r);
 *       DONE:       write the file unless r.existing && !r.changed; if that fails, allocator_undo()
 *       NEED_BLOCK: claim one of r.needs[i].usable (candidates.h), allocator_block_set(), again;
 *                   none left: r.needs[i].whole ? allocator_pool_full() : .may_claim = false, again;
 *                   etcd away: .may_claim = false, .why_not = "etcd is ...", again;
 *                   .specific and another node has it: 409, code 102, in the caller's own words
 *       NEED_POOL:  put pool/<r.make.name> if absent, wait for the watch to bring it, configure, again
 *       WAIT:       the same attachment is being released; again after allocator_release()
 *       REFUSED:    answer r.code and r.why
 *   }
 *
 * How a DEL goes: unlink the file, then allocator_release(). With a link to be
 * destroyed first: allocator_set_state(RELEASING), later those two.
 *
 * At start: configure, files -> allocator_restore(), local block copies ->
 * allocator_block_set(), kernel routes and keys of this boot -> allocator_mark().
 * The order among these does not matter: a block that comes later finds what is
 * in use in it. How long an address has rested does not survive a restart: what
 * was released before it counts as never used.
 */
#pragma once

#include "ipam/allocator/blocks.h"
#include "ipam/allocator/pools.h"
#include "ipam/allocator/ranges.h"
#include "lib/base/cni_code.h"

struct allocator;

/* NULL: out of memory. */
struct allocator *allocator_new(void);
void allocator_free(struct allocator *a);

/*
 * Replaces pools, extents and labels: whenever one of them has changed. What the input points
 * to must live until the next call (or allocator_free()). 0 or -ENOMEM: the old ones still hold.
 */
int allocator_configure(struct allocator *a, const struct pools_input *in);
/* For status: what is wrong with which pool, and the notes. */
const struct pool_views *allocator_pools(const struct allocator *a);

/* --- assign --------------------------------------------------------------------------------- */

enum assign_verdict {
	ASSIGN_DONE,
	ASSIGN_NEED_BLOCK,
	ASSIGN_NEED_POOL,
	ASSIGN_WAIT,
	ASSIGN_REFUSED,
};

enum need_reason { NEED_REQUEST, NEED_LOW_WATER, NEED_PREALLOCATE };

/* A block to be claimed. The extent may be absent yet: then it is made with this cidr and size. */
struct block_need {
	char pool[NAME_TEXT], network[NAME_TEXT];
	struct prefix cidr;
	uint8_t block_size;
	enum need_reason reason;
	struct spans usable; /* numbers of blocks: prefix_nth_block(&cidr, block_size, ...) */
	bool whole;          /* usable is all that the pool has */
	bool specific;       /* usable is the one block of a requested address: block */
	struct prefix block;
};
void block_need_done(struct block_need *need);

struct assign_options {
	bool may_claim;      /* false: take what is resting rather than ask for a block */
	const char *why_not; /* then: NULL, or why no claim is possible (code 11 instead of 100) */
};

#define ASSIGN_NEEDS 4

struct assign_result {
	enum assign_verdict verdict;
	/* DONE; valid until it is released. */
	const struct attachment *attachment;
	bool existing; /* it was there before */
	bool changed;  /* the file must be written: new, or a mark got its name */
	/* NEED_BLOCK; of different pools, may be claimed side by side. */
	struct block_need needs[ASSIGN_NEEDS];
	size_t n_needs;
	/* NEED_POOL */
	struct range_pool make;
	/* REFUSED */
	enum cni_code code;
	struct err why;
	/* With DONE: something to log at debug level, or "". */
	struct err note;
};

/* 0 or -ENOMEM; in either case nothing is half done. *ret is for assign_result_done(). */
int allocator_assign(struct allocator *a, const struct assign_request *request,
		     const struct assign_options *options, int64_t now, struct assign_result *ret);
void assign_result_done(struct assign_result *result);
/* Of an assign that was not existing: the addresses are as they were before, without a rest. */
void allocator_undo(struct allocator *a, const struct attachment_key *key, int64_t now);

/* No block of this pool can be had until then: assign turns to other pools and resting ones. */
void allocator_pool_full(struct allocator *a, const char *pool, int64_t until);

/* --- attachments ---------------------------------------------------------------------------- */

/*
 * Gives its addresses back and hands the attachment to the caller (attachment_free()); NULL when
 * there is none: also fine. Cannot fail. A mark of the same container and interface comes with the
 * next call: ask until it is NULL.
 */
struct attachment *allocator_release(struct allocator *a, const struct attachment_key *key,
				     int64_t now);
const struct attachment *allocator_find(const struct allocator *a,
					const struct attachment_key *key);
/* All of them, sorted, and held addresses likewise; valid until the next change. */
const struct attachments *allocator_attachments(const struct allocator *a);

/* 0 or -ENOENT. */
int allocator_set_state(struct allocator *a, const struct attachment_key *key,
			enum attachment_state state);
/* State ATTACHED with what the main plugin told; 0, -ENOENT, -ENOMEM. */
struct attached {
	const char *link, *netns;
	uint64_t netns_inode;
	struct mac mac;
	bool route_localnet;
};
int allocator_set_attached(struct allocator *a, const struct attachment_key *key,
			   const struct attached *told);
/* For leaks.h: when evidence was first seen, or 0. */
void allocator_set_suspected(struct allocator *a, const struct attachment_key *key, int64_t since);

/*
 * An attachment from a file, or one whose addresses another IPAM plugin gave; takes it on
 * success. Its addresses are in use from now on, whoever else says so. 0; 1 and a sentence when
 * one of them has another holder as well; -EEXIST: the key is there already; -ENOMEM.
 */
int allocator_restore(struct allocator *a, struct attachment *attachment, struct err *err);

/*
 * In use, though no file says so. record: the key in etcd, or NULL for a mere route. network ""
 * means any. 1: marked, 0: somebody holds it already, -ENOMEM.
 */
int allocator_mark(struct allocator *a, const char *network, const struct address *address,
		   const struct address_record *record, int64_t now);

/* --- blocks --------------------------------------------------------------------------------- */

/*
 * A block is ours (or in that state). One that is known gets the state and the pool's name.
 * 0; -EEXIST and a sentence: it overlaps another; -ENOMEM.
 */
int allocator_block_set(struct allocator *a, const char *network, const char *pool,
			const struct prefix *block, enum block_state state, int64_t now,
			struct err *err);
/* 0; -ENOENT; -EBUSY: addresses in it are in use: make it BLOCK_LOST instead. */
int allocator_block_remove(struct allocator *a, const char *network, const struct prefix *block);
const struct own_block *allocator_block(const struct allocator *a, const char *network,
					const struct prefix *block);
const struct blocks *allocator_blocks(const struct allocator *a);
struct address_counts allocator_block_counts(const struct allocator *a, const struct own_block *b,
					     int64_t now);

/* --- what is wanted ------------------------------------------------------------------------- */

/*
 * Blocks to claim ahead of need, at most one for each pool: preallocate, or fewer than a quarter
 * of a block free where the pool is in use here. A pool that is full, at maxBlocksPerNode or
 * not for this node wants none. The number written to ret, at most max, or -ENOMEM.
 */
int allocator_claims_wanted(const struct allocator *a, int64_t now, struct block_need *ret,
			    size_t max);

/*
 * The next block to give back, or NULL. Make it BLOCK_RELEASING and ask again. Empty for the
 * cooldown of its pool, and without it half a block stays free and max(1, preallocate) blocks
 * remain; of single-address blocks none need remain; where the pool is gone or no longer for this
 * node, none at all. asked: the networks in which the controller asked for surplus: there
 * only preallocate counts.
 */
const struct own_block *allocator_give_back(const struct allocator *a, const struct texts *asked,
					    int64_t now);
/* Whether a block of this network is on its way back, or will be once it has rested. */
bool allocator_can_spare(const struct allocator *a, const struct texts *asked, const char *network,
			 int64_t now);
/* When allocator_give_back() may have a new answer though nothing changes; INT64_MAX: never. */
int64_t allocator_give_back_time(const struct allocator *a, int64_t now);
/* An empty BLOCK_LOST, to be removed; or NULL. */
const struct own_block *allocator_block_forgotten(const struct allocator *a);

struct pool_counts {
	size_t blocks; /* owned */
	struct address_counts addresses;
};
struct pool_counts allocator_pool_counts(const struct allocator *a, const char *pool, int64_t now);
