/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_jobs.h"
#include "controller/leases/lease_server.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <time.h>

#include "controller/state/plan.h"
#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/model/lease_holder.h"

/* etcd gathers so many into one write of its log; more would only queue there. */
#define UNDER_WAY_MAX 64
#define TIMEOUT_MS    5000
/* Beyond this the client is better told to come again. */
#define DEADLINE_MS 60000
#define TRIES_MAX   30
#define TICK_MS     20
/* How long an answer waits for a view that does not move: then the client has its lease all the
 * same. */
#define SEEN_MS 1000

/*
 * A renewal that moves the expiration by less than this part of the lease's time, and a minute,
 * is a repeated one. It is answered after SLOW_MS, less than what clients wait for an answer.
 */
#define RECENT_PART  60
#define RECENT_MAX_S 60
#define SLOW_MS      2000
/* So many in a row are no lost answers; over when none came for CALM_MS. */
#define REPEATS_WARN     3
#define CALM_MS          300000
#define REPEATERS        64
#define HEALTH_STORM     "lease-renewals"
#define HEALTH_FORBIDDEN "lease-forbidden"

enum state { QUEUED, SENT, AGAIN, APPLIED };

struct job {
	TAILQ_ENTRY(job) entry;
	struct lease_jobs *jobs;
	struct serve_request *request;
	struct lease_call call;
	struct lease_wish wish;
	struct lease_caller caller;
	enum state state;
	unsigned tries;
	bool repeated, slowed;
	uint64_t until; /* AGAIN: look not before, APPLIED: not after */
	int64_t revision;
	struct prefix block;
	char *answer;
	struct store_call *pending;
};
TAILQ_HEAD(job_list, job);

struct lease_jobs {
	const struct lease_server_options *o;
	const struct lease_view *view;
	struct job_list list;
	struct timer tick;
	size_t under_way;
	bool looking, look_again;
	struct lease_jobs_stats stats;
	/* Who renewed for nothing how often, by hash: two in one place only warn later. */
	struct repeater {
		uint64_t hash;
		unsigned n;
	} repeaters[REPEATERS];
	struct timer calm, forbidden; /* when both parts of health end */
};

static void job_free(struct job *j)
{
	if (j->pending) {
		store_cancel(j->pending);
		j->jobs->under_way--;
	}
	TAILQ_REMOVE(&j->jobs->list, j, entry);
	j->jobs->stats.waiting--;
	lease_wish_done(&j->wish);
	free(j->answer);
	free(j);
}

static void on_tick(void *arg)
{
	lease_jobs_look(arg);
}

static void on_calm(void *arg)
{
	struct lease_jobs *j = arg;

	memset(j->repeaters, 0, sizeof(j->repeaters));
	health_clear(j->o->health, HEALTH_STORM);
}

static void on_forbidden_over(void *arg)
{
	struct lease_jobs *j = arg;

	health_clear(j->o->health, HEALTH_FORBIDDEN);
}

int lease_jobs_new(const struct lease_server_options *options, const struct lease_view *view,
		   struct lease_jobs **ret)
{
	struct lease_jobs *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->o = options;
	j->view = view;
	TAILQ_INIT(&j->list);
	j->tick = (struct timer){ .fn = on_tick, .arg = j };
	j->calm = (struct timer){ .fn = on_calm, .arg = j };
	j->forbidden = (struct timer){ .fn = on_forbidden_over, .arg = j };
	*ret = j;
	return 0;
}

void lease_jobs_free(struct lease_jobs *j)
{
	if (!j)
		return;
	while (!TAILQ_EMPTY(&j->list))
		job_free(TAILQ_FIRST(&j->list));
	timer_clear(j->o->timers, &j->tick);
	timer_clear(j->o->timers, &j->calm);
	timer_clear(j->o->timers, &j->forbidden);
	free(j);
}

struct lease_jobs_stats lease_jobs_stats(const struct lease_jobs *j)
{
	return j->stats;
}

/* --- answers -------------------------------------------------------------------------------- */

static void answer(struct job *j)
{
	struct lease_jobs_stats *s = &j->jobs->stats;
	uint64_t *counter = j->repeated                     ? &s->repeated
			    : j->call.verb == LEASE_ACQUIRE ? &s->acquired
			    : j->call.verb == LEASE_RENEW   ? &s->renewed
			    : j->call.verb == LEASE_REVOKE  ? &s->revoked
							    : &s->reserved;

	++*counter;
	serve_reply_text(j->request, 200, LEASE_CONTENT_TYPE, j->answer, strlen(j->answer));
	job_free(j);
}

static void unavailable(struct job *j, const char *why)
{
	j->jobs->stats.unavailable++;
	serve_reply_error(j->request, 503, CNI_CODE_TRY_AGAIN, NULL, "%s; try again", why);
	job_free(j);
}

