/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_pools.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/model/model.h"

void pools_done(struct pools *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].key);
	array_done(p);
	p->full = p->invalid = p->lacking = 0;
}

/* --- blocks of a pool, by owner ------------------------------------------------------------- */

struct holding {
	const char *node; /* of a mirrored block */
	size_t blocks, empty;
};
struct holdings {
	struct holding *v;
	size_t n, room;
};

static void holdings_done(struct holdings *h)
{
	array_done(h);
}

/* host/<node>/address/<network>/: whether one of them lies in the block. */
static bool is_empty(const struct mirror *m, const char *node, const struct key *block)
{
	char beginning[KEY_TEXT + NAME_TEXT];
	char start[KEY_TEXT];

	if (keys_of_host_addresses(start, node) < 0)
		return false;
	snprintf(beginning, sizeof(beginning), "%s%s/", start, block->network);
	MIRROR_EACH(m, e, beginning) {
		struct key key;

		if (key_parse(e->kv.key, &key) == 0 && key.kind == KEY_ADDRESS &&
		    prefix_contains(&block->block, &key.address))
			return false;
	}
	return true;
}

static int by_node(const void *a, const void *b)
{
	return strcmp(((const struct holding *)a)->node, ((const struct holding *)b)->node);
}

/* All blocks that lie in the pool, one entry each; then one per node. */
static int gather(const struct mirror *m, const struct pool *pool, bool look, struct holdings *ret,
		  size_t *ret_blocks)
{
	char beginning[KEY_TEXT];
	size_t kept = 0;
	int r = keys_of_blocks(beginning, pool->network);

	if (r < 0)
		return r;
	MIRROR_EACH(m, e, beginning) {
		struct key key;

		if (key_parse(e->kv.key, &key) < 0 || !prefix_overlaps(&pool->cidr, &key.block))
			continue;
		(*ret_blocks)++;
		if (e->note &&
		    array_append(ret, ((struct holding){ e->note, 1,
							 look && is_empty(m, e->note, &key) })) < 0)
			return -ENOMEM;
	}
	if (!ret->n)
		return 0;
	qsort(ret->v, ret->n, sizeof(*ret->v), by_node);
	for (size_t i = 0; i < ret->n; i++) {
		if (kept && by_node(&ret->v[kept - 1], &ret->v[i]) == 0) {
			ret->v[kept - 1].blocks += ret->v[i].blocks;
			ret->v[kept - 1].empty += ret->v[i].empty;
		} else {
			ret->v[kept++] = ret->v[i];
		}
	}
	ret->n = kept;
	return 0;
}

static size_t blocks_of(const struct holdings *h, const char *node)
{
	const struct holding *found = array_find(h->v, h->n, x, strcmp(x->node, node));

	return found ? found->blocks : 0;
}

/* --- how a pool is -------------------------------------------------------------------------- */

/* "web db ": whole words. */
static bool names(const char *list, const char *pool)
{
	size_t len = strlen(pool);

	for (const char *at = list; (at = strstr(at, pool)); at += len)
		if ((at == list || at[-1] == ' ') && at[len] == ' ')
			return true;
	return false;
}

static bool somebody_says_full(const struct mirror *m, const char *pool)
{
	MIRROR_EACH(m, e, KEYS_STATUS_NODE)
		if (e->note && names(e->note, pool))
			return true;
	return false;
}

static bool all_taken(const struct mirror *m, const struct pool *pool, size_t blocks)
{
	AUTO_DONE(extent_done) struct extent extent = { 0 };
	const struct mirrored *e;
	char key[KEY_TEXT];

	if (key_extent(key, pool->network, pool->name) < 0 || !(e = mirror_find(m, key)) ||
	    extent_decode(key, e->kv.value, e->kv.value_len, &extent, NULL) < 0)
		return false;
	return extent.block_size - extent.cidr.length <= POOL_BLOCKS_MAX_BITS &&
	       blocks >= (size_t)1 << (extent.block_size - extent.cidr.length);
}

