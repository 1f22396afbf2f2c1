/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: one transaction that a decision asks for.
 *
 *   decide_* -> [plan] -> work: the leader's token added, sent -> the mirror shows the outcome
 *
 * Pure. Keys are relative. A plan names its subject: of one subject at most one is under way.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/store/txn.h"

/* Work adds two compares and a put of its own. */
#define PLAN_MAX (STORE_TXN_MAX - 2)

struct plan {
	char *subject;  /* "node/n1" */
	char *sentence; /* what it does, for the log */
	bool quiet;     /* told at level debug: others of the same subject say it */
	struct txn txn;
};

struct plans {
	struct plan *v;
	size_t n, room;
	bool failed; /* out of memory; ask plans_failed() */
};
/* Out of memory: what is there may lack something and must not be used. */
bool plans_failed(const struct plans *p);
void plans_done(struct plans *p);

/* Never NULL; valid until the next one is added. */
struct plan *plans_add(struct plans *p, const char *subject);
void plan_says(struct plans *p, struct plan *plan, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The key is as it was seen; it is not there; no key of a range is newer than a revision. */
static inline void plan_if_same(struct plans *p, struct plan *plan, const char *key,
				int64_t mod_revision)
{
	txn_if(&plan->txn, if_unchanged(key, mod_revision));
}

static inline void plan_if_absent(struct plans *p, struct plan *plan, const char *key)
{
	txn_if(&plan->txn, if_absent(key));
}

static inline void plan_if_no_newer(struct plans *p, struct plan *plan, const char *beginning,
				    int64_t revision)
{
	txn_if_prefix(&plan->txn, beginning, if_none_made_after(NULL, NULL, revision));
}

static inline void plan_delete(struct plans *p, struct plan *plan, const char *key)
{
	txn_then(&plan->txn, op_delete(key));
}

/* A plan that only reads: its compares then hold at one moment after it was sent. Without a read
 * etcd may answer from what one member remembers. */
static inline void plan_get(struct plans *p, struct plan *plan, const char *key)
{
	txn_then(&plan->txn, op_get(key));
}

/* value NULL: out of memory. */
static inline void plan_put(struct plans *p, struct plan *plan, const char *key, const char *value)
{
	txn_then(&plan->txn, op_put(key, value));
}

bool plan_has_room(const struct plan *plan, size_t compares, size_t ops);

/* As text, for tests: "if key = 5\nif key absent\ndelete key\nput key value\nget key\n"; free() it.
 */
char *plans_print(const struct plans *p);
