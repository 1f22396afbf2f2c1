/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/work.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "controller/state/plan.h"
#include "lib/base/backoff.h"
#include "lib/base/log.h"

#define TIMEOUT_MS 8000
/* After an answer that says nothing about the state. */
#define REST_MS 500
/* A subject that etcd refused and that nobody plans any more is forgotten after this. */
#define FORGET_MS 60000

struct job {
	LIST_ENTRY(job) entry;
	struct work *work;
	struct store_call *call; /* NULL: ended, and rests */
	char *subject, *sentence;
	bool quiet;
	int64_t revision;  /* done: until the mirror has seen this */
	uint64_t until;    /* not known: until then, in ms */
	unsigned failures; /* etcd answered so often in a row with an error */
	bool ripe;         /* it failed and has rested: kept for the count */
};
LIST_HEAD(job_list, job);

struct work {
	struct work_options o;
	struct job_list jobs;
	struct timer rest;
	int64_t recovery;
	struct work_stats stats;
};

static void job_free(struct job *j)
{
	LIST_REMOVE(j, entry);
	if (j->call) {
		store_cancel(j->call);
		j->work->stats.under_way--;
	}
	free(j->subject);
	free(j->sentence);
	free(j);
}

/* Wakes when the first that rests may go on. */
static void wake_later(struct work *w)
{
	uint64_t now = timers_now(w->o.timers), first = UINT64_MAX;
	const struct job *j;

	LIST_FOREACH(j, &w->jobs, entry)
		if (!j->call && !j->revision && !j->ripe && j->until < first)
			first = j->until;
	if (first != UINT64_MAX)
		timer_set(w->o.timers, &w->rest, first > now ? first - now : 0, REST_MS / 4);
}

static void on_rest(void *arg)
{
	struct work *w = arg;

	w->o.ended(w->o.arg);
}

int work_new(const struct work_options *options, struct work **ret)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->o = *options;
	LIST_INIT(&w->jobs);
	w->rest = (struct timer){ .fn = on_rest, .arg = w };
	*ret = w;
	return 0;
}

void work_stop(struct work *w)
{
	while (!LIST_EMPTY(&w->jobs))
		job_free(LIST_FIRST(&w->jobs));
	timer_clear(w->o.timers, &w->rest);
}

void work_free(struct work *w)
{
	if (!w)
		return;
	work_stop(w);
	free(w);
}

struct work_stats work_stats(const struct work *w)
{
	return w->stats;
}

void work_seen(struct work *w, int64_t revision)
{
	uint64_t now = timers_now(w->o.timers);
	struct job *j = LIST_FIRST(&w->jobs);

	while (j) {
		struct job *next = LIST_NEXT(j, entry);

		if (!j->call && (j->revision ? j->revision <= revision : j->until <= now)) {
			j->ripe = !j->revision && j->failures;
			if (!j->ripe || now - j->until > FORGET_MS)
				job_free(j);
		}
		j = next;
	}
	if (!w->rest.set)
		wake_later(w);
}

void work_set_recovery(struct work *w, int64_t revision)
{
	w->recovery = revision;
}

bool work_busy(const struct work *w, const char *subject)
{
	const struct job *j;

	LIST_FOREACH(j, &w->jobs, entry)
		if (!j->ripe && strcmp(j->subject, subject) == 0)
			return true;
	return false;
}

/* --- one transaction ------------------------------------------------------------------------ */

static void rest(struct job *j, uint64_t ms)
{
	j->until = timers_now(j->work->o.timers) + ms;
	wake_later(j->work);
}

/* etcd takes what it refused before: nothing else that it refused need wait. */
static void accepted(struct work *w)
{
	struct job *j;

	LIST_FOREACH(j, &w->jobs, entry)
		if (!j->call && j->failures)
			j->until = timers_now(w->o.timers);
}

/* How often in a row the last attempts at this failed. */
static unsigned take_failures(struct work *w, const char *subject)
{
	struct job *j = LIST_FIRST(&w->jobs);
	unsigned failures;

	while (j && !(j->ripe && strcmp(j->subject, subject) == 0))
		j = LIST_NEXT(j, entry);
	if (!j)
		return 0;
	failures = j->failures;
	job_free(j);
	return failures;
}

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct job *j = arg;
	struct work *w = j->work;

	j->call = NULL;
	w->stats.under_way--;
	if (reply->err == -ECANCELED)
		return;
	if (reply->err) {
		w->stats.failed++;
		log_warning("work", "%s: %s", j->subject, reply->text);
		rest(j, backoff_refused_ms(&j->failures));
	} else if (!reply->succeeded) {
		w->stats.refused++;
		log_debug("work", "%s has changed meanwhile", j->subject);
		j->failures = 0;
		rest(j, REST_MS);
	} else {
		w->stats.done++;
		j->revision = reply->revision;
		if (j->failures)
			accepted(w);
		if (j->quiet)
			log_debug("work", "%s", j->sentence);
		else
			log_info("work", "%s", j->sentence);
	}
	w->o.ended(w->o.arg);
}

static int start(struct work *w, const struct plan *plan)
{
	struct job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	j->work = w;
	j->quiet = plan->quiet;
	j->failures = take_failures(w, plan->subject);
	j->subject = strdup(plan->subject);
	j->sentence = strdup(plan->sentence);
	LIST_INSERT_HEAD(&w->jobs, j, entry);
	r = j->subject && j->sentence ? plan_send(w->o.store, w->o.prefix, plan, w->o.elect,
						  w->recovery, TIMEOUT_MS, on_reply, j, &j->call)
				      : -ENOMEM;
	if (r < 0) {
		log_error("work", "%s: %s", plan->subject, strerror(-r));
		job_free(j);
		return r;
	}
	w->stats.under_way++;
	return 0;
}

size_t work_do(struct work *w, const struct plan *plans, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* Each time: a pass may have been stopped in its midst. */
		if (!elect_token(w->o.elect))
			return 0;
		if (w->stats.under_way >= WORK_MAX)
			return n - i;
		if (!work_busy(w, plans[i].subject))
			start(w, &plans[i]);
	}
	return 0;
}
