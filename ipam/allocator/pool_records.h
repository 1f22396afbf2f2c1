/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools and extents as etcd has them, for those who keep no records: views of them all.
 *
 *   keys, values -> [pool_records] -> pools -> views
 *
 * Pure. A damaged pool has a view that says so, a damaged extent counts as absent.
 */
#pragma once

#include "ipam/allocator/pools.h"
#include "lib/base/array.h"
#include "lib/model/model.h"

struct pool_records {
	ARRAY(struct pool_input) pools;
	ARRAY(const struct extent *) extents;
	struct pool_views views;
};
void pool_records_done(struct pool_records *r);

/* A key of pool/ or extent/; others change nothing. 0 or -ENOMEM. */
int pool_records_add(struct pool_records *r, const char *key, const char *value, size_t len,
		     int64_t create_revision);
/* All have been added: fills views, as for a node without a name and labels. 0 or -ENOMEM. */
int pool_records_view(struct pool_records *r);
