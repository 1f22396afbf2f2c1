/* SPDX-License-Identifier: Apache-2.0 */
/*
 * begin_round() starts every round and ends whatever was under way; each reply leads to the next
 * step or to another round.
 */
#include "agent/node/register.h"

#include <errno.h>
#include <string.h>

#include "agent/node/register_decide.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/store/store_stats.h"
#include "lib/store/txn.h"

#define REGISTER_PART "registration"
#define SLACK_MS      1000
#define RESTORE_MS    5000 /* at most so often what somebody edits is written back */

enum phase {
	READING,
	WRITING,  /* create or update */
	DELETING, /* the first half of taking over */
	WAITING,  /* refused, or after an error */
	SETTLED   /* registered, and the watch shows nothing else */
};

struct registration {
	struct store *store;
	struct timers *timers;
	struct health *health;
	const struct register_handlers *handlers;
	void *arg;
	uint32_t minute;
	char node_key[KEY_FULL_TEXT], status_key[KEY_FULL_TEXT], removed_key[KEY_FULL_TEXT];
	char recovery_key[KEY_FULL_TEXT];
	char removed_name[KEY_TEXT], node_name[KEY_TEXT]; /* relative, for the decoders */
	struct node self;
	char recovery[ID_TEXT]; /* what self.recovery points to */
	char *value;
	bool vtep_told, promise_told; /* else those of the record which is there stay */
	uint32_t lowest;              /* promise that the record may carry */
	struct store_call *call;
	struct records *records;
	struct record_want *wants[2];
	struct timer timer;
	enum phase phase;
	bool registered, displaced, removed;
	bool lost;        /* the handler was called, and it was not registered since */
	bool held_before; /* etcd went back while we were registered */
	bool waited;      /* the name was found taken */
	/* Of another machine's record: since when it is silent, its MOD revision, the last look. */
	uint64_t silent_since, looked;
	int64_t silent_mod;
	bool wrote; /* in this process, to this etcd: only then can an equal value be ours */
	struct fence fence;
	int64_t creating; /* CREATE revision that an update keeps; 0: it creates */
	int64_t newest;   /* of our key, as the watch shows it */
	uint64_t restored;
	unsigned failures; /* in a row */
	char reason[512];
};

/* A new round: ends what is under way, reads, decides, writes. */
static void begin_round(struct registration *r);

/* --- what others are told ------------------------------------------------------------------- */

static void set_reason(struct registration *r, const char *text)
{
	snprintf(r->reason, sizeof(r->reason), "%s", text);
}

static void make_void(struct registration *r, const char *why)
{
	set_reason(r, why);
	if (!r->registered)
		return;
	r->registered = false;
	log_warning(REGISTER_PART, "lost: %s", r->reason);
	r->handlers->unregistered(r->reason, r->arg);
}

static void lose(struct registration *r, const char *why)
{
	make_void(r, why);
	/* Until it is registered again nothing can be proven, so there is nothing more to lose. */
	if (r->lost)
		return;
	r->lost = true;
	r->handlers->lost(r->reason, r->arg);
}

static void settle(struct registration *r, int64_t create, int64_t mod)
{
	r->phase = SETTLED;
	r->displaced = r->held_before = r->waited = r->lost = false;
	r->silent_since = 0;
	r->lowest = r->self.reclaim_after;
	r->failures = 0;
	r->fence = (struct fence){ r->node_key, create, mod };
	/* Something happened meanwhile: look before anybody relies on it. */
	if (r->newest > mod) {
		begin_round(r);
		return;
	}
	r->registered = true;
	r->reason[0] = '\0';
	health_clear(r->health, REGISTER_PART);
	log_info(REGISTER_PART, "registered as %s, made at revision %lld, now at %lld",
		 r->self.name, (long long)create, (long long)mod);
	r->handlers->registered(&r->fence, r->arg);
}

/* --- waiting -------------------------------------------------------------------------------- */

static void wait_ms(struct registration *r, uint64_t delay_ms)
{
	r->phase = WAITING;
	timer_set(r->timers, &r->timer, delay_ms, delay_ms < SLACK_MS ? delay_ms : SLACK_MS);
}

static void on_timer(void *arg)
{
	begin_round(arg);
}

static void failed(struct registration *r, const char *text)
{
	health_set(r->health, REGISTER_PART, LOG_LEVEL_ERROR, "%s refuses it: %s",
		   store_server(r->store), text);
	if (!r->registered)
		set_reason(r, text);
	wait_ms(r, backoff_refused_ms(&r->failures));
}

