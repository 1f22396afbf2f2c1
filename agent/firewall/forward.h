/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether another program's nftables rules drop what pods send and receive through this node.
 *
 *   kernel: chains on the hook forward, their rules ─> [forward] ─> agent/checks ─> health
 *
 * A base chain counts as dropping if its policy, or a rule without a condition, drops, and no rule
 * before accepts both what comes from pods and what goes to them: by the names of their links
 * (roost*), by a pool's prefix, or everything. Chains that are jumped to without a condition are
 * followed. Nothing is changed. The rules are read again only if their generation is another.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/prefix.h"

struct forward;

int forward_new(struct forward **ret);
void forward_free(struct forward *f);
AUTO_DEFINE(struct forward *, forward_free)

/*
 * 1 with the chain ("forward of table ip filter"): it drops; 0: none does, or there is no
 * nftables; -errno: it cannot be told. Only families that pools have matter.
 */
int forward_drops(struct forward *f, const struct prefix *pools, size_t n_pools, struct err *chain,
		  struct err *err);
