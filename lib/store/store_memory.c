/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store_memory.h"

#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/store/store_view.h"
#include "lib/store/txn.h"

#define PAGE_KEYS 5000
/* History is thrown away in lots, not one by one; a status record may have 8 kB. */
#define TRIM_LOT 64

/* What was asked: by a call, and perhaps applied long after it. */
struct memory_request {
	unsigned refs;
	enum memory_kind kind;
	struct store_txn txn; /* its texts are in: */
	struct txn then, otherwise;
	char *key, *range_end; /* lists */
	enum store_lease_verb verb;
	int64_t lease, ttl;
};

/* --- the queue ------------------------------------------------------------------------------ */

void memory_queue(struct memory *m, struct memory_task *task)
{
	if (task->queued)
		return;
	task->queued = true;
	TAILQ_INSERT_TAIL(&m->tasks, task, entry);
	if (m->hooks->work)
		m->hooks->work(m);
}

void memory_unqueue(struct memory *m, struct memory_task *task)
{
	if (task->queued)
		TAILQ_REMOVE(&m->tasks, task, entry);
	task->queued = false;
}

bool memory_step(struct memory *m)
{
	struct memory_task *task = TAILQ_FIRST(&m->tasks);

	if (!task)
		return false;
	memory_unqueue(m, task);
	task->run(task);
	return true;
}

/* --- the maker's word ----------------------------------------------------------------------- */

static struct memory_verdict next_verdict(struct memory *m, enum memory_kind kind,
					  const struct store_txn *txn, const char *key)
{
	if (!m->hooks->verdict)
		return (struct memory_verdict){ .fate = MEMORY_PASS };
	return m->hooks->verdict(m, kind, txn, key);
}

static void keep_late(struct memory *m, struct memory_request *q)
{
	if (m->hooks->late)
		m->hooks->late(m, q);
}

/* --- requests ------------------------------------------------------------------------------- */

static struct memory_request *request_new(enum memory_kind kind)
{
	struct memory_request *q = memory_must(calloc(1, sizeof(*q)));

	q->refs = 1;
	q->kind = kind;
	return q;
}

static void copy_ops(struct txn *t, const struct store_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct store_op op = ops[i];

		op.value = op.value ?: "";
		txn_then(t, op);
	}
}

static bool has_write(const struct store_op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ops[i].kind != STORE_GET)
			return true;
	return false;
}

static struct memory_request *request_txn(const struct store_txn *txn)
{
	bool writes = has_write(txn->success, txn->n_success) ||
		      has_write(txn->failure, txn->n_failure);
	struct memory_request *q = request_new(writes ? MEMORY_WRITE : MEMORY_READ);

	for (size_t i = 0; i < txn->n_compares; i++)
		txn_if(&q->then, txn->compares[i]);
	copy_ops(&q->then, txn->success, txn->n_success);
	copy_ops(&q->otherwise, txn->failure, txn->n_failure);
	if (q->then.failed || q->otherwise.failed)
		abort();
	q->txn = txn_of(&q->then);
	q->txn.failure = q->otherwise.ops.v;
	q->txn.n_failure = q->otherwise.ops.n;
	q->txn.repeatable = txn->repeatable;
	q->txn.persistent = txn->persistent;
	return q;
}

static struct memory_request *request_list(const char *key, const char *range_end)
{
	struct memory_request *q = request_new(MEMORY_LIST);

	q->key = memory_must(strdup(key));
	q->range_end = range_end ? memory_must(strdup(range_end)) : NULL;
	return q;
}

static struct memory_request *request_lease(enum store_lease_verb verb, int64_t id, int64_t ttl)
{
	struct memory_request *q = request_new(MEMORY_LEASE);

	q->verb = verb;
	q->lease = id;
	q->ttl = ttl;
	return q;
}

struct memory_request *memory_request_ref(struct memory_request *q)
{
	q->refs++;
	return q;
}

void memory_request_unref(struct memory_request *q)
{
	if (--q->refs)
		return;
	txn_done(&q->then);
	txn_done(&q->otherwise);
	free(q->key);
	free(q->range_end);
	free(q);
}

static bool request_writes(const struct memory_request *q)
{
	return q->kind == MEMORY_WRITE || q->kind == MEMORY_LEASE;
}

static void apply_txn(struct memory *m, const struct store_txn *txn, struct memory_answer *ret)
{
	m->stats.txns++;
	if (m->hooks->before_txn)
		m->hooks->before_txn(m, txn);
	memory_txn(m->etcd, txn, ret);
}