/* True if the caller has nothing more to do with this reply. */
static bool ended(struct registration *r, const struct store_reply *reply)
{
	r->call = NULL;
	if (reply->err && reply->err != -ECANCELED)
		failed(r, reply->text);
	return reply->err;
}

static void sent(struct registration *r, int error)
{
	if (error < 0)
		failed(r, strerror(-error));
}

/* --- writing -------------------------------------------------------------------------------- */

static void on_put(const struct store_reply *reply, void *arg)
{
	struct registration *r = arg;

	if (ended(r, reply))
		return;
	if (reply->succeeded)
		settle(r, r->creating ?: reply->revision, reply->revision);
	else
		begin_round(r);
}

/* create 0: the key must be absent. */
static void put_node(struct registration *r, int64_t create, int64_t mod)
{
	r->phase = WRITING;
	r->creating = create;
	r->wrote = true;
	/* It may be applied though no reply comes. */
	if (r->self.reclaim_after < r->lowest)
		r->lowest = r->self.reclaim_after;
	sent(r, store_txn(r->store,
			  &(struct store_txn){ TXN_IF(create ? if_unchanged(r->node_key, mod)
							     : if_absent(r->node_key)),
					       TXN_THEN(op_put(r->node_key, r->value)),
					       .repeatable = true },
			  STORE_FOREVER, on_put, r, &r->call));
}

static void on_deleted_other(const struct store_reply *reply, void *arg)
{
	struct registration *r = arg;

	if (ended(r, reply))
		return;
	if (reply->succeeded)
		put_node(r, 0, 0);
	else
		begin_round(r);
}

/* What one reading shows beside the node's record. */
struct reading {
	const struct store_kv *node, *status, *removed, *recovery;
};

/*
 * Only while it stands as read, nobody keeps its status and nothing else has changed. A removal
 * that states that the machine is off has then done what it was for.
 */
static void delete_other(struct registration *r, const struct reading *seen, bool off)
{
	const struct store_op drops[] = { op_delete(r->node_key), op_delete(r->status_key),
					  op_delete(r->removed_key) };
	const struct store_txn txn = {
		TXN_IF(if_unchanged(r->node_key, seen->node->mod_revision),
		       if_unchanged(r->recovery_key,
				    seen->recovery ? seen->recovery->mod_revision : 0),
		       if_unchanged(r->removed_key,
				    seen->removed ? seen->removed->mod_revision : 0),
		       if_unchanged(r->status_key, seen->status ? seen->status->mod_revision : 0)),
		.success = drops,
		.n_success = off ? 3 : 2,
		.repeatable = true,
	};

	r->phase = DELETING;
	sent(r, store_txn(r->store, &txn, STORE_FOREVER, on_deleted_other, r, &r->call));
}

/* --- reading -------------------------------------------------------------------------------- */

static bool is_ours(const struct registration *r, const struct store_kv *kv)
{
	return kv->value_len == strlen(r->value) && memcmp(kv->value, r->value, kv->value_len) == 0;
}

static uint64_t in_ms(const struct registration *r, uint64_t seconds)
{
	return seconds * r->minute / 60;
}

static void refuse(struct registration *r, const char *why)
{
	r->waited = true;
	lose(r, why);
	health_set(r->health, REGISTER_PART, LOG_LEVEL_ERROR, "%s; asking again every %d s", why,
		   REGISTER_RETRY_S);
	wait_ms(r, in_ms(r, REGISTER_RETRY_S));
}

static void act(struct registration *r, const struct reading *seen, enum register_step step,
		bool off, const char *why)
{
	switch (step) {
	case REGISTER_CREATE:
		put_node(r, 0, 0);
		return;
	case REGISTER_UPDATE:
		put_node(r, seen->node->create_revision, seen->node->mod_revision);
		return;
	case REGISTER_ADOPT:
		settle(r, seen->node->create_revision, seen->node->mod_revision);
		return;
	case REGISTER_TAKE_OVER:
		if (!r->held_before)
			lose(r, why);
		log_warning(REGISTER_PART, "taking the name over: %s", why);
		delete_other(r, seen, off);
		return;
	case REGISTER_WAIT:
	case REGISTER_REFUSE:
		refuse(r, why);
		return;
	}
}

/* self has changed. */
static int encode(struct registration *r)
{
	char *value = NULL;
	int e = node_encode(&r->self, &value);

	if (e < 0)
		return e;
	free(r->value);
	r->value = value;
	return 0;
}

