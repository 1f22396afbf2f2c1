/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan becomes a transaction: its keys get the prefix, and the leader's token is added.
 *
 *   plan -> [plan_send] -> store
 */
#pragma once

#include "controller/state/elect.h"
#include "controller/state/plan.h"

/*
 * elect: compares its token and puts its key, so nothing is applied when another leads, and that
 * the record `recovery` is at this MOD revision; NULL: what any controller may do. May be sent
 * again after a lost reply. 0 or a negative errno.
 */
int plan_send(struct store *store, const char *prefix, const struct plan *plan,
	      const struct elect *elect, int64_t recovery, uint32_t timeout_ms, store_reply_fn *fn,
	      void *arg, struct store_call **ret);
