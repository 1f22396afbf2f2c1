/* SPDX-License-Identifier: Apache-2.0 */
/* What a maker of stores provides; users include store.h instead. */
#pragma once

#include "lib/store/store.h"
#include "lib/store/store_stats.h"

enum store_lease_verb { STORE_LEASE_GRANT, STORE_LEASE_KEEPALIVE, STORE_LEASE_REVOKE };

struct store_ops {
	int (*txn)(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct store_call **ret_call);
	int (*list)(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		    store_reply_fn *fn, void *arg, struct store_call **ret_call);
	int (*lease)(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
		     uint32_t timeout_ms, store_reply_fn *fn, void *arg,
		     struct store_call **ret_call);
	int (*watch)(struct store *s, const char *key, const char *range_end,
		     const struct store_watch_handlers *handlers, void *arg,
		     struct store_watch **ret);
	/* One turn of the loop, for store_sync.h; timeout_ms at most. 0 or a negative errno. */
	int (*turn)(struct store *s, uint32_t timeout_ms);
	/* NULL: nothing to tell. */
	void (*stats)(const struct store *s, struct store_stats *ret);
	void (*free)(struct store *s);
};

/* Each maker's own structs begin with these. */
struct store {
	const struct store_ops *ops;
	store_notice_fn *notice;
	void *notice_arg;
};

struct store_call {
	void (*cancel)(struct store_call *call);
};

struct store_watch {
	void (*unwatch)(struct store_watch *w);
	void (*listing)(void *arg); /* NULL: nobody asks; called by the maker */
};

void store_notify(struct store *s, enum store_notice notice, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
