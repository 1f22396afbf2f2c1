/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/elect.h"

#include <errno.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/model/keys.h"
#include "lib/model/model.h"
#include "lib/store/leased.h"
#include "lib/store/txn.h"

#define AGAIN_MS      500
#define AGAIN_MOST_MS 10000
#define FAREWELL_MS   1000
/* How much of the lease is left to etcd's clock and to what is under way. */
#define MARGIN(ttl_ms) ((ttl_ms) / 5)

enum phase {
	FOLLOWING, /* somebody leads, or it is not known whether */
	GRANTING,
	CAMPAIGNING,
	AGAIN, /* an error: soon once more */
	LEADING,
	RESIGNED
};

struct elect {
	struct elect_options o;
	char key[KEY_FULL_TEXT];
	char *value;
	struct store_watch *watch;
	struct leased lease;
	struct store_call *revoking;
	struct timer again, deadline, farewell;
	enum phase phase;
	bool in_sync, present, troubled;
	unsigned failures; /* to become leader, in a row */
	int64_t token;
	timer_fn *done;
	void *done_arg;
};

static void campaign(struct elect *e);

static void trouble(struct elect *e, const char *what, const char *text)
{
	char sentence[512];

	if (!*text && !e->troubled)
		return;
	e->troubled = *text;
	snprintf(sentence, sizeof(sentence), "%s%s", what, text);
	if (e->o.handlers->trouble)
		e->o.handlers->trouble(sentence, e->o.arg);
}

static void cancel(struct elect *e)
{
	leased_cancel(&e->lease);
	timer_clear(e->o.timers, &e->again);
}

/* In ms: a leader stops this much before etcd may end the lease. */
static uint64_t until(const struct elect *e)
{
	uint64_t margin = MARGIN((uint64_t)e->o.ttl * 1000);

	return e->lease.until > margin ? e->lease.until - margin : 0;
}

/* --- the end of a leadership ---------------------------------------------------------------- */

static void follow(struct elect *e)
{
	cancel(e);
	leased_drop(&e->lease);
	e->phase = FOLLOWING;
	if (e->in_sync && !e->present)
		campaign(e);
}

static void depose(struct elect *e, const char *why)
{
	e->token = 0;
	timer_clear(e->o.timers, &e->deadline);
	e->phase = FOLLOWING;
	e->o.handlers->deposed(why, e->o.arg);
	follow(e);
}

static void on_deadline(void *arg)
{
	struct elect *e = arg;

	if (e->phase == LEADING)
		depose(e, "the lease was not renewed in time");
}

/* --- leading -------------------------------------------------------------------------------- */

static void set_deadline(struct elect *e)
{
	uint64_t now = timers_now(e->o.timers), end = until(e);

	timer_set(e->o.timers, &e->deadline, end > now ? end - now : 0, 0);
}

static void lead(struct elect *e, int64_t token)
{
	e->phase = LEADING;
	e->failures = 0;
	e->token = token;
	trouble(e, "", "");
	set_deadline(e);
	leased_keep_in(&e->lease, e->lease.o.keep_ms, e->lease.o.keep_slack_ms);
	e->o.handlers->elected(token, e->o.arg);
}

/* --- becoming leader ------------------------------------------------------------------------ */

static void again(struct elect *e, const char *text)
{
	uint64_t delay;

	trouble(e, "cannot become leader: ", text);
	e->phase = AGAIN;
	delay = backoff_usec(++e->failures, 1000 * AGAIN_MS, 1000 * AGAIN_MOST_MS) / 1000;
	timer_set(e->o.timers, &e->again, delay, delay / 8);
}

static bool is_ours(const struct elect *e, const struct store_kv *kv)
{
	return kv->lease == e->lease.lease && kv->value_len == strlen(e->value) &&
	       memcmp(kv->value, e->value, kv->value_len) == 0;
}

static void stand(struct elect *e)
{
	e->phase = CAMPAIGNING;
	if (leased_put(&e->lease, e->value, if_absent(e->key)) < 0)
		again(e, "out of memory");
}

/* Another was faster, or our own reply was lost. */
static void refused(struct elect *e, const struct store_kv *kv)
{
	if (kv && is_ours(e, kv)) {
		lead(e, kv->create_revision);
	} else {
		/* The watch tells when it is gone. */
		e->present = kv;
		follow(e);
	}
}

static void keep_again(struct elect *e)
{
	leased_keep_in(&e->lease, AGAIN_MS, AGAIN_MS / 8);
}

static void on_lease(enum leased_event event, const struct store_reply *reply, void *arg)
{
	struct elect *e = arg;

	switch (event) {
	case LEASED_GRANTED:
		stand(e);
		break;
	case LEASED_WRITTEN:
		lead(e, reply->revision);
		break;
	case LEASED_REFUSED:
		refused(e, reply->n_ops && reply->ops[0].n ? &reply->ops[0].kvs[0] : NULL);
		break;
	case LEASED_NOT_GRANTED:
	case LEASED_NOT_WRITTEN:
		/* Perhaps it stands: the next try finds that out. */
		again(e, reply->text);
		break;
	case LEASED_KEEP:
		if (e->phase == LEADING && leased_keep(&e->lease) < 0)
			keep_again(e);
		break;
	case LEASED_KEPT:
		trouble(e, "", "");
		set_deadline(e);
		break;
	case LEASED_NOT_KEPT:
		trouble(e, "cannot renew the lease: ", reply->text);
		keep_again(e);
		break;
	case LEASED_LOST:
		if (e->phase == LEADING)
			depose(e, "etcd has ended the lease");
		else
			again(e, reply->text);
		break;
	}
}

