/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: one transaction that a decision asks for, and its way to etcd.
 *
 *   decide_* -> [plan] -> work: leader's token compared, its key put -> the mirror shows the outcome
 *
 * Making a plan is pure. Keys are relative. A plan names its subject: of one subject at most one is under way.
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

/* --- work ----------------------------------------------------------------------------------- */

/*
 * Work sends the leader's plans. It decides nothing. A plan whose compares fail, or whose reply is
 * lost, has no consequence: the mirror shows what there is, and the next pass plans again. So a
 * subject rests until the mirror has seen what its last transaction did, or for a moment if that is
 * not known. What etcd answers with an error rests longer each time.
 */

/* So many at a time: etcd gathers them into few writes of its log. */
#define WORK_MAX 32

struct work;

struct work_options {
	struct store *store;
	struct timers *timers;
	const struct elect *elect;
	const char *prefix;
	/* One has ended: there is room for another, and the same subject may go on. */
	void (*ended)(void *arg);
	void *arg;
};

int work_new(const struct work_options *options, struct work **ret);
/* Forgets what is under way. */
void work_free(struct work *w);

/* Up to which revision the mirror knows everything. */
void work_seen(struct work *w, int64_t revision);
/* MOD revision of the record `recovery`, 0 without one: every transaction compares it. */
void work_set_recovery(struct work *w, int64_t revision);
bool work_busy(const struct work *w, const char *subject);
/* Sends what there is room for; how many at the end were left. Those that are busy, and all when it
 * may not act any more, are passed over. */
size_t work_do(struct work *w, const struct plan *plans, size_t n);
/* Deposed: nothing that is under way counts. */
void work_stop(struct work *w);

struct work_stats {
	uint64_t done, refused, failed;
	size_t under_way;
};
struct work_stats work_stats(const struct work *w);
