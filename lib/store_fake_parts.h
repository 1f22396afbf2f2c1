/* SPDX-License-Identifier: Apache-2.0 */
/* Inside store_fake: calls, watches and faults share this. */
#pragma once

#include <sys/queue.h>

#include "lib/fake_etcd.h"
#include "lib/store_fake.h"
#include "lib/store_ops.h"

/* Something to be done in a later step; lies in what it is about. */
struct fake_task {
	TAILQ_ENTRY(fake_task) entry;
	void (*run)(struct fake_task *task);
	bool queued;
};
TAILQ_HEAD(fake_tasks, fake_task);
#define FAKE_OWNER(task, type, member) ((type *)(void *)((char *)(task)-offsetof(type, member)))

/* What was asked of etcd: by a call, and perhaps by a stopped member long after it. */
struct fake_request {
	unsigned refs;
	enum store_fake_kind kind;
	struct store_txn txn;
	char *key, *range_end; /* lists */
	enum store_lease_verb verb;
	int64_t lease, ttl;
};

struct fake_call;
struct fake_watch;
struct fake_fault;
TAILQ_HEAD(fake_calls, fake_call);
TAILQ_HEAD(fake_watches, fake_watch);
TAILQ_HEAD(fake_faults, fake_fault);

struct fake {
	struct store base;
	struct fake_etcd etcd;
	struct fake_tasks tasks;
	struct fake_calls calls;
	struct fake_watches watches;
	struct fake_faults faults;
	struct fake_request **late;
	size_t n_late;
	size_t page;
	bool online, following, replies_first, closing;
	/* The client has not noticed yet: */
	struct fake_task news;
	bool cluster_changed, went_back;
	bool told_trouble, told_watching;
	store_fake_txn_fn *before_txn;
	void *before_txn_arg;
	struct store_fake_stats stats;
};

/* A request's fate: "pass", a fault, or an error. */
struct fake_verdict {
	enum store_fake_fate fate;
	int err;
};

/* store_fake.c */
void fake_queue(struct fake *f, struct fake_task *task);
void fake_unqueue(struct fake *f, struct fake_task *task);

/* store_fake_request.c */
struct fake_request *fake_request_txn(const struct store_txn *txn);
struct fake_request *fake_request_list(const char *key, const char *range_end);
struct fake_request *fake_request_lease(enum store_lease_verb verb, int64_t id, int64_t ttl);
struct fake_request *fake_request_ref(struct fake_request *q);
void fake_request_unref(struct fake_request *q);
bool fake_request_writes(const struct fake_request *q);
/* Not for lists, whose pages their call makes. */
void fake_request_apply(struct fake *f, const struct fake_request *q, struct fake_answer *ret);

/* store_fake_call.c */
int fake_txn_start(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct store_call **ret_call);
int fake_list_start(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		    store_reply_fn *fn, void *arg, struct store_call **ret_call);
int fake_lease_start(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
		     uint32_t timeout_ms, store_reply_fn *fn, void *arg,
		     struct store_call **ret_call);
void fake_calls_go_on(struct fake *f);
void fake_calls_done(struct fake *f);
void fake_calls_count(const struct fake *f, struct store_fake_stats *stats);

/* store_fake_faults.c */
struct fake_verdict fake_next_verdict(struct fake *f, enum store_fake_kind kind,
				      const struct store_txn *txn, const char *key);
void fake_keep_late(struct fake *f, struct fake_request *q);
void fake_drop_late(struct fake *f);
void fake_faults_done(struct fake *f);
void fake_tell_news(struct fake_task *task);

/* store_fake_watch.c */
int fake_watch(struct store *s, const char *key, const char *range_end,
	       const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret);
/* Keys have changed. */
void fake_changed(struct fake *f);
/* The connection came or went. */
void fake_watches_look(struct fake *f);
void fake_watches_list(struct fake *f, bool anew);
void fake_watches_done(struct fake *f);
