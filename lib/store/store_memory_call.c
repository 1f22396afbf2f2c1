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

#include "lib/base/clock.h"
#include "lib/store/store_memory_parts.h"

enum call_state { CALL_TO_SEND, CALL_ANSWERED, CALL_FAILED };

struct memory_call {
	struct store_call base;
	struct memory_task task;
	TAILQ_ENTRY(memory_call) entry;
	struct memory *memory;
	struct memory_request *request;
	enum call_state state;
	bool forever, held, maybe_done;
	bool in_callback, cancelled, finished;
	struct memory_answer answer;
	int64_t sent; /* CLOCK_BOOTTIME, ns: the last attempt */
	/* lists: what they found with their first page, and where the next one starts */
	struct memory_kvs found;
	int64_t list_revision;
	size_t at, in_page;
	store_reply_fn *fn;
	void *arg;
};

/* --- telling -------------------------------------------------------------------------------- */

static void call_free(struct memory_call *c)
{
	memory_unqueue(c->memory, &c->task);
	TAILQ_REMOVE(&c->memory->calls, c, entry);
	memory_answer_done(&c->answer);
	memory_kvs_done(&c->found);
	memory_request_unref(c->request);
	free(c);
}

/* Out of our hands: what is queued while we are connected counts as on its way. */
static bool was_sent(const struct memory_call *c)
{
	return c->held || c->memory->online || c->state == CALL_ANSWERED;
}

static void call_cancel(struct store_call *base)
{
	struct memory_call *c = (struct memory_call *)base;

	if (c->finished)
		return;
	if (c->in_callback) {
		c->cancelled = true;
		return;
	}
	/* What was sent may still be applied: the test decides, by waking the member. */
	if (c->state == CALL_TO_SEND && was_sent(c) && memory_request_writes(c->request))
		memory_keep_late(c->memory, c->request);
	call_free(c);
}

static void tell_page(struct memory_call *c, const struct store_reply *reply)
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
	memory_queue(c->memory, &c->task);
}

