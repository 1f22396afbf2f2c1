/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/publish.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "confd/pace.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"

/* No event says that a file system is writable again or has room, or that a reload would work. */
#define RETRY_FIRST_US 1000000U
#define RETRY_MAX_US   30000000U
/* Each attempt shows the new file for a moment and asks a daemon that said no. */
#define RELOAD_MAX_US 300000000U

struct publish {
	struct publish_options o;
	struct pace pace;
	uint64_t began;
	sd_event_source *timer;
	bool dirty, reload; /* what the next publication is about */
	unsigned failures;  /* times in a row that it could not be written, or reloaded */
	uint64_t retry_at;  /* if so */
	struct target target;
	enum publish_state { IDLE, CHECKING, RELOADING } state;
	struct publish_outcome last;
	uint64_t reloading; /* since */
	struct publish_stats stats;
};

const char *publish_result_name(enum publish_result result)
{
	static const char *const names[] = {
		"none",       "unchanged",  "published", "unheard",
		"unrendered", "unwritable", "refused",   "not reloaded"
	};

	return result < ARRAY_SIZE(names) ? names[result] : "?";
}

const char *publish_answer_name(enum publish_answer answer)
{
	static const char *const names[] = { "accepted", "refused", "nobody" };

	return answer < ARRAY_SIZE(names) ? names[answer] : "?";
}

bool publish_failed(enum publish_result result)
{
	return result >= PUBLISH_UNRENDERED;
}

/* --- when ----------------------------------------------------------------------------------- */

