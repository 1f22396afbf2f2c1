/* SPDX-License-Identifier: Apache-2.0 */
/* Inside store_memory: calls and watches share this. */
#pragma once

#include "lib/store/store_memory.h"

/* What was asked: by a call, and perhaps applied long after it. */
struct memory_request {
	unsigned refs;
	enum memory_kind kind;
	struct store_txn txn;
	char *key, *range_end; /* lists */
	enum store_lease_verb verb;
	int64_t lease, ttl;
};

/* store_memory.c */
struct memory_verdict memory_next_verdict(struct memory *m, enum memory_kind kind,
					  const struct store_txn *txn, const char *key);
void memory_keep_late(struct memory *m, struct memory_request *q);

/* store_memory_request.c */
struct memory_request *memory_request_txn(const struct store_txn *txn);
struct memory_request *memory_request_list(const char *key, const char *range_end);
struct memory_request *memory_request_lease(enum store_lease_verb verb, int64_t id, int64_t ttl);
bool memory_request_writes(const struct memory_request *q);
/* As if the compares did not hold. */
void memory_request_refuse(struct memory *m, const struct memory_request *q,
			   struct memory_answer *ret);

/* store_memory_call.c */
void memory_calls_go_on(struct memory *m);
void memory_calls_done(struct memory *m);
void memory_calls_count(const struct memory *m, struct memory_stats *stats);

/* store_memory_watch.c */
void memory_watches_look(struct memory *m);
void memory_watches_done(struct memory *m);
/* The lowest revision that some watch has still to see. */
int64_t memory_watches_need(const struct memory *m);
