/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For command-line tools: the same calls, and wait for the answer.
 *
 * Turns the store's own loop until the reply has come; fn sees the reply while
 * it is valid (NULL: only the outcome matters). Returns reply->err. Whatever
 * else hangs on that loop runs meanwhile. err gets the reply's text.
 */
#pragma once

#include "lib/store/store.h"

int store_sync_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct err *err);
int store_sync_list(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		    store_reply_fn *fn, void *arg, struct err *err);
int store_sync_get(struct store *s, const char *key, uint32_t timeout_ms, store_reply_fn *fn,
		   void *arg, struct err *err);
int store_sync_put(struct store *s, const char *key, const char *value, int64_t lease,
		   uint32_t timeout_ms, struct err *err);
int store_sync_delete(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		      struct err *err);