static void request_refuse(struct memory *m, const struct memory_request *q,
			   struct memory_answer *ret)
{
	/* No key is modified before the beginning. */
	static const struct store_compare never = {
		.key = "/", .target = STORE_MOD_REVISION, .relation = STORE_LESS, .number = 0
	};
	struct store_txn txn = q->txn;

	txn.compares = &never;
	txn.n_compares = 1;
	apply_txn(m, &txn, ret);
}

void memory_request_apply(struct memory *m, const struct memory_request *q,
			  struct memory_answer *ret)
{
	*ret = (struct memory_answer){ .text = "" };
	if (q->kind != MEMORY_LEASE) {
		apply_txn(m, &q->txn, ret);
		return;
	}
	m->stats.leases++;
	if (q->verb == STORE_LEASE_GRANT)
		memory_lease_grant(m->etcd, q->lease, q->ttl, ret);
	else if (q->verb == STORE_LEASE_KEEPALIVE)
		memory_lease_keepalive(m->etcd, q->lease, ret);
	else
		memory_lease_revoke(m->etcd, q->lease, ret);
}

/* --- calls ------------------------------------------------------------------------------------ *
 *
 *   CALL_TO_SEND --a step: etcd applies it--> CALL_ANSWERED --a step--> told
 *      |  ^                                        |
 *      |  +--- a fault, but the call may go on ----+--- or not: CALL_FAILED --a step--> told
 *      +--- held or not connected: waits outside the queue
 */

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
	if (c->state == CALL_TO_SEND && was_sent(c) && request_writes(c->request))
		keep_late(c->memory, c->request);
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

	if (lost && request_writes(c->request))
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
	} else if (fate == MEMORY_LATE && request_writes(c->request)) {
		keep_late(c->memory, c->request);
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
	v = next_verdict(c->memory, q->kind, &q->txn, q->key);
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
		request_refuse(c->memory, q, &c->answer);
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

static void calls_go_on(struct memory *m)
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
	return start(s, request_txn(txn), timeout_ms, fn, arg, ret_call);
}

int memory_list_start(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		      store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	return start(s, request_list(key, range_end), timeout_ms, fn, arg, ret_call);
}

int memory_lease_start(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
		       uint32_t timeout_ms, store_reply_fn *fn, void *arg,
		       struct store_call **ret_call)
{
	return start(s, request_lease(verb, id, ttl), timeout_ms, fn, arg, ret_call);
}

static void calls_done(struct memory *m)
{
	struct memory_call *c;

	while ((c = TAILQ_FIRST(&m->calls))) {
		c->maybe_done = c->maybe_done || (was_sent(c) && request_writes(c->request));
		set_error(c, -ECANCELED, "the store is being closed");
		tell(c);
	}
}

static void calls_count(const struct memory *m, struct memory_stats *stats)
{
	const struct memory_call *c;

	TAILQ_FOREACH(c, &m->calls, entry)
		stats->calls++;
	TAILQ_FOREACH(c, &m->calls, entry)
		stats->held += c->held;
}

/* --- watches ---------------------------------------------------------------------------------- *
 *
 * Listed page by page, then followed through etcd's history. What is news is decided by the same
 * store_view as in the real store, so a caller sees the same after a cut, a compaction or a restore.
 */

enum watch_state { WATCH_WANTED, WATCH_LISTING, WATCH_READY };

struct memory_watch {
	struct store_watch base;
	struct memory_task task;
	TAILQ_ENTRY(memory_watch) entry;
	struct memory *memory;
	enum watch_state state;
	char *key, *range_end;
	struct store_watch_handlers handlers;
	void *arg;
	struct store_view *view;
	int64_t next;    /* the lowest revision not yet seen */
	bool followed;   /* events come as they happen */
	bool anew;       /* the next list proves nothing by revisions */
	bool busy, dead; /* in its own step; unwatched there */
	struct memory_kvs found;
	int64_t list_revision;
	size_t at;
};

static bool reachable(const struct memory *m)
{
	return m->online && m->following;
}

/* --- telling -------------------------------------------------------------------------------- */

static void tell_trouble(struct memory *m, const char *text)
{
	if (m->told_trouble)
		return;
	m->told_watching = false;
	m->told_trouble = true;
	store_notify(&m->base, STORE_TROUBLE, "%s", text);
}

static void tell_watching(struct memory *m)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		if (!w->followed && !w->dead)
			return;
	if (m->told_watching)
		return;
	m->told_watching = true;
	m->told_trouble = false;
	store_notify(&m->base, STORE_WATCHING, "%s", m->watched);
}

static void tell_put(struct memory_watch *w, const struct store_kv *kv)
{
	if (!w->dead && w->handlers.put)
		w->handlers.put(kv, w->arg);
}

