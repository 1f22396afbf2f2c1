/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the lease server's pure parts: an etcd of one line per step, told to a view. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/leases/lease_view.h"
#include "lib/model/model.h"

#define POOL "{\"cidr\":\"10.5.0.0/16\",\"blockSize\":24,\"encapsulation\":\"vxlan\"}"
#define LEASE(ip, expires)                                                                         \
	"{\"node\":\"lease-" ip                                                                    \
	"\",\"pool\":\"over\",\"token\":\"t\",\"lease\":{\"publicIP\":\"" ip                       \
	"\",\"backendType\":\"vxlan\",\"expires\":\"" expires "\"}}"
#define RESERVED(ip)                                                                               \
	"{\"node\":\"lease-" ip "\",\"pool\":\"over\",\"lease\":{\"publicIP\":\"" ip "\"}}"
#define HOLDER(ip) "{\"ipv4\":\"" ip "/32\",\"machine\":\"lease\",\"boot\":\"lease\"}"
#define THEN       "2026-11-16T02:45:55Z"
#define LATER      "2026-11-17T02:45:55Z"

static struct lease_view *view;
static int64_t now;

static inline int world_setup(void **unused)
{
	now = 0;
	return lease_view_new(NULL, &view);
}

static inline int world_teardown(void **unused)
{
	lease_view_free(TAKE(view));
	return 0;
}

/* At the present revision: several are of one transaction. */
static inline void also(const char *key, const char *value)
{
	const struct mirrored *old = mirror_find(&view->mirror, key);
	const struct store_kv kv = { .key = key,
				     .value = value,
				     .value_len = strlen(value ?: ""),
				     .create_revision = old ? old->kv.create_revision : now,
				     .mod_revision = now };

	if (value)
		lease_view_put(view, key, &kv);
	else
		lease_view_deleted(view, key, now);
}

/* value NULL: deleted. */
static inline void put(const char *key, const char *value)
{
	now++;
	also(key, value);
}

static inline void in_sync(void)
{
	lease_view_in_sync(view, ++now);
	assert_true(lease_view_settle(view));
	assert_true(lease_view_ready(view));
}

static inline void begin(void)
{
	lease_view_listing(view);
	put("pool/over", POOL);
	in_sync();
}
