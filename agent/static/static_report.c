/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As in report.c the state is derived: advance() looks at the entries and starts the one request
 * that is missing. An entry may vanish while a request is on its way, so replies find it by name.
 */
#include "agent/static/static_report.h"

#include <errno.h>
#include <string.h>

#include "agent/static/static_status.h"
#include "lib/base/backoff.h"
#include "lib/model/keys.h"
#include "lib/store/txn.h"

#define SLACK_MS   1000
#define TIMEOUT_MS 8000
/* So many statuses in one transaction. */
#define AT_ONCE 100
/* Who had no status of a record that is to go leaves it to those who had, for so many rests. */
#define LEAVE 3

struct static_report {
	struct static_report_options o;
	struct store_call *call;
	struct timer timer;
	bool resting;      /* after a failure */
	unsigned failures; /* in a row */
	bool troubled;
	/* What is on its way. */
	char *names[AT_ONCE], *texts[AT_ONCE];
	size_t n;
};

static void advance(struct static_report *r);

static void forget_sent(struct static_report *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->names[i]);
		free(TAKE(r->texts[i]));
	}
	r->n = 0;
}

static void trouble(struct static_report *r, const char *text)
{
	if (!*text && !r->troubled)
		return;
	r->troubled = *text;
	r->o.trouble(text, r->o.arg);
}

static void rest(struct static_report *r)
{
	uint64_t delay = backoff_refused_ms(&r->failures);

	r->resting = true;
	timer_set(r->o.timers, &r->timer, delay, delay < SLACK_MS ? delay : SLACK_MS);
}

/* True: go on. */
static bool answered(struct static_report *r, const struct store_reply *reply)
{
	r->call = NULL;
	if (reply->err == -ECANCELED)
		return false;
	if (!reply->err)
		r->failures = 0;
	trouble(r, reply->err ? reply->text : "");
	if (!reply->err)
		return true;
	rest(r);
	forget_sent(r);
	return false;
}

static int status_key(const struct static_report *r, const char *name, char full[KEY_FULL_TEXT])
{
	char key[KEY_TEXT];
	int rc = key_status_static_route(key, name, r->o.node);

	return rc ?: key_full(r->o.prefix, key, full);
}

/* --- many in one transaction ---------------------------------------------------------------- */

/* Whether this entry needs the request that is being made; gets and puts and deletes alike. */
typedef bool needs_fn(struct static_report *r, const struct static_entry *e);

static int send_batch(struct static_report *r, enum store_op_kind kind, needs_fn *needs,
		      const struct fence *fence, store_reply_fn *fn)
{
	AUTO_DONE(txn_done) struct txn batch = { 0 };
	struct store_txn txn;
	int rc = 0;

	txn_if(&batch, if_created(fence->key, fence->create_revision));
	for (size_t i = 0; rc == 0 && i < r->o.entries->n && r->n < AT_ONCE; i++) {
		const struct static_entry *e = r->o.entries->v[i];
		char key[KEY_FULL_TEXT];

		if (!needs(r, e))
			continue;
		rc = status_key(r, e->name, key);
		r->names[r->n] = strdup(e->name);
		r->texts[r->n] = kind == STORE_PUT ? strdup(e->status) : NULL;
		if (rc == 0 && !r->names[r->n])
			rc = -ENOMEM;
		if (rc == 0)
			txn_then(&batch, kind == STORE_PUT      ? op_put(key, r->texts[r->n])
					 : kind == STORE_DELETE ? op_delete(key)
								: op_get(key));
		r->n++;
	}
	if (rc == 0 && r->n == 0)
		return 0;
	if (rc == 0 && batch.failed)
		rc = -ENOMEM;
	txn = txn_of(&batch);
	txn.repeatable = true;
	rc = rc ?: store_txn(r->o.store, &txn, TIMEOUT_MS, fn, r, &r->call);
	if (rc < 0)
		forget_sent(r);
	return rc < 0 ? rc : 1;
}

/* --- reading -------------------------------------------------------------------------------- */

static bool is_unread(struct static_report *r, const struct static_entry *e)
{
	return e->unread && e->life != STATIC_LOST;
}