/* Lives, is not on its way out, and may claim here. */
static bool is_meant(const struct mirror *m, const struct pool *pool, const char *node)
{
	AUTO_DONE(node_spec_done) struct node_spec spec = { 0 };
	const struct mirrored *e;
	char key[KEY_TEXT];

	if (key_removed(key, node) < 0 || mirror_find(m, key))
		return false;
	if (key_spec(key, node) == 0 && (e = mirror_find(m, key)) &&
	    node_spec_decode(key, e->kv.value, e->kv.value_len, &spec, NULL) == 0 && spec.drain)
		return false;
	return selector_selects(pool->node_selector.parsed,
				&(struct labels){ spec.labels.v, spec.labels.n }, node);
}

static uint32_t count_lacking(const struct mirror *m, const struct pool *pool,
			      const struct holdings *h)
{
	uint32_t n = 0;

	if (!pool->preallocate || pool->disabled)
		return 0;
	MIRROR_EACH(m, e, KEYS_STATUS_NODE) {
		const char *node = mirrored_name(e);

		n += blocks_of(h, node) < pool->preallocate && is_meant(m, pool, node);
	}
	return n;
}

/* --- the record ----------------------------------------------------------------------------- */

/* The old events and a new one; what is too old falls out. v has room for all. */
static size_t add_event(struct pool_event *v, size_t n, const char *utc, const char *what)
{
	if (n == POOL_EVENTS_MAX) {
		memmove(v, v + 1, (n - 1) * sizeof(*v));
		n--;
	}
	v[n] = (struct pool_event){ .what = what };
	snprintf(v[n].when, sizeof(v[n].when), "%s", utc);
	return n + 1;
}

static void write_status(const struct mirror *m, const struct pool_status *found, const char *utc,
			 struct plans *ret)
{
	AUTO_DONE(pool_status_done) struct pool_status old = { 0 };
	struct pool_event events[POOL_EVENTS_MAX];
	struct pool_status fresh = *found;
	const struct mirrored *e;
	AUTO(free) char *text = NULL;
	char key[KEY_TEXT];
	struct plan *plan;
	size_t n = 0;

	if (key_status_pool(key, found->pool) < 0)
		return;
	e = mirror_find(m, key);
	if (!e || pool_status_decode(key, e->kv.value, e->kv.value_len, &old, NULL) < 0)
		old = (struct pool_status){ .invalid = NULL };
	for (size_t i = 0; i < old.events.n && n < POOL_EVENTS_MAX; i++)
		events[n++] = old.events.v[i];
	if (strcmp(old.invalid ?: "", fresh.invalid) != 0)
		n = add_event(events, n, utc, fresh.invalid[0] ? fresh.invalid : "valid again");
	if (old.full != fresh.full)
		n = add_event(events, n, utc,
			      fresh.full ? "full: no block is free"
					 : "there are free blocks again");
	if (!old.lacking != !fresh.lacking)
		n = add_event(events, n, utc,
			      fresh.lacking ? "some nodes have fewer blocks than preallocate"
					    : "every node has as many blocks as preallocate");
	fresh.events = (struct pool_events){ events, n };
	if (pool_status_encode(&fresh, &text) < 0) {
		ret->failed = true;
		return;
	}
	/* Nothing to tell of a pool that was always well. */
	if (e ? strcmp(e->kv.value, text) == 0 : strcmp(text, "{}") == 0)
		return;
	plan = plans_add(ret, key);
	plan_if_seen(plan, m, key);
	txn_then(&plan->txn, op_put(key, text));
	plan_says(ret, plan, "pool %s: %s", found->pool,
		  n ? events[n - 1].what : "its status has changed");
}

/* --- give back ------------------------------------------------------------------------------ */

static bool asked_lately(const struct pools *p, const char *key, uint64_t now, uint64_t minute)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->v[i].key, key) == 0)
			return now - p->v[i].when < minute;
	return false;
}

static void forget_old(struct pools *p, uint64_t now, uint64_t minute)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (now - p->v[i].when < minute)
			p->v[kept++] = p->v[i];
		else
			free(p->v[i].key);
	}
	p->n = kept;
}

static int by_empty(const void *x, const void *y)
{
	const struct holding *a = x, *b = y;

	return a->empty != b->empty ? (a->empty > b->empty ? -1 : 1) : strcmp(a->node, b->node);
}

static void ask(struct pools *p, const struct mirror *m, const struct pool *pool,
		struct holdings *h, uint64_t now, uint64_t minute, struct plans *ret)
{
	size_t n = 0;