/*
 * An agent that starts knows its tunnel and its cluster's config only after a while; others use
 * what the record says of them meanwhile.
 */
static void keep_old(struct registration *r, const struct node *found)
{
	if (!register_same_machine(found, &r->self))
		return;
	if (!r->vtep_told)
		r->self.vtep = found->vtep;
	if (!r->promise_told && found->reclaim_after)
		r->self.reclaim_after = found->reclaim_after;
	if (encode(r) < 0)
		log_error(REGISTER_PART, "out of memory: the record lacks the node's tunnel");
}

/* How long this other machine's record has been seen as it is, without a status. */
static uint32_t silence(struct registration *r, const struct store_kv *kv, bool alive)
{
	uint64_t now = timers_now(r->timers);
	bool gap = now - r->looked > in_ms(r, 3 * REGISTER_RETRY_S);

	r->looked = now;
	if (alive || !kv || gap || kv->mod_revision != r->silent_mod)
		r->silent_since = 0;
	if (alive || !kv)
		return 0;
	r->silent_mod = kv->mod_revision;
	r->silent_since = r->silent_since ?: now;
	return (uint32_t)((now - r->silent_since) * 60 / r->minute);
}

static bool states_off(const struct registration *r, const struct reading *seen)
{
	AUTO_DONE(node_removed_done) struct node_removed removed = { 0 };

	return seen->node && seen->removed &&
	       seen->removed->mod_revision > seen->node->mod_revision &&
	       node_removed_decode(r->removed_name, seen->removed->value, seen->removed->value_len,
				   &removed, NULL) == 0 &&
	       removed.now;
}

/* One that cannot be read is open: it stops what it may be there to stop. */
static bool is_open(const struct store_kv *kv)
{
	AUTO_DONE(recovery_done) struct recovery recovery = { 0 };

	return kv && (recovery_decode("recovery", kv->value, kv->value_len, &recovery, NULL) < 0 ||
		      !recovery.done);
}

static void on_read(const struct store_reply *reply, void *arg)
{
	AUTO_DONE(node_done) struct node found = { 0 };
	struct registration *r = arg;
	const struct store_kv *kvs[4];
	struct reading read;
	struct register_seen seen = { 0 };
	struct err why = { "" };
	enum register_step step;
	char until[TIME_TEXT];

	if (ended(r, reply))
		return;
	/* What was ours when etcd went back is ours as long as that can be proven. */
	r->held_before = r->held_before && r->handlers->holds(r->arg);
	if (reply->n_ops != ARRAY_SIZE(kvs)) {
		failed(r, "the reply lacks what was asked for");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kvs); i++)
		kvs[i] = reply->ops[i].n ? &reply->ops[i].kvs[0] : NULL;
	read = (struct reading){ kvs[0], kvs[1], kvs[2], kvs[3] };
	if (read.node &&
	    node_decode(r->node_name, read.node->value, read.node->value_len, &found, NULL) == 0)
		seen.node = &found;
	if (seen.node)
		keep_old(r, seen.node);
	seen.present = read.node;
	seen.status_alive = read.status;
	seen.removed = read.removed;
	seen.wrote = r->wrote;
	seen.same_value = read.node && r->wrote && is_ours(r, read.node);
	seen.same_fence = read.node && r->wrote &&
			  read.node->create_revision == r->fence.create_revision;
	seen.held_before = r->held_before;
	seen.waited = r->waited;
	seen.recovering = is_open(read.recovery);
	seen.off = states_off(r, &read);
	seen.silent_s = silence(r, read.node, seen.status_alive);
	seen.wait_s = seen.node ? found.reclaim_after : 0;
	if (!seen.wait_s)
		seen.wait_s = r->self.reclaim_after > REGISTER_PROMISE_S ? r->self.reclaim_after
									 : REGISTER_PROMISE_S;
	seen.until = clock_utc_of_boottime((r->silent_since + in_ms(r, seen.wait_s)) * 1000000,
					   until);
	step = register_decide(&r->self, &seen, r->displaced, &why);

	/* What was true of the old fence need not be true of another. */
	if (!read.node && !r->held_before)
		lose(r, r->registered ? "the node record is gone from etcd; registering again"
				      : "this node is being registered");
	else if (r->registered && read.node->create_revision != r->fence.create_revision)
		lose(r, "the node record was made again; registering");
	act(r, &read, step, seen.off, why.text);
}

