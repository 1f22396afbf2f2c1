/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of this node: the table of them, and all that changes it.
 *
 *   a request needs one, or will soon -> claim ---.
 *   the watch, the minute, a new proof -> look ---+-> confirmed | lost | vanished -> file, allocator
 *   empty and rested, drained, removed -> release '
 *
 * The allocator says which block to claim and which to give back; ipam/claims makes the
 * transactions. The block key itself says who owns a block: a look reads many of them at once and
 * proves at the same moment that they are still ours. The file is written after the claim and
 * before the first use, and removed before the release is sent.
 */
#include <errno.h>
#include <string.h>

#include "agent/addresses/ipam_state.h"
#include "lib/base/backoff.h"

#define SECOND 1000000000LL
/* A pool found full is not asked again at once. */
#define FULL_FOR         (10 * SECOND)
#define STALE_AGAIN_MS   50
#define RECLAIM_AGAIN_MS 1000
/* The registration is looked at by its own module meanwhile. */
#define LOOK_AGAIN_MS 50
/* Beside the blocks a look asks for status/node/<self> and removed/<self>: authority.h. */
#define LOOK_FIRST 2

/* --- the table ------------------------------------------------------------------------------ */

struct owned *ipam_owned_find(const struct ipam *m, const char *network, const struct prefix *block)
{
	for (size_t i = 0; i < m->owned.n; i++)
		if (prefix_compare(&m->owned.v[i]->copy.block, block) == 0 &&
		    strcmp(m->owned.v[i]->copy.network, network) == 0)
			return m->owned.v[i];
	return NULL;
}

struct owned *ipam_owned_add(struct ipam *m, const char *network, const char *pool,
			     const struct prefix *block, const struct prefix *cidr)
{
	struct owned *o = calloc(1, sizeof(*o));

	if (!o || array_append(&m->owned, o) < 0) {
		free(o);
		return NULL;
	}
	o->ipam = m;
	o->copy = (struct block_copy){ .block = *block,
				       .cidr = *cidr,
				       .unrouted = ipam_unrouted_at_first(network) };
	snprintf(o->copy.network, sizeof(o->copy.network), "%s", network);
	snprintf(o->copy.pool, sizeof(o->copy.pool), "%s", pool);
	return o;
}

static void owned_remove(struct ipam *m, struct owned *o)
{
	for (size_t i = 0; i < m->owned.n; i++) {
		if (m->owned.v[i] != o)
			continue;
		m->owned.v[i] = m->owned.v[--m->owned.n];
		break;
	}
	for (size_t i = 0; i < m->n_looking; i++)
		if (m->looking[i] == o)
			m->looking[i] = NULL;
	claims_cancel(o->call);
	free(o);
	m->o.routes_changed(true, m->o.arg);
}

bool ipam_uses(const struct ipam *m, const char *network, const struct prefix *block)
{
	const struct own_block *b = allocator_block(m->allocator, network, block);

	return b && b->stock.used.n;
}

void ipam_blocks_done(struct ipam *m)
{
	store_cancel(m->verifying);
	while (m->owned.n)
		owned_remove(m, m->owned.v[m->owned.n - 1]);
	array_done(&m->owned);
}

static void health_part(const struct owned *o, char *part)
{
	char block[PREFIX_TEXT];

	snprintf(part, HEALTH_PART, "block/%s/%s", o->copy.network,
		 prefix_print_key(&o->copy.block, block));
}

static const char *show(const struct owned *o, char *text)
{
	return prefix_print(&o->copy.block, text);
}

static void set_state(struct ipam *m, struct owned *o, enum block_state state)
{
	struct err err = { "" };
	int r = allocator_block_set(m->allocator, o->copy.network, o->copy.pool, &o->copy.block,
				    state, ipam_now(), &err);
	char part[HEALTH_PART];

	health_part(o, part);
	if (r < 0)
		health_set(m->o.health, part, LOG_LEVEL_ERROR, "not used: %s",
			   err.text[0] ? err.text : strerror(-r));
	m->o.changed(m->o.arg);
	m->o.routes_changed(true, m->o.arg);
}

