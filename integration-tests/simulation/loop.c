/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for the few functions of sd-event that the lease store, its client and the lease server
 * use: sources of a program, run by the scheduler. There is no loop; the program that adds a source
 * is the program that runs.
 */
#include <errno.h>
#include <systemd/sd-event.h>

#include "integration-tests/simulation/simulation.h"

struct sd_event_source {
	LIST_ENTRY(sd_event_source) entry;
	struct process *process;
	bool timed;
	clockid_t clock;
	int64_t due; /* by that clock, us */
	int enabled;
	sd_event_handler_t deferred;
	sd_event_time_handler_t timer;
	void *arg;
};

int64_t loop_clock(const struct process *p, clockid_t clock)
{
	const struct machine *m = p->machine;

	if (!m)
		return sim.now;
	return sim.now - m->booted - (clock == CLOCK_MONOTONIC ? m->slept : 0);
}

int64_t loop_world_time(const struct process *p, clockid_t clock, int64_t us)
{
	return us == SIM_NEVER ? us : us + sim.now - loop_clock(p, clock);
}

/* --- what the scheduler asks ---------------------------------------------------------------- */

static int64_t due_at(const sd_event_source *s)
{
	if (s->enabled == SD_EVENT_OFF)
		return SIM_NEVER;
	return s->timed ? loop_world_time(s->process, s->clock, s->due) : sim.now;
}

int64_t loop_due(const struct process *p)
{
	const struct sd_event_source *s;
	int64_t next = SIM_NEVER;

	LIST_FOREACH(s, &p->sources, entry)
		if (due_at(s) < next)
			next = due_at(s);
	return next;
}

void loop_step(struct process *p)
{
	struct sd_event_source *s, *chosen = NULL;
	unsigned n = 0;

	LIST_FOREACH(s, &p->sources, entry)
		if (due_at(s) <= sim.now && chance_below(&sim.chance, ++n) == 0)
			chosen = s;
	if (!chosen)
		return;
	if (chosen->enabled == SD_EVENT_ONESHOT)
		chosen->enabled = SD_EVENT_OFF;
	/* It may be freed by this. */
	if (chosen->timed)
		chosen->timer(chosen, (uint64_t)chosen->due, chosen->arg);
	else
		chosen->deferred(chosen, chosen->arg);
}

/* --- libsystemd ----------------------------------------------------------------------------- */

sd_event *sd_event_ref(sd_event *event)
{
	return event;
}

sd_event *sd_event_unref(sd_event *event)
{
	return NULL;
}

int sd_event_run(sd_event *event, uint64_t timeout)
{
	return -ENOSYS;
}

static sd_event_source *source_new(void *arg, sd_event_source **ret)
{
	sd_event_source *s = memory_must(calloc(1, sizeof(*s)));

	s->process = sim.current;
	s->enabled = SD_EVENT_ONESHOT;
	s->arg = arg;
	LIST_INSERT_HEAD(&s->process->sources, s, entry);
	*ret = s;
	return s;
}

int sd_event_add_defer(sd_event *event, sd_event_source **ret, sd_event_handler_t fn, void *arg)
{
	source_new(arg, ret)->deferred = fn;
	return 0;
}

int sd_event_add_time_relative(sd_event *event, sd_event_source **ret, clockid_t clock,
			       uint64_t usec, uint64_t accuracy, sd_event_time_handler_t fn,
			       void *arg)
{
	sd_event_source *s = source_new(arg, ret);

	s->timed = true;
	s->clock = clock;
	s->timer = fn;
	return sd_event_source_set_time_relative(s, usec);
}

int sd_event_source_set_time_relative(sd_event_source *s, uint64_t usec)
{
	s->due = loop_clock(s->process, s->clock) + (int64_t)usec;
	return 0;
}

int sd_event_source_set_enabled(sd_event_source *s, int enabled)
{
	s->enabled = enabled;
	return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *s)
{
	if (!s)
		return NULL;
	LIST_REMOVE(s, entry);
	free(s);
	return NULL;
}
