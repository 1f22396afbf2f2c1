/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in memory: etcd's semantics in this process, for makers of stores.
 *
 *   user -> store.h -> lease_store (the lease server's world) -┐
 *                      store_fake (tests, with faults)  -------┴-> [store_memory] -> memory_etcd
 *
 * No thread, no clock, no loop of its own. A call is queued when it is started;
 * one step applies it, another delivers the reply. Watches take one step per
 * page and per revision. Who makes a store of this begins its own struct with a
 * struct memory, drives the steps (memory_step(), told by hooks->work), and says
 * what becomes of each request (hooks->verdict): the fake's script of faults and
 * the lease server's word are the same question.
 *
 * Out of memory it ends the process, rather than go on with half a world; what must
 * outlive that lies in files.
 */
#pragma once

#include <sys/queue.h>

#include "lib/store/memory_etcd.h"
#include "lib/store/store_ops.h"

enum memory_kind {
	MEMORY_READ = 1,  /* a txn without put or delete */
	MEMORY_WRITE = 2, /* any other txn */
	MEMORY_LIST = 4,  /* a page of a list */
	MEMORY_LEASE = 8,
	MEMORY_WATCH = 16, /* a page of a watch's listing; any fate but "pass" fails it */
};

enum memory_fate {
	MEMORY_PASS,
	MEMORY_HOLD,         /* nothing happens until memory_release(); then it is asked again */
	MEMORY_REFUSE,       /* a txn: its compares count as not holding */
	MEMORY_LOSE_REPLY,   /* applied, but the caller is told -ETIMEDOUT, unknown */
	MEMORY_LOSE_REQUEST, /* the caller is told the same; never applied */
	MEMORY_LATE          /* the same; handed to hooks->late */
};

struct memory_verdict {
	enum memory_fate fate;
	int err; /* not 0: it fails so, certainly not applied, and text says why */
	const char *text;
};

/* Something to be done in a later step; lies in what it is about. */
struct memory_task {
	TAILQ_ENTRY(memory_task) entry;
	void (*run)(struct memory_task *task);
	bool queued;
};
TAILQ_HEAD(memory_tasks, memory_task);
#define MEMORY_OWNER(task, type, member) ((type *)(void *)((char *)(task)-offsetof(type, member)))

struct memory;
struct memory_call;
struct memory_watch;
struct memory_request;
TAILQ_HEAD(memory_calls, memory_call);
TAILQ_HEAD(memory_watches, memory_watch);

/* Each may be NULL. */
struct memory_hooks {
	/* txn: of reads and writes; key: of lists and watches. */
	struct memory_verdict (*verdict)(struct memory *m, enum memory_kind kind,
					 const struct store_txn *txn, const char *key);
	/* Sent, then given up by its caller, or of that fate: it may yet be applied. */
	void (*late)(struct memory *m, struct memory_request *q);
	void (*before_txn)(struct memory *m, const struct store_txn *txn);
	/* Steps are waiting. */
	void (*work)(struct memory *m);
	/* store_reply.sent of a request that is sent now: when the server was asked for what the
	 * keys here say; NULL: now. */
	int64_t (*sent)(struct memory *m);
};

struct memory_stats {
	unsigned txns, lists, leases; /* requests that were applied; pages for lists */
	unsigned watch_pages;
	size_t calls, watches, held, late; /* at this moment */
};

struct memory {
	struct store base;
	const struct memory_hooks *hooks;
	struct memory_etcd own;
	struct memory_etcd *etcd; /* own, or one that several stores share */
	struct memory_tasks tasks;
	struct memory_calls calls;
	struct memory_watches watches;
	size_t page;            /* keys per page of lists, watches included */
	bool online, following; /* nothing is reached; only watches are cut */
	const char *cut;        /* why; NULL: nobody has tried yet, so there is no trouble */
	const char *watched;    /* what STORE_WATCHING says */
	bool replies_first, closing;
	bool told_trouble, told_watching;
	struct memory_stats stats;
};

/* ops: usually memory_ops with another free and turn. */
void memory_init(struct memory *m, const struct store_ops *ops, const struct memory_hooks *hooks);
/* First half of the maker's free: ends watches, tells calls; then memory_done(). */
void memory_close(struct memory *m);
void memory_done(struct memory *m);

/* One step; false if there was nothing to do. */
bool memory_step(struct memory *m);
void memory_queue(struct memory *m, struct memory_task *task);
void memory_unqueue(struct memory *m, struct memory_task *task);

/* Watches and calls look again what is reachable. cut: why not; borrowed until the next call. */
void memory_connect(struct memory *m, bool online, bool following, const char *cut);
/* Keys have changed by other hands than a call's. */
void memory_changed(struct memory *m);
/* Every watch is listed again; anew: revisions of before prove nothing. */
void memory_watches_list(struct memory *m, bool anew);
/* Held calls are asked for again; how many. */
size_t memory_release(struct memory *m);
/* History that no watch needs any more. */
void memory_trim(struct memory *m);
struct memory_stats memory_stats(const struct memory *m);

/* For hooks->late. */
struct memory_request *memory_request_ref(struct memory_request *q);
void memory_request_unref(struct memory_request *q);
/* Not for lists, whose pages their call makes. */
void memory_request_apply(struct memory *m, const struct memory_request *q,
			  struct memory_answer *ret);

/* The operations of struct store_ops. */
int memory_txn_start(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		     store_reply_fn *fn, void *arg, struct store_call **ret_call);
int memory_list_start(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		      store_reply_fn *fn, void *arg, struct store_call **ret_call);
int memory_lease_start(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
		       uint32_t timeout_ms, store_reply_fn *fn, void *arg,
		       struct store_call **ret_call);
int memory_watch(struct store *s, const char *key, const char *range_end,
		 const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret);