static void tell_deleted(const char *key, int64_t revision, void *arg)
{
	struct memory_watch *w = arg;

	if (!w->dead && w->handlers.deleted)
		w->handlers.deleted(key, revision, w->arg);
}

static bool news(int answer)
{
	if (answer < 0)
		abort();
	return answer;
}

/* --- listing -------------------------------------------------------------------------------- */

static void want_list(struct memory_watch *w, bool anew)
{
	w->anew = w->anew || anew;
	w->state = WATCH_WANTED;
	w->followed = false;
	if (!w->busy)
		memory_queue(w->memory, &w->task);
}

/* As lib/etcd/store_etcd.c does. */
static void key_went_back(struct memory *m, const char *key)
{
	memory_watches_list(m, true);
	store_notify(&m->base, STORE_REVISION_WENT_BACK,
		     "etcd lists %.200s at an older revision than before: restored from a backup?",
		     key);
}

static void begin_list(struct memory_watch *w)
{
	store_view_list_begin(w->view, w->anew);
	memory_kvs_done(&w->found);
	memory_range(w->memory->etcd, w->key, w->range_end, &w->found);
	w->list_revision = w->memory->etcd->revision;
	w->at = 0;
	w->state = WATCH_LISTING;
	if (w->base.listing)
		w->base.listing(w->arg);
}

static void end_list(struct memory_watch *w)
{
	if (store_view_list_end(w->view, w->list_revision, tell_deleted, w) < 0)
		abort();
	memory_kvs_done(&w->found);
	/* A callback may have restored etcd: then this list was in vain. */
	if (w->state != WATCH_LISTING)
		return;
	w->state = WATCH_READY;
	w->anew = false;
	w->next = w->list_revision + 1;
	if (!w->dead && w->handlers.in_sync)
		w->handlers.in_sync(w->list_revision, w->arg);
}

static void list_page(struct memory_watch *w)
{
	struct memory_verdict v = next_verdict(w->memory, MEMORY_WATCH, NULL, w->key);

	w->memory->stats.watch_pages++;
	if (v.err || v.fate != MEMORY_PASS) {
		want_list(w, false);
		tell_trouble(w->memory, "listing failed");
		return;
	}
	if (w->state == WATCH_LISTING && w->list_revision < w->memory->etcd->compacted)
		w->state = WATCH_WANTED;
	if (w->state == WATCH_WANTED)
		begin_list(w);
	for (size_t n = 0; n < w->memory->page && w->at < w->found.n && !w->dead; n++) {
		const struct store_kv *kv = &w->found.v[w->at++]->kv;
		int r = store_view_listed(w->view, kv->key, kv->mod_revision);

		if (r == -ESTALE) {
			key_went_back(w->memory, kv->key);
			return;
		}
		if (news(r))
			tell_put(w, kv);
	}
	if (w->state == WATCH_LISTING && w->at == w->found.n)
		end_list(w);
}

/* --- following ------------------------------------------------------------------------------ */

static bool concerns(const struct memory_watch *w, const struct memory_kv *event)
{
	return memory_in_range(event->kv.key, w->key, w->range_end);
}

/* Goes to the next event in the range; false: there is none, all is seen. */
static bool advance(struct memory_watch *w)
{
	const struct memory_etcd *e = w->memory->etcd;

	for (size_t i = memory_history_from(e, w->next); i < e->history.n; i++) {
		if (!concerns(w, e->history.v[i]))
			continue;
		w->next = e->history.v[i]->kv.mod_revision;
		return true;
	}
	w->next = e->revision + 1;
	return false;
}

static void tell_event(struct memory_watch *w, const struct store_kv *kv)
{
	if (kv->version && news(store_view_put(w->view, kv->key, kv->mod_revision)))
		tell_put(w, kv);
	else if (!kv->version && news(store_view_deleted(w->view, kv->key, kv->mod_revision)))
		tell_deleted(kv->key, kv->mod_revision, w);
}

/* All events of one revision; copied, because callbacks may write history. */
static void follow_one(struct memory_watch *w)
{
	const struct memory_etcd *e = w->memory->etcd;
	struct memory_kvs events = { 0 };

	for (size_t i = memory_history_from(e, w->next);
	     i < e->history.n && e->history.v[i]->kv.mod_revision == w->next; i++)
		if (concerns(w, e->history.v[i]))
			memory_kvs_add(&events, e->history.v[i]);
	w->next++;
	for (size_t i = 0; i < events.n && w->state == WATCH_READY; i++)
		tell_event(w, &events.v[i]->kv);
	memory_kvs_done(&events);
}

static void follow(struct memory_watch *w)
{
	w->followed = true;
	tell_watching(w->memory);
	if (w->next < w->memory->etcd->compacted)
		want_list(w, false);
	else if (advance(w))
		follow_one(w);
}

