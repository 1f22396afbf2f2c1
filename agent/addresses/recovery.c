/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recovery, for this node: what it knows of the other nodes and of the record, and the steps
 * that agent/addresses/recovery_decide.h decides.
 */
#include "agent/addresses/ipam_state.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "agent/node/register.h"

#define SECOND 1000000000LL
/*
 * Within this time every agent that has a way to etcd has noticed that it went back: a silent
 * connection is given up after 26 s at most, the next attempt comes within 5 s (lib/etcd/store_etcd.h).
 */
#define NOTICED_WITHIN (31 * SECOND)

/* --- the nodes ------------------------------------------------------------------------------ */

static struct known_node *node_find(const struct recovering *r, const char *name)
{
	return array_find(r->nodes.v, r->nodes.n, x, strcmp(x->name, name));
}

static struct known_node *node_add(struct recovering *r, const char *name)
{
	char *copy = strdup(name);
	struct known_node *n = NULL;

	if (copy)
		n = array_insert(&r->nodes,
				 array_place(r->nodes.v, r->nodes.n, x, strcmp(x->name, name)));
	if (n)
		n->name = copy;
	else
		free(copy);
	return n;
}

static void node_drop(struct recovering *r, struct known_node *n)
{
	free(n->name);
	array_remove(&r->nodes, (size_t)(n - r->nodes.v));
}

void ipam_node_put(struct ipam *m, const char *name, const struct record_entry *e)
{
	struct known_node *n = node_find(&m->recovery, name) ?: node_add(&m->recovery, name);
	const struct node *node = e->wrong ? NULL : e->value;

	if (!n) {
		log_error("ipam", "out of memory at node %s", name);
		return;
	}
	n->stands = true;
	n->machine = 0;
	n->recovery[0] = '\0';
	/* One that cannot be read has not spoken. */
	if (node) {
		snprintf(n->recovery, sizeof(n->recovery), "%s", node->recovery);
		n->promise = node->reclaim_after;
		n->machine = node_machine(node);
	}
}

void ipam_node_deleted(struct ipam *m, const char *name)
{
	struct known_node *n = node_find(&m->recovery, name);

	if (!n)
		return;
	/* A restore takes nobody away. */
	n->stands = false;
	if (!ipam_recovering(m, NULL))
		node_drop(&m->recovery, n);
}

/*
 * Another machine that took the name meanwhile does not speak for the one that had it. For the
 * holder of a lease its server speaks when it renews, or a controller that remembers.
 */
static bool has_spoken(const struct recovering *r, const struct known_node *n)
{
	return strcmp(n->recovery, r->id) == 0 && (!n->before || n->before == n->machine);
}

/* How many have not, and the first of them for people. */
static size_t missing(const struct ipam *m, const char **ret_first)
{
	const struct recovering *r = &m->recovery;
	size_t n = 0;

	for (size_t i = 0; i < r->nodes.n; i++)
		if (!has_spoken(r, &r->nodes.v[i]) && !n++)
			*ret_first = r->nodes.v[i].name;
	return n;
}

static uint32_t longest(const struct ipam *m)
{
	uint32_t most = m->inputs.reclaim_after, own = m->o.promise(m->o.arg);

	most = own > most ? own : most;
	most = m->authority.promise > most ? m->authority.promise : most;
	for (size_t i = 0; i < m->recovery.nodes.n; i++)
		if (m->recovery.nodes.v[i].promise > most)
			most = m->recovery.nodes.v[i].promise;
	return most > REGISTER_PROMISE_S ? most : REGISTER_PROMISE_S;
}

/* --- the record ----------------------------------------------------------------------------- */

void ipam_recovery_put(struct ipam *m, const struct store_kv *kv)
{
	AUTO_DONE(recovery_done) struct recovery record = { 0 };
	struct recovering *r = &m->recovery;
	struct err err = { "" };

	r->present = r->unsettled = true;
	r->revision = kv->mod_revision;
	r->readable = recovery_decode("recovery", kv->value, kv->value_len, &record, &err) == 0;
	if (!r->readable) {
		health_set(m->o.health, "recovery", LOG_LEVEL_ERROR,
			   "%s; until it is deleted or repaired, no block changes its owner",
			   err.text);
		pass_mark(m->pass);
		return;
	}
	if (strcmp(r->id, record.id) != 0 || (r->done && !record.done))
		r->since = ipam_now();
	snprintf(r->id, sizeof(r->id), "%s", record.id);
	r->number = record.number;
	snprintf(r->by, sizeof(r->by), "%s", record.by);
	snprintf(r->began, sizeof(r->began), "%s", record.began);
	r->longest = record.longest;
	r->newest = record.revision;
	r->done = record.done;
	r->unsettled = true;
	pass_mark(m->pass);
}

void ipam_recovery_deleted(struct ipam *m)
{
	m->recovery.present = false;
	m->recovery.revision = 0;
	pass_mark(m->pass);
}

