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

#define RETRY_MS           5000
#define SLACK_MS           2000 /* a status may be late; a wake-up of its own costs more */
#define KEEPALIVE_SLACK_MS 5000
#define FAREWELL_MS        1000
#define TIMEOUT_MS         8000

struct report {
	struct report_options o;
	char *key, *node_key;
	struct store_call *call;
	int64_t fence, lease;
	bool dirty;     /* the text may differ from what was written */
	bool keep;      /* the lease is to be kept now */
	bool resting;   /* the last write is less than 5 s ago, or a request has failed */
	bool retrying;  /* resting after a failure */
	bool unwritten; /* not under this fence and lease: write, whatever the text */
	bool troubled;
	unsigned failures;    /* in a row */
	char *text, *sending; /* last written, on its way */
	struct timer rest, keepalive, unfenced, farewell;
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
	if (r->keep && delay > RETRY_MS)
		delay = RETRY_MS;
	timer_set(r->o.timers, &r->rest, delay, delay < SLACK_MS ? delay : SLACK_MS);
}

static void forget_lease(struct report *r)
{
	r->lease = 0;
	r->keep = false;
	r->unwritten = true;
	timer_clear(r->o.timers, &r->keepalive);
}

static void say_done(struct report *r)
{
	timer_fn *done = r->done;

	r->done = NULL;
	timer_clear(r->o.timers, &r->farewell);
	if (done)
		done(r->done_arg);
}

/* --- the lease ------------------------------------------------------------------------------ */

static void on_granted(const struct store_reply *reply, void *arg)
{
	struct report *r = arg;

	r->call = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (reply->err) {
		failed(r, "no lease for the status record", reply);
	} else {
		r->lease = reply->lease;
		r->unwritten = true;
		timer_set(r->o.timers, &r->keepalive, REPORT_KEEPALIVE_MS, KEEPALIVE_SLACK_MS);
		if (!r->fence)
			timer_set(r->o.timers, &r->unfenced, REPORT_NO_FENCE_MS, SLACK_MS);
	}
	advance(r);
}

static void on_kept(const struct store_reply *reply, void *arg)
{
	struct report *r = arg;

	r->call = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (reply->err && reply->err != -ENOENT) {
		failed(r, "the status record's lease is not kept", reply);
	} else if (reply->err || reply->ttl <= 0) {
		forget_lease(r);
		r->resting = false;
	} else {
		r->keep = false;
		/* A kept lease does not make a refused record a written one. */
		if (!r->dirty && !r->unwritten) {
			r->failures = 0;
			trouble(r, "");
		}
		timer_set(r->o.timers, &r->keepalive, REPORT_KEEPALIVE_MS, KEEPALIVE_SLACK_MS);
	}
	advance(r);
}

static void on_revoked(const struct store_reply *reply, void *arg)
{
	struct report *r = arg;

	r->call = NULL;
	/* Unanswered or not: it is not kept any more, and ends by itself. */
	if (reply->err != -ECANCELED)
		advance(r);
}

/* --- the record ----------------------------------------------------------------------------- */

static void rest_after_write(struct report *r)
{
	r->resting = true;
	timer_set(r->o.timers, &r->rest, REPORT_INTERVAL_MS, SLACK_MS);
}

static void on_written(const struct store_reply *reply, void *arg)
{
	struct report *r = arg;

	r->call = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (reply->err == -ENOENT) {
		forget_lease(r);
	} else if (reply->err) {
		r->dirty = true;
		failed(r, "the status record is not written", reply);
	} else if (!reply->succeeded) {
		/* Not our name at this moment; the watch tells registration, that tells us. */
		r->fence = 0;
		timer_set(r->o.timers, &r->unfenced, REPORT_NO_FENCE_MS, SLACK_MS);
	} else {
		free(r->text);
		r->text = TAKE(r->sending);
		r->failures = 0;
		trouble(r, "");
		rest_after_write(r);
		if (r->unwritten && r->o.stands)
			r->o.stands(r->o.arg);
		r->unwritten = false;
		say_done(r);
		return;
	}
	advance(r);
}

