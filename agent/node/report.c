/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One state, derived: is there a fence, a lease, a text that differs. advance()
 * looks at these and starts the one request that is missing; every callback and
 * every timer just changes a fact and calls it again. One request at a time.
 */
#include "agent/node/report.h"

#include <errno.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/store/leased.h"
#include "lib/store/txn.h"

#define RETRY_MS           5000
#define SLACK_MS           2000 /* a status may be late; a wake-up of its own costs more */
#define KEEPALIVE_SLACK_MS 5000
#define FAREWELL_MS        1000
#define TIMEOUT_MS         8000

struct report {
	struct report_options o;
	char *key, *node_key;
	struct leased lease;
	int64_t fence;
	bool dirty;     /* the text may differ from what was written */
	bool resting;   /* the last write is less than 5 s ago, or a request has failed */
	bool retrying;  /* resting after a failure */
	bool unwritten; /* not under this fence and lease: write, whatever the text */
	bool troubled;
	unsigned failures;    /* in a row */
	char *text, *sending; /* last written, on its way */
	struct timer rest, unfenced, farewell;
	timer_fn *done;
	void *done_arg;
};

static void advance(struct report *r);

static void trouble(struct report *r, const char *text)
{
	/* While nothing was wrong there is nothing to take back. */
	if (!*text && !r->troubled)
		return;
	r->troubled = *text;
	if (r->o.trouble)
		r->o.trouble(text, r->o.arg);
}

static void failed(struct report *r, const char *what, const struct store_reply *reply)
{
	char sentence[600];
	uint64_t delay;

	snprintf(sentence, sizeof(sentence), "%s: %s", what, reply->text);
	trouble(r, sentence);
	r->resting = r->retrying = true;
	delay = backoff_refused_ms(&r->failures);
	/* A lease that is not kept ends after a minute. */
	if (r->lease.keep && delay > RETRY_MS)
		delay = RETRY_MS;
	timer_set(r->o.timers, &r->rest, delay, delay < SLACK_MS ? delay : SLACK_MS);
}

static void say_done(struct report *r)
{
	timer_fn *done = r->done;

	r->done = NULL;
	timer_clear(r->o.timers, &r->farewell);
	if (done)
		done(r->done_arg);
}

/* --- what came of a request ----------------------------------------------------------------- */

static int next_request(struct report *r);

static void set_unfenced(struct report *r)
{
	timer_set(r->o.timers, &r->unfenced, REPORT_NO_FENCE_MS, SLACK_MS);
}

static void written(struct report *r)
{
	free(r->text);
	r->text = TAKE(r->sending);
	r->failures = 0;
	trouble(r, "");
	r->resting = true;
	timer_set(r->o.timers, &r->rest, REPORT_INTERVAL_MS, SLACK_MS);
	if (r->unwritten && r->o.stands)
		r->o.stands(r->o.arg);
	r->unwritten = false;
	say_done(r);
}

static void on_lease(enum leased_event event, const struct store_reply *reply, void *arg)
{
	struct report *r = arg;

	switch (event) {
	case LEASED_GRANTED:
		r->unwritten = true;
		if (!r->fence)
			set_unfenced(r);
		break;
	case LEASED_NOT_GRANTED:
		failed(r, "no lease for the status record", reply);
		break;
	case LEASED_WRITTEN:
		written(r);
		return;
	case LEASED_REFUSED:
		/* The node record is not ours at this moment; registration sees it by its watch. */
		r->fence = 0;
		set_unfenced(r);
		break;
	case LEASED_NOT_WRITTEN:
		r->dirty = true;
		failed(r, "the status record is not written", reply);
		break;
	case LEASED_KEEP:
		/* A lease does not wait for the rest between two writes. */
		if (!r->lease.call && next_request(r) < 0)
			leased_keep_in(&r->lease, RETRY_MS, SLACK_MS);
		return;
	case LEASED_KEPT:
		/* A kept lease does not make a refused record a written one. */
		if (!r->dirty && !r->unwritten) {
			r->failures = 0;
			trouble(r, "");
		}
		break;
	case LEASED_NOT_KEPT:
		failed(r, "the status record's lease is not kept", reply);
		break;
	case LEASED_LOST:
		r->unwritten = true;
		r->resting = false;
		break;
	}
	advance(r);
}

/* --- what is missing ------------------------------------------------------------------------ */

/* 0: nothing to write. */
static int build(struct report *r)
{
	char *text = NULL;
	int e = r->o.build(&text, r->o.arg);

	if (e < 0)
		return e;
	r->dirty = false;
	free(r->sending);
	r->sending = text;
	return r->unwritten || !r->text || strcmp(r->text, text) != 0;
}