static void learn_routed(struct ipam *m, struct owned *o)
{
	const struct pool_view *v = pool_views_find(allocator_pools(m->allocator), o->copy.pool);

	if (!v || !v->pool ||
	    (v->pool->routed != o->copy.unrouted && v->pool->nat_outgoing == o->copy.nat))
		return;
	o->copy.unrouted = !v->pool->routed;
	o->copy.nat = v->pool->nat_outgoing;
	if (local_copy_has_block(m->copy, o->copy.network, &o->copy.block) &&
	    local_copy_put_block(m->copy, &o->copy) < 0)
		log_warning("ipam", "a block's file cannot be written");
	m->o.routes_changed(true, m->o.arg);
}

/* Until its pool is known: as a pool says that does not say anything. */
bool ipam_unrouted_at_first(const char *network)
{
	return strcmp(network, "default") != 0;
}

void ipam_learn_routed(struct ipam *m)
{
	for (size_t i = 0; i < m->owned.n; i++)
		learn_routed(m, m->owned.v[i]);
}

/* --- ours, another's, gone ------------------------------------------------------------------ */

/* The size of its pool, for claiming it again when etcd has forgotten everything. */
static void learn_cidr(struct ipam *m, struct owned *o)
{
	int64_t created;
	const struct extent *extent = ipam_extent(m, o->copy.network, o->copy.pool, &created);

	if (extent)
		o->copy.cidr = extent->cidr;
}

static void on_outcome(const struct store_reply *reply, void *arg)
{
	(void)reply; /* The watch shows it. */
}

/* Both whole keys of a block: its own and its index. */
struct block_keys {
	char block[KEY_FULL_TEXT], index[KEY_FULL_TEXT];
};

static int block_keys(const struct ipam *m, const struct owned *o, struct block_keys *ret)
{
	char relative[KEY_TEXT];
	int r = key_block(relative, o->copy.network, &o->copy.block);

	r = r ?: key_full(m->o.prefix, relative, ret->block);
	r = r ?: key_host_block(relative, m->o.node, o->copy.network, &o->copy.block);
	return r ?: key_full(m->o.prefix, relative, ret->index);
}

/* A block without its index is invisible to whoever reads the node's keys. */
static void write_index(struct ipam *m, const struct owned *o)
{
	struct host_block record = { .pool = o->copy.pool };
	AUTO(free) char *text = NULL;
	struct block_keys keys;

	clock_utc_text(record.claimed);
	if (block_keys(m, o, &keys) < 0 || host_block_encode(&record, &text) < 0)
		return;
	log_warning("ipam", "%s was missing and is written again", keys.index);
	store_txn(m->o.store,
		  &(struct store_txn){ TXN_IF(if_unchanged(keys.block, o->revision)),
				       TXN_THEN(op_put(keys.index, text)), .repeatable = true },
		  0, on_outcome, NULL, NULL);
}

static void confirmed(struct ipam *m, struct owned *o, int64_t revision)
{
	char part[HEALTH_PART], text[PREFIX_TEXT];
	int r;

	learn_cidr(m, o);
	learn_routed(m, o);
	o->revision = revision;
	o->claimed = 0;
	o->copy.lost = o->cut_apart = false;
	r = local_copy_put_block(m->copy, &o->copy);
	health_part(o, part);
	if (r < 0) {
		/* Without its file a restart would not know it: it must not serve. */
		health_set(m->o.health, part, LOG_LEVEL_ERROR,
			   "block %s: its file cannot be written: %s", show(o, text), strerror(-r));
		return;
	}
	health_clear(m->o.health, part);
	set_state(m, o, BLOCK_OWNED);
	if (!o->indexed && records_in_sync(m->wants[INPUT_HOST]))
		write_index(m, o);
	ipam_retry_waiting(m, o->copy.pool, NULL);
}