static void arm(struct publish *p)
{
	uint64_t now = clock_monotonic_us();

	if ((!p->dirty && !p->failures) || p->state != IDLE)
		return;
	sd_event_source_set_time(p->timer, p->dirty ? now + pace_wait(&p->pace, now) : p->retry_at);
	sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

/* --- the end of it -------------------------------------------------------------------------- */

static bool is_retried(const struct publish *p, enum publish_result result)
{
	return result == PUBLISH_UNWRITABLE ||
	       (result == PUBLISH_NOT_RELOADED && p->o.retry_reload);
}

static void finish(struct publish *p, enum publish_result result, const char *reason)
{
	struct err text = { "" };

	/* The reason may lie in what is released here. */
	if (reason)
		err_set(&text, 0, "%s", reason);
	target_done(&p->target);
	p->state = IDLE;
	p->last = (struct publish_outcome){ .result = result, .reason = text };
	clock_utc_text(p->last.when);
	p->stats.results[result]++;
	histogram_add(&p->stats.duration, clock_monotonic_us() - p->began);
	pace_hold(&p->pace, p->began,
		  result == PUBLISH_UNCHANGED || result == PUBLISH_UNRENDERED ? PACE_UNCHANGED_US
									      : PACE_PUBLISHED_US);
	p->failures = is_retried(p, result) ? p->failures + 1 : 0;
	if (p->failures)
		p->retry_at = clock_monotonic_us() + backoff_usec(p->failures, RETRY_FIRST_US,
								  result == PUBLISH_UNWRITABLE
									  ? RETRY_MAX_US
									  : RELOAD_MAX_US);
	if (p->o.told)
		p->o.told(&p->last, p->o.arg);
	arm(p);
}

static void put_back(struct publish *p, const char *words)
{
	struct err err = { "" }, why = { "" };

	err_set(&why, 0, "%s", words);
	/* Nothing was replaced if just the reload was due, so only that is still missing. */
	if (!target_unsettled(&p->target))
		p->reload = p->o.retry_reload;
	else if (target_restore(&p->target, &err) < 0)
		err_set(&why, 0, "%s; and %s", words, err.text);
	finish(p, PUBLISH_NOT_RELOADED, why.text);
}

static void on_reloaded(enum publish_answer answer, const char *words, void *arg)
{
	struct publish *p = arg;

	p->stats.reloads[answer]++;
	histogram_add(&p->stats.reload_duration, clock_monotonic_us() - p->reloading);
	switch (answer) {
	case PUBLISH_ACCEPTED:
		target_settle(&p->target);
		finish(p, PUBLISH_DONE, NULL);
		return;
	case PUBLISH_NOBODY:
		finish(p, PUBLISH_UNHEARD, words);
		return;
	case PUBLISH_REJECTED:
		break;
	}
	put_back(p, words);
}

/* --- the way there -------------------------------------------------------------------------- */

static void reload(struct publish *p)
{
	struct err err = { "" };

	p->state = RELOADING;
	p->reloading = clock_monotonic_us();
	if (!p->o.reload.start)
		on_reloaded(PUBLISH_ACCEPTED, "", p);
	else if (p->o.reload.start(p->o.target.path, on_reloaded, p, p->o.reload.arg, &err) < 0)
		on_reloaded(PUBLISH_REJECTED, err.text, p);
}

static void on_checked(enum publish_answer answer, const char *words, void *arg)
{
	struct publish *p = arg;
	struct err err = { "" };

	if (answer != PUBLISH_ACCEPTED) {
		target_drop_candidate(&p->target);
		finish(p, PUBLISH_REFUSED, words);
	} else if (target_swap(&p->target, p->o.reload.start != NULL, &err) < 0) {
		target_drop_candidate(&p->target);
		finish(p, PUBLISH_UNWRITABLE, err.text);
	} else {
		reload(p);
	}
}

static void check(struct publish *p)
{
	char path[PATH_MAX];
	struct err err = { "" };

	p->state = CHECKING;
	target_candidate_path(&p->target, path);
	if (p->o.check.start && p->o.check.start(path, on_checked, p, p->o.check.arg, &err) < 0) {
		on_checked(PUBLISH_REJECTED, err.text, p);
		return;
	}
	/* While the check is under way: only the rename must find it on the disk. */
	if (target_sync_candidate(&p->target, &err) < 0) {
		if (p->o.check.start)
			p->o.check.cancel(p->o.check.arg);
		target_drop_candidate(&p->target);
		finish(p, PUBLISH_UNWRITABLE, err.text);
	} else if (!p->o.check.start) {
		on_checked(PUBLISH_ACCEPTED, "", p);
	}
}

static int write_candidate(struct publish *p, const char *text, size_t len, struct err *err)
{
	const struct target *t = &p->target;
	int r = 0;

	if (t->exists && p->o.is_foreign && p->o.is_foreign(t->text, t->len, p->o.arg))
		r = target_keep_foreign(t, err);
	return r ?: target_write_candidate(t, text, len, err);
}

static void begin(struct publish *p, const char *text, size_t len)
{
	struct err err = { "" };
	bool again;

	if (target_open(&p->o.target, &p->target, &err) < 0) {
		finish(p, PUBLISH_UNWRITABLE, err.text);
		return;
	}
	again = p->reload;
	p->reload = false;
	if (!target_equals(&p->target, text, len)) {
		if (write_candidate(p, text, len, &err) < 0)
			finish(p, PUBLISH_UNWRITABLE, err.text);
		else
			check(p);
	} else if (p->o.reload.start && (again || target_unsettled(&p->target))) {
		reload(p);
	} else {
		/* One that a kill left behind. */
		target_drop_candidate(&p->target);
		finish(p, PUBLISH_UNCHANGED, NULL);
	}
}

static int on_time(sd_event_source *source, uint64_t usec, void *arg)
{
	AUTO(free) char *text = NULL;
	struct publish *p = arg;
	struct err err = { "" };
	size_t len;
	int r;

	/* Rendering itself may find that something has changed: then it comes after this one. */
	if (p->state != IDLE)
		return 0;
	p->dirty = false;
	p->began = clock_monotonic_us();
	r = p->o.render(&text, &len, p->o.arg, &err);
	if (r < 0)
		finish(p, PUBLISH_UNRENDERED, err.text[0] ? err.text : strerror(-r));
	else
		begin(p, text, len);
	return 0;
}

/* --- for the owner -------------------------------------------------------------------------- */

int publish_new(const struct publish_options *options, struct publish **ret)
{
	AUTO(publish_free) struct publish *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->o = *options;
	p->target.dir = -1;
	r = sd_event_add_time(options->event, &p->timer, CLOCK_MONOTONIC, 0, 1, on_time, p);
	r = r < 0 ? r : sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

void publish_free(struct publish *p)
{
	if (!p)
		return;
	if (p->state == CHECKING) {
		p->o.check.cancel(p->o.check.arg);
		target_drop_candidate(&p->target);
	} else if (p->state == RELOADING) {
		p->o.reload.cancel(p->o.reload.arg);
	}
	sd_event_source_disable_unref(p->timer);
	target_done(&p->target);
	free(p);
}

void publish_changed(struct publish *p)
{
	p->dirty = true;
	arm(p);
}

void publish_reload(struct publish *p)
{
	p->reload = true;
	publish_changed(p);
}

bool publish_busy(const struct publish *p)
{
	return p->dirty || p->state != IDLE;
}

const struct publish_outcome *publish_last(const struct publish *p)
{
	return &p->last;
}

const struct publish_stats *publish_stats(const struct publish *p)
{
	return &p->stats;
}