static void on_written(const struct store_reply *reply, void *arg)
{
	struct ipam *m = arg;

	m->recovery.call = NULL;
	/* The watch shows what stands there now; a refusal means that another was faster. */
	if (reply->err == -ECANCELED)
		return;
	if (reply->err) {
		log_warning("ipam", "the record recovery is not written: %s", reply->text);
		ipam_refused(m, reply->text);
		return;
	}
	ipam_accepted(m);
	pass_mark(m->pass);
}

static int write_record(struct ipam *m, const struct recovery *record)
{
	char key[KEY_FULL_TEXT];
	AUTO(free) char *text = NULL;
	int r = key_full(m->o.prefix, "recovery", key);

	r = r ?: recovery_encode(record, &text);
	return r
		       ?: store_txn(m->o.store,
				    &(struct store_txn){
					    TXN_IF(if_unchanged(key, m->recovery.revision)),
					    TXN_THEN(op_put(key, text)), .repeatable = true },
				    0, on_written, m, &m->recovery.call);
}

static int begin(struct ipam *m)
{
	struct recovery record = { .by = m->o.node,
				   .longest = longest(m),
				   .revision = m->recovery.knew };
	uint64_t random;
	char id[ID_TEXT];

	if (m->refused.set)
		return -EAGAIN;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(id, sizeof(id), "%016" PRIx64, random);
	record.id = id;
	record.number = ipam_recovery_number(m) + 1;
	clock_utc_text(record.began);
	log_warning(
		"ipam",
		"etcd went back: recovery %s begins; no block changes its owner until every node "
		"has stated its blocks",
		id);
	return write_record(m, &record);
}

static int write_again(struct ipam *m, bool done)
{
	const struct recovering *r = &m->recovery;
	struct recovery record = { .id = r->id, .by = r->by, .number = r->number, .done = done };
	uint32_t most = longest(m);

	if (m->refused.set)
		return -EAGAIN;
	record.longest = r->longest > most ? r->longest : most;
	record.revision = r->newest > r->knew ? r->newest : r->knew;
	memcpy(record.began, r->began, sizeof(record.began));
	return write_record(m, &record);
}

/* --- the steps ------------------------------------------------------------------------------ */

bool ipam_recovering(const struct ipam *m, struct err *why)
{
	const struct recovering *r = &m->recovery;
	bool open = r->present && (!r->readable || !r->done);

	if (!records_in_sync(m->wants[INPUT_RECOVERY]) || !records_in_sync(m->wants[INPUT_NODES]))
		err_set(why, 0, "%s has not been read yet", ipam_server(m));
	else if (r->noticed || open)
		err_set(why, 0,
			"etcd went back, and new blocks are claimed when every node has stated "
			"its blocks (key recovery)");
	else if (ipam_now() < r->accepted_until)
		err_set(why, 0, "etcd went back while this node was cut off from it");
	else
		return false;
	return true;
}

uint32_t ipam_recovery_number(const struct ipam *m)
{
	const struct recovering *r = &m->recovery;

	return r->present && r->number > r->before ? r->number : r->before;
}

const char *ipam_recovery_id(const struct ipam *m)
{
	const struct recovering *r = &m->recovery;

	return r->present && r->readable && !r->done && !r->noticed ? r->id : "";
}

/*
 * Of each block that we hold it is certain that etcd has it as ours, or that it is another's, or
 * that nobody can claim it.
 */
static bool certain(const struct ipam *m)
{
	if (!m->o.fence(m->o.arg) || m->verifying)
		return false;
	for (size_t i = 0; i < m->owned.n; i++) {
		const struct owned *o = m->owned.v[i];

		if (o->restored)
			continue;
		if (o->verify || o->again || o->call ||
		    (!o->revision && !o->copy.lost && !o->cut_apart && !o->damaged))
			return false;
	}
	return true;
}

static void closed(struct ipam *m)
{
	struct recovering *r = &m->recovery;

	health_clear(m->o.health, "recovery");
	if (ipam_recovering(m, NULL))
		return;
	r->unsettled = false;
	r->witness = true;
	r->knew = 0;
	for (size_t i = r->nodes.n; i > 0; i--) {
		r->nodes.v[i - 1].before = 0;
		if (!r->nodes.v[i - 1].stands)
			node_drop(r, &r->nodes.v[i - 1]);
	}
	for (size_t i = 0; i < m->owned.n; i++) {
		struct owned *o = m->owned.v[i];

		/* Nobody else has said that he holds it. */
		o->verify = o->verify || o->restored;
		o->restored = false;
	}
}

