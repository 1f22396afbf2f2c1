/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the pools is in use: by pool, by node, by block.
 *
 *   all keys of etcd at one revision -> [ipam_use] -> tree -> ipam show
 *
 * Pure. What a pool can give is what the agents say it can (ipam/allocator/pools.h): cut as its extent says,
 * less what is excluded. An address counts where its key lies in a block of its own node.
 */
#pragma once

#include "ctl/frame/ctl.h"

/* {"pools": [...], "nodes": [...], "blocks": [...]}; 0 or -ENOMEM. */
int ipam_use(const struct ctl_kvs *kvs, struct json_object **ret);

/* "######...... 50%"; or just the share with width 0. free() it; NULL: out of memory. */
char *ipam_bar(int64_t used, int64_t of, unsigned width);
