/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store_fake.h"

#include <errno.h>

#include "lib/store/store_fake_parts.h"

#define ENDLESS_STEPS 10000000

bool store_fake_step(struct store *s)
{
	return memory_step(&fake_of(s)->memory);
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

/* With nothing to do nothing will ever come: better an error than a test that hangs. */
static int fake_turn(struct store *s, uint32_t timeout_ms)
{
	return store_fake_step(s) ? 0 : -EDEADLK;
}

static void fake_free(struct store *s)
{
	struct fake *f = fake_of(s);

	memory_close(&f->memory);
	fake_faults_done(f);
	fake_drop_late(f);
	memory_done(&f->memory);
	free(f);
}

static const struct store_ops fake_ops = {
	.txn = memory_txn_start,
	.list = memory_list_start,
	.lease = memory_lease_start,
	.watch = memory_watch,
	.turn = fake_turn,
	.free = fake_free,
};

struct store *store_fake_new(void)
{
	struct fake *f = memory_must(calloc(1, sizeof(*f)));

	memory_init(&f->memory, &fake_ops, &fake_hooks);
	f->news.run = fake_tell_news;
	TAILQ_INIT(&f->faults);
	return &f->memory.base;
}

void store_fake_set_page(struct store *s, size_t keys)
{
	fake_of(s)->memory.page = keys;
}

void store_fake_replies_first(struct store *s, bool on)
{
	fake_of(s)->memory.replies_first = on;
}

size_t store_fake_release(struct store *s)
{
	return memory_release(&fake_of(s)->memory);
}

struct memory_stats store_fake_stats(const struct store *s)
{
	const struct fake *f = (const struct fake *)s;
	struct memory_stats stats = memory_stats(&f->memory);

	stats.late = f->n_late;
	return stats;
}