/* An index that points at another's block, or at none; compare says what was seen of the block. */
static void drop_index(struct ipam *m, struct owned *o, struct store_compare seen)
{
	struct block_keys keys;

	if (!o->indexed || block_keys(m, o, &keys) < 0)
		return;
	seen.key = keys.block;
	o->indexed = false;
	store_txn(m->o.store,
		  &(struct store_txn){ TXN_IF(seen), TXN_THEN(op_delete(keys.index)),
				       .repeatable = true },
		  0, on_outcome, NULL, NULL);
}

static void lost(struct ipam *m, struct owned *o, const char *owner, int64_t revision)
{
	const struct own_block *block = allocator_block(m->allocator, o->copy.network,
							&o->copy.block);
	char part[HEALTH_PART], text[PREFIX_TEXT];

	/* After a crash too nothing may be given from it. */
	o->copy.lost = true;
	if (local_copy_put_block(m->copy, &o->copy) < 0)
		local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
	if (revision)
		drop_index(m, o, if_unchanged(NULL, revision));
	health_part(o, part);
	if (!block || allocator_block_remove(m->allocator, o->copy.network, &o->copy.block) == 0) {
		log_warning("ipam", "block %s belongs to node %s; this node drops it",
			    show(o, text), owner);
		local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
		health_clear(m->o.health, part);
		owned_remove(m, o);
		return;
	}
	o->revision = 0;
	set_state(m, o, BLOCK_LOST);
	health_set(m->o.health, part, LOG_LEVEL_ERROR,
		   "block %s of pool %s belongs to node %s now, but pods here still use it: delete "
		   "them, or give the block back to this node",
		   show(o, text), o->copy.pool, owner);
}

/* Not as fast as etcd answers: what was in the way may well stay there. */
static void later(struct ipam *m, uint64_t ms)
{
	if (!m->again.set)
		timer_set(m->o.timers, &m->again, ms, ms);
}

void ipam_on_again(void *arg)
{
	struct ipam *m = arg;

	m->prove = true;
	for (size_t i = 0; i < m->owned.n; i++) {
		m->owned.v[i]->verify = m->owned.v[i]->verify || m->owned.v[i]->again;
		m->owned.v[i]->again = false;
	}
	pass_mark(m->pass);
}

static void on_reclaimed(const struct claim_result *result, void *arg)
{
	struct owned *o = arg;
	struct ipam *m = o->ipam;
	char text[PREFIX_TEXT];

	o->call = NULL;
	switch (result->outcome) {
	case CLAIM_DONE:
		log_info("ipam",
			 "the key of block %s had vanished from etcd; the block is claimed again",
			 show(o, text));
		ipam_accepted(m);
		o->indexed = true;
		confirmed(m, o, result->revision);
		break;
	case CLAIM_TAKEN:
		/* In a recovery what the record says decides whether it counts. */
		if (ipam_recovery_id(m)[0])
			o->verify = true;
		else
			lost(m, o, result->owner, 0);
		break;
	default:
		log_debug("ipam", "block %s: %s", show(o, text), result->text);
		o->again = true;
		if (result->outcome == CLAIM_FAILED)
			ipam_refused(m, result->text);
		else
			later(m, RECLAIM_AGAIN_MS);
		return;
	}
	pass_mark(m->pass);
}

/*
 * Under which pool it can be claimed again: its own, or whichever has an extent there that is cut
 * alike; else its own extent is made again, as far as no other reaches. -EEXIST: another cut.
 */
