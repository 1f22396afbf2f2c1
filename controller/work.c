/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/work.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/log.h"

#define TIMEOUT_MS 8000
/* After an answer that says nothing about the state. */
#define REST_MS 500

struct job {
	LIST_ENTRY(job) entry;
	struct work *work;
	struct store_call *call; /* NULL: ended, and rests */
	char *subject, *sentence;
	bool quiet;
	int64_t revision; /* done: until the mirror has seen this */
	uint64_t until;   /* not known: until then, in ms */
};
LIST_HEAD(job_list, job);

struct work {
	struct work_options o;
	struct job_list jobs;
	struct timer rest;
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

		if (!j->call && (j->revision ? j->revision <= revision : j->until <= now))
			job_free(j);
		j = next;
	}
}

bool work_busy(const struct work *w, const char *subject)
{
	const struct job *j;

	LIST_FOREACH(j, &w->jobs, entry)
		if (strcmp(j->subject, subject) == 0)
			return true;
	return false;
}

/* --- one transaction ------------------------------------------------------------------------ */

static void rest(struct job *j)
{
	struct timers *timers = j->work->o.timers;

	j->until = timers_now(timers) + REST_MS;
	if (!j->work->rest.set)
		timer_set(timers, &j->work->rest, REST_MS, REST_MS / 4);
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
		rest(j);
	} else if (!reply->succeeded) {
		w->stats.refused++;
		log_debug("work", "%s has changed meanwhile", j->subject);
		rest(j);
	} else {
		w->stats.done++;
		j->revision = reply->revision;
		if (j->quiet)
			log_debug("work", "%s", j->sentence);
		else
			log_info("work", "%s", j->sentence);
	}
	w->o.ended(w->o.arg);
}

/* Whole keys, owned; what they point to otherwise is the plan's. */
struct request {
	struct store_compare compares[STORE_TXN_MAX];
	struct store_op ops[STORE_TXN_MAX];
	char *texts[3 * STORE_TXN_MAX];
	size_t n_texts;
	bool failed;
};

static void request_done(struct request *r)
{
	for (size_t i = 0; r && i < r->n_texts; i++)
		free(r->texts[i]);
	free(r);
}
AUTO_DEFINE(struct request *, request_done)

static const char *whole(struct request *r, const char *prefix, const char *key)
{
	char *text = NULL;

	if (!key)
		return NULL;
	if (asprintf(&text, "%s%s", prefix, key) < 0) {
		r->failed = true;
		return NULL;
	}
	return r->texts[r->n_texts++] = text;
}

static int send_plan(struct work *w, const struct plan *plan, int64_t token, struct job *j)
{
	AUTO(request_done) struct request *r = calloc(1, sizeof(*r));
	const char *value = elect_value(w->o.elect), *key = elect_key(w->o.elect);
	struct store_txn txn;

	if (!r)
		return -ENOMEM;
	if (plan->n_compares > PLAN_MAX || plan->n_ops > PLAN_MAX)
		return -E2BIG;
	r->compares[0] = (struct store_compare){ .key = key,
						 .target = STORE_CREATE_REVISION,
						 .number = token };
	r->ops[0] = (struct store_op){ .kind = STORE_PUT,
				       .key = key,
				       .value = value,
				       .value_len = strlen(value),
				       .keep_lease = true };
	for (size_t i = 0; i < plan->n_compares; i++) {
		r->compares[i + 1] = plan->compares[i];
		r->compares[i + 1].key = whole(r, w->o.prefix, plan->compares[i].key);
		r->compares[i + 1].range_end = whole(r, w->o.prefix, plan->compares[i].range_end);
	}
	for (size_t i = 0; i < plan->n_ops; i++) {
		r->ops[i + 1] = plan->ops[i];
		r->ops[i + 1].key = whole(r, w->o.prefix, plan->ops[i].key);
	}
	if (r->failed)
		return -ENOMEM;
	txn = (struct store_txn){
		.compares = r->compares,
		.n_compares = plan->n_compares + 1,
		.success = r->ops,
		.n_success = plan->n_ops + 1,
		.repeatable = true,
	};
	return store_txn(w->o.store, &txn, TIMEOUT_MS, on_reply, j, &j->call);
}

static int start(struct work *w, const struct plan *plan, int64_t token)
{
	struct job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	j->work = w;
	j->quiet = plan->quiet;
	j->subject = strdup(plan->subject);
	j->sentence = strdup(plan->sentence);
	LIST_INSERT_HEAD(&w->jobs, j, entry);
	r = j->subject && j->sentence ? send_plan(w, plan, token, j) : -ENOMEM;
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
		int64_t token = elect_token(w->o.elect);

		if (!token)
			return 0;
		if (w->stats.under_way >= WORK_MAX)
			return n - i;
		if (!work_busy(w, plans[i].subject))
			start(w, &plans[i], token);
	}
	return 0;
}
