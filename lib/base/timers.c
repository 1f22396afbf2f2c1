/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/timers.h"

uint64_t timers_now(const struct timers *t)
{
	return t->now(t);
}

static void rearm(struct timers *t)
{
	if (t->rearm)
		t->rearm(t);
}

void timer_set(struct timers *t, struct timer *timer, uint64_t delay_ms, uint64_t slack_ms)
{
	if (!timer->set)
		LIST_INSERT_HEAD(&t->list, timer, entry);
	timer->set = true;
	timer->due = timers_now(t) + delay_ms;
	/* One that asks for no delay again and again must not keep the run from ending. */
	if (timer->due <= t->running)
		timer->due = t->running + 1;
	timer->latest = timer->due + slack_ms;
	rearm(t);
}

void timer_clear(struct timers *t, struct timer *timer)
{
	if (!timer->set)
		return;
	LIST_REMOVE(timer, entry);
	timer->set = false;
	rearm(t);
}

uint64_t timers_wake(const struct timers *t)
{
	const struct timer *timer;
	uint64_t wake = UINT64_MAX;

	LIST_FOREACH(timer, &t->list, entry)
		wake = timer->latest < wake ? timer->latest : wake;
	return wake;
}

uint64_t timers_due(const struct timers *t)
{
	const struct timer *timer;
	uint64_t due = UINT64_MAX;

	LIST_FOREACH(timer, &t->list, entry)
		due = timer->due < due ? timer->due : due;
	return due;
}

/* The one that waits longest, so that their order does not depend on the list's. */
static struct timer *first_due(struct timers *t, uint64_t now)
{
	struct timer *timer, *first = NULL;

	LIST_FOREACH(timer, &t->list, entry)
		if (timer->due <= now && (!first || timer->due < first->due))
			first = timer;
	return first;
}

void timers_run(struct timers *t)
{
	uint64_t now = timers_now(t);
	struct timer *timer;

	t->running = now;
	while ((timer = first_due(t, now))) {
		LIST_REMOVE(timer, entry);
		timer->set = false;
		timer->fn(timer->arg);
	}
	t->running = 0;
	rearm(t);
}