static int find_cut(struct ipam *m, struct owned *o, struct block_need *need, struct claim *claim)
{
	const struct extent *found = NULL;
	char text[PREFIX_TEXT], cidr[PREFIX_TEXT], part[HEALTH_PART];

	need->cidr = o->copy.cidr;
	for (size_t i = 0; i < m->inputs.n_extents; i++) {
		const struct extent *e = m->inputs.extents[i];

		if (strcmp(e->network, o->copy.network) != 0 ||
		    !prefix_overlaps(&e->cidr, &o->copy.cidr))
			continue;
		if (!prefix_overlaps(&e->cidr, &o->copy.block)) {
			need->cidr = o->copy.block;
			continue;
		}
		found = e;
		if (e->block_size == o->copy.block.length &&
		    prefix_contains_prefix(&e->cidr, &o->copy.block))
			continue;
		health_part(o, part);
		health_set(
			m->o.health, part, LOG_LEVEL_ERROR,
			"block %s has vanished from etcd, and pool %s cuts %s into /%u there now: "
			"pods on this node keep their addresses, but the block gives no new ones",
			show(o, text), e->pool, prefix_print(&e->cidr, cidr), e->block_size);
		return -EEXIST;
	}
	if (found) {
		snprintf(o->copy.pool, sizeof(o->copy.pool), "%s", found->pool);
		need->cidr = found->cidr;
	}
	snprintf(need->pool, sizeof(need->pool), "%s", o->copy.pool);
	ipam_extent(m, o->copy.network, o->copy.pool, &claim->extent_revision);
	return 0;
}

/* replaces: MOD revision of the record of another owner; 0: there is none. */
static int reclaim(struct ipam *m, struct owned *o, const char *owner, int64_t replaces)
{
	struct claim claim = { .extents_seen = records_seen(m->wants[INPUT_EXTENTS]),
			       .owner = owner,
			       .replaces = replaces,
			       .recovery = ipam_recovery_id(m),
			       .recovery_seen = m->recovery.revision };
	struct block_need need = { .specific = true, .block = o->copy.block };
	int r = ipam_configure(m);

	r = r ?: find_cut(m, o, &need, &claim);
	if (r < 0)
		return r;
	snprintf(need.network, sizeof(need.network), "%s", o->copy.network);
	need.block_size = o->copy.block.length;
	claim.need = &need;
	return claims_claim(m->claims, &claim, on_reclaimed, o, &o->call);
}

static void vanished(struct ipam *m, struct owned *o)
{
	const struct own_block *block = allocator_block(m->allocator, o->copy.network,
							&o->copy.block);
	char text[PREFIX_TEXT];
	int r;

	o->revision = 0;
	o->damaged = false;
	if (!block || allocator_block_remove(m->allocator, o->copy.network, &o->copy.block) == 0) {
		log_warning("ipam",
			    "the key of block %s has vanished from etcd; no pod on this node used "
			    "the block",
			    show(o, text));
		local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
		drop_index(m, o, if_absent(NULL));
		owned_remove(m, o);
		m->o.changed(m->o.arg);
		return;
	}
	set_state(m, o, BLOCK_CLAIMING);
	r = reclaim(m, o, NULL, 0);
	/* That one until the next look of the minute. */
	o->cut_apart = r == -EEXIST;
	o->verify = r < 0 && !o->cut_apart;
}

/*
 * Who held it when etcd went back has pods in it, and was alone: a record that a restore brought
 * back does not count against that. One that was written in this recovery does.
 */
static bool take_back(struct ipam *m, struct owned *o, const struct block *found, int64_t revision)
{
	const char *id = ipam_recovery_id(m);
	char text[PREFIX_TEXT];

	if (!id[0] || o->copy.lost || strcmp(found->recovery, id) == 0 ||
	    !ipam_uses(m, o->copy.network, &o->copy.block) ||
	    authority_decide(&m->authority, ipam_now()) != AUTHORITY_HELD)
		return false;
	o->revision = 0;
	if (reclaim(m, o, found->node, revision) < 0)
		return false;
	log_warning(
		"ipam",
		"etcd has block %s as node %s's since it went back, but pods here use it: taking "
		"it back",
		show(o, text), found->node);
	return true;
}

static void doubtful(struct ipam *m, struct owned *o)
{
	o->revision = 0;
	set_state(m, o, BLOCK_CLAIMING);
}

/* --- extents -------------------------------------------------------------------------------- */

