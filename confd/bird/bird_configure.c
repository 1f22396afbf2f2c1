/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One `configure` at a time: look that none is running, send ours, follow it to its end.
 *
 *   IDLE -> BEFORE (`configure status` until done) -> SENT -> AFTER (the same) -> IDLE
 *
 * Never `configure check`, whose parser dies with the daemon, and never `undo`.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "confd/bird/bird_control_parts.h"
#include "lib/base/clock.h"

#define POLL_MIN_MS 20
#define POLL_MAX_MS 1000
/* Sessions that are taken down say good-bye first; a minute is far beyond that. */
#define FOLLOW_MS 60000

static void start(struct bird_control *c);

const char *bird_outcome_name(enum bird_outcome o)
{
	static const char *const names[] = {
		[BIRD_OUTCOME_DONE] = "done",         [BIRD_OUTCOME_REFUSED] = "refused",
		[BIRD_OUTCOME_BUSY] = "busy",         [BIRD_OUTCOME_LOST] = "lost",
		[BIRD_OUTCOME_SHUTDOWN] = "shutdown", [BIRD_OUTCOME_DENIED] = "denied",
	};

	return names[o];
}

static void tell(struct bird_waiter_list *list, enum bird_outcome outcome, const char *words)
{
	struct bird_waiter *w;

	while ((w = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, w, entry);
		w->fn(outcome, words, w->arg);
		free(w);
	}
}

static void finish(struct bird_control *c, enum bird_outcome outcome, const char *words)
{
	struct bird_waiter_list answered = TAILQ_HEAD_INITIALIZER(answered);

	TAILQ_CONCAT(&answered, &c->configure.current, entry);
	/* Unless something ran to its end there is nothing to gain from one more. */
	if (c->configure.phase == CONFIGURE_BEFORE || outcome == BIRD_OUTCOME_LOST)
		TAILQ_CONCAT(&answered, &c->configure.waiting, entry);
	c->configure.phase = CONFIGURE_IDLE;
	sd_event_source_set_enabled(c->configure.timer, SD_EVENT_OFF);
	tell(&answered, outcome, words);
	if (c->configure.phase == CONFIGURE_IDLE && !TAILQ_EMPTY(&c->configure.waiting))
		start(c);
}

static void follow_for(struct bird_control *c, uint64_t ms)
{
	c->configure.deadline_us = clock_monotonic_us() + ms * 1000;
	c->configure.poll_ms = POLL_MIN_MS;
}

static void poll_later(struct bird_control *c, const char *words)
{
	if (clock_monotonic_us() >= c->configure.deadline_us) {
		finish(c, BIRD_OUTCOME_BUSY, words);
		return;
	}
	sd_event_source_set_time_relative(c->configure.timer, c->configure.poll_ms * 1000ULL);
	sd_event_source_set_enabled(c->configure.timer, SD_EVENT_ONESHOT);
	c->configure.poll_ms += c->configure.poll_ms / 2;
	if (c->configure.poll_ms > POLL_MAX_MS)
		c->configure.poll_ms = POLL_MAX_MS;
}

/* --- ours ----------------------------------------------------------------------------------- */

static void on_configured(int err, const struct bird_reply *reply, void *arg)
{
	struct bird_control *c = arg;

	if (err) {
		finish(c, BIRD_OUTCOME_LOST, c->problem.text);
		return;
	}
	switch (bird_configure_parse(reply)) {
	case BIRD_PROGRESS_DONE:
		finish(c, BIRD_OUTCOME_DONE, reply->text);
		break;
	case BIRD_PROGRESS_RUNNING:
	case BIRD_PROGRESS_QUEUED:
		c->configure.phase = CONFIGURE_AFTER;
		follow_for(c, FOLLOW_MS);
		poll_later(c, reply->text);
		break;
	case BIRD_PROGRESS_SHUTDOWN:
		finish(c, BIRD_OUTCOME_SHUTDOWN, reply->text);
		break;
	case BIRD_PROGRESS_DENIED:
		finish(c, BIRD_OUTCOME_DENIED, reply->text);
		break;
	case BIRD_PROGRESS_REFUSED:
	case BIRD_PROGRESS_UNKNOWN:
		finish(c, BIRD_OUTCOME_REFUSED, reply->text);
		break;
	}
}

