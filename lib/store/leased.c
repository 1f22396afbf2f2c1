/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/leased.h"

#include <errno.h>

#include "lib/store/txn.h"

static void ended(struct leased *l, enum leased_event event, const struct store_reply *reply)
{
	if (event == LEASED_LOST)
		leased_forget(l);
	l->o.event(event, reply, l->o.arg);
}

static void live(struct leased *l, int64_t ttl)
{
	l->keep = false;
	l->until = l->sent + 1000 * (uint64_t)(ttl < l->o.ttl ? ttl : l->o.ttl);
	leased_keep_in(l, l->o.keep_ms, l->o.keep_slack_ms);
}

static void on_granted(const struct store_reply *reply, void *arg)
{
	struct leased *l = arg;

	l->call = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (!reply->err) {
		l->lease = reply->lease;
		live(l, reply->ttl);
	}
	ended(l, reply->err ? LEASED_NOT_GRANTED : LEASED_GRANTED, reply);
}

static void on_written(const struct store_reply *reply, void *arg)
{
	struct leased *l = arg;

	l->call = NULL;
	if (reply->err != -ECANCELED)
		ended(l,
		      reply->err == -ENOENT ? LEASED_LOST
		      : reply->err          ? LEASED_NOT_WRITTEN
		      : reply->succeeded    ? LEASED_WRITTEN
					    : LEASED_REFUSED,
		      reply);
}

static void on_kept(const struct store_reply *reply, void *arg)
{
	struct leased *l = arg;
	bool lost = reply->err == -ENOENT || (!reply->err && reply->ttl <= 0);

	l->call = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (!lost && !reply->err)
		live(l, reply->ttl);
	ended(l, lost ? LEASED_LOST : reply->err ? LEASED_NOT_KEPT : LEASED_KEPT, reply);
}

static void on_revoked(const struct store_reply *reply, void *arg)
{
	/* Unanswered or not: the lease is not kept any more. */
}

static void on_timer(void *arg)
{
	leased_keep_now(arg);
}

void leased_init(struct leased *l, const struct leased_options *options)
{
	l->o = *options;
	l->timer = (struct timer){ .fn = on_timer, .arg = l };
}

void leased_done(struct leased *l)
{
	if (l->o.timers)
		leased_cancel(l);
}

int leased_grant(struct leased *l)
{
	l->sent = timers_now(l->o.timers);
	return store_lease_grant(l->o.store, 0, l->o.ttl, l->o.grant_timeout_ms, on_granted, l,
				 &l->call);
}

int leased_put(struct leased *l, const char *value, struct store_compare condition)
{
	return store_txn(l->o.store,
			 &(struct store_txn){ TXN_IF(condition),
					      TXN_THEN(op_put_leased(l->o.key, value, l->lease)),
					      TXN_ELSE(op_get(l->o.key)), .repeatable = true },
			 l->o.timeout_ms, on_written, l, &l->call);
}

int leased_keep(struct leased *l)
{
	l->sent = timers_now(l->o.timers);
	return store_lease_keepalive(l->o.store, l->lease, l->o.timeout_ms, on_kept, l, &l->call);
}

void leased_keep_in(struct leased *l, uint64_t ms, uint64_t slack_ms)
{
	timer_set(l->o.timers, &l->timer, ms, slack_ms);
}

void leased_keep_now(struct leased *l)
{
	l->keep = true;
	l->o.event(LEASED_KEEP, NULL, l->o.arg);
}

void leased_cancel(struct leased *l)
{
	if (l->call)
		store_cancel(TAKE(l->call));
	timer_clear(l->o.timers, &l->timer);
	l->keep = false;
}

int64_t leased_forget(struct leased *l)
{
	int64_t lease = l->lease;

	l->lease = 0;
	l->keep = false;
	timer_clear(l->o.timers, &l->timer);
	return lease;
}

void leased_drop(struct leased *l)
{
	int64_t lease = leased_forget(l);

	if (lease)
		store_lease_revoke(l->o.store, lease, l->o.grant_timeout_ms, on_revoked, NULL,
				   NULL);
}
