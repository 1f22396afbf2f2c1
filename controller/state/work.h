/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work: plans become transactions of the leader.
 *
 *   plans -> [work] -> store: leader's token compared, leader's key put -> counts, log
 *
 * Decides nothing. A plan whose compares fail, or whose reply is lost, is no trouble: the mirror
 * shows what there is, and the next pass plans anew. So a subject rests until the mirror has seen
 * what its last transaction did, or for a moment if that is not known. What etcd answers with an
 * error rests longer each time.
 */
#pragma once

#include "controller/state/elect.h"
#include "controller/state/plan.h"

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
