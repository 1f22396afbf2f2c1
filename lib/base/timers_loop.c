/* SPDX-License-Identifier: Apache-2.0 */
/* The timers on an sd-event loop: one source for all. */
#include <errno.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/timers.h"

struct timers_loop {
	struct timers base;
	sd_event_source *source;
};

static uint64_t boot_ms(const struct timers *t)
{
	return clock_boottime_ns() / 1000000;
}

/*
 * sd-event is given the whole span: whatever wakes the loop within it (a reply of etcd, another
 * module's timer) serves ours too, and no wake-up of its own is needed.
 */
static void loop_rearm(struct timers *t)
{
	struct timers_loop *l = (struct timers_loop *)t;
	uint64_t due = timers_due(t), slack = timers_wake(t) - due;

	if (due == UINT64_MAX) {
		sd_event_source_set_enabled(l->source, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(l->source, due * 1000);
	sd_event_source_set_time_accuracy(l->source, slack ? slack * 1000 : 1);
	sd_event_source_set_enabled(l->source, SD_EVENT_ONESHOT);
}

static int on_time(sd_event_source *s, uint64_t usec, void *arg)
{
	timers_run(arg);
	return 0;
}

int timers_loop_new(sd_event *event, struct timers **ret)
{
	AUTO(free) struct timers_loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->base.now = boot_ms;
	l->base.rearm = loop_rearm;
	r = sd_event_add_time(event, &l->source, CLOCK_BOOTTIME, 0, 1, on_time, l);
	if (r < 0)
		return r;
	sd_event_source_set_enabled(l->source, SD_EVENT_OFF);
	*ret = &TAKE(l)->base;
	return 0;
}

void timers_loop_free(struct timers *t)
{
	struct timers_loop *l = (struct timers_loop *)t;

	if (!l)
		return;
	sd_event_source_disable_unref(l->source);
	free(l);
}