/* How the block's pool was cut; false: nobody here knows any more. */
static bool known_extent(const struct ipam *m, const struct owned *o, struct extent *ret)
{
	const struct pool_view *v = pool_views_find(allocator_pools(m->allocator), o->copy.pool);

	*ret = (struct extent){ .cidr = o->copy.cidr, .block_size = o->copy.block.length };
	/* Of one that was found by its index alone only the block itself is known. */
	if (o->copy.cidr.length < o->copy.block.length)
		return true;
	if (!v || !v->pool || strcmp(v->network, o->copy.network) != 0 ||
	    v->pool->block_size != o->copy.block.length ||
	    !prefix_contains_prefix(&v->pool->cidr, &o->copy.block))
		return false;
	ret->cidr = v->pool->cidr;
	return true;
}

static void write_extent(struct ipam *m, struct owned *o)
{
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];
	struct extent extent;
	AUTO(free) char *text = NULL;
	struct block_keys keys;

	o->extent_asked = true;
	if (!known_extent(m, o, &extent))
		return;
	clock_utc_text(extent.made);
	if (block_keys(m, o, &keys) < 0 ||
	    key_extent(relative, o->copy.network, o->copy.pool) < 0 ||
	    key_full(m->o.prefix, relative, key) < 0 || extent_encode(&extent, &text) < 0)
		return;
	log_warning("ipam", "%s has vanished and is written again", relative);
	store_txn(
		m->o.store,
		&(struct store_txn){ TXN_IF(if_absent(key), if_unchanged(keys.block, o->revision)),
				     TXN_THEN(op_put(key, text)), .repeatable = true },
		0, on_outcome, NULL, NULL);
}

/* Without it the pool, should it have been edited, would be cut another way under our blocks. */
void ipam_restore_extents(struct ipam *m)
{
	for (size_t i = 0; i < m->owned.n && ipam_can_claim(m, NULL); i++) {
		struct owned *o = m->owned.v[i];
		int64_t created;

		ipam_extent(m, o->copy.network, o->copy.pool, &created);
		if (created)
			o->extent_asked = false;
		else if (o->revision && !o->call && !o->extent_asked && o->copy.pool[0])
			write_extent(m, o);
	}
}

/* --- claims --- */

bool ipam_can_claim(const struct ipam *m, struct err *why)
{
	if (ipam_recovering(m, why))
		return false;
	if (!m->connected || !ipam_fence_revision(m))
		ipam_unregistered(m, why);
	else if (m->refused.set)
		err_set(why, 0, "%s", m->refusal.text);
	else if (!records_in_sync(m->wants[INPUT_EXTENTS]) ||
		 !records_in_sync(m->wants[INPUT_POOLS]))
		err_set(why, 0, "the pools are still being read");
	else
		return true;
	return false;
}

void ipam_refused(struct ipam *m, const char *text)
{
	uint64_t delay = backoff_refused_ms(&m->refusals);

	err_set(&m->refusal, 0, "%s", text);
	timer_set(m->o.timers, &m->refused, delay, delay / 4);
}

void ipam_accepted(struct ipam *m)
{
	bool refused = m->refusals;

	m->refusals = 0;
	m->refusal.text[0] = '\0';
	timer_clear(m->o.timers, &m->refused);
	if (refused)
		m->o.accepted(m->o.arg);
}

/* The extent that a claim has made is known at once, not when the watch brings it. */
static void remember_extent(struct ipam *m, const struct claim_result *r)
{
	const struct block_need *need = r->claim->need;
	struct extent extent = { .cidr = need->cidr, .block_size = r->block.length };
	AUTO(free) char *text = NULL;
	char key[KEY_TEXT];
	int64_t created;

	ipam_extent(m, need->network, need->pool, &created);
	if (created || !r->extent_revision)
		return;
	clock_utc_text(extent.made);
	if (key_extent(key, need->network, need->pool) == 0 && extent_encode(&extent, &text) == 0)
		records_put(m->o.records, key, text, strlen(text), r->extent_revision);
}

/*
 * A claim is told what was so when etcd was asked. If the block was ours already, another claim has
 * got it, and it may have been given back since, or be on its way back: only a new look tells.
 */