/* The record says since when: a new one for each attempt. */
static int make_value(struct elect *e)
{
	struct leader record = { .id = e->o.id, .address = e->o.address };
	char *value = NULL;
	int r;

	clock_utc_text(record.since);
	r = leader_encode(&record, &value);
	if (r < 0)
		return r;
	free(e->value);
	e->value = value;
	return 0;
}

static void campaign(struct elect *e)
{
	/* A lease that may carry our key already is used as long as it lives. */
	if (e->lease.lease && timers_now(e->o.timers) < until(e)) {
		stand(e);
		return;
	}
	leased_drop(&e->lease);
	e->phase = GRANTING;
	if (make_value(e) < 0 || leased_grant(&e->lease) < 0)
		again(e, "out of memory");
}

static void on_again(void *arg)
{
	struct elect *e = arg;

	if (e->phase == AGAIN)
		campaign(e);
}

/* --- the key -------------------------------------------------------------------------------- */

static void tell_leader(struct elect *e, const struct store_kv *kv)
{
	AUTO_DONE(leader_done) struct leader found = { 0 };
	char relative[KEY_TEXT];

	if (!e->o.handlers->leader)
		return;
	if (kv && key_leader(relative) == 0 &&
	    leader_decode(relative, kv->value, kv->value_len, &found, NULL) == 0)
		e->o.handlers->leader(found.id, e->o.arg);
	else
		e->o.handlers->leader(kv ? "?" : NULL, e->o.arg);
}

static void on_put(const struct store_kv *kv, void *arg)
{
	struct elect *e = arg;
	bool news = !e->present || kv->version == 1;

	e->present = true;
	if (e->phase == LEADING && kv->create_revision > e->token)
		depose(e, "another controller leads");
	if (news)
		tell_leader(e, kv);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	struct elect *e = arg;

	/* The end of an earlier one, before ours was made. */
	if (e->phase == LEADING && revision < e->token)
		return;
	e->present = false;
	tell_leader(e, NULL);
	if (e->phase == LEADING)
		depose(e, "the leader's key is gone");
	else if (e->phase == FOLLOWING && e->in_sync)
		campaign(e);
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct elect *e = arg;

	e->in_sync = true;
	if (e->phase == FOLLOWING && !e->present)
		campaign(e);
}

void elect_notice(struct elect *e, enum store_notice notice, const char *text)
{
	if (notice != STORE_CLUSTER_CHANGED && notice != STORE_REVISION_WENT_BACK)
		return;
	/* What was seen means nothing now; the key is listed anew. */
	e->in_sync = false;
	leased_forget(&e->lease);
	if (e->phase == LEADING)
		depose(e, text);
	else if (e->phase != RESIGNED)
		follow(e);
}

/* --- from outside --------------------------------------------------------------------------- */

int64_t elect_token(const struct elect *e)
{
	return e->phase == LEADING && timers_now(e->o.timers) < until(e) ? e->token : 0;
}

const char *elect_key(const struct elect *e)
{
	return e->key;
}

const char *elect_value(const struct elect *e)
{
	return e->value;
}

static void say_done(struct elect *e)
{
	timer_fn *done = e->done;

	e->done = NULL;
	timer_clear(e->o.timers, &e->farewell);
	if (done)
		done(e->done_arg);
}

static void on_farewell(void *arg)
{
	say_done(arg);
}

static void on_revoked(const struct store_reply *reply, void *arg)
{
	struct elect *e = arg;

	e->revoking = NULL;
	if (reply->err != -ECANCELED)
		say_done(e);
}

void elect_resign(struct elect *e, timer_fn *done, void *arg)
{
	bool led = e->phase == LEADING;
	int64_t lease = leased_forget(&e->lease);

	cancel(e);
	timer_clear(e->o.timers, &e->deadline);
	e->phase = RESIGNED;
	e->token = 0;
	e->done = done;
	e->done_arg = arg;
	if (led)
		e->o.handlers->deposed("it is stopping", e->o.arg);
	timer_set(e->o.timers, &e->farewell, lease ? FAREWELL_MS : 0, 0);
	if (lease)
		store_lease_revoke(e->o.store, lease, FAREWELL_MS, on_revoked, e, &e->revoking);
}

int elect_new(const struct elect_options *options, struct elect **ret)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	AUTO(elect_free) struct elect *e = calloc(1, sizeof(*e));
	char relative[KEY_TEXT];
	int r;

	if (!e)
		return -ENOMEM;
	e->o = *options;
	e->again = (struct timer){ .fn = on_again, .arg = e };
	e->deadline = (struct timer){ .fn = on_deadline, .arg = e };
	e->farewell = (struct timer){ .fn = on_farewell, .arg = e };
	r = key_leader(relative);
	r = r ?: key_full(options->prefix, relative, e->key);
	leased_init(&e->lease, &(struct leased_options){ .store = e->o.store,
							 .timers = e->o.timers,
							 .key = e->key,
							 .ttl = e->o.ttl,
							 .keep_ms = e->o.ttl * 1000 / 3,
							 .keep_slack_ms = e->o.ttl * 1000 / 24,
							 .grant_timeout_ms = e->o.ttl * 1000,
							 .timeout_ms = e->o.ttl * 1000 / 3,
							 .event = on_lease,
							 .arg = e });
	r = r ?: make_value(e);
	r = r ?: store_watch(options->store, e->key, NULL, &handlers, e, &e->watch);
	if (r < 0)
		return r;
	*ret = TAKE(e);
	return 0;
}

void elect_free(struct elect *e)
{
	if (!e)
		return;
	store_cancel(e->revoking);
	leased_done(&e->lease);
	timer_clear(e->o.timers, &e->again);
	timer_clear(e->o.timers, &e->deadline);
	timer_clear(e->o.timers, &e->farewell);
	if (e->watch)
		store_unwatch(e->watch);
	free(e->value);
	free(e);
}
