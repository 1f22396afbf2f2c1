/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_recovery.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/model/lease_holder.h"
#include "lib/model/model.h"

const char *recovery_state_name(enum recovery_state state)
{
	static const char *const names[] = { "none", "agents", "waiting", "writing", "ending" };

	return names[state];
}

static void blocks_free(struct memory_block *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].key);
		free(v[i].value);
		free(v[i].owner);
	}
	free(v);
}

void memory_of_blocks_done(struct memory_of_blocks *m)
{
	blocks_free(m->blocks, m->n_blocks);
	blocks_free(m->extents, m->n_extents);
	for (size_t i = 0; i < m->n_nodes; i++) {
		free(m->nodes[i].key);
		free(m->nodes[i].value);
	}
	free(m->nodes);
	*m = (struct memory_of_blocks){ 0 };
}

static int take(struct memory_of_blocks *to, const struct mirror *m)
{
	MIRROR_EACH(m, e, KEYS_BLOCK) {
		struct memory_block *b = &to->blocks[to->n_blocks];

		if (!e->note)
			continue;
		to->n_blocks++;
		b->key = strdup(e->kv.key);
		b->value = strdup(e->kv.value);
		b->owner = strdup(e->note);
		if (!b->key || !b->value || !b->owner)
			return -ENOMEM;
	}
	MIRROR_EACH(m, x, KEYS_EXTENT) {
		struct memory_block *e = &to->extents[to->n_extents++];

		e->key = strdup(x->kv.key);
		e->value = strdup(x->kv.value);
		if (!e->key || !e->value)
			return -ENOMEM;
	}
	MIRROR_EACH(m, x, KEYS_NODE) {
		AUTO_DONE(node_done) struct node record = { 0 };
		struct memory_node *n = &to->nodes[to->n_nodes++];
		const struct store_kv *kv = &x->kv;
		char status[KEY_TEXT];

		if (node_decode(KV_ARGS(kv), &record, NULL) == 0) {
			n->machine = node_machine(&record);
			if (record.reclaim_after > to->longest)
				to->longest = record.reclaim_after;
		}
		n->key = strdup(kv->key);
		n->value = strdup(kv->value);
		if (!n->key || !n->value)
			return -ENOMEM;
		n->alive = key_status_node(status, mirrored_name(x)) == 0 && mirror_find(m, status);
	}
	to->revision = m->revision;
	return 0;
}

int memory_of_blocks_take(struct memory_of_blocks *m, const struct mirror *mirror)
{
	struct memory_of_blocks fresh = {
		.blocks = calloc(mirror_count(mirror, KEYS_BLOCK) + 1, sizeof(*fresh.blocks)),
		.extents = calloc(mirror_count(mirror, KEYS_EXTENT) + 1, sizeof(*fresh.extents)),
		.nodes = calloc(mirror_count(mirror, KEYS_NODE) + 1, sizeof(*fresh.nodes)),
	};
	int r = fresh.blocks && fresh.extents && fresh.nodes ? take(&fresh, mirror) : -ENOMEM;

	memory_of_blocks_done(m);
	if (r < 0)
		memory_of_blocks_done(&fresh);
	else
		*m = fresh;
	return r;
}

static const char *name_of(const struct memory_node *n)
{
	return n->key + strlen(KEYS_NODE);
}

/* machine: which it must be, 0: any; id: the recovery in which it must have spoken, NULL: none. */
static bool is_node(const struct mirrored *e, uint64_t machine, const char *id)
{
	AUTO_DONE(node_done) struct node record = { 0 };

	return e && node_decode(KV_ARGS(&e->kv), &record, NULL) == 0 &&
	       (!id || strcmp(record.recovery, id) == 0) &&
	       (!machine || node_machine(&record) == machine);
}

static bool has_spoken(const struct mirror *m, const char *node, uint64_t machine, const char *id)
{
	char key[KEY_TEXT];

	return key_node(key, node) == 0 && is_node(mirror_find(m, key), machine, id);
}

static const struct memory_node *remembered(const struct memory_of_blocks *memory, const char *name)
{
	return array_find(memory->nodes, memory->n_nodes, n, strcmp(name_of(n), name));
}

/* The first of the living that has not. */
static const char *missing(const struct memory_of_blocks *memory, const struct mirror *m,
			   const char *id, size_t *ret_n)
{
	const char *first = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < memory->n_nodes; i++) {
		const struct memory_node *n = &memory->nodes[i];

		if (!n->alive || has_spoken(m, name_of(n), n->machine, id))
			continue;
		first = first ?: name_of(n);
		(*ret_n)++;
	}
	/* And those that came since: they live. */
	MIRROR_EACH(m, e, KEYS_NODE) {
		const char *name = mirrored_name(e);
		const struct memory_node *known = remembered(memory, name);
		char status[KEY_TEXT];

		/* Those that lived before are counted above. */
		if ((known && known->alive) || key_status_node(status, name) < 0 ||
		    !mirror_find(m, status) || has_spoken(m, name, 0, id))
			continue;
		first = first ?: name;
		(*ret_n)++;
	}
	return first;
}