	if (h->n)
		qsort(h->v, h->n, sizeof(*h->v), by_empty);
	for (size_t i = 0; i < h->n && h->v[i].empty && n < POOL_ASKED_MAX; i++) {
		char key[KEY_TEXT], status[KEY_TEXT], node[KEY_TEXT];
		const struct mirrored *e;
		struct plan *plan;

		/* Its last one it may keep, and only one that lives can answer. */
		if (h->v[i].blocks < 2 || h->v[i].blocks <= pool->preallocate ||
		    key_give_back(key, h->v[i].node, pool->network) < 0 ||
		    key_status_node(status, h->v[i].node) < 0 || !mirror_find(m, status) ||
		    key_node(node, h->v[i].node) < 0 || !(e = mirror_find(m, node)))
			continue;
		if (mirror_find(m, key) || asked_lately(p, key, now, minute)) {
			n++;
			continue;
		}
		plan = plans_add(ret, key);
		txn_if(&plan->txn, if_absent(key));
		txn_if(&plan->txn, if_unchanged(node, e->kv.mod_revision));
		txn_then(&plan->txn, op_put(key, "{}"));
		plan_says(ret, plan,
			  "pool %s is full: asked node %s, which has %zu empty blocks of it, to "
			  "give blocks back",
			  pool->name, h->v[i].node, h->v[i].empty);
		/* One that was asked longer ago has been forgotten by now. */
		if (array_append(p, ((struct asked){ strdup(key), now })) < 0 ||
		    !p->v[p->n - 1].key)
			ret->failed = true;
		n++;
	}
}

/* --- all of them ---------------------------------------------------------------------------- */

static void decide_one(struct pools *p, const struct mirror *m, const struct mirrored *e,
		       uint64_t now, const char *utc, uint64_t minute, struct plans *ret)
{
	AUTO_DONE(pool_done) struct pool pool = { 0 };
	AUTO_DONE(holdings_done) struct holdings h = { 0 };
	struct pool_status found = { .pool = mirrored_name(e), .invalid = "" };
	char word[254];
	struct err err = { "" };
	size_t blocks = 0;
	bool asking;
	int r = pool_decode(KV_ARGS(&e->kv), &pool, &err);

	if (r == -ENOMEM) {
		ret->failed = true;
		return;
	}
	if (r < 0) {
		found.invalid = text_printable(err.text, word, sizeof(word));
		p->invalid++;
		write_status(m, &found, utc, ret);
		return;
	}
	asking = !pool.disabled && somebody_says_full(m, pool.name);
	if (gather(m, &pool, asking, &h, &blocks) < 0) {
		ret->failed = true;
		return;
	}
	found.full = asking || all_taken(m, &pool, blocks);
	found.lacking = count_lacking(m, &pool, &h);
	p->full += found.full;
	p->lacking += found.lacking;
	write_status(m, &found, utc, ret);
	if (asking)
		ask(p, m, &pool, &h, now, minute, ret);
}

/* Of a pool that is gone nobody wants to know. */
static void sweep(const struct mirror *m, struct plans *ret)
{
	MIRROR_EACH(m, e, KEYS_STATUS_POOL) {
		struct plan *plan;
		char key[KEY_TEXT];

		if (key_pool(key, mirrored_name(e)) < 0 || mirror_find(m, key))
			continue;
		plan = plans_add(ret, e->kv.key);
		txn_if(&plan->txn, if_unchanged(e->kv.key, e->kv.mod_revision));
		txn_if(&plan->txn, if_absent(key));
		txn_then(&plan->txn, op_delete(e->kv.key));
		plan_says(ret, plan, "pool %s was deleted: deleted its status too",
			  mirrored_name(e));
	}
}

void pools_decide(struct pools *p, const struct mirror *m, uint64_t now, const char *utc,
		  uint64_t minute, struct plans *ret)
{
	p->full = p->invalid = p->lacking = 0;
	forget_old(p, now, minute);
	MIRROR_EACH(m, e, KEYS_POOL)
		if (e->kind == KEY_POOL)
			decide_one(p, m, e, now, utc, minute, ret);
	sweep(m, ret);
}
