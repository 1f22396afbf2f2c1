/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store_memory.h"

#include "lib/store/store_memory_parts.h"

#define PAGE_KEYS 5000
/* History is thrown away in lots, not one by one; a status record may have 8 kB. */
#define TRIM_LOT 64

/* --- the queue ------------------------------------------------------------------------------ */

void memory_queue(struct memory *m, struct memory_task *task)
{
	if (task->queued)
		return;
	task->queued = true;
	TAILQ_INSERT_TAIL(&m->tasks, task, entry);
	if (m->hooks->work)
		m->hooks->work(m);
}

void memory_unqueue(struct memory *m, struct memory_task *task)
{
	if (task->queued)
		TAILQ_REMOVE(&m->tasks, task, entry);
	task->queued = false;
}

bool memory_step(struct memory *m)
{
	struct memory_task *task = TAILQ_FIRST(&m->tasks);

	if (!task)
		return false;
	memory_unqueue(m, task);
	task->run(task);
	return true;
}

/* --- the maker's word ----------------------------------------------------------------------- */

struct memory_verdict memory_next_verdict(struct memory *m, enum memory_kind kind,
					  const struct store_txn *txn, const char *key)
{
	if (!m->hooks->verdict)
		return (struct memory_verdict){ .fate = MEMORY_PASS };
	return m->hooks->verdict(m, kind, txn, key);
}

void memory_keep_late(struct memory *m, struct memory_request *q)
{
	if (m->hooks->late)
		m->hooks->late(m, q);
}

void memory_connect(struct memory *m, bool online, bool following, const char *cut)
{
	m->online = online;
	m->following = following;
	m->cut = cut;
	memory_calls_go_on(m);
	memory_watches_look(m);
}

void memory_trim(struct memory *m)
{
	if (m->etcd->history.n >= TRIM_LOT)
		memory_history_trim(m->etcd, memory_watches_need(m));
}

/* --- the whole ------------------------------------------------------------------------------ */

void memory_init(struct memory *m, const struct store_ops *ops, const struct memory_hooks *hooks)
{
	m->base.ops = ops;
	m->hooks = hooks;
	m->page = PAGE_KEYS;
	m->online = m->following = true;
	m->watched = "watching in memory";
	TAILQ_INIT(&m->tasks);
	TAILQ_INIT(&m->calls);
	TAILQ_INIT(&m->watches);
	m->etcd = &m->own;
	memory_etcd_init(&m->own);
}

void memory_close(struct memory *m)
{
	m->closing = true;
	memory_watches_done(m);
	memory_calls_done(m);
}

void memory_done(struct memory *m)
{
	memory_etcd_done(&m->own);
}

struct memory_stats memory_stats(const struct memory *m)
{
	struct memory_stats stats = m->stats;

	memory_calls_count(m, &stats);
	return stats;
}