static void begin_round(struct registration *r)
{
	const struct store_txn txn = { TXN_THEN(op_get(r->node_key), op_get_key(r->status_key),
						op_get(r->removed_key), op_get(r->recovery_key)),
				       .repeatable = true };

	if (r->call)
		store_cancel(TAKE(r->call));
	timer_clear(r->timers, &r->timer);
	r->phase = READING;
	sent(r, store_txn(r->store, &txn, STORE_FOREVER, on_read, r, &r->call));
}

/* --- the watch on our key ------------------------------------------------------------------- */

/*
 * The watch only ever starts a round, and is never written upon: the one thing taken over from it is
 * a raised MOD revision of our own, unchanged value.
 */

static void restore(struct registration *r)
{
	uint64_t now = timers_now(r->timers);
	bool again = r->restored && now - r->restored < RESTORE_MS;

	log_warning(REGISTER_PART, "the node record was edited by another program; restored");
	r->restored = now;
	if (again)
		wait_ms(r, RESTORE_MS);
	else
		begin_round(r);
}

static void changed_by_others(struct registration *r, const struct record_event *e)
{
	const struct node *found = e->entry->wrong ? NULL : e->entry->value;

	if (found && register_by_other(&r->self, found)) {
		r->displaced = true;
		lose(r, "another agent has registered this node's name");
		begin_round(r);
	} else if (is_ours(r, e->kv)) {
		begin_round(r);
	} else {
		restore(r);
	}
}

static void on_node_put(struct registration *r, const struct record_event *e)
{
	const struct store_kv *kv = e->kv;

	if (kv->mod_revision > r->newest)
		r->newest = kv->mod_revision;
	if (r->phase != SETTLED || kv->mod_revision <= r->fence.mod_revision)
		return;
	if (kv->create_revision == r->fence.create_revision && is_ours(r, kv))
		r->fence.mod_revision = kv->mod_revision;
	else
		changed_by_others(r, e);
}

static void on_node_deleted(struct registration *r, int64_t revision)
{
	if (revision > r->newest)
		r->newest = revision;
	if (r->phase == WAITING || (r->phase == SETTLED && revision > r->fence.mod_revision)) {
		/* That a restore lacks it proves nothing. */
		if (r->held_before)
			make_void(r, "etcd has lost the node record; registering again");
		else
			lose(r, "the node record is gone from etcd; registering again");
		begin_round(r);
	}
}

static void on_node(const struct record_event *e, void *arg)
{
	if (e->news == RECORD_PUT)
		on_node_put(arg, e);
	else if (e->news == RECORD_GONE)
		on_node_deleted(arg, e->revision);
}

/* --- removed/<node> ------------------------------------------------------------------------- */

static void on_removed_put(struct registration *r, const struct store_kv *kv)
{
	AUTO_DONE(node_removed_done) struct node_removed found = { 0 };
	struct err err = { "" };

	if (node_removed_decode(r->removed_name, kv->value, kv->value_len, &found, &err) < 0) {
		health_set(r->health, "removed", LOG_LEVEL_WARNING, "%s: ignored", err.text);
		return;
	}
	health_set(r->health, "removed", LOG_LEVEL_WARNING,
		   "this node was removed (by %s, %s): it gives no new addresses and gives back "
		   "what no pod uses; delete the key %s to have it back",
		   *found.by ? found.by : "an unknown hand",
		   *found.when ? found.when : "at an unknown time", r->removed_key);
	r->removed = true;
	r->handlers->removed(&found, r->arg);
}

static void on_removed_deleted(struct registration *r)
{
	health_clear(r->health, "removed");
	/* A name that was waited for may be free now. */
	if (r->phase == WAITING && r->waited)
		begin_round(r);
	if (!r->removed)
		return;
	r->removed = false;
	r->handlers->removed(NULL, r->arg);
}

static void on_removed(const struct record_event *e, void *arg)
{
	if (e->news == RECORD_PUT)
		on_removed_put(arg, e->kv);
	else if (e->news == RECORD_GONE)
		on_removed_deleted(arg);
}

static int want_records(struct registration *r)
{
	int e = records_want(r->records, r->node_name, on_node, r, &r->wants[0]);

	return e ?: records_want(r->records, r->removed_name, on_removed, r, &r->wants[1]);
}

/* --- from outside --------------------------------------------------------------------------- */

const struct fence *register_fence(const struct registration *r)
{
	return r->registered && r->phase == SETTLED ? &r->fence : NULL;
}

const char *register_reason(const struct registration *r)
{
	return r->reason;
}

