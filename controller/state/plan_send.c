/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/plan_send.h"

#include <errno.h>
#include <string.h>

/* Whole keys, owned; what they point to otherwise is the plan's. */
struct request {
	struct store_compare compares[STORE_TXN_MAX];
	struct store_op ops[STORE_TXN_MAX];
	size_t n_compares, n_ops;
	char *texts[3 * STORE_TXN_MAX];
	size_t n_texts;
	bool failed;
};

static void request_done(struct request *r)
{
	for (size_t i = 0; r && i < r->n_texts; i++)
		free(r->texts[i]);
	free(r);
}
AUTO_DEFINE(struct request *, request_done)

static const char *whole(struct request *r, const char *prefix, const char *key)
{
	char *text = NULL;

	if (!key)
		return NULL;
	if (asprintf(&text, "%s%s", prefix, key) < 0) {
		r->failed = true;
		return NULL;
	}
	return r->texts[r->n_texts++] = text;
}

static int add_token(struct request *r, const struct elect *elect)
{
	const char *value = elect_value(elect), *key = elect_key(elect);
	int64_t token = elect_token(elect);

	if (!token)
		return -EPERM;
	r->compares[r->n_compares++] = (struct store_compare){ .key = key,
							       .target = STORE_CREATE_REVISION,
							       .number = token };
	r->ops[r->n_ops++] = (struct store_op){ .kind = STORE_PUT,
						.key = key,
						.value = value,
						.value_len = strlen(value),
						.keep_lease = true };
	return 0;
}

int plan_send(struct store *store, const char *prefix, const struct plan *plan,
	      const struct elect *elect, int64_t recovery, uint32_t timeout_ms, store_reply_fn *fn,
	      void *arg, struct store_call **ret)
{
	AUTO(request_done) struct request *r = calloc(1, sizeof(*r));
	struct store_txn txn;
	int e;

	if (!r)
		return -ENOMEM;
	if (plan->n_compares > PLAN_MAX || plan->n_ops > PLAN_MAX)
		return -E2BIG;
	e = elect ? add_token(r, elect) : 0;
	if (e < 0)
		return e;
	if (elect)
		r->compares[r->n_compares++] = (struct store_compare){
			.key = whole(r, prefix, "recovery"),
			.target = STORE_MOD_REVISION,
			.number = recovery,
		};
	for (size_t i = 0; i < plan->n_compares; i++) {
		struct store_compare *c = &r->compares[r->n_compares++];

		*c = plan->compares[i];
		c->key = whole(r, prefix, plan->compares[i].key);
		c->range_end = whole(r, prefix, plan->compares[i].range_end);
	}
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct store_op *op = &r->ops[r->n_ops++];

		*op = plan->ops[i];
		op->key = whole(r, prefix, plan->ops[i].key);
	}
	if (r->failed)
		return -ENOMEM;
	txn = (struct store_txn){
		.compares = r->compares,
		.n_compares = r->n_compares,
		.success = r->ops,
		.n_success = r->n_ops,
		.repeatable = true,
	};
	return store_txn(store, &txn, timeout_ms, fn, arg, ret);
}