static void take_read(struct static_report *r, struct static_entry *e,
		      const struct store_op_reply *op)
{
	const struct store_kv *kv = op->n ? &op->kvs[0] : NULL;
	char key[KEY_TEXT];

	e->unread = false;
	free(TAKE(e->written));
	if (!kv || key_status_static_route(key, e->name, r->o.node) < 0)
		return;
	e->written = strndup(kv->value, kv->value_len);
	static_remember(e, key, kv->value, kv->value_len);
}

static void on_read(const struct store_reply *reply, void *arg)
{
	struct static_report *r = arg;

	if (!answered(r, reply))
		return;
	for (size_t i = 0; reply->succeeded && i < r->n && i < reply->n_ops; i++) {
		struct static_entry *e = static_find(r->o.entries, r->names[i]);

		if (e)
			take_read(r, e, &reply->ops[i]);
	}
	forget_sent(r);
	/* Without the name there is nothing to be read; registration tells when it is back. */
	if (!reply->succeeded)
		return;
	if (!static_report_reading(r))
		r->o.read(r->o.arg);
	advance(r);
}

/* --- writing -------------------------------------------------------------------------------- */

static bool is_surplus(struct static_report *r, const struct static_entry *e)
{
	return !e->status && e->written && e->life != STATIC_LOST;
}

static uint64_t due(const struct static_report *r, const struct static_entry *e)
{
	return e->put_at ? e->put_at + r->o.rest : 0;
}

static bool differs(const struct static_entry *e)
{
	return e->status && !e->unread && e->life == STATIC_LIVES &&
	       (!e->written || strcmp(e->written, e->status) != 0);
}

static bool is_due(struct static_report *r, const struct static_entry *e)
{
	return differs(e) && due(r, e) <= timers_now(r->o.timers);
}

static void on_written(const struct store_reply *reply, void *arg)
{
	struct static_report *r = arg;

	if (!answered(r, reply))
		return;
	for (size_t i = 0; reply->succeeded && i < r->n; i++) {
		struct static_entry *e = static_find(r->o.entries, r->names[i]);

		if (!e)
			continue;
		free(e->written);
		e->written = TAKE(r->texts[i]);
		e->put_at = timers_now(r->o.timers);
	}
	forget_sent(r);
	if (reply->succeeded)
		advance(r);
}

static void on_deleted(const struct store_reply *reply, void *arg)
{
	struct static_report *r = arg;

	if (!answered(r, reply))
		return;
	for (size_t i = 0; reply->succeeded && i < r->n; i++) {
		struct static_entry *e = static_find(r->o.entries, r->names[i]);

		if (!e)
			continue;
		free(TAKE(e->written));
		e->put_at = 0;
		/* Ours was one of those that kept the record: it is for us to look. */
		e->remove_at = timers_now(r->o.timers);
	}
	forget_sent(r);
	if (reply->succeeded)
		advance(r);
}

/* --- the end of a record -------------------------------------------------------------------- */

static bool is_removable(struct static_report *r, const struct static_entry *e)
{
	return e->life == STATIC_LIVES && static_is_deleting(e) && !e->status && !e->written &&
	       !e->unread && e->remove_at && e->remove_at <= timers_now(r->o.timers);
}

static void on_removed(const struct store_reply *reply, void *arg)
{
	struct static_report *r = arg;

	struct store_reply read = *reply;

	/* With least right a node may not delete it: the controller does. */
	if (read.err == -EACCES)
		read = (struct store_reply){ .text = "" };
	/* Removed or not: the watch tells; others may still have it. */
	if (answered(r, &read)) {
		forget_sent(r);
		advance(r);
	}
}

static int remove_record(struct static_report *r, struct static_entry *e)
{
	char relative[KEY_TEXT], key[KEY_FULL_TEXT], statuses[KEY_FULL_TEXT];
	AUTO(free) char *end = NULL;
	int rc = key_static_route(relative, e->name);

	rc = rc ?: key_full(r->o.prefix, relative, key);
	rc = rc ?: keys_of_static_route_status(relative, e->name);
	rc = rc ?: key_full(r->o.prefix, relative, statuses);
	end = rc ? NULL : store_prefix_end(statuses);
	if (!end)
		return rc ?: -ENOMEM;
	/* Asked again now and then, for as long as the record is there. */
	e->remove_at = timers_now(r->o.timers) + 2 * LEAVE * (uint64_t)r->o.rest;
	return store_txn(r->o.store,
			 &(struct store_txn){ TXN_IF(if_unchanged(key, e->mod_revision),
						     if_none_made_after(statuses, end, 0)),
					      TXN_THEN(op_delete(key)), .repeatable = true },
			 TIMEOUT_MS, on_removed, r, &r->call) < 0
		       ? -ENOMEM
		       : 1;
}

