/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: one transaction that a decision asks for.
 *
 *   decide_* -> [plan] -> work: the leader's token added, sent -> the mirror shows the outcome
 *
 * Pure. Keys are relative. A plan names its subject: of one subject at most one is under way.
 */
#pragma once

#include "controller/state/elect.h"
#include "controller/state/mirror.h"
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

/* The key is as the mirror has it, or absent as there. */
void plan_if_seen(struct plan *plan, const struct mirror *m, const char *key);
bool plan_has_room(const struct plan *plan, size_t compares, size_t ops);

/* As text, for tests: "if key = 5\nif key absent\ndelete key\nput key value\nget key\n"; free() it.
 */
char *plans_print(const struct plans *p);

/*
 * Sends it, with the prefix before its keys. elect: compares the leader's token and puts its key,
 * so that nothing is applied when another leads, and compares that the record `recovery` is at this
 * MOD revision; NULL: what any controller may do. May be sent again after a lost reply. 0 or a
 * negative errno.
 */
int plan_send(struct store *store, const char *prefix, const struct plan *plan,
	      const struct elect *elect, int64_t recovery, uint32_t timeout_ms, store_reply_fn *fn,
	      void *arg, struct store_call **ret);
