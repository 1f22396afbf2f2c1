/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on their way:
 *
 *   CALL_TO_SEND --a step: etcd applies it--> CALL_ANSWERED --a step--> told
 *      |  ^                                        |
 *      |  +--- a fault, but the call may go on ----+--- or not: CALL_FAILED --a step--> told
 *      +--- held or not connected: waits outside the queue
 */
#include <errno.h>

#include "lib/store_fake_parts.h"

enum call_state { CALL_TO_SEND, CALL_ANSWERED, CALL_FAILED };

struct fake_call {
	struct store_call base;
	struct fake_task task;
	TAILQ_ENTRY(fake_call) entry;
	struct fake *fake;
	struct fake_request *request;
	enum call_state state;
	bool forever, held, maybe_done;
	bool in_callback, cancelled, finished;
	struct fake_answer answer;
	/* lists: what they found with their first page, and where the next one starts */
	struct fake_kvs found;
	int64_t list_revision;
	size_t at, in_page;
	store_reply_fn *fn;
	void *arg;
};

/* --- telling -------------------------------------------------------------------------------- */

static void call_free(struct fake_call *c)
{
	fake_unqueue(c->fake, &c->task);
	TAILQ_REMOVE(&c->fake->calls, c, entry);
	fake_answer_done(&c->answer);
	fake_kvs_done(&c->found);
	fake_request_unref(c->request);
	free(c);
}

/* Out of our hands: what is queued while we are connected counts as on its way. */
static bool was_sent(const struct fake_call *c)
{
	return c->held || c->fake->online || c->state == CALL_ANSWERED;
}

static void call_cancel(struct store_call *base)
{
	struct fake_call *c = (struct fake_call *)base;

	if (c->finished)
		return;
	if (c->in_callback) {
		c->cancelled = true;
		return;
	}
	/* What was sent may still be applied: the test decides, by waking the member. */
	if (c->state == CALL_TO_SEND && was_sent(c) && fake_request_writes(c->request))
		fake_keep_late(c->fake, c->request);
	call_free(c);
}

static void tell_page(struct fake_call *c, const struct store_reply *reply)
{
	c->at += c->in_page;
	c->in_callback = true;
	c->fn(reply, c->arg);
	c->in_callback = false;
	if (c->cancelled) {
		call_free(c);
		return;
	}
	c->state = CALL_TO_SEND;
	fake_queue(c->fake, &c->task);
}

static void tell(struct fake_call *c)
{
	const struct fake_answer *a = &c->answer;
	struct store_reply reply = {
		.err = a->err,
		.text = a->text,
		.unknown = a->err && c->maybe_done,
		.revision = a->revision,
		.succeeded = a->succeeded,
		.ops = a->ops,
		.n_ops = a->n_ops,
		.more = !a->err && c->at + c->in_page < c->found.n,
		.lease = a->lease,
		.ttl = a->ttl,
	};

	if (reply.more) {
		tell_page(c, &reply);
		return;
	}
	c->finished = true;
	c->fn(&reply, c->arg);
	call_free(c);
}

static void set_error(struct fake_call *c, int err, const char *text)
{
	fake_answer_done(&c->answer);
	c->answer.err = err;
	c->answer.text = text;
}

/* --- trouble -------------------------------------------------------------------------------- */

/* Errors that another member, or the same one later, may not have. */
static bool passes(int err)
{
	return err == -ENOTCONN || err == -ETIMEDOUT || err == -EAGAIN;
}

static bool may_go_on(const struct fake_call *c, int err, bool lost)
{
	bool is_txn = c->request->kind == STORE_FAKE_READ || c->request->kind == STORE_FAKE_WRITE;

	if (c->request->txn.persistent)
		return true;
	if (lost && is_txn && !c->request->txn.repeatable)
		return false;
	return c->forever && passes(err);
}

static void fail(struct fake_call *c, int err, const char *text, bool lost)
{
	bool again = may_go_on(c, err, lost);

	if (lost && fake_request_writes(c->request))
		c->maybe_done = true;
	c->state = again ? CALL_TO_SEND : CALL_FAILED;
	set_error(c, err, text);
	fake_queue(c->fake, &c->task);
}

/* --- one attempt ---------------------------------------------------------------------------- */

static void make_page(struct fake_call *c)
{
	const struct fake_etcd *e = &c->fake->etcd;
	size_t left, n;

	c->fake->stats.lists++;
	if (!c->list_revision) {
		c->list_revision = e->revision;
		fake_range(e, c->request->key, c->request->range_end, &c->found);
	} else if (c->list_revision < e->compacted) {
		set_error(c, -ESTALE, "required revision has been compacted");
		return;
	} else if (c->list_revision > e->revision) {
		set_error(c, -ERANGE, "required revision is a future revision");
		return;
	}
	left = c->found.n - c->at;
	n = left < c->fake->page ? left : c->fake->page;
	c->answer.ops = fake_must(calloc(1, sizeof(*c->answer.ops)));
	c->answer.n_ops = 1;
	c->answer.ops[0] = (struct store_op_reply){
		.kind = STORE_GET,
		.kvs = fake_kvs_array(&c->found, c->at, n, false),
		.n = n,
		.count = (int64_t)left,
	};
	c->answer.revision = c->list_revision;
	c->in_page = n;
}

