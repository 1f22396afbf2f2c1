/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store_fake.h"

#include <errno.h>

#include "lib/store_fake_parts.h"

#define PAGE_KEYS     5000
#define ENDLESS_STEPS 10000000

/* --- the queue ------------------------------------------------------------------------------ */

void fake_queue(struct fake *f, struct fake_task *task)
{
	if (task->queued)
		return;
	task->queued = true;
	TAILQ_INSERT_TAIL(&f->tasks, task, entry);
}

void fake_unqueue(struct fake *f, struct fake_task *task)
{
	if (task->queued)
		TAILQ_REMOVE(&f->tasks, task, entry);
	task->queued = false;
}

bool store_fake_step(struct store *s)
{
	struct fake *f = (struct fake *)s;
	struct fake_task *task = TAILQ_FIRST(&f->tasks);

	if (!task)
		return false;
	fake_unqueue(f, task);
	task->run(task);
	return true;
}

unsigned store_fake_run(struct store *s)
{
	unsigned steps = 0;

	while (store_fake_step(s)) {
		if (++steps == ENDLESS_STEPS) {
			fprintf(stderr, "store_fake: this never ends\n");
			abort();
		}
	}
	return steps;
}

/* --- the whole ------------------------------------------------------------------------------ */

/* With nothing to do nothing will ever come: better an error than a test that hangs. */
static int fake_turn(struct store *s, uint32_t timeout_ms)
{
	(void)timeout_ms;
	return store_fake_step(s) ? 0 : -EDEADLK;
}

static void fake_free(struct store *s)
{
	struct fake *f = (struct fake *)s;

	f->closing = true;
	fake_watches_done(f);
	fake_calls_done(f);
	fake_faults_done(f);
	fake_drop_late(f);
	fake_etcd_done(&f->etcd);
	free(f);
}

static const struct store_ops fake_ops = {
	.txn = fake_txn_start,
	.list = fake_list_start,
	.lease = fake_lease_start,
	.watch = fake_watch,
	.turn = fake_turn,
	.free = fake_free,
};

struct store *store_fake_new(void)
{
	struct fake *f = fake_must(calloc(1, sizeof(*f)));

	f->base.ops = &fake_ops;
	f->news.run = fake_tell_news;
	f->page = PAGE_KEYS;
	f->online = f->following = true;
	TAILQ_INIT(&f->tasks);
	TAILQ_INIT(&f->calls);
	TAILQ_INIT(&f->watches);
	TAILQ_INIT(&f->faults);
	fake_etcd_init(&f->etcd);
	return &f->base;
}

void store_fake_set_page(struct store *s, size_t keys)
{
	((struct fake *)s)->page = keys;
}

void store_fake_replies_first(struct store *s, bool on)
{
	((struct fake *)s)->replies_first = on;
}

struct store_fake_stats store_fake_stats(const struct store *s)
{
	const struct fake *f = (const struct fake *)s;
	struct store_fake_stats stats = f->stats;

	fake_calls_count(f, &stats);
	stats.late = f->n_late;
	return stats;
}
