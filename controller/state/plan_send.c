/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/plan_send.h"

#include <errno.h>

int plan_send(struct store *store, const char *prefix, const struct plan *plan,
	      const struct elect *elect, int64_t recovery, uint32_t timeout_ms, store_reply_fn *fn,
	      void *arg, struct store_call **ret)
{
	AUTO_DONE(txn_done) struct txn whole = { 0 };
	struct store_txn txn;

	if (!plan_has_room(plan, 0, 0))
		return -E2BIG;
	if (elect) {
		struct store_op token = op_put(elect_key(elect), elect_value(elect));
		AUTO(free) char *key = NULL;

		if (!elect_token(elect))
			return -EPERM;
		if (asprintf(&key, "%srecovery", prefix) < 0)
			return -ENOMEM;
		token.keep_lease = true;
		txn_if(&whole, if_created(elect_key(elect), elect_token(elect)));
		txn_if(&whole, if_unchanged(key, recovery));
		txn_then(&whole, token);
	}
	txn_add(&whole, prefix, &plan->txn);
	if (whole.failed)
		return -ENOMEM;
	txn = txn_of(&whole);
	txn.repeatable = true;
	return store_txn(store, &txn, timeout_ms, fn, arg, ret);
}
