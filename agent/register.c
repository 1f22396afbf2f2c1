/* SPDX-License-Identifier: Apache-2.0 */
/*
 * register_round() starts every round and ends whatever was under way; each reply leads to the next
 * step or to another round.
 */
#include "agent/register.h"

#include <errno.h>
#include <string.h>

#include "agent/register_parts.h"
#include "lib/store_stats.h"

#define BACK_OFF_MS  1000
#define BACK_OFF_MAX 30000
#define SLACK_MS     1000

/* --- what others are told ------------------------------------------------------------------- */

void register_set_reason(struct registration *r, const char *text)
{
	snprintf(r->reason, sizeof(r->reason), "%s", text);
}

void register_lost(struct registration *r, const char *why)
{
	register_set_reason(r, why);
	if (!r->registered)
		return;
	r->registered = false;
	log_warning(REGISTER_PART, "lost: %s", r->reason);
	r->handlers->unregistered(r->reason, r->arg);
}

static void settle(struct registration *r, int64_t create, int64_t mod)
{
	r->phase = SETTLED;
	r->displaced = false;
	r->back_off = 0;
	r->fence = (struct fence){ r->node_key, create, mod };
	/* Something happened meanwhile: look before anybody relies on it. */
	if (r->newest > mod) {
		register_round(r);
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

void register_wait(struct registration *r, uint64_t delay_ms)
{
	r->phase = WAITING;
	timer_set(r->timers, &r->timer, delay_ms, delay_ms < SLACK_MS ? delay_ms : SLACK_MS);
}

static void on_timer(void *arg)
{
	register_round(arg);
}

static void failed(struct registration *r, const char *text)
{
	health_set(r->health, REGISTER_PART, LOG_LEVEL_ERROR, "%s refuses it: %s",
		   store_server(r->store), text);
	if (!r->registered)
		register_set_reason(r, text);
	r->back_off = r->back_off ? 2 * r->back_off : BACK_OFF_MS;
	if (r->back_off > BACK_OFF_MAX)
		r->back_off = BACK_OFF_MAX;
	register_wait(r, r->back_off);
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
		register_round(r);
}

/* create 0: the key must be absent. */
static void put_node(struct registration *r, int64_t create, int64_t mod)
{
	const struct store_compare as_read = { .key = r->node_key,
					       .target = create ? STORE_MOD_REVISION
								: STORE_CREATE_REVISION,
					       .relation = STORE_EQUAL,
					       .number = create ? mod : 0 };
	const struct store_op put = { .kind = STORE_PUT,
				      .key = r->node_key,
				      .value = r->value,
				      .value_len = strlen(r->value) };
	const struct store_txn txn = { .compares = &as_read,
				       .n_compares = 1,
				       .success = &put,
				       .n_success = 1,
				       .repeatable = true };

	r->phase = WRITING;
	r->creating = create;
	r->wrote = true;
	sent(r, store_txn(r->store, &txn, STORE_FOREVER, on_put, r, &r->call));
}

static void on_deleted_other(const struct store_reply *reply, void *arg)
{
	struct registration *r = arg;

	if (ended(r, reply))
		return;
	if (reply->succeeded)
		put_node(r, 0, 0);
	else
		register_round(r);
}

/* Only while it stands as read and nobody keeps its status. */
static void delete_other(struct registration *r, int64_t mod)
{
	const struct store_compare compares[] = {
		{ .key = r->node_key,
		  .target = STORE_MOD_REVISION,
		  .relation = STORE_EQUAL,
		  .number = mod },
		{ .key = r->status_key, .target = STORE_CREATE_REVISION, .relation = STORE_EQUAL },
	};
	const struct store_op drop = { .kind = STORE_DELETE, .key = r->node_key };
	const struct store_txn txn = { .compares = compares,
				       .n_compares = ARRAY_SIZE(compares),
				       .success = &drop,
				       .n_success = 1,
				       .repeatable = true };

	r->phase = DELETING;
	sent(r, store_txn(r->store, &txn, STORE_FOREVER, on_deleted_other, r, &r->call));
}

/* --- reading -------------------------------------------------------------------------------- */

bool register_is_ours(const struct registration *r, const struct store_kv *kv)
{
	return kv->value_len == strlen(r->value) && memcmp(kv->value, r->value, kv->value_len) == 0;
}

static void refuse(struct registration *r, const char *why)
{
	register_lost(r, why);
	health_set(r->health, REGISTER_PART, LOG_LEVEL_ERROR, "%s; asking again every %d s", why,
		   REGISTER_RETRY_MS / 1000);
	register_wait(r, REGISTER_RETRY_MS);
}

static void act(struct registration *r, const struct store_kv *kv, enum register_step step,
		const char *why)
{
	if (!kv) {
		put_node(r, 0, 0);
		return;
	}
	switch (step) {
	case REGISTER_CREATE: /* only what is absent */
		return;
	case REGISTER_UPDATE:
		put_node(r, kv->create_revision, kv->mod_revision);
		return;
	case REGISTER_ADOPT:
		settle(r, kv->create_revision, kv->mod_revision);
		return;
	case REGISTER_TAKE_OVER:
		register_lost(r, why);
		log_warning(REGISTER_PART, "taking the name over: %s", why);
		delete_other(r, kv->mod_revision);
		return;
	case REGISTER_REFUSE:
		refuse(r, why);
		return;
	}
}

static int encode_with(struct registration *r, const struct node_vtep *vtep)
{
	char *value = NULL;
	int e;

	r->self.vtep = *vtep;
	e = node_encode(&r->self, &value);
	if (e < 0)
		return e;
	free(r->value);
	r->value = value;
	return 0;
}

/* An agent that starts knows its tunnel only after a while; others use it meanwhile. */
static void keep_vtep(struct registration *r, const struct node *found)
{
	if (!r->vtep_told && strcmp(found->machine, r->self.machine) == 0 &&
	    encode_with(r, &found->vtep) < 0)
		log_error(REGISTER_PART, "out of memory: the tunnel is not in the record");
}

static void on_read(const struct store_reply *reply, void *arg)
{
	AUTO(node_done) struct node found = { 0 };
	struct registration *r = arg;
	struct register_seen seen = { 0 };
	const struct store_kv *kv;
	struct err why = { "" };
	enum register_step step;

	if (ended(r, reply))
		return;
	if (reply->n_ops != 2) {
		failed(r, "the reply lacks what was asked for");
		return;
	}
	kv = reply->ops[0].n ? &reply->ops[0].kvs[0] : NULL;
	seen.present = kv;
	seen.status_alive = reply->ops[1].n;
	if (kv && node_decode(r->node_name, kv->value, kv->value_len, &found, NULL) == 0)
		seen.node = &found;
	if (seen.node)
		keep_vtep(r, seen.node);
	seen.same_value = kv && r->wrote && register_is_ours(r, kv);
	seen.same_fence = kv && r->registered && kv->create_revision == r->fence.create_revision;
	step = register_decide(&r->self, &seen, r->displaced, &why);

	/* What was true of the old fence need not be true of another. */
	if (r->registered && !kv)
		register_lost(r, "the node record is gone from etcd; registering anew");
	else if (r->registered && kv->create_revision != r->fence.create_revision)
		register_lost(r, "the node record was made anew; registering again");
	act(r, kv, step, why.text);
}

void register_round(struct registration *r)
{
	const struct store_op gets[] = {
		{ .kind = STORE_GET, .key = r->node_key },
		{ .kind = STORE_GET, .key = r->status_key, .keys_only = true }
	};
	const struct store_txn txn = { .success = gets,
				       .n_success = ARRAY_SIZE(gets),
				       .repeatable = true };

	if (r->call)
		store_cancel(TAKE(r->call));
	timer_clear(r->timers, &r->timer);
	r->phase = READING;
	sent(r, store_txn(r->store, &txn, STORE_FOREVER, on_read, r, &r->call));
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
	register_round(r);
}

int register_set_vtep(struct registration *r, const struct node_vtep *vtep)
{
	bool same = memcmp(&r->self.vtep.mac, &vtep->mac, sizeof(vtep->mac)) == 0 &&
		    address_compare(&r->self.vtep.ipv4, &vtep->ipv4) == 0 &&
		    address_compare(&r->self.vtep.ipv6, &vtep->ipv6) == 0;
	int e = same ? 0 : encode_with(r, vtep);

	if (e < 0)
		return e;
	r->vtep_told = true;
	/* One that waits writes it when it may. */
	if (!same && r->phase != WAITING)
		register_round(r);
	return 0;
}

void register_notice(struct registration *r, enum store_notice notice, const char *text)
{
	if (notice != STORE_CLUSTER_CHANGED && notice != STORE_REVISION_WENT_BACK)
		return;
	/* Revisions of before mean nothing now, not even which is newer. */
	r->newest = 0;
	r->wrote = false;
	register_lost(r, text);
	register_round(r);
}

static int make_keys(struct registration *r, const char *prefix, const char *node)
{
	char status[KEY_TEXT];
	int e = key_node(r->node_name, node);

	e = e ?: key_removed(r->removed_name, node);
	e = e ?: key_status_node(status, node);
	e = e ?: key_full(prefix, r->node_name, r->node_key);
	e = e ?: key_full(prefix, r->removed_name, r->removed_key);
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
	r->timers = options->timers;
	r->health = options->health;
	r->handlers = options->handlers;
	r->arg = options->arg;
	r->timer = (struct timer){ .fn = on_timer, .arg = r };
	err_set(&waiting, 0, "waiting for %s's answer", store_server(r->store));
	register_set_reason(r, waiting.text);
	e = make_keys(r, options->prefix, options->node->name);
	e = e ?: node_encode(options->node, &r->value);
	/* Through the decoder: what we are about to write is what everybody can read. */
	e = e ?: node_decode(r->node_name, r->value, strlen(r->value), &r->self, NULL);
	e = e ?: register_watch(r);
	if (e < 0)
		return e;
	register_round(r);
	*ret = TAKE(r);
	return 0;
}

void register_free(struct registration *r)
{
	if (!r)
		return;
	if (r->call)
		store_cancel(r->call);
	for (size_t i = 0; i < ARRAY_SIZE(r->watches); i++)
		if (r->watches[i])
			store_unwatch(r->watches[i]);
	timer_clear(r->timers, &r->timer);
	node_done(&r->self);
	free(r->value);
	free(r);
}
