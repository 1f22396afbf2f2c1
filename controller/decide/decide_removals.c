/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_removals.h"

#include <errno.h>
#include <string.h>

#include "controller/decide/decide_routes.h"
#include "lib/base/array.h"
#include "lib/model/model.h"

const char *removal_state_name(enum removal_state state)
{
	static const char *const names[] = { "alive", "waiting", "reclaiming" };

	return names[state];
}

void removals_done(struct removals *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].node);
	array_done(r);
}

/* --- the list ------------------------------------------------------------------------------- */

static struct removal *find(const struct removals *r, const char *node)
{
	return array_find(r->v, r->n, x, strcmp(x->node, node));
}

/* Those in the mirror, in its order, with what was known of them. */
static int relist(struct removals *r, const struct mirror *m)
{
	struct removals fresh = { 0 };

	MIRROR_EACH(m, entry, KEYS_REMOVED) {
		const struct removal *old;
		struct removal *e;

		if (entry->kind != KEY_REMOVED)
			continue;
		e = array_add(&fresh);
		old = find(r, mirrored_name(entry));
		if (e && old)
			*e = *old;
		if (!e || !(e->node = strdup(mirrored_name(entry)))) {
			removals_done(&fresh);
			return -ENOMEM;
		}
	}
	removals_done(r);
	*r = fresh;
	return 0;
}

/* --- states --------------------------------------------------------------------------------- */

struct keys {
	char node[KEY_TEXT], status[KEY_TEXT], removed[KEY_TEXT], spec[KEY_TEXT], host[KEY_TEXT];
};

static int make_keys(struct keys *k, const char *node)
{
	int r = key_node(k->node, node);

	r = r ?: key_status_node(k->status, node);
	r = r ?: key_removed(k->removed, node);
	r = r ?: key_spec(k->spec, node);
	return r ?: keys_of_host(k->host, node);
}

/*
 * What the node counts on: its own record, which the removal compares and deletes. One that cannot
 * be read promises something that nobody knows: only an operator's word ends that.
 */
static uint64_t promised(const struct mirrored *node, uint32_t usual, uint32_t minute)
{
	AUTO_DONE(node_done) struct node record = { 0 };
	uint64_t s = usual;

	if (node && node_decode(KV_ARGS(&node->kv), &record, NULL) < 0)
		return UINT64_MAX;
	if (record.reclaim_after)
		s = record.reclaim_after;
	return s * minute / 60;
}

static void update(struct removal *e, const struct mirror *m, uint64_t now, uint32_t usual,
		   uint32_t minute)
{
	AUTO_DONE(node_removed_done) struct node_removed record = { 0 };
	const struct mirrored *node, *removed;
	struct keys k;
	bool off;

	e->state = REMOVAL_WAITING;
	if (make_keys(&k, e->node) < 0)
		return;
	node = mirror_find(m, k.node);
	removed = mirror_find(m, k.removed);
	if (mirror_find(m, k.status)) {
		e->state = REMOVAL_ALIVE;
		e->since = 0;
		return;
	}
	if (!e->since || e->removed_revision != removed->kv.mod_revision ||
	    (node && node->kv.mod_revision != e->node_revision))
		e->since = now;
	e->removed_revision = removed->kv.mod_revision;
	if (node)
		e->node_revision = node->kv.mod_revision;
	/* Once its record is gone, what that promised is kept. */
	if (node || !e->wait)
		e->wait = promised(node, usual, minute);
	/* A record that is invalid is no command. With "now" it does not wait, unless the node has
	 * registered since. */
	if (node_removed_decode(KV_ARGS(&removed->kv), &record, NULL) < 0)
		return;
	off = record.now && (!node || node->kv.mod_revision < removed->kv.mod_revision);
	if (off || now - e->since >= e->wait)
		e->state = REMOVAL_RECLAIM;
}

int removals_update(struct removals *r, const struct mirror *m, uint64_t now, uint32_t usual,
		    uint32_t minute)
{
	int e = relist(r, m);

	for (size_t i = 0; e == 0 && i < r->n; i++)
		update(&r->v[i], m, now, usual, minute);
	return e;
}

uint64_t removals_next(const struct removals *r)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < r->n; i++) {
		const struct removal *e = &r->v[i];

		if (e->state == REMOVAL_WAITING && e->wait != UINT64_MAX &&
		    e->since + e->wait < next)
			next = e->since + e->wait;
	}
	return next;
}

/* --- plans ---------------------------------------------------------------------------------- */

/* The blocks of all that may be taken, by owner: one look at every block. */
struct taken {
	const struct removal *owner;
	const struct mirrored *block;
};
struct takens {
	struct taken *v;
	size_t n, room;
};

static int by_owner(const void *x, const void *y)
{
	const struct taken *a = x, *b = y;

	return a->owner != b->owner ? (a->owner < b->owner ? -1 : 1)
				    : strcmp(a->block->kv.key, b->block->kv.key);
}

