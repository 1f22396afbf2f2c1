/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pools serve: what each pool really is, and who may use it.
 *
 *   pool/, extent/, labels -> [pools_view] -> views -> [choose_pools] -> a few of them
 *
 * Pure. A view is a pool as it counts: cut as its extent says when there is one,
 * and limited to what it may give. What is wrong with a pool is kept as a sentence
 * for log and status, and takes it out of the choice, never out of the view: its
 * addresses in use stay what they are.
 *
 * Two pools that overlap in a network: the one with an extent stands; without
 * one, the older record (by create revision, then by name).
 *
 * Never given: outside rangeStart to rangeEnd, excluded, the first and last
 * address of the pool with reserveEdges (unless it has but two or one), and the
 * pool's own gateway.
 *
 * The choice, for each family by itself: the pools named in the request, in that
 * order and no others; else those whose namespaces match; else those without
 * namespaces; both by priority, then by name, on network "default", whose nodeSelector matches this
 * node, and not made from an IPAM config. The first that can give, gives. Strict pools
 * fence all of this, requests by name included.
 */
#pragma once

#include "ipam/allocator/spans.h"
#include "ipam/attachments/request.h"
#include "lib/base/array.h"

/* A pool as it came from etcd; pool is NULL when it did not decode, and invalid says why. */
struct pool_input {
	const char *name;
	const struct pool *pool;
	const char *invalid;
	int64_t created; /* create revision, or 0 */
};

struct pools_input {
	const struct pool_input *pools;
	size_t n_pools;
	const struct extent *const *extents;
	size_t n_extents;
	const char *node;          /* the label kubernetes.io/hostname */
	struct labels labels;      /* of spec/<node> */
	struct prefixes pod_cidrs; /* likewise */
};

struct pool_view {
	const char *name;
	const struct pool *pool;     /* NULL: invalid */
	const struct extent *extent; /* or NULL */
	int64_t created;
	/* The rest is set only with a pool. */
	const char *network;
	struct prefix cidr; /* the extent's, if there is one */
	uint8_t block_size;
	struct spans allowed; /* addresses that may be given */
	struct spans usable;  /* numbers of the blocks that have any */
	bool selected;        /* nodeSelector matches this node */
	int64_t full_until;   /* see allocator_pool_full() */
	struct err wrong;     /* why it gives nothing to anybody; "": it does */
	struct err note;      /* what an operator should know: an edit without effect */
};

struct pool_views {
	struct pool_view *v; /* sorted by name */
	size_t n;
};

/* 0 or -ENOMEM. The views point into the input, which must outlive them. */
int pools_view(const struct pools_input *in, struct pool_views *ret);
void pool_views_done(struct pool_views *views);
struct pool_view *pool_views_find(const struct pool_views *views, const char *name);
/* The numbers of the blocks of cidr in which these addresses (all of it) lie. 0 or -ENOMEM. */
int blocks_of_addresses(const struct spans *addresses, const struct prefix *cidr,
			uint8_t block_size, struct spans *ret);
/* Takes those of this family out. 0 or -ENOMEM. */
int exclude_prefixes(struct spans *s, const struct prefixes *exclude, sa_family_t family);
/* Neither wrong nor disabled, and on this node. */
bool pool_view_serves(const struct pool_view *v);
/* The same with a sentence for the one who asked for it by name: 0 or -EPERM. */
int pool_view_check(const struct pool_view *v, struct err *err);
/*
 * 0, or -EPERM with a sentence: a strict pool gives to its namespaces only, and a namespace of a
 * strict pool, whether that serves or not, gets nothing from other pools of that pool's network.
 */
int pool_fence_check(const struct pool_views *views, const struct pool_view *v,
		     const char *namespace, struct err *err);
/* "pool web (10.1.0.0/24, 256 addresses)" */
#define POOL_SHOW_TEXT (NAME_TEXT + PREFIX_TEXT + 80)
const char *pool_view_show(const struct pool_view *v, char *text);

/* At most n of one family, in the order in which they are tried. */
struct choice {
	const struct pool_view **v;
	size_t n;
};
struct choices {
	struct choice ipv4, ipv6;
};
/* 0, -ENOMEM, or -ENOENT with a sentence when no pool of either family fits. */
int choose_pools(const struct pool_views *views, const struct texts *named, const char *namespace,
		 struct choices *ret, struct err *err);
void choices_done(struct choices *c);