bool register_removed(const struct registration *r)
{
	return r->removed;
}

/*
 * Who raised it is not known here: it may be the record of one who took the name over. So it is
 * read before anybody compares with it.
 */
void register_raised(struct registration *r, int64_t mod_revision)
{
	if (r->phase != SETTLED || (mod_revision && mod_revision <= r->fence.mod_revision))
		return;
	begin_round(r);
}

/* self has changed: the record follows. One that waits writes it when it may. */
static int rewrite(struct registration *r)
{
	int e = encode(r);

	if (e == 0 && r->phase != WAITING)
		begin_round(r);
	return e;
}

int register_set_vtep(struct registration *r, const struct node_vtep *vtep)
{
	bool same = memcmp(&r->self.vtep.mac, &vtep->mac, sizeof(vtep->mac)) == 0 &&
		    address_compare(&r->self.vtep.ipv4, &vtep->ipv4) == 0 &&
		    address_compare(&r->self.vtep.ipv6, &vtep->ipv6) == 0;

	r->vtep_told = true;
	r->self.vtep = *vtep;
	return same ? 0 : rewrite(r);
}

int register_set_promise(struct registration *r, uint32_t seconds)
{
	bool same = r->self.reclaim_after == seconds;

	r->promise_told = true;
	r->self.reclaim_after = seconds;
	return same ? 0 : rewrite(r);
}

uint32_t register_promise(const struct registration *r)
{
	return r->lowest;
}

int register_set_recovery(struct registration *r, const char *id)
{
	if (strcmp(r->recovery, id) == 0)
		return 0;
	snprintf(r->recovery, sizeof(r->recovery), "%s", id);
	r->self.recovery = r->recovery;
	return rewrite(r);
}

void register_notice(struct registration *r, enum store_notice notice, const char *text)
{
	if (notice != STORE_CLUSTER_CHANGED && notice != STORE_REVISION_WENT_BACK)
		return;
	/* Revisions of before mean nothing now, not even which is newer. */
	r->newest = 0;
	r->wrote = false;
	r->fence.create_revision = 0;
	r->silent_since = 0;
	r->held_before = r->held_before || r->registered;
	make_void(r, text);
	begin_round(r);
}

static int make_keys(struct registration *r, const char *prefix, const char *node)
{
	char status[KEY_TEXT];
	int e = key_node(r->node_name, node);

	e = e ?: key_removed(r->removed_name, node);
	e = e ?: key_status_node(status, node);
	e = e ?: key_full(prefix, r->node_name, r->node_key);
	e = e ?: key_full(prefix, r->removed_name, r->removed_key);
	e = e ?: key_full(prefix, "recovery", r->recovery_key);
	return e ?: key_full(prefix, status, r->status_key);
}

int register_new(const struct register_options *options, struct registration **ret)
{
	AUTO(register_free) struct registration *r = calloc(1, sizeof(*r));
	struct err waiting;
	int e;

	if (!r)
		return -ENOMEM;
	r->store = options->store;
	r->records = options->records;
	r->timers = options->timers;
	r->health = options->health;
	r->handlers = options->handlers;
	r->arg = options->arg;
	r->minute = options->minute;
	r->timer = (struct timer){ .fn = on_timer, .arg = r };
	err_set(&waiting, 0, "waiting for %s's answer", store_server(r->store));
	set_reason(r, waiting.text);
	e = make_keys(r, options->prefix, options->node->name);
	e = e ?: node_encode(options->node, &r->value);
	/* Through the decoder: what we are about to write is what everybody can read. */
	e = e ?: node_decode(r->node_name, r->value, strlen(r->value), &r->self, NULL);
	if (e == 0) {
		r->self.reclaim_after = r->self.reclaim_after ?: REGISTER_PROMISE_S;
		r->lowest = r->self.reclaim_after;
		/* A text of our own takes its place. */
		free((char *)(uintptr_t)r->self.recovery);
		r->self.recovery = r->recovery;
		e = encode(r);
	}
	e = e ?: want_records(r);
	if (e < 0)
		return e;
	begin_round(r);
	*ret = TAKE(r);
	return 0;
}

void register_free(struct registration *r)
{
	if (!r)
		return;
	if (r->call)
		store_cancel(r->call);
	for (size_t i = 0; i < ARRAY_SIZE(r->wants); i++)
		records_unwant(r->wants[i]);
	timer_clear(r->timers, &r->timer);
	r->self.recovery = NULL;
	node_done(&r->self);
	free(r->value);
	free(r);
}
