/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines of many modules on one timer, so that an idle agent sleeps.
 *
 * Each deadline has a slack: the loop wakes when the first one can wait no
 * longer, or for any other reason once one is due, and then serves everything
 * that is due already. The list itself
 * knows no loop: timers_loop.c drives it by one sd-event source, a test by
 * timers_run(). Time is CLOCK_BOOTTIME in ms: etcd's leases run on while a
 * machine sleeps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "lib/base/auto.h"

typedef void timer_fn(void *arg);

/* Lies in its owner's struct; zero but for fn and arg. fn may free it, once it is cleared. */
struct timer {
	timer_fn *fn;
	void *arg;
	uint64_t due, latest;
	bool set;
	LIST_ENTRY(timer) entry;
};

LIST_HEAD(timer_list, timer);
struct timers {
	struct timer_list list;
	uint64_t (*now)(const struct timers *t);
	void (*rearm)(struct timers *t); /* NULL: nobody sleeps on it */
	uint64_t running;                /* the time of the run under way, or 0 */
};

uint64_t timers_now(const struct timers *t);
/* Not before delay_ms from now, not later than slack_ms after that. Replaces an earlier one. */
void timer_set(struct timers *t, struct timer *timer, uint64_t delay_ms, uint64_t slack_ms);
void timer_clear(struct timers *t, struct timer *timer);
/* When to wake at the latest; UINT64_MAX: never. */
uint64_t timers_wake(const struct timers *t);
/* From when on a wake-up for another reason would serve somebody; UINT64_MAX: never. */
uint64_t timers_due(const struct timers *t);
/* Calls all that are due. One that is set meanwhile waits for the next run. */
void timers_run(struct timers *t);

/* On the loop. */
int timers_loop_new(sd_event *event, struct timers **ret);
void timers_loop_free(struct timers *t);
AUTO_DEFINE(struct timers *, timers_loop_free)
