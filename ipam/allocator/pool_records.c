/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/allocator/pool_records.h"

#include <errno.h>
#include <string.h>

#include "lib/model/keys.h"

static void drop(const void *p)
{
	free((void *)(uintptr_t)p);
}

void pool_records_done(struct pool_records *r)
{
	pool_views_done(&r->views);
	for (size_t i = 0; i < r->pools.n; i++) {
		if (r->pools.v[i].pool)
			pool_done((struct pool *)(uintptr_t)r->pools.v[i].pool);
		drop(r->pools.v[i].pool);
		drop(r->pools.v[i].name);
		drop(r->pools.v[i].invalid);
	}
	for (size_t i = 0; i < r->extents.n; i++) {
		extent_done((struct extent *)(uintptr_t)r->extents.v[i]);
		drop(r->extents.v[i]);
	}
	array_done(&r->pools);
	array_done(&r->extents);
}

static int add_pool(struct pool_records *r, const char *key, const char *value, size_t len,
		    int64_t create_revision)
{
	AUTO(free) struct pool *pool = calloc(1, sizeof(*pool));
	struct pool_input *in = pool ? array_add(&r->pools) : NULL;
	struct err why = { "" };
	int e;

	if (!in || !(in->name = strdup(key + strlen(KEYS_POOL))))
		return -ENOMEM;
	in->created = create_revision;
	e = pool_decode(key, value, len, pool, &why);
	if (e == 0)
		in->pool = TAKE(pool);
	else if (e == -ENOMEM || !(in->invalid = strdup(why.text)))
		return -ENOMEM;
	return 0;
}

static int add_extent(struct pool_records *r, const char *key, const char *value, size_t len)
{
	AUTO(free) struct extent *extent = calloc(1, sizeof(*extent));
	int e = extent ? extent_decode(key, value, len, extent, NULL) : -ENOMEM;

	if (e < 0)
		return e == -ENOMEM ? e : 0;
	if (array_append(&r->extents, extent) < 0) {
		extent_done(extent);
		return -ENOMEM;
	}
	TAKE(extent);
	return 0;
}

int pool_records_add(struct pool_records *r, const char *key, const char *value, size_t len,
		     int64_t create_revision)
{
	struct key parsed;

	if (key_parse(key, &parsed) < 0)
		return 0;
	return parsed.kind == KEY_POOL     ? add_pool(r, key, value, len, create_revision)
	       : parsed.kind == KEY_EXTENT ? add_extent(r, key, value, len)
					   : 0;
}

int pool_records_view(struct pool_records *r)
{
	struct pools_input in = { .pools = r->pools.v,
				  .n_pools = r->pools.n,
				  .extents = r->extents.v,
				  .n_extents = r->extents.n,
				  .node = "" };

	return pools_view(&in, &r->views);
}