static void apply(struct fake_call *c)
{
	struct fake *f = c->fake;

	fake_answer_done(&c->answer);
	if (c->request->kind == STORE_FAKE_LIST)
		make_page(c);
	else
		fake_request_apply(f, c->request, &c->answer);
	/* Sent again after a loss, a grant of the same id finds its own. */
	if (c->answer.err == -EEXIST && c->maybe_done) {
		set_error(c, 0, "");
		c->answer.lease = c->request->lease;
		c->answer.ttl = c->request->ttl;
	}
}

static void answered(struct fake_call *c)
{
	struct fake *f = c->fake;

	if (c->answer.err && may_go_on(c, c->answer.err, false)) {
		fake_queue(f, &c->task);
		return;
	}
	c->state = CALL_ANSWERED;
	if (f->replies_first)
		fake_queue(f, &c->task);
	fake_changed(f);
	fake_queue(f, &c->task);
}

/* The reply got lost, and perhaps the request with it. */
static void lose(struct fake_call *c, enum store_fake_fate fate)
{
	if (fate == STORE_FAKE_LOSE_REPLY) {
		apply(c);
		fake_changed(c->fake);
	} else if (fate == STORE_FAKE_LATE && fake_request_writes(c->request)) {
		fake_keep_late(c->fake, c->request);
	}
	fail(c, -ETIMEDOUT, "no reply within the deadline", true);
}

static void attempt(struct fake_call *c)
{
	const struct fake_request *q = c->request;
	struct fake_verdict v;

	if (!c->fake->online) {
		if (!may_go_on(c, -ENOTCONN, false))
			fail(c, -ENOTCONN, "no endpoint could be reached", false);
		return;
	}
	v = fake_next_verdict(c->fake, q->kind, &q->txn, q->key);
	if (v.err) {
		fail(c, v.err, "the test wants this error", false);
		return;
	}
	switch (v.fate) {
	case STORE_FAKE_PASS:
		apply(c);
		answered(c);
		break;
	case STORE_FAKE_HOLD:
		c->held = true;
		break;
	case STORE_FAKE_LOSE_REPLY:
	case STORE_FAKE_LOSE_REQUEST:
	case STORE_FAKE_LATE:
		lose(c, v.fate);
		break;
	}
}

static void call_run(struct fake_task *task)
{
	struct fake_call *c = FAKE_OWNER(task, struct fake_call, task);

	if (c->state == CALL_TO_SEND)
		attempt(c);
	else if (c->state == CALL_ANSWERED && !c->fake->online)
		fail(c, -ENOTCONN, "the connection broke", true);
	else
		tell(c);
}

void fake_calls_go_on(struct fake *f)
{
	struct fake_call *c;

	TAILQ_FOREACH(c, &f->calls, entry)
		if (!c->held && !c->in_callback && !c->finished)
			fake_queue(f, &c->task);
}

static bool let_go(struct fake_call *c)
{
	bool held = c->held;

	c->held = false;
	if (held)
		fake_queue(c->fake, &c->task);
	return held;
}

size_t store_fake_release(struct store *s)
{
	struct fake *f = (struct fake *)s;
	struct fake_call *c;
	size_t n = 0;

	TAILQ_FOREACH(c, &f->calls, entry)
		n += let_go(c);
	return n;
}

/* --- interface ------------------------------------------------------------------------------ */

static int start(struct store *s, struct fake_request *q, uint32_t timeout_ms, store_reply_fn *fn,
		 void *arg, struct store_call **ret_call)
{
	struct fake *f = (struct fake *)s;
	struct fake_call *c;

	if (f->closing) {
		fake_request_unref(q);
		return -ECANCELED;
	}
	c = fake_must(calloc(1, sizeof(*c)));
	c->base.cancel = call_cancel;
	c->task.run = call_run;
	c->fake = f;
	c->request = q;
	c->forever = timeout_ms == STORE_FOREVER;
	c->answer.text = "";
	c->fn = fn;
	c->arg = arg;
	TAILQ_INSERT_TAIL(&f->calls, c, entry);
	fake_queue(f, &c->task);
	if (ret_call)
		*ret_call = &c->base;
	return 0;
}

int fake_txn_start(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	return start(s, fake_request_txn(txn), timeout_ms, fn, arg, ret_call);
}

int fake_list_start(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		    store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	return start(s, fake_request_list(key, range_end), timeout_ms, fn, arg, ret_call);
}

int fake_lease_start(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
		     uint32_t timeout_ms, store_reply_fn *fn, void *arg,
		     struct store_call **ret_call)
{
	return start(s, fake_request_lease(verb, id, ttl), timeout_ms, fn, arg, ret_call);
}

void fake_calls_done(struct fake *f)
{
	struct fake_call *c;

	while ((c = TAILQ_FIRST(&f->calls))) {
		c->maybe_done = c->maybe_done || (was_sent(c) && fake_request_writes(c->request));
		set_error(c, -ECANCELED, "the store is being closed");
		tell(c);
	}
}

void fake_calls_count(const struct fake *f, struct store_fake_stats *stats)
{
	const struct fake_call *c;

	TAILQ_FOREACH(c, &f->calls, entry)
		stats->calls++;
	TAILQ_FOREACH(c, &f->calls, entry)
		stats->held += c->held;
}