static void claimed(struct ipam *m, const struct claim_result *r)
{
	const struct block_need *need = r->claim->need;
	struct owned *o = ipam_owned_find(m, need->network, &r->block);
	char text[PREFIX_TEXT];

	remember_extent(m, r);
	if (!o && !(o = ipam_owned_add(m, need->network, need->pool, &r->block, &need->cidr))) {
		log_error("ipam", "out of memory: block %s serves later",
			  prefix_print(&r->block, text));
		return;
	}
	if (r->found) {
		o->verify = o->verify || !o->revision;
		ipam_retry_waiting(m, need->pool, NULL);
		return;
	}
	o->indexed = true;
	log_info("ipam", "claimed block %s of pool %s after %u transaction%s",
		 prefix_print(&r->block, text), need->pool, r->tries, r->tries == 1 ? "" : "s");
	if (o->call)
		o->claimed = r->revision;
	else
		confirmed(m, o, r->revision);
}

static void on_claimed(const struct claim_result *r, void *arg)
{
	const struct claim *c = r->claim;
	const char *pool = c->need->pool, *failed = NULL;
	struct ipam *m = arg;

	switch (r->outcome) {
	case CLAIM_DONE:
		ipam_accepted(m);
		claimed(m, r);
		allocator_pool_full(m->allocator, pool, 0);
		break;
	case CLAIM_FULL:
		if (c->need->whole)
			allocator_pool_full(m->allocator, pool, ipam_now() + FULL_FOR);
		failed = r->text;
		break;
	case CLAIM_TAKEN:
		failed = r->text;
		break;
	case CLAIM_FAILED:
		/* A request that waits for it learns why from ipam_can_claim(), and waits on. */
		ipam_refused(m, r->text);
		break;
	case CLAIM_STALE:
		log_debug("ipam", "claim in pool %s: %s; looking again", pool, r->text);
		/* Until we have heard what has changed, it would meet the same again. */
		if (records_seen(m->wants[INPUT_EXTENTS]) == c->extents_seen &&
		    ipam_fence_revision(m) == c->fence) {
			later(m, STALE_AGAIN_MS);
			return;
		}
		break;
	}
	if (r->outcome != CLAIM_DONE)
		ipam_retry_waiting(m, pool, failed);
	pass_mark(m->pass);
}

int ipam_claim(struct ipam *m, const struct block_need *need)
{
	struct claim claim = { .need = need,
			       .extents_seen = records_seen(m->wants[INPUT_EXTENTS]),
			       .recovery_seen = m->recovery.revision,
			       .fence = ipam_fence_revision(m) };

	if (claims_has(m->claims, on_claimed, need->pool, need->specific ? &need->block : NULL))
		return 0;
	if (!ipam_can_claim(m, NULL))
		return -EAGAIN;
	ipam_extent(m, need->network, need->pool, &claim.extent_revision);
	return claims_claim(m->claims, &claim, on_claimed, m, NULL);
}

void ipam_claim_ahead(struct ipam *m)
{
	struct block_need needs[16];
	int n;

	if (m->authority.removed || ipam_drained(m) || !ipam_can_claim(m, NULL))
		return;
	n = allocator_claims_wanted(m->allocator, ipam_now(), needs, ARRAY_SIZE(needs));
	for (int i = 0; i < n; i++) {
		/* Another node needs just what this one has given back. */
		if (needs[i].reason != NEED_LOW_WATER || ipam_now() >= m->modest_until)
			ipam_claim(m, &needs[i]);
		block_need_done(&needs[i]);
	}
}

/* --- looking at block keys ------------------------------------------------------------------ */