static void tell(struct memory_call *c)
{
	const struct memory_answer *a = &c->answer;
	struct store_reply reply = {
		.err = a->err,
		.text = a->text,
		.unknown = a->err && c->maybe_done,
		.revision = a->revision,
		.sent = a->err ? 0 : c->sent,
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

static void set_error(struct memory_call *c, int err, const char *text)
{
	memory_answer_done(&c->answer);
	c->answer.err = err;
	c->answer.text = text;
}

/* --- trouble -------------------------------------------------------------------------------- */

/* Errors that another member, or the same one later, may not have. */
static bool passes(int err)
{
	return err == -ENOTCONN || err == -ETIMEDOUT || err == -EAGAIN;
}

static bool may_go_on(const struct memory_call *c, int err, bool lost)
{
	bool is_txn = c->request->kind == MEMORY_READ || c->request->kind == MEMORY_WRITE;

	if (c->request->txn.persistent)
		return true;
	if (lost && is_txn && !c->request->txn.repeatable)
		return false;
	return c->forever && passes(err);
}

static void fail(struct memory_call *c, int err, const char *text, bool lost)
{
	bool again = may_go_on(c, err, lost);

	if (lost && memory_request_writes(c->request))
		c->maybe_done = true;
	c->state = again ? CALL_TO_SEND : CALL_FAILED;
	set_error(c, err, text);
	memory_queue(c->memory, &c->task);
}

/* --- one attempt ---------------------------------------------------------------------------- */

static void make_page(struct memory_call *c)
{
	const struct memory_etcd *e = c->memory->etcd;
	size_t left, n;

	c->memory->stats.lists++;
	if (!c->list_revision) {
		c->list_revision = e->revision;
		memory_range(e, c->request->key, c->request->range_end, &c->found);
	} else if (c->list_revision < e->compacted) {
		set_error(c, -ESTALE, "required revision has been compacted");
		return;
	} else if (c->list_revision > e->revision) {
		set_error(c, -ERANGE, "required revision is a future revision");
		return;
	}
	left = c->found.n - c->at;
	n = left < c->memory->page ? left : c->memory->page;
	c->answer.ops = memory_must(calloc(1, sizeof(*c->answer.ops)));
	c->answer.n_ops = 1;
	c->answer.ops[0] = (struct store_op_reply){
		.kind = STORE_GET,
		.kvs = memory_kvs_array(&c->found, c->at, n, false),
		.n = n,
		.count = (int64_t)left,
	};
	c->answer.revision = c->list_revision;
	c->in_page = n;
}

static void apply(struct memory_call *c)
{
	struct memory *m = c->memory;

	memory_answer_done(&c->answer);
	if (c->request->kind == MEMORY_LIST)
		make_page(c);
	else
		memory_request_apply(m, c->request, &c->answer);
	/* Sent again after a loss, a grant of the same id finds its own. */
	if (c->answer.err == -EEXIST && c->maybe_done) {
		set_error(c, 0, "");
		c->answer.lease = c->request->lease;
		c->answer.ttl = c->request->ttl;
	}
}

static void answered(struct memory_call *c)
{
	struct memory *m = c->memory;

	if (c->answer.err && may_go_on(c, c->answer.err, false)) {
		memory_queue(m, &c->task);
		return;
	}
	c->state = CALL_ANSWERED;
	if (m->replies_first)
		memory_queue(m, &c->task);
	memory_changed(m);
	memory_queue(m, &c->task);
}

/* The reply got lost, and perhaps the request with it. */
static void lose(struct memory_call *c, enum memory_fate fate)
{
	if (fate == MEMORY_LOSE_REPLY) {
		apply(c);
		memory_changed(c->memory);
	} else if (fate == MEMORY_LATE && memory_request_writes(c->request)) {
		memory_keep_late(c->memory, c->request);
	}
	fail(c, -ETIMEDOUT, "no reply within the deadline", true);
}

static void attempt(struct memory_call *c)
{
	const struct memory_request *q = c->request;
	struct memory_verdict v;

	if (!c->memory->online) {
		if (!may_go_on(c, -ENOTCONN, false))
			fail(c, -ENOTCONN, "no endpoint could be reached", false);
		return;
	}
	c->sent = c->memory->hooks->sent ? c->memory->hooks->sent(c->memory)
					 : (int64_t)clock_boottime_ns();
	v = memory_next_verdict(c->memory, q->kind, &q->txn, q->key);
	if (v.err) {
		fail(c, v.err, v.text, false);
		return;
	}
	switch (v.fate) {
	case MEMORY_PASS:
		apply(c);
		answered(c);
		break;
	case MEMORY_REFUSE:
		memory_answer_done(&c->answer);
		memory_request_refuse(c->memory, q, &c->answer);
		answered(c);
		break;
	case MEMORY_HOLD:
		c->held = true;
		break;
	case MEMORY_LOSE_REPLY:
	case MEMORY_LOSE_REQUEST:
	case MEMORY_LATE:
		lose(c, v.fate);
		break;
	}
}

static void call_run(struct memory_task *task)
{
	struct memory_call *c = MEMORY_OWNER(task, struct memory_call, task);

	if (c->state == CALL_TO_SEND)
		attempt(c);
	else if (c->state == CALL_ANSWERED && !c->memory->online)
		fail(c, -ENOTCONN, "the connection broke", true);
	else
		tell(c);
}

void memory_calls_go_on(struct memory *m)
{
	struct memory_call *c;

	TAILQ_FOREACH(c, &m->calls, entry)
		if (!c->held && !c->in_callback && !c->finished)
			memory_queue(m, &c->task);
}

static bool let_go(struct memory_call *c)
{
	bool held = c->held;

	c->held = false;
	if (held)
		memory_queue(c->memory, &c->task);
	return held;
}

size_t memory_release(struct memory *m)
{
	struct memory_call *c;
	size_t n = 0;

	TAILQ_FOREACH(c, &m->calls, entry)
		n += let_go(c);
	return n;
}

/* --- interface ------------------------------------------------------------------------------ */

static int start(struct store *s, struct memory_request *q, uint32_t timeout_ms, store_reply_fn *fn,
		 void *arg, struct store_call **ret_call)
{
	struct memory *m = (struct memory *)s;
	struct memory_call *c;

	if (m->closing) {
		memory_request_unref(q);
		return -ECANCELED;
	}
	c = memory_must(calloc(1, sizeof(*c)));
	c->base.cancel = call_cancel;
	c->task.run = call_run;
	c->memory = m;
	c->request = q;
	c->forever = timeout_ms == STORE_FOREVER;
	c->answer.text = "";
	c->fn = fn;
	c->arg = arg;
	TAILQ_INSERT_TAIL(&m->calls, c, entry);
	memory_queue(m, &c->task);
	if (ret_call)
		*ret_call = &c->base;
	return 0;
}

int memory_txn_start(struct store *s, const struct store_txn *txn, uint32_t timeout_ms,
		     store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	return start(s, memory_request_txn(txn), timeout_ms, fn, arg, ret_call);
}

int memory_list_start(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		      store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	return start(s, memory_request_list(key, range_end), timeout_ms, fn, arg, ret_call);
}

int memory_lease_start(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
		       uint32_t timeout_ms, store_reply_fn *fn, void *arg,
		       struct store_call **ret_call)
{
	return start(s, memory_request_lease(verb, id, ttl), timeout_ms, fn, arg, ret_call);
}

void memory_calls_done(struct memory *m)
{
	struct memory_call *c;

	while ((c = TAILQ_FIRST(&m->calls))) {
		c->maybe_done = c->maybe_done || (was_sent(c) && memory_request_writes(c->request));
		set_error(c, -ECANCELED, "the store is being closed");
		tell(c);
	}
}

void memory_calls_count(const struct memory *m, struct memory_stats *stats)
{
	const struct memory_call *c;

	TAILQ_FOREACH(c, &m->calls, entry)
		stats->calls++;
	TAILQ_FOREACH(c, &m->calls, entry)
		stats->held += c->held;
}
