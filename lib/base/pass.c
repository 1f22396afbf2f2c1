/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/pass.h"

#include <errno.h>
#include <time.h>

#include "lib/base/clock.h"

struct pass {
	sd_event_source *quiet; /* defer, at idle priority: after all that has arrived */
	sd_event_source *timer; /* before everything else: the limit, the retry, the rest */
	pass_fn *fn;
	void *arg;
	bool dirty, open, running;
	uint64_t not_before; /* the rest after the last pass */
	uint64_t retry_ms;   /* 0: the last one succeeded */
	struct pass_stats stats;
};

static uint64_t now_us(void)
{
	return clock_monotonic_us();
}

static void timer_at(struct pass *p, uint64_t us)
{
	sd_event_source_set_time(p->timer, us);
	sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

static void stop(struct pass *p)
{
	sd_event_source_set_enabled(p->quiet, SD_EVENT_OFF);
	sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
}

/* While it rests only the timer runs: an enabled idle source would keep the loop turning. */
static void schedule(struct pass *p)
{
	uint64_t now = now_us();

	if (now < p->not_before) {
		timer_at(p, p->not_before);
		return;
	}
	sd_event_source_set_enabled(p->quiet, SD_EVENT_ONESHOT);
	timer_at(p, now + PASS_LATEST_MS * 1000);
}

static uint64_t next_retry(uint64_t ms)
{
	if (ms == 0)
		return PASS_RETRY_MIN_MS;
	return 2 * ms < PASS_RETRY_MAX_MS ? 2 * ms : PASS_RETRY_MAX_MS;
}

static void account(struct pass *p, uint64_t took, int r)
{
	const uint64_t limit = PASS_LATEST_MS * 1000;

	p->stats.passes++;
	p->stats.failures += r < 0;
	p->stats.last_us = took;
	histogram_add(&p->stats.duration, took);
	if (took > p->stats.longest_us)
		p->stats.longest_us = took;
	p->not_before = now_us() + (r < 0 || took > limit ? limit : took);
	p->retry_ms = r < 0 ? next_retry(p->retry_ms) : 0;
}

static int run(struct pass *p)
{
	uint64_t began = now_us();
	bool marked;
	int r;

	stop(p);
	p->dirty = false;
	p->running = true;
	r = p->fn(p->arg);
	p->running = false;
	account(p, now_us() - began, r);

	marked = p->dirty;
	if (r < 0)
		p->dirty = true;
	if (marked)
		schedule(p);
	else if (r < 0)
		timer_at(p, now_us() + p->retry_ms * 1000);
	return r;
}

static int on_quiet(sd_event_source *s, void *arg)
{
	struct pass *p = arg;

	if (p->dirty && p->open)
		run(p);
	return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	return on_quiet(s, arg);
}

void pass_mark(struct pass *p)
{
	bool was = p->dirty;
	int enabled = SD_EVENT_OFF;

	p->stats.marks++;
	p->dirty = true;
	/* What is marked during the pass is seen to at its end. */
	if (!p->open || p->running)
		return;
	/* Dirty after a failure: what is new need not wait for the retry. */
	sd_event_source_get_enabled(p->quiet, &enabled);
	if (!was || (p->retry_ms && enabled == SD_EVENT_OFF))
		schedule(p);
}

void pass_soon(struct pass *p)
{
	uint64_t now = now_us();

	pass_mark(p);
	if (p->open && !p->running && now >= p->not_before)
		timer_at(p, now);
}

void pass_open(struct pass *p, bool open)
{
	if (p->open == open)
		return;
	p->open = open;
	if (!open)
		stop(p);
	else if (p->dirty)
		schedule(p);
}

int pass_now(struct pass *p)
{
	return p->dirty && p->open && !p->running ? run(p) : 0;
}

struct pass_stats pass_stats(const struct pass *p)
{
	struct pass_stats stats = p->stats;

	stats.dirty = p->dirty;
	return stats;
}

int pass_new(sd_event *event, pass_fn *fn, void *arg, struct pass **ret)
{
	AUTO(pass_free) struct pass *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->fn = fn;
	p->arg = arg;
	r = sd_event_add_defer(event, &p->quiet, on_quiet, p);
	if (r >= 0)
		r = sd_event_add_time(event, &p->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, p);
	if (r >= 0)
		r = sd_event_source_set_priority(p->quiet, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_priority(p->timer, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0)
		return r;
	stop(p);
	*ret = TAKE(p);
	return 0;
}

void pass_free(struct pass *p)
{
	if (!p)
		return;
	sd_event_source_disable_unref(p->quiet);
	sd_event_source_disable_unref(p->timer);
	free(p);
}