static void block_found(struct ipam *m, struct owned *o, const struct store_kv *kv)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const char *relative = kv->key + strlen(m->o.prefix);
	struct err err = { "" };

	if (block_decode(relative, kv->value, kv->value_len, &block, &err) < 0) {
		health_set(m->o.health, relative, LOG_LEVEL_ERROR,
			   "%s; nothing is given from this block until the record is put right, or "
			   "deleted",
			   err.text);
		o->damaged = true;
		doubtful(m, o);
		return;
	}
	o->damaged = false;
	health_clear(m->o.health, relative);
	if (block.pool[0])
		snprintf(o->copy.pool, sizeof(o->copy.pool), "%s", block.pool);
	if (strcmp(block.node, m->o.node) == 0)
		confirmed(m, o, kv->mod_revision);
	else if (!take_back(m, o, &block, kv->mod_revision))
		lost(m, o, block.node, kv->mod_revision);
}

static void look_again(struct ipam *m)
{
	uint64_t delay = backoff_usec(++m->look_failures, 1000 * LOOK_AGAIN_MS, 30000000) / 1000;

	for (size_t i = 0; i < m->n_looking; i++)
		if (m->looking[i])
			m->looking[i]->again = true;
	later(m, delay);
}

static void on_verified(const struct store_reply *reply, void *arg)
{
	struct ipam *m = arg;

	m->verifying = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (!reply->err && reply->revision > m->newest)
		m->newest = reply->revision;
	err_set(&m->unproven, 0, "%s", reply->text);
	if (!reply->err && reply->succeeded)
		m->look_failures = 0;
	if (!reply->err && reply->succeeded && reply->n_ops >= LOOK_FIRST) {
		/* Without a status: the report says when it stands. */
		if (reply->ops[0].n && !reply->ops[1].n)
			ipam_proved(m, reply->sent);
	}
	/* Not our registration any more, or another revision of it: what was read proves nothing.
	 */
	if (reply->err || !reply->succeeded)
		look_again(m);
	for (size_t i = 0; i < m->n_looking && !reply->err && reply->succeeded; i++) {
		struct owned *o = m->looking[i];
		const size_t at = i + LOOK_FIRST;

		/* Older than what a claim has told meanwhile: no news. */
		if (!o || o->call || at >= reply->n_ops || reply->revision < o->revision)
			continue;
		if (reply->ops[at].n)
			block_found(m, o, &reply->ops[at].kvs[0]);
		else
			vanished(m, o);
	}
	m->n_looking = 0;
	pass_mark(m->pass);
}

static size_t choose_looks(struct ipam *m, char (*keys)[KEY_FULL_TEXT], struct store_op *ops)
{
	const bool recovering = ipam_recovering(m, NULL);
	size_t n = 0;

	for (size_t i = 0; i < m->owned.n && n < STORE_TXN_MAX - LOOK_FIRST; i++) {
		struct owned *o = m->owned.v[i];
		char relative[KEY_TEXT];

		/* Another node held it when etcd went back: that one asserts it, or nobody does. */
		o->restored = o->restored || (o->copy.lost && recovering);
		/* Not settled: its claim tells, and until then it serves nothing. */
		if (!o->verify || o->restored || o->call ||
		    claims_tries(m->claims, on_claimed, o->copy.network, &o->copy.block) ||
		    key_block(relative, o->copy.network, &o->copy.block) < 0 ||
		    key_full(m->o.prefix, relative, keys[n]) < 0)
			continue;
		ops[n] = op_get(keys[n]);
		m->looking[n++] = o;
	}
	return n;
}

void ipam_look(struct ipam *m)
{
	AUTO(free) char(*keys)[KEY_FULL_TEXT] = NULL;
	struct store_op ops[STORE_TXN_MAX] = { op_get_key(m->status_key),
					       op_get_key(m->removed_key) };
	size_t n;

	/* Only the registered owner may draw conclusions from what is missing. */
	if (m->verifying || !records_in_sync(m->wants[INPUT_HOST]) || !m->o.fence(m->o.arg) ||
	    m->recovery.noticed)
		return;
	keys = calloc(STORE_TXN_MAX, sizeof(*keys));
	n = keys ? choose_looks(m, keys, ops + LOOK_FIRST) : 0;
	if ((!n && !m->prove) ||
	    store_txn(m->o.store,
		      &(struct store_txn){
			      TXN_IF(if_unchanged(m->fence_key, ipam_fence_revision(m))),
			      .success = ops, .n_success = n + LOOK_FIRST, .repeatable = true },
		      STORE_FOREVER, on_verified, m, &m->verifying) < 0)
		return;
	m->prove = false;
	m->n_looking = n;
	for (size_t i = 0; i < n; i++)
		m->looking[i]->verify = false;
}