bool recovery_wrote(const struct mirrored *e, const char *id)
{
	AUTO_DONE(block_done) struct block block = { 0 };

	return e && block_decode(KV_ARGS(&e->kv), &block, NULL) == 0 &&
	       strcmp(block.recovery, id) == 0;
}

/*
 * A node that is silent has its record again as it was. Another machine may have registered under
 * its name meanwhile: it waits from now on, as it would have to without a recovery.
 */
static size_t write_nodes(const struct memory_of_blocks *memory, const struct mirror *m,
			  const char *id, struct plans *p)
{
	size_t writing = 0;

	for (size_t i = 0; i < memory->n_nodes; i++) {
		const struct memory_node *n = &memory->nodes[i];
		const struct mirrored *now = mirror_find(m, n->key);
		struct plan *plan;

		/* A holder of leases is written with what it holds. */
		if (!n->machine || lease_holder_is(name_of(n)) ||
		    has_spoken(m, name_of(n), n->machine, id) || is_node(now, n->machine, NULL))
			continue;
		plan = plans_add(p, n->key);
		plan_if_seen(plan, m, n->key);
		txn_then(&plan->txn, op_put(n->key, n->value));
		plan_says(p, plan, "%s: written again as before etcd went back", n->key);
		writing++;
	}
	return writing;
}

/* How pools were cut: else a pool that was edited meanwhile would be cut otherwise. */
static size_t write_extents(const struct memory_of_blocks *memory, const struct mirror *m,
			    struct plans *p)
{
	size_t writing = 0;

	for (size_t i = 0; i < memory->n_extents; i++) {
		const struct memory_block *e = &memory->extents[i];
		struct plan *plan;

		if (mirror_find(m, e->key))
			continue;
		plan = plans_add(p, e->key);
		txn_if(&plan->txn, if_absent(e->key));
		txn_then(&plan->txn, op_put(e->key, e->value));
		plan_says(p, plan, "%s: written again as before etcd went back", e->key);
		writing++;
	}
	return writing;
}

/*
 * Of a holder of leases: everything in one transaction, because its record says that it has said
 * what it holds.
 */
static struct plan *plan_of_holder(struct plans *p, const struct mirror *m,
				   const struct memory_node *n, const char *id)
{
	AUTO_DONE(node_done) struct node record = { 0 };
	AUTO(free) char *value = NULL;
	struct plan *plan;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].subject && strcmp(p->v[i].subject, n->key) == 0 &&
		    plan_has_room(&p->v[i], 1, 3))
			return &p->v[i];
	plan = plans_add(p, n->key);
	plan_if_seen(plan, m, n->key);
	if (node_decode(n->key, n->value, strlen(n->value), &record, NULL) < 0 ||
	    lease_holder_record(record.ipv4.address.family ? &record.ipv4.address
							   : &record.ipv6.address,
				&record.vtep.mac, id, &value) < 0)
		p->failed = true;
	else
		txn_then(&plan->txn, op_put(n->key, value));
	return plan;
}

/* As it was; compared with what was seen of it. */
static void write_block(struct plans *p, const struct mirror *m, const struct memory_block *b,
			const struct memory_node *owner, const char *id)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct mirrored *now = mirror_find(m, b->key);
	AUTO(free) char *value = NULL, *index_value = NULL;
	struct host_block index = { 0 };
	struct plan *plan;
	char key[KEY_TEXT];
	struct key parsed;

	if (key_parse(b->key, &parsed) < 0 ||
	    block_decode(b->key, b->value, strlen(b->value), &block, NULL) < 0 ||
	    key_host_block(key, b->owner, parsed.network, &parsed.block) < 0)
		return;
	plan = owner && lease_holder_is(b->owner) ? plan_of_holder(p, m, owner, id)
						  : plans_add(p, b->key);
	/* Nobody takes back what was written in the same recovery. */
	free((char *)(uintptr_t)block.recovery);
	block.recovery = id;
	index.pool = block.pool;
	memcpy(index.claimed, block.claimed, sizeof(index.claimed));
	if (block_encode(&block, &value) < 0 || host_block_encode(&index, &index_value) < 0)
		p->failed = true;
	block.recovery = NULL;
	plan_if_seen(plan, m, b->key);
	txn_then(&plan->txn, op_put(b->key, value));
	txn_then(&plan->txn, op_put(key, index_value));
	if (now && now->note && strcmp(now->note, b->owner) != 0 &&
	    key_host_block(key, now->note, parsed.network, &parsed.block) == 0)
		txn_then(&plan->txn, op_delete(key));
	plan_says(p, plan, "%s: given back to %s, as before etcd went back", b->key, b->owner);
}