static int find_blocks(struct removals *r, const struct mirror *m, struct takens *ret)
{
	MIRROR_EACH(m, e, KEYS_BLOCK) {
		struct removal *owner = e->note ? find(r, e->note) : NULL;

		if (!owner || owner->state != REMOVAL_RECLAIM)
			continue;
		if (array_append(ret, ((struct taken){ owner, e })) < 0)
			return -ENOMEM;
		owner->blocks++;
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_owner);
	return 0;
}

static struct plan *new_plan(struct plans *p, const struct keys *k, int64_t removed)
{
	struct plan *plan = plans_add(p, k->node);

	txn_if(&plan->txn, if_absent(k->status));
	txn_if(&plan->txn, if_unchanged(k->removed, removed));
	return plan;
}

static void take_record(struct plans *p, const struct keys *k, const struct removal *e,
			const struct mirrored *node)
{
	struct plan *plan = new_plan(p, k, e->removed_revision);

	txn_if(&plan->txn, if_unchanged(k->node, node->kv.mod_revision));
	txn_then(&plan->txn, op_delete(k->node));
	plan_says(p, plan, "node %s is removed and silent: deleted its record first", e->node);
}

/* Whether all of it went in. */
static bool take_blocks(struct plans *p, struct plan *plan, const struct removal *e,
			const struct taken *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char index[KEY_TEXT];
		struct key key;

		if (!plan_has_room(plan, 4, 4))
			return false;
		txn_if(&plan->txn, if_unchanged(v[i].block->kv.key, v[i].block->kv.mod_revision));
		txn_then(&plan->txn, op_delete(v[i].block->kv.key));
		if (key_parse(v[i].block->kv.key, &key) == 0 &&
		    key_host_block(index, e->node, key.network, &key.block) == 0)
			txn_then(&plan->txn, op_delete(index));
	}
	return true;
}

static bool deletes(const struct plan *plan, const char *key)
{
	for (size_t i = 0; i < plan->txn.ops.n; i++)
		if (strcmp(plan->txn.ops.v[i].key, key) == 0)
			return true;
	return false;
}

static bool take_host_keys(struct plans *p, struct plan *plan, const struct mirror *m,
			   const char *host)
{
	MIRROR_EACH(m, e, host) {
		if (e->kind == KEY_HOST_BLOCK && deletes(plan, e->kv.key))
			continue;
		if (!plan_has_room(plan, 4, 4))
			return false;
		txn_then(&plan->txn, op_delete(e->kv.key));
	}
	return true;
}

static void take_rest(struct plans *p, const struct mirror *m, const struct keys *k,
		      const struct removal *e, const struct taken *v, size_t n)
{
	struct plan *plan = new_plan(p, k, e->removed_revision);
	size_t before = plan->txn.ops.n;
	bool all;

	txn_if(&plan->txn, if_absent(k->node));
	all = take_blocks(p, plan, e, v, n);
	all = all && take_host_keys(p, plan, m, k->host);
	/* Of a node that is gone nobody withdraws a static route any more. */
	all = all && routes_take_node(p, plan, m, e->node);
	plan_says(p, plan, "node %s: freed %zu keys", e->node, plan->txn.ops.n - before);
	plan->quiet = true;
	if (!all)
		return;
	/* Nothing has come that was not seen: with the removal goes the memory of it. */
	txn_if_prefix(&plan->txn, k->host, if_none_made_after(NULL, NULL, m->revision));
	if (mirror_find(m, k->spec))
		txn_then(&plan->txn, op_delete(k->spec));
	txn_then(&plan->txn, op_delete(k->removed));
	plan->quiet = false;
	plan_says(p, plan, "node %s is gone: freed its last keys", e->node);
}

static void plan_one(struct removal *e, const struct mirror *m, const struct taken *v, size_t n,
		     bool (*busy)(const char *, void *), void *arg, struct plans *ret)
{
	const struct mirrored *node;
	struct keys k;

	if (make_keys(&k, e->node) < 0 || busy(k.node, arg))
		return;
	node = mirror_find(m, k.node);
	if (node)
		take_record(ret, &k, e, node);
	else
		take_rest(ret, m, &k, e, v, n);
}

void removals_plan(struct removals *r, const struct mirror *m,
		   bool (*busy)(const char *subject, void *arg), void *arg, struct plans *ret)
{
	struct takens all = { 0 };
	size_t at = 0, due = 0;

	for (size_t i = 0; i < r->n; i++) {
		r->v[i].blocks = 0;
		due += r->v[i].state == REMOVAL_RECLAIM;
	}
	if (!due)
		return;
	if (find_blocks(r, m, &all) < 0)
		ret->failed = true;
	for (size_t i = 0; i < r->n && !plans_failed(ret); i++) {
		size_t first = at;

		while (at < all.n && all.v[at].owner == &r->v[i])
			at++;
		if (r->v[i].state == REMOVAL_RECLAIM)
			plan_one(&r->v[i], m, all.v + first, at - first, busy, arg, ret);
	}
	array_done(&all);
}
