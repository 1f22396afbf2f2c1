/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void plan_done(struct plan *plan)
{
	txn_done(&plan->txn);
	free(plan->subject);
	free(plan->sentence);
	*plan = (struct plan){ 0 };
}

void plans_done(struct plans *p)
{
	for (size_t i = 0; i < p->n; i++)
		plan_done(&p->v[i]);
	array_done(p);
	p->failed = false;
}

struct plan *plans_add(struct plans *p, const char *subject)
{
	static struct plan nobody;
	struct plan *new = array_add(p);

	if (!new) {
		p->failed = true;
		plan_done(&nobody);
		return &nobody;
	}
	*new = (struct plan){ .subject = strdup(subject), .sentence = strdup("") };
	p->failed = p->failed || !new->subject || !new->sentence;
	return new;
}

void plan_says(struct plans *p, struct plan *plan, const char *fmt, ...)
{
	va_list args;

	free(plan->sentence);
	va_start(args, fmt);
	if (vasprintf(&plan->sentence, fmt, args) < 0) {
		plan->sentence = NULL;
		p->failed = true;
	}
	va_end(args);
}

bool plans_failed(const struct plans *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].txn.failed)
			return true;
	return p->failed;
}

bool plan_has_room(const struct plan *plan, size_t compares, size_t ops)
{
	return plan->txn.compares.n + compares <= PLAN_MAX && plan->txn.ops.n + ops <= PLAN_MAX;
}

void plan_if_seen(struct plan *plan, const struct mirror *m, const char *key)
{
	const struct mirrored *e = mirror_find(m, key);

	txn_if(&plan->txn, if_unchanged(key, e ? e->kv.mod_revision : 0));
}

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

/* --- for tests ------------------------------------------------------------------------------ */

static void print_compare(FILE *out, const struct store_compare *c)
{
	if (c->range_end)
		fprintf(out, "if %s* before %" PRId64 "\n", c->key, c->number);
	else if (c->number == 0)
		fprintf(out, "if %s absent\n", c->key);
	else
		fprintf(out, "if %s = %" PRId64 "\n", c->key, c->number);
}

char *plans_print(const struct plans *p)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < p->n; i++) {
		const struct plan *plan = &p->v[i];

		fprintf(out, "%s:\n", plan->subject);
		for (size_t j = 0; j < plan->txn.compares.n; j++)
			print_compare(out, &plan->txn.compares.v[j]);
		for (const struct store_op *op = plan->txn.ops.v;
		     op < plan->txn.ops.v + plan->txn.ops.n; op++)
			fprintf(out, "%s %s%s%s\n",
				op->kind == STORE_DELETE ? "delete"
				: op->kind == STORE_GET  ? "get"
							 : "put",
				op->key, op->value ? " " : "", op->value ?: "");
	}
	fclose(out);
	return text;
}