bool recovery_numbers(const struct mirror *m, uint32_t *ret_number, uint32_t *ret_longest)
{
	AUTO_DONE(recovery_done) struct recovery record = { 0 };
	const struct mirrored *e = mirror_find(m, "recovery");

	if (!e || recovery_decode("recovery", e->kv.value, e->kv.value_len, &record, NULL) < 0)
		return false;
	*ret_number = record.number;
	*ret_longest = record.longest;
	return true;
}

bool recovery_is_open(const struct mirror *m)
{
	AUTO_DONE(recovery_done) struct recovery record = { 0 };
	const struct mirrored *e = mirror_find(m, "recovery");

	return e && (recovery_decode("recovery", e->kv.value, e->kv.value_len, &record, NULL) < 0 ||
		     !record.done);
}

void recovery_begin(const struct memory_of_blocks *memory, const struct mirror *m, const char *id,
		    uint32_t number, uint32_t longest, const char *now, struct plans *ret)
{
	struct recovery record = {
		.id = id,
		.by = "controller",
		.number = number,
		.longest = memory->longest > longest ? memory->longest : longest,
		.revision = memory->revision,
	};
	struct plan *plan = plans_add(ret, "recovery");
	AUTO(free) char *value = NULL;

	snprintf(record.began, sizeof(record.began), "%s", now);
	if (recovery_encode(&record, &value) < 0)
		ret->failed = true;
	plan_if_seen(plan, m, "recovery");
	txn_then(&plan->txn, op_put("recovery", value));
	plan_says(ret, plan,
		  "etcd went back: recovery %s begins, and nothing is freed until every node has "
		  "reported its blocks",
		  id);
}

static void end(struct plans *p, struct recovery *record, const struct mirrored *e, const char *why)
{
	AUTO(free) char *value = NULL;
	struct plan *plan = plans_add(p, "recovery");

	record->done = true;
	if (recovery_encode(record, &value) < 0)
		p->failed = true;
	txn_if(&plan->txn, if_unchanged("recovery", e->kv.mod_revision));
	txn_then(&plan->txn, op_put("recovery", value));
	plan_says(p, plan, "recovery %s ends: %s", record->id, why);
}

enum recovery_state recovery_plan(const struct memory_of_blocks *memory, const struct mirror *m,
				  bool waited, struct plans *ret, struct err *why)
{
	AUTO_DONE(recovery_done) struct recovery record = { 0 };
	const struct mirrored *e = mirror_find(m, "recovery");
	const char *first;
	size_t n, writing = 0;

	if (!recovery_is_open(m))
		return RECOVERY_STATE_NONE;
	if (recovery_decode("recovery", e->kv.value, e->kv.value_len, &record, why) < 0)
		return RECOVERY_STATE_AGENTS;
	if (waited) {
		err_set(why, 0,
			"etcd went back (recovery %s): the longest reclaimAfter of a silent node "
			"has passed",
			record.id);
		end(ret, &record, e, "silent nodes give no more addresses");
		return RECOVERY_STATE_ENDING;
	}
	if (memory->revision == 0 || memory->revision < record.revision) {
		err_set(why, 0,
			"etcd went back (recovery %s): this controller does not know the state "
			"before, so the agents end the recovery; no block changes its owner for at "
			"most %u s",
			record.id, record.longest);
		return RECOVERY_STATE_AGENTS;
	}
	writing = write_extents(memory, m, ret);
	first = missing(memory, m, record.id, &n);
	if (first) {
		/* A sentence that changed with each node would be logged as often. */
		err_set(why, 0,
			"etcd went back (recovery %s): %s%s must report %s blocks before a block "
			"changes its owner; at most %u s",
			record.id, n == 1 ? "node " : "several nodes that were alive",
			n == 1 ? first : "", n == 1 ? "its" : "their", record.longest);
		return RECOVERY_STATE_WAITING;
	}
	writing += write_nodes(memory, m, record.id, ret);
	for (size_t i = 0; i < memory->n_blocks; i++) {
		const struct memory_block *b = &memory->blocks[i];
		const struct mirrored *now = mirror_find(m, b->key);
		const struct memory_node *owner = remembered(memory, b->owner);

		bool lease = lease_holder_is(b->owner);
		bool spoken = has_spoken(m, b->owner, owner ? owner->machine : 0, record.id);

		/*
		 * Its holder has claimed it again; or it is as it was, or its owner speaks for
		 * itself. Who holds leases speaks for the one that it renewed.
		 */
		if (recovery_wrote(now, record.id) || (!lease && spoken) ||
		    ((!lease || spoken) && now && now->note && strcmp(now->note, b->owner) == 0))
			continue;
		write_block(ret, m, b, owner, record.id);
		writing++;
	}
	err_set(why, 0, "etcd went back (recovery %s): writing %zu records of silent nodes again",
		record.id, writing);
	if (writing)
		return RECOVERY_STATE_WRITING;
	end(ret, &record, e,
	    "all living nodes have reported their blocks, and the blocks of the others are as "
	    "before");
	return RECOVERY_STATE_ENDING;
}