/* Thousands of nodes that never had it must not all ask at once. */
static void leave_to_others(struct static_report *r, struct static_entry *e)
{
	if (static_is_deleting(e) && !e->remove_at)
		e->remove_at = timers_now(r->o.timers) + r->o.rest +
			       (uint64_t)random() % (LEAVE * (uint64_t)r->o.rest + 1);
	else if (!static_is_deleting(e))
		e->remove_at = 0;
}

static int remove_one(struct static_report *r)
{
	for (size_t i = 0; i < r->o.entries->n; i++)
		if (is_removable(r, r->o.entries->v[i]))
			return remove_record(r, r->o.entries->v[i]);
	return 0;
}

/* --- what is missing ------------------------------------------------------------------------ */

static void sweep(struct static_report *r)
{
	for (size_t i = r->o.entries->n; i > 0; i--) {
		struct static_entry *e = r->o.entries->v[i - 1];

		leave_to_others(r, e);
		if (e->life == STATIC_GONE && !e->status && !e->written && !e->unread)
			r->o.over(e, r->o.arg);
	}
}

static int next_request(struct static_report *r, const struct fence *fence)
{
	int rc = send_batch(r, STORE_GET, is_unread, fence, on_read);

	rc = rc ?: send_batch(r, STORE_DELETE, is_surplus, fence, on_deleted);
	rc = rc ?: send_batch(r, STORE_PUT, is_due, fence, on_written);
	return rc ?: remove_one(r);
}

/* When the next of those that are put off may go. */
static void sleep_on(struct static_report *r)
{
	uint64_t now = timers_now(r->o.timers), first = UINT64_MAX;

	for (size_t i = 0; i < r->o.entries->n; i++) {
		const struct static_entry *e = r->o.entries->v[i];

		if (differs(e) && due(r, e) < first)
			first = due(r, e);
		if (e->remove_at && e->life == STATIC_LIVES && e->remove_at < first)
			first = e->remove_at;
	}
	if (first == UINT64_MAX)
		timer_clear(r->o.timers, &r->timer);
	else
		timer_set(r->o.timers, &r->timer, first > now ? first - now : 0, SLACK_MS);
}

static void advance(struct static_report *r)
{
	const struct fence *fence = r->o.fence(r->o.arg);
	int rc;

	if (r->call || r->resting)
		return;
	sweep(r);
	if (!fence)
		return;
	rc = next_request(r, fence);
	if (rc < 0) {
		rest(r);
	} else if (rc == 0) {
		sleep_on(r);
	}
}

static void on_timer(void *arg)
{
	struct static_report *r = arg;

	r->resting = false;
	advance(r);
}

void static_report_kick(struct static_report *r)
{
	advance(r);
}

void static_report_retry(struct static_report *r)
{
	if (r->resting)
		on_timer(r);
}

void static_report_forget(struct static_report *r)
{
	for (size_t i = 0; i < r->o.entries->n; i++) {
		struct static_entry *e = r->o.entries->v[i];

		e->unread = true;
		e->put_at = 0;
		free(TAKE(e->written));
	}
}

bool static_report_reading(const struct static_report *r)
{
	for (size_t i = 0; i < r->o.entries->n; i++)
		if (r->o.entries->v[i]->unread && r->o.entries->v[i]->life != STATIC_LOST)
			return true;
	return false;
}

/* --- life ----------------------------------------------------------------------------------- */

int static_report_new(const struct static_report_options *options, struct static_report **ret)
{
	struct static_report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->o = *options;
	r->timer = (struct timer){ .fn = on_timer, .arg = r };
	*ret = r;
	return 0;
}

void static_report_free(struct static_report *r)
{
	if (!r)
		return;
	if (r->call)
		store_cancel(r->call);
	timer_clear(r->o.timers, &r->timer);
	forget_sent(r);
	free(r);
}