/* A sentence that changed with each node would be logged as often. */
static void say(struct ipam *m)
{
	const struct recovering *r = &m->recovery;
	char which[NODE_NAME_TEXT + 32] = "";
	const char *first = "";

	if (missing(m, &first) == 1)
		snprintf(which, sizeof(which), " (only %s is missing)", first);
	health_set(m->o.health, "recovery", LOG_LEVEL_WARNING,
		   "etcd went back or was emptied (recovery %s, began %s): no new blocks are "
		   "claimed until every node has stated its blocks%s; without the missing ones it "
		   "ends %u s after it began",
		   r->id, r->began, which, r->longest);
}

static bool waited(const struct ipam *m)
{
	const struct recovering *r = &m->recovery;

	return ipam_now() - r->since >= (int64_t)r->longest * m->o.minute / 60 * (SECOND / 1000);
}

void ipam_recovery_work(struct ipam *m)
{
	struct recovering *r = &m->recovery;
	const struct known_node *self = node_find(r, m->o.node);
	struct recovery_seen seen;
	const char *first;

	if (!r->unsettled || r->call || !m->connected ||
	    !records_in_sync(m->wants[INPUT_RECOVERY]) || !records_in_sync(m->wants[INPUT_NODES]))
		return;
	seen = (struct recovery_seen){
		.noticed = r->noticed,
		.present = r->present,
		.readable = r->readable,
		.done = r->done,
		.old = r->number <= r->before,
		.longer = longest(m) > r->longest || r->knew > r->newest,
		.registered = m->o.fence(m->o.arg),
		.certain = certain(m),
		.spoken = self && strcmp(self->recovery, r->id) == 0,
		.all_spoken = !missing(m, &first),
		/* Who knows as much as anybody has missed no node that anybody knows. */
		.witness = r->witness && r->knew >= r->newest,
		.waited = waited(m),
	};
	switch (recovery_decide(&seen)) {
	case RECOVERY_NONE:
		closed(m);
		break;
	case RECOVERY_BEGIN:
		begin(m);
		break;
	case RECOVERY_ACCEPT:
		r->noticed = false;
		r->accepted_until = ipam_now() + NOTICED_WITHIN;
		ipam_look_at_blocks(m);
		timer_set(m->o.timers, &r->timer, NOTICED_WITHIN / 1000000 + 1, 0);
		break;
	case RECOVERY_EXTEND:
		/* Joined with the first step that takes part in it. */
		r->noticed = false;
		write_again(m, false);
		break;
	case RECOVERY_ASSERT:
		if (r->noticed)
			ipam_look_at_blocks(m);
		r->noticed = false;
		say(m);
		break;
	case RECOVERY_SPEAK:
		r->noticed = false;
		say(m);
		m->o.set_recovery(r->id, m->o.arg);
		break;
	case RECOVERY_WAIT:
		say(m);
		timer_set(m->o.timers, &r->timer, m->o.minute / 4, m->o.minute / 4);
		break;
	case RECOVERY_END:
		log_info("ipam", "recovery %s ends: %s", r->id,
			 seen.all_spoken
				 ? "every node has stated its blocks"
				 : "the longest time that a silent node counts on has passed");
		write_again(m, true);
		break;
	}
}

/* --- from the store ------------------------------------------------------------------------- */

static void on_timer(void *arg)
{
	struct ipam *m = arg;

	pass_mark(m->pass);
}

/* Whatever is under way was sent to an etcd that is no more. */
void ipam_went_back(struct ipam *m)
{
	struct recovering *r = &m->recovery;

	store_cancel(TAKE(r->call));
	r->noticed = r->unsettled = true;
	r->knew = m->newest > r->knew ? m->newest : r->knew;
	m->newest = 0;
	r->before = ipam_recovery_number(m);
	r->present = r->done = false;
	r->revision = 0;
	r->accepted_until = 0;
	for (size_t i = 0; i < r->nodes.n; i++) {
		r->nodes.v[i].before = r->nodes.v[i].before ?: r->nodes.v[i].machine;
		r->nodes.v[i].stands = false;
	}
	if (m->verifying)
		store_cancel(TAKE(m->verifying));
	m->n_looking = 0;
	claims_cancel_all(m->claims);
	for (size_t i = 0; i < m->owned.n; i++) {
		struct owned *o = m->owned.v[i];
		const struct own_block *b = allocator_block(m->allocator, o->copy.network,
							    &o->copy.block);

		o->call = NULL;
		o->claimed = 0;
		o->revision = 0;
		o->verify = true;
		/* One that was on its way back is held no more. */
		o->restored = o->restored || !b || b->state == BLOCK_RELEASING;
	}
}

void ipam_recovery_init(struct ipam *m)
{
	m->recovery.timer = (struct timer){ .fn = on_timer, .arg = m };
	m->recovery.unsettled = true;
}

void ipam_recovery_free(struct ipam *m)
{
	struct recovering *r = &m->recovery;

	timer_clear(m->o.timers, &r->timer);
	store_cancel(r->call);
	for (size_t i = 0; i < r->nodes.n; i++)
		free(r->nodes.v[i].name);
	array_done(&r->nodes);
}