static void refuse(struct job *j, const char *why)
{
	j->jobs->stats.refused++;
	log_debug("lease", "refused: %s", why);
	serve_reply_error(j->request, 500, CNI_CODE_IO, NULL, "%s", why);
	job_free(j);
}

/* The first of a series stays in health, so that no client can fill the log. */
void lease_jobs_forbid(struct lease_jobs *jobs, const struct lease_caller *caller, const char *why)
{
	char peer[ADDRESS_TEXT];

	jobs->stats.forbidden++;
	log_debug("lease", "forbidden: %s", why);
	timer_set(jobs->o->timers, &jobs->forbidden, CALM_MS, CALM_MS / 10);
	if (!health_reason(jobs->o->health, HEALTH_FORBIDDEN))
		health_set(jobs->o->health, HEALTH_FORBIDDEN, LOG_LEVEL_WARNING,
			   "a request from %s was refused: %s", address_print(&caller->peer, peer),
			   why);
}

static void forbid(struct job *j, const char *why)
{
	lease_jobs_forbid(j->jobs, &j->caller, why);
	serve_reply_error(j->request, 403, CNI_CODE_CONFIG, NULL, "%s", why);
	job_free(j);
}

static void on_end(struct serve_request *request, enum serve_end why, void *arg)
{
	struct job *j = arg;

	if (why == SERVE_LATE)
		j->jobs->stats.unavailable++;
	/* What was sent may yet be applied: the client finds it when it asks again. */
	job_free(j);
}

/* --- one transaction ------------------------------------------------------------------------ */

static void come_again(struct job *j, uint64_t ms)
{
	j->state = AGAIN;
	j->until = timers_now(j->jobs->o->timers) + ms;
	if (!j->jobs->tick.set)
		timer_set(j->jobs->o->timers, &j->jobs->tick, TICK_MS, TICK_MS / 4);
}

static void applied(struct job *j, int64_t revision)
{
	j->state = APPLIED;
	j->revision = revision;
	j->until = timers_now(j->jobs->o->timers) + SEEN_MS;
	/* One that only read changed nothing that the view could see. */
	if (j->repeated || revision <= j->jobs->view->mirror.revision)
		answer(j);
	else if (!j->jobs->tick.set)
		timer_set(j->jobs->o->timers, &j->jobs->tick, TICK_MS, TICK_MS / 4);
}

/* What nobody but an operator can mend; all else passes. */
static bool is_for_good(int err)
{
	return err == -EACCES || err == -EKEYREJECTED || err == -E2BIG || err == -EINVAL;
}

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct job *j = arg;
	struct lease_jobs *jobs = j->jobs;
	char why[512];

	j->pending = NULL;
	jobs->under_way--;
	snprintf(why, sizeof(why), "etcd: %s", reply->text);
	if (reply->err && is_for_good(reply->err)) {
		refuse(j, why);
	} else if (reply->err) {
		unavailable(j, why);
	} else if (reply->succeeded) {
		applied(j, reply->revision);
	} else if (++j->tries >= TRIES_MAX) {
		unavailable(j, "other requests changed the leases too often");
	} else {
		jobs->stats.again++;
		come_again(j, TICK_MS);
	}
	lease_jobs_look(jobs);
}

/* --- decisions ------------------------------------------------------------------------------ */

static bool is_busy(const char *network, const struct prefix *block, void *arg)
{
	const struct job *self = arg, *j;

	TAILQ_FOREACH(j, &self->jobs->list, entry)
		if (j != self && j->state == SENT && prefix_compare(&j->block, block) == 0 &&
		    strcmp(j->call.network, network) == 0)
			return true;
	return false;
}

static int read_clock(const struct lease_jobs *j, struct lease_clock *ret)
{
	uint32_t recent = j->o->ttl / RECENT_PART;
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	clock_utc_text(ret->now);
	ret->seconds = time(NULL);
	clock_utc_of(ret->seconds + j->o->ttl, ret->expires);
	recent = recent < RECENT_MAX_S ? recent : RECENT_MAX_S;
	clock_utc_of(ret->seconds + j->o->ttl - recent + 1, ret->recent);
	snprintf(ret->token, sizeof(ret->token), "%016" PRIx64, random[0]);
	ret->random = random[1];
	return 0;
}

