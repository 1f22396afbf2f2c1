/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_repairs.h"

#include <string.h>

void repairs_done(struct repairs *r)
{
	findings_done(&r->last);
	memset(r->found, 0, sizeof(r->found));
}

/* As the audit sorts them. */
static int order(const struct finding *a, const struct finding *b)
{
	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->thing, b->thing);
}

/* Ranges are compared with the revision of the look itself, which differs. */
static bool same_evidence(const struct finding *a, const struct finding *b)
{
	if (a->txn.compares.n != b->txn.compares.n)
		return false;
	for (size_t i = 0; i < a->txn.compares.n; i++) {
		const struct store_compare *x = &a->txn.compares.v[i], *y = &b->txn.compares.v[i];

		if (strcmp(x->key, y->key) != 0 || (!x->range_end && x->number != y->number))
			return false;
	}
	return true;
}

static bool may_mend(const struct finding *f)
{
	return f->repair == REPAIR_TXN && f->kind != FINDING_NO_NODE;
}

static void mend(struct repairs *r, const struct finding *f, struct plans *ret)
{
	struct plan *plan = plans_add(ret, f->thing);

	txn_add(&plan->txn, "", &f->txn);
	plan_says(ret, plan, "%s: %s; repaired: %s", finding_kind_name(f->kind), f->sentence,
		  f->todo);
	r->tried[f->kind]++;
}

void repairs_decide(struct repairs *r, struct findings *now, struct plans *ret)
{
	size_t at = 0;

	memset(r->found, 0, sizeof(r->found));
	for (size_t i = 0; i < now->n; i++) {
		const struct finding *f = &now->v[i];

		r->found[f->kind]++;
		while (at < r->last.n && order(&r->last.v[at], f) < 0)
			at++;
		if (at < r->last.n && order(&r->last.v[at], f) == 0 && may_mend(f) &&
		    same_evidence(&r->last.v[at], f))
			mend(r, f, ret);
	}
	findings_done(&r->last);
	r->last = *now;
	*now = (struct findings){ 0 };
}
