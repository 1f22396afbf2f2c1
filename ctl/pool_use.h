/* SPDX-License-Identifier: Apache-2.0 */
/* How much of each pool is in use, by one walk over keys of which there may be many. Pure. */
#pragma once

#include "ctl/frame/ctl.h"

/*
 * {pool: {"blocks": n, "used": n, "free": n, "nodes": {node: null}}}; blocks and nodes are counted
 * from block/ keys, used and free are what living agents say in status/node/. json_object_put() it.
 * NULL: out of memory.
 */
struct json_object *pool_use(const struct ctl_kvs *blocks, const struct ctl_kvs *status);