/* --- giving back --- */

static void on_released(bool released, int64_t revision, const char *why, void *arg)
{
	struct owned *o = arg;
	struct ipam *m = o->ipam;
	char text[PREFIX_TEXT];

	o->call = NULL;
	if (released)
		ipam_accepted(m);
	if (released && o->claimed) {
		confirmed(m, o, o->claimed);
	} else if (released && allocator_block_remove(m->allocator, o->copy.network,
						      &o->copy.block) == -EBUSY) {
		/* Cannot be: nothing is given from a block on its way back. But if it was: */
		vanished(m, o);
	} else if (released) {
		log_info("ipam", "released block %s of pool %s", prefix_print(&o->copy.block, text),
			 o->copy.pool);
		/* A restart must know of a restore that would make it ours again. */
		m->unsaved = true;
		owned_remove(m, o);
	} else {
		log_warning("ipam", "block %s could not be released: %s",
			    prefix_print(&o->copy.block, text), why);
		if (revision) {
			confirmed(m, o, revision);
		} else {
			ipam_refused(m, why);
			o->verify = true;
		}
	}
	m->o.changed(m->o.arg);
	pass_mark(m->pass);
}

static int release_block(struct ipam *m, struct owned *o)
{
	int r;

	/* From here on nothing is given from it, not even after a crash. */
	set_state(m, o, BLOCK_RELEASING);
	r = local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
	r = r
		    ?: claims_release(m->claims, o->copy.network, &o->copy.block, o->revision,
				      on_released, o, &o->call);
	if (r < 0) {
		local_copy_put_block(m->copy, &o->copy);
		set_state(m, o, BLOCK_OWNED);
	}
	return r;
}

/* A removed or drained node gives up whatever no pod uses. */
static const struct own_block *next_to_give(const struct ipam *m)
{
	const struct blocks *blocks = allocator_blocks(m->allocator);

	if (!m->authority.removed && !ipam_drained(m))
		return allocator_give_back(m->allocator, &m->give_back, ipam_now());
	for (size_t i = 0; i < blocks->n; i++)
		if (blocks->v[i]->state == BLOCK_OWNED && !blocks->v[i]->stock.used.n)
			return blocks->v[i];
	return NULL;
}

static void wake_when_ripe(struct ipam *m)
{
	int64_t now = ipam_now(), next = allocator_give_back_time(m->allocator, now);
	uint64_t ms = next > now ? (uint64_t)(next - now) / 1000000 + 1 : 0;

	if (next == INT64_MAX)
		timer_clear(m->o.timers, &m->ripe);
	else
		timer_set(m->o.timers, &m->ripe, ms, ms / 4);
}

void ipam_give_back(struct ipam *m)
{
	const struct own_block *b;

	while (ipam_can_claim(m, NULL) && (b = next_to_give(m))) {
		struct owned *o = ipam_owned_find(m, b->network, &b->prefix);

		/* What could not be done now would be found again at once. */
		if (!o || !o->revision || o->call || release_block(m, o) < 0)
			break;
	}
	while ((b = allocator_block_forgotten(m->allocator))) {
		struct owned *o = ipam_owned_find(m, b->network, &b->prefix);
		char part[HEALTH_PART];

		if (!o)
			break;
		health_part(o, part);
		health_clear(m->o.health, part);
		local_copy_remove_block(m->copy, b->network, &b->prefix);
		allocator_block_remove(m->allocator, b->network, &b->prefix);
		owned_remove(m, o);
	}
	wake_when_ripe(m);
}