/* --- a step --------------------------------------------------------------------------------- */

static void watch_free(struct memory_watch *w)
{
	TAILQ_REMOVE(&w->memory->watches, w, entry);
	w->memory->stats.watches--;
	memory_unqueue(w->memory, &w->task);
	memory_kvs_done(&w->found);
	store_view_free(w->view);
	free(w->key);
	free(w->range_end);
	free(w);
}

static void step(struct memory_watch *w)
{
	if (!reachable(w->memory)) {
		w->followed = false;
		/* A list that was cut half-way begins again. */
		if (w->state == WATCH_LISTING)
			w->state = WATCH_WANTED;
		if (w->memory->cut)
			tell_trouble(w->memory, w->memory->cut);
	} else if (w->state == WATCH_READY) {
		follow(w);
	} else {
		list_page(w);
	}
}

static bool has_work(struct memory_watch *w)
{
	if (!reachable(w->memory))
		return w->followed || w->state == WATCH_LISTING;
	return w->state != WATCH_READY || !w->followed || advance(w);
}

static void watch_run(struct memory_task *task)
{
	struct memory_watch *w = MEMORY_OWNER(task, struct memory_watch, task);

	w->busy = true;
	step(w);
	w->busy = false;
	if (w->dead)
		watch_free(w);
	else if (has_work(w))
		memory_queue(w->memory, &w->task);
}

/* --- interface ------------------------------------------------------------------------------ */

void memory_changed(struct memory *m)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		if (!w->busy && w->followed && advance(w))
			memory_queue(m, &w->task);
}

static void watches_look(struct memory *m)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		if (!w->busy)
			memory_queue(m, &w->task);
}

void memory_watches_list(struct memory *m, bool anew)
{
	struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry)
		want_list(w, anew);
}

static void unwatch(struct store_watch *base)
{
	struct memory_watch *w = (struct memory_watch *)base;

	w->dead = true;
	if (!w->busy)
		watch_free(w);
}

int memory_watch(struct store *s, const char *key, const char *range_end,
		 const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret)
{
	struct memory *m = (struct memory *)s;
	struct memory_watch *w = memory_must(calloc(1, sizeof(*w)));

	w->base.unwatch = unwatch;
	w->task.run = watch_run;
	w->memory = m;
	w->handlers = *handlers;
	w->arg = arg;
	w->key = memory_must(strdup(key));
	w->range_end = range_end ? memory_must(strdup(range_end)) : NULL;
	if (store_view_new(&w->view) < 0)
		abort();
	TAILQ_INSERT_TAIL(&m->watches, w, entry);
	m->stats.watches++;
	memory_queue(m, &w->task);
	*ret = &w->base;
	return 0;
}

static void watches_done(struct memory *m)
{
	struct memory_watch *w;

	while ((w = TAILQ_FIRST(&m->watches)))
		watch_free(w);
}

static int64_t watches_need(const struct memory *m)
{
	int64_t need = m->etcd->revision + 1;
	const struct memory_watch *w;

	TAILQ_FOREACH(w, &m->watches, entry) {
		int64_t next = w->state == WATCH_LISTING ? w->list_revision + 1 : w->next;

		/* One that is still to be listed needs nothing of the past. */
		if (w->state != WATCH_WANTED && next < need)
			need = next;
	}
	return need;
}

/* --- the whole ------------------------------------------------------------------------------ */

void memory_connect(struct memory *m, bool online, bool following, const char *cut)
{
	m->online = online;
	m->following = following;
	m->cut = cut;
	calls_go_on(m);
	watches_look(m);
}

void memory_trim(struct memory *m)
{
	if (m->etcd->history.n >= TRIM_LOT)
		memory_history_trim(m->etcd, watches_need(m));
}

void memory_init(struct memory *m, const struct store_ops *ops, const struct memory_hooks *hooks)
{
	m->base.ops = ops;
	m->hooks = hooks;
	m->page = PAGE_KEYS;
	m->online = m->following = true;
	m->watched = "watching in memory";
	TAILQ_INIT(&m->tasks);
	TAILQ_INIT(&m->calls);
	TAILQ_INIT(&m->watches);
	m->etcd = &m->own;
	memory_etcd_init(&m->own);
}

void memory_close(struct memory *m)
{
	m->closing = true;
	watches_done(m);
	calls_done(m);
}

void memory_done(struct memory *m)
{
	memory_etcd_done(&m->own);
}

struct memory_stats memory_stats(const struct memory *m)
{
	struct memory_stats stats = m->stats;

	calls_count(m, &stats);
	return stats;
}