static void note_repeat(struct lease_jobs *jobs, const struct job *j)
{
	char holder[NODE_NAME_TEXT], subnet[PREFIX_TEXT];
	uint64_t hash = HASH_TEXTS(lease_holder_name(&j->wish.public_ip, holder)).low;
	struct repeater *r = &jobs->repeaters[hash % REPEATERS];

	if (r->hash != hash)
		*r = (struct repeater){ .hash = hash };
	timer_set(jobs->o->timers, &jobs->calm, CALM_MS, CALM_MS / 10);
	if (++r->n < REPEATS_WARN || health_reason(jobs->o->health, HEALTH_STORM))
		return;
	address_print(&j->wish.public_ip, holder);
	health_set(
		jobs->o->health, HEALTH_STORM, LOG_LEVEL_WARNING,
		"client %s keeps renewing its lease of %s: leases last %u s, and it renews them as "
		"long before their end (flannel's clients: 3600 s). Such renewals are delayed and "
		"extend nothing: start all controllers with a longer --lease-ttl, such as 86400",
		holder, prefix_print(&j->wish.subnet, subnet), jobs->o->ttl);
}

static void start(struct job *j)
{
	AUTO_DONE(lease_decision_done) struct lease_decision decision = { 0 };
	struct lease_jobs *jobs = j->jobs;
	struct lease_clock clock;
	struct err err = { "" };
	enum lease_verdict verdict;

	if (!lease_view_ready(jobs->view)) {
		unavailable(j, "the keys of etcd are still being read");
		return;
	}
	if (read_clock(jobs, &clock) < 0) {
		unavailable(j, "cannot get a random number");
		return;
	}
	verdict = lease_decide(jobs->view, &j->call, &j->wish, &j->caller, &clock, j->tries > 0,
			       is_busy, j, &decision, &err);
	if (verdict != LEASE_DO) {
		if (verdict == LEASE_NO_MEMORY)
			unavailable(j, err.text);
		else if (verdict == LEASE_FORBIDDEN)
			forbid(j, err.text);
		else
			refuse(j, err.text);
		return;
	}
	free(j->answer);
	j->answer = TAKE(decision.answer);
	j->block = decision.block;
	j->repeated = decision.repeated;
	if (j->repeated && !j->slowed) {
		j->slowed = true;
		note_repeat(jobs, j);
		come_again(j, SLOW_MS);
		return;
	}
	if (decision.plans.n == 0) {
		answer(j);
		return;
	}
	j->state = SENT;
	if (plan_send(jobs->o->store, jobs->o->prefix, &decision.plans.v[0], NULL, 0, TIMEOUT_MS,
		      on_reply, j, &j->pending) < 0)
		unavailable(j, "out of memory");
	else
		jobs->under_way++;
}

/* Whether another request of this client may have taken what its quota allows, unseen by the view. */
static bool must_wait(const struct job *self)
{
	const struct job *j;

	if (self->caller.operator_)
		return false;
	TAILQ_FOREACH(j, &self->jobs->list, entry)
		if (j != self && (j->state == SENT || j->state == APPLIED) &&
		    strcmp(j->caller.owner, self->caller.owner) == 0)
			return true;
	return false;
}

static void look_once(struct lease_jobs *jobs)
{
	uint64_t now = timers_now(jobs->o->timers);
	int64_t seen = jobs->view->mirror.revision;
	struct job *next;
	bool waits = false;

	for (struct job *j = TAILQ_FIRST(&jobs->list); j; j = next) {
		next = TAILQ_NEXT(j, entry);
		if (j->state == APPLIED && (j->revision <= seen || now >= j->until))
			answer(j);
		else if ((j->state == QUEUED || (j->state == AGAIN && now >= j->until)) &&
			 jobs->under_way < UNDER_WAY_MAX && !must_wait(j))
			start(j);
		else
			waits = waits || j->state == APPLIED || j->state == AGAIN ||
				jobs->under_way < UNDER_WAY_MAX;
	}
	if (waits && !jobs->tick.set)
		timer_set(jobs->o->timers, &jobs->tick, TICK_MS, TICK_MS / 4);
}

/* Answers may come from within; the list is walked by one at a time. */
void lease_jobs_look(struct lease_jobs *jobs)
{
	jobs->look_again = true;
	if (jobs->looking)
		return;
	jobs->looking = true;
	while (jobs->look_again) {
		jobs->look_again = false;
		look_once(jobs);
	}
	jobs->looking = false;
}

void lease_jobs_add(struct lease_jobs *jobs, struct serve_request *request,
		    const struct lease_call *call, struct lease_wish *wish,
		    const struct lease_caller *caller)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j) {
		lease_wish_done(wish);
		serve_reply_error(request, 503, CNI_CODE_TRY_AGAIN, NULL, "out of memory");
		return;
	}
	j->jobs = jobs;
	j->request = request;
	j->call = *call;
	j->caller = *caller;
	j->wish = *wish;
	*wish = (struct lease_wish){ 0 };
	TAILQ_INSERT_TAIL(&jobs->list, j, entry);
	jobs->stats.waiting++;
	if (serve_wait(request, DEADLINE_MS, on_end, j) < 0)
		job_free(j);
	else
		lease_jobs_look(jobs);
}
