/* SPDX-License-Identifier: Apache-2.0 */
/* Settled transactions, over any store: see store.h for the argument why this is conclusive. */
#include <errno.h>
#include <string.h>

#include "lib/store/store_ops.h"
#include "lib/store/txn.h"

struct settle {
	struct store_call base;
	struct store *store;
	struct store_call *inner;
	char *fence, *witness, *value;
	size_t value_len;
	int64_t fence_revision;
	enum store_op_kind kind;
	store_settled_fn *fn;
	void *arg;
};

const char *store_outcome_name(enum store_outcome outcome)
{
	static const char *const names[] = {
		[STORE_APPLIED] = "applied",
		[STORE_REFUSED] = "refused",
		[STORE_UNSETTLED] = "unsettled",
	};

	return names[outcome];
}

static void settle_free(struct settle *t)
{
	free(t->fence);
	free(t->witness);
	free(t->value);
	free(t);
}

static void settle_cancel(struct store_call *base)
{
	struct settle *t = (struct settle *)base;

	/* Without an inner call its callback is running and frees everything. */
	if (!t->inner)
		return;
	store_cancel(t->inner);
	settle_free(t);
}

static void deliver(struct settle *t, const struct store_settled *settled)
{
	t->fn(settled, t->arg);
	settle_free(t);
}

/* --- after the loss ------------------------------------------------------------------------- */

static const struct store_kv *found(const struct store_op_reply *op)
{
	return op->kind == STORE_GET && op->n ? &op->kvs[0] : NULL;
}

static bool was_applied(const struct settle *t, bool raised, const struct store_kv *witness)
{
	bool same_key = strcmp(t->fence, t->witness) == 0;

	/* The fence stood as it was, so whoever would have changed it has not. */
	if (raised && same_key)
		return false;
	if (t->kind == STORE_DELETE)
		/* Made anew since then means that it was gone in between. */
		return !witness || witness->create_revision > t->fence_revision;
	return witness && witness->value_len == t->value_len &&
	       memcmp(witness->value, t->value, t->value_len) == 0;
}

static void on_fenced(const struct store_reply *reply, void *arg)
{
	struct settle *t = arg;
	struct store_settled settled = { .reply = reply, .was_lost = true };

	t->inner = NULL;
	if (reply->err || reply->n_ops != 2) {
		settled.outcome = STORE_UNSETTLED;
		deliver(t, &settled);
		return;
	}
	settled.witness = found(&reply->ops[1]);
	if (reply->succeeded)
		settled.fence_revision = reply->revision;
	else if (found(&reply->ops[0]))
		settled.fence_revision = found(&reply->ops[0])->mod_revision;
	settled.outcome = was_applied(t, reply->succeeded, settled.witness) ? STORE_APPLIED
									    : STORE_REFUSED;
	deliver(t, &settled);
}

/* Raise the fence, or find it raised; look at the witness in the same moment. */
static int raise_fence(struct settle *t)
{
	const struct store_op raise = {
		.kind = STORE_PUT, .key = t->fence, .keep_value = true, .keep_lease = true
	};

	return store_txn(t->store,
			 &(struct store_txn){
				 TXN_IF(if_unchanged(t->fence, t->fence_revision)),
				 TXN_THEN(raise, op_get(t->witness)),
				 TXN_ELSE(op_get(t->fence), op_get(t->witness)),
				 .repeatable = true,
				 .persistent = true,
			 },
			 STORE_FOREVER, on_fenced, t, &t->inner);
}

/* --- the txn itself ------------------------------------------------------------------------- */

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct settle *t = arg;
	struct store_settled settled = { .reply = reply };
	int r;

	t->inner = NULL;
	if (reply->err == -ECANCELED) {
		settled.outcome = STORE_UNSETTLED;
	} else if (reply->err && reply->unknown) {
		r = raise_fence(t);
		if (r == 0)
			return;
		settled.outcome = STORE_UNSETTLED;
	} else {
		settled.outcome = !reply->err && reply->succeeded ? STORE_APPLIED : STORE_REFUSED;
	}
	deliver(t, &settled);
}

static bool settleable(const struct store_txn *txn, size_t fence, size_t witness)
{
	const struct store_compare *c;
	const struct store_op *op;

	if (fence >= txn->n_compares || witness >= txn->n_success)
		return false;
	/* Sent twice it could be applied after it was refused. */
	if (txn->repeatable || txn->persistent)
		return false;
	c = &txn->compares[fence];
	op = &txn->success[witness];
	/* A key made again hides that it was gone, unless its own revision was compared. */
	if (op->kind == STORE_DELETE && strcmp(c->key, op->key) != 0)
		return false;
	return c->target == STORE_MOD_REVISION && c->relation == STORE_EQUAL && c->number > 0 &&
	       !c->range_end && !op->range_end && !op->keep_value &&
	       (op->kind == STORE_PUT || op->kind == STORE_DELETE);
}

int store_txn_settled(struct store *s, const struct store_txn *txn, size_t fence, size_t witness,
		      store_settled_fn *fn, void *arg, struct store_call **ret_call)
{
	struct settle *t;
	int r;

	if (!settleable(txn, fence, witness))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->base.cancel = settle_cancel;
	t->store = s;
	t->fence_revision = txn->compares[fence].number;
	t->kind = txn->success[witness].kind;
	t->value_len = txn->success[witness].value_len;
	t->fn = fn;
	t->arg = arg;
	t->fence = strdup(txn->compares[fence].key);
	t->witness = strdup(txn->success[witness].key);
	t->value = malloc(t->value_len + 1);
	r = t->fence && t->witness && t->value ? 0 : -ENOMEM;
	if (r == 0 && t->value_len)
		memcpy(t->value, txn->success[witness].value, t->value_len);
	r = r ?: store_txn(s, txn, STORE_FOREVER, on_reply, t, &t->inner);
	if (r < 0) {
		settle_free(t);
		return r;
	}
	if (ret_call)
		*ret_call = &t->base;
	return 0;
}