static int write_record(struct report *r)
{
	const struct store_compare ours = { .key = r->node_key,
					    .target = STORE_CREATE_REVISION,
					    .relation = STORE_EQUAL,
					    .number = r->fence };
	const struct store_op put = { .kind = STORE_PUT,
				      .key = r->key,
				      .value = r->sending,
				      .value_len = strlen(r->sending),
				      .lease = r->lease };
	const struct store_txn txn = { .compares = &ours,
				       .n_compares = 1,
				       .success = &put,
				       .n_success = 1,
				       .repeatable = true };

	return store_txn(r->o.store, &txn, TIMEOUT_MS, on_written, r, &r->call);
}

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

/* --- what is missing ------------------------------------------------------------------------ */

static int next_request(struct report *r)
{
	int e;

	if (r->keep && r->lease)
		return store_lease_keepalive(r->o.store, r->lease, TIMEOUT_MS, on_kept, r,
					     &r->call);
	if (!r->fence)
		return 0;
	if (!r->lease)
		return store_lease_grant(r->o.store, 0, REPORT_LEASE_TTL, TIMEOUT_MS, on_granted, r,
					 &r->call);
	if (!r->dirty && !r->unwritten)
		return 0;
	e = build(r);
	return e > 0 ? write_record(r) : e;
}

static void advance(struct report *r)
{
	const struct store_reply none = { .text = "out of memory" };

	if (r->call || r->resting)
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

static void on_keepalive(void *arg)
{
	struct report *r = arg;

	r->keep = true;
	/* A lease does not wait for the rest between two writes. */
	if (!r->call && r->lease)
		if (next_request(r) < 0)
			timer_set(r->o.timers, &r->keepalive, RETRY_MS, SLACK_MS);
}

static void on_unfenced(void *arg)
{
	struct report *r = arg;
	int64_t lease = r->lease;

	if (r->fence || !lease)
		return;
	if (r->call) {
		timer_set(r->o.timers, &r->unfenced, RETRY_MS, SLACK_MS);
		return;
	}
	forget_lease(r);
	store_lease_revoke(r->o.store, lease, TIMEOUT_MS, on_revoked, r, &r->call);
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
		timer_set(r->o.timers, &r->unfenced, REPORT_NO_FENCE_MS, SLACK_MS);
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
	if (r->lease)
		on_keepalive(r);
	else
		advance(r);
}

void report_farewell(struct report *r, timer_fn *done, void *arg)
{
	bool possible = r->fence && r->lease;

	r->done = done;
	r->done_arg = arg;
	timer_set(r->o.timers, &r->farewell, possible ? FAREWELL_MS : 0, 0);
	if (!possible)
		return;
	/* Nothing that is under way matters any more. */
	if (r->call)
		store_cancel(TAKE(r->call));
	r->resting = r->retrying = r->keep = false;
	r->dirty = r->unwritten = true;
	advance(r);
}

bool report_stands(const struct report *r)
{
	return r->lease && !r->unwritten && !r->keep && !r->retrying;
}

int64_t report_lease(const struct report *r)
{
	return r->lease;
}

int report_new(const struct report_options *options, struct report **ret)
{
	AUTO(report_free) struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->dirty = r->unwritten = true;
	r->rest = (struct timer){ .fn = on_rest, .arg = r };
	r->keepalive = (struct timer){ .fn = on_keepalive, .arg = r };
	r->unfenced = (struct timer){ .fn = on_unfenced, .arg = r };
	r->farewell = (struct timer){ .fn = on_farewell, .arg = r };
	r->key = strdup(options->key);
	r->node_key = strdup(options->node_key);
	if (!r->key || !r->node_key)
		return -ENOMEM;
	*ret = TAKE(r);
	return 0;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	if (r->call)
		store_cancel(r->call);
	timer_clear(r->o.timers, &r->rest);
	timer_clear(r->o.timers, &r->keepalive);
	timer_clear(r->o.timers, &r->unfenced);
	timer_clear(r->o.timers, &r->farewell);
	free(r->key);
	free(r->node_key);
	free(r->text);
	free(r->sending);
	free(r);
}
