/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/backoff.h"
#include "lib/base/log.h"

static void plan_done(struct plan *plan)
{
	txn_done(&plan->txn);
	free(plan->subject);
	free(plan->sentence);
	*plan = (struct plan){ 0 };
}

void plans_done(struct plans *p)
{
	for (size_t i = 0; i < p->n; i++)
		plan_done(&p->v[i]);
	array_done(p);
	p->failed = false;
}

struct plan *plans_add(struct plans *p, const char *subject)
{
	static struct plan nobody;
	struct plan *new = array_add(p);

	if (!new) {
		p->failed = true;
		plan_done(&nobody);
		return &nobody;
	}
	*new = (struct plan){ .subject = strdup(subject), .sentence = strdup("") };
	p->failed = p->failed || !new->subject || !new->sentence;
	return new;
}

void plan_says(struct plans *p, struct plan *plan, const char *fmt, ...)
{
	va_list args;

	free(plan->sentence);
	va_start(args, fmt);
	if (vasprintf(&plan->sentence, fmt, args) < 0) {
		plan->sentence = NULL;
		p->failed = true;
	}
	va_end(args);
}

bool plans_failed(const struct plans *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].txn.failed)
			return true;
	return p->failed;
}

bool plan_has_room(const struct plan *plan, size_t compares, size_t ops)
{
	return plan->txn.compares.n + compares <= PLAN_MAX && plan->txn.ops.n + ops <= PLAN_MAX;
}

void plan_if_seen(struct plan *plan, const struct mirror *m, const char *key)
{
	const struct mirrored *e = mirror_find(m, key);

	txn_if(&plan->txn, if_unchanged(key, e ? e->kv.mod_revision : 0));
}

int plan_send(struct store *store, const char *prefix, const struct plan *plan,
	      const struct elect *elect, int64_t recovery, uint32_t timeout_ms, store_reply_fn *fn,
	      void *arg, struct store_call **ret)
{
	AUTO_DONE(txn_done) struct txn whole = { 0 };
	struct store_txn txn;

	if (!plan_has_room(plan, 0, 0))
		return -E2BIG;
	if (elect) {
		struct store_op token = op_put(elect_key(elect), elect_value(elect));
		AUTO(free) char *key = NULL;

		if (!elect_token(elect))
			return -EPERM;
		if (asprintf(&key, "%srecovery", prefix) < 0)
			return -ENOMEM;
		token.keep_lease = true;
		txn_if(&whole, if_created(elect_key(elect), elect_token(elect)));
		txn_if(&whole, if_unchanged(key, recovery));
		txn_then(&whole, token);
	}
	txn_add(&whole, prefix, &plan->txn);
	if (whole.failed)
		return -ENOMEM;
	txn = txn_of(&whole);
	txn.repeatable = true;
	return store_txn(store, &txn, timeout_ms, fn, arg, ret);
}

/* --- work ----------------------------------------------------------------------------------- */

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

/* --- for tests ------------------------------------------------------------------------------ */

static void print_compare(FILE *out, const struct store_compare *c)
{
	if (c->range_end)
		fprintf(out, "if %s* before %" PRId64 "\n", c->key, c->number);
	else if (c->number == 0)
		fprintf(out, "if %s absent\n", c->key);
	else
		fprintf(out, "if %s = %" PRId64 "\n", c->key, c->number);
}

char *plans_print(const struct plans *p)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < p->n; i++) {
		const struct plan *plan = &p->v[i];

		fprintf(out, "%s:\n", plan->subject);
		for (size_t j = 0; j < plan->txn.compares.n; j++)
			print_compare(out, &plan->txn.compares.v[j]);
		for (const struct store_op *op = plan->txn.ops.v;
		     op < plan->txn.ops.v + plan->txn.ops.n; op++)
			fprintf(out, "%s %s%s%s\n",
				op->kind == STORE_DELETE ? "delete"
				: op->kind == STORE_GET  ? "get"
							 : "put",
				op->key, op->value ? " " : "", op->value ?: "");
	}
	fclose(out);
	return text;
}