/* With the time of the writing, which is not compared: by itself it is no news. */
static int put(struct report *r)
{
	AUTO(free) char *dated = NULL;
	char now[TIME_TEXT];

	if (r->sending[0] != '{')
		return leased_put(&r->lease, r->sending, if_created(r->node_key, r->fence));
	if (asprintf(&dated, "{\"reported\":\"%s\"%s%s", clock_utc_text(now),
		     strcmp(r->sending, "{}") == 0 ? "" : ",", r->sending + 1) < 0)
		return -ENOMEM;
	return leased_put(&r->lease, dated, if_created(r->node_key, r->fence));
}

static int next_request(struct report *r)
{
	int e;

	if (r->lease.keep && r->lease.lease)
		return leased_keep(&r->lease);
	if (!r->fence)
		return 0;
	if (!r->lease.lease)
		return leased_grant(&r->lease);
	if (!r->dirty && !r->unwritten)
		return 0;
	e = build(r);
	return e > 0 ? put(r) : e;
}

static void advance(struct report *r)
{
	const struct store_reply none = { .text = "out of memory" };

	if (r->lease.call || r->resting)
		return;
	if (next_request(r) < 0) {
		r->dirty = true;
		failed(r, "the status record is not written", &none);
	}
}

/* --- timers --------------------------------------------------------------------------------- */

static void on_rest(void *arg)
{
	struct report *r = arg;

	r->resting = r->retrying = false;
	advance(r);
}

static void on_unfenced(void *arg)
{
	struct report *r = arg;

	if (r->fence || !r->lease.lease)
		return;
	if (r->lease.call) {
		timer_set(r->o.timers, &r->unfenced, RETRY_MS, SLACK_MS);
		return;
	}
	r->unwritten = true;
	leased_drop(&r->lease);
}

static void on_farewell(void *arg)
{
	say_done(arg);
}

/* --- from outside --------------------------------------------------------------------------- */

void report_set_fence(struct report *r, int64_t create_revision)
{
	if (create_revision == r->fence)
		return;
	r->fence = create_revision;
	if (!create_revision) {
		set_unfenced(r);
		return;
	}
	timer_clear(r->o.timers, &r->unfenced);
	r->unwritten = true;
	report_kick(r);
}

void report_changed(struct report *r)
{
	r->dirty = true;
	advance(r);
}

void report_retry(struct report *r)
{
	if (!r->retrying)
		return;
	r->resting = r->retrying = false;
	timer_clear(r->o.timers, &r->rest);
	advance(r);
}

void report_kick(struct report *r)
{
	r->failures = 0;
	/* The pause between two writes stays: etcd's health is no reason to write more. */
	if (r->retrying || r->unwritten) {
		r->resting = r->retrying = false;
		timer_clear(r->o.timers, &r->rest);
	}
	/* After a cut nobody knows whether the lease has outlived it. */
	if (r->lease.lease)
		leased_keep_now(&r->lease);
	else
		advance(r);
}

void report_farewell(struct report *r, timer_fn *done, void *arg)
{
	bool possible = r->fence && r->lease.lease;

	r->done = done;
	r->done_arg = arg;
	timer_set(r->o.timers, &r->farewell, possible ? FAREWELL_MS : 0, 0);
	if (!possible)
		return;
	/* Nothing that is under way matters any more. */
	leased_cancel(&r->lease);
	r->resting = r->retrying = false;
	r->dirty = r->unwritten = true;
	advance(r);
}

bool report_stands(const struct report *r)
{
	return r->lease.lease && !r->unwritten && !r->lease.keep && !r->retrying;
}

int64_t report_lease(const struct report *r)
{
	return r->lease.lease;
}

int report_new(const struct report_options *options, struct report **ret)
{
	AUTO(report_free) struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->dirty = r->unwritten = true;
	r->rest = (struct timer){ .fn = on_rest, .arg = r };
	r->unfenced = (struct timer){ .fn = on_unfenced, .arg = r };
	r->farewell = (struct timer){ .fn = on_farewell, .arg = r };
	r->key = strdup(options->key);
	r->node_key = strdup(options->node_key);
	if (!r->key || !r->node_key)
		return -ENOMEM;
	leased_init(&r->lease, &(struct leased_options){ .store = r->o.store,
							 .timers = r->o.timers,
							 .key = r->key,
							 .ttl = REPORT_LEASE_TTL,
							 .keep_ms = REPORT_KEEPALIVE_MS,
							 .keep_slack_ms = KEEPALIVE_SLACK_MS,
							 .grant_timeout_ms = TIMEOUT_MS,
							 .timeout_ms = TIMEOUT_MS,
							 .event = on_lease,
							 .arg = r });
	*ret = TAKE(r);
	return 0;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	leased_done(&r->lease);
	timer_clear(r->o.timers, &r->rest);
	timer_clear(r->o.timers, &r->unfenced);
	timer_clear(r->o.timers, &r->farewell);
	free(r->key);
	free(r->node_key);
	free(r->text);
	free(r->sending);
	free(r);
}