static void send_ours(struct bird_control *c)
{
	int r = bird_command(c, "configure", BIRD_CONFIGURE_TIMEOUT_MS, on_configured, c);

	if (r < 0) {
		finish(c, BIRD_OUTCOME_LOST, strerror(-r));
		return;
	}
	/* From here on the file counts as read. */
	TAILQ_CONCAT(&c->configure.current, &c->configure.waiting, entry);
	c->configure.phase = CONFIGURE_SENT;
}

/* --- before and after ----------------------------------------------------------------------- */

static void on_status(int err, const struct bird_reply *reply, void *arg)
{
	struct bird_control *c = arg;
	struct bird_line line = { 0 };

	if (err) {
		finish(c, BIRD_OUTCOME_LOST, c->problem.text);
		return;
	}
	bird_line_next(reply, &line);
	switch (bird_configure_status_parse(reply)) {
	case BIRD_PROGRESS_RUNNING:
	case BIRD_PROGRESS_QUEUED:
		poll_later(c, line.text);
		break;
	case BIRD_PROGRESS_SHUTDOWN:
		finish(c, BIRD_OUTCOME_SHUTDOWN, line.text);
		break;
	default:
		/* Also when we may not ask: what we may do is said in answer to `configure`. */
		if (c->configure.phase == CONFIGURE_BEFORE)
			send_ours(c);
		else
			finish(c, BIRD_OUTCOME_DONE, line.text);
	}
}

static int on_poll(sd_event_source *s, uint64_t usec, void *arg)
{
	struct bird_control *c = arg;
	int r = bird_command(c, "configure status", BIRD_CONFIGURE_TIMEOUT_MS, on_status, c);

	if (r < 0)
		finish(c, BIRD_OUTCOME_LOST, strerror(-r));
	return 0;
}

/* By the timer: nobody is called back from within his own call. */
static void start(struct bird_control *c)
{
	c->configure.phase = CONFIGURE_BEFORE;
	follow_for(c, BIRD_CONFIGURE_TIMEOUT_MS);
	sd_event_source_set_time_relative(c->configure.timer, 0);
	sd_event_source_set_enabled(c->configure.timer, SD_EVENT_ONESHOT);
}

int bird_configure(struct bird_control *c, bird_configured_fn *fn, void *arg)
{
	struct bird_waiter *w;

	if (c->state != BIRD_CONNECTED)
		return -ENOTCONN;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->arg = arg;
	TAILQ_INSERT_TAIL(&c->configure.waiting, w, entry);
	if (c->configure.phase == CONFIGURE_IDLE)
		start(c);
	return 0;
}

/* Its command in flight, if any, has been told already; between two polls there is none. */
void bird_configure_lost(struct bird_control *c)
{
	if (c->configure.phase != CONFIGURE_IDLE)
		finish(c, BIRD_OUTCOME_LOST, c->problem.text);
}

int bird_configure_new(struct bird_control *c)
{
	int r;

	TAILQ_INIT(&c->configure.current);
	TAILQ_INIT(&c->configure.waiting);
	r = sd_event_add_time_relative(c->event, &c->configure.timer, CLOCK_MONOTONIC, 0, 1,
				       on_poll, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->configure.timer, SD_EVENT_OFF);
	return r < 0 ? r : 0;
}

void bird_configure_free(struct bird_control *c)
{
	struct bird_waiter_list *lists[] = { &c->configure.current, &c->configure.waiting };
	struct bird_waiter *w;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		while ((w = TAILQ_FIRST(lists[i]))) {
			TAILQ_REMOVE(lists[i], w, entry);
			free(w);
		}
	sd_event_source_disable_unref(c->configure.timer);
}
