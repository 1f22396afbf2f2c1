/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are ours: the table of them, what etcd's keys say of each, and what follows. One
 * whose key vanished is claimed again, one that another node has is lost. The files follow: written
 * after the claim and before the first use.
 */
#include "agent/addresses/ipam_parts.h"

#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"

#define RECLAIM_AGAIN_MS 1000

/* --- the table ------------------------------------------------------------------------------ */

struct owned *ipam_owned_find(const struct ipam *m, const char *network, const struct prefix *block)
{
	for (size_t i = 0; i < m->n_owned; i++)
		if (prefix_compare(&m->owned[i]->copy.block, block) == 0 &&
		    strcmp(m->owned[i]->copy.network, network) == 0)
			return m->owned[i];
	return NULL;
}

int ipam_owned_add(struct ipam *m, const struct block_copy *copy, struct owned **ret)
{
	struct owned *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	if (m->n_owned == m->owned_room) {
		size_t room = m->owned_room ? m->owned_room * 2 : 16;
		struct owned **grown = reallocarray(m->owned, room, sizeof(struct owned *));

		if (!grown) {
			free(o);
			return -ENOMEM;
		}
		m->owned = grown;
		m->owned_room = room;
	}
	o->copy = *copy;
	o->ipam = m;
	m->owned[m->n_owned++] = o;
	*ret = o;
	return 0;
}

void ipam_owned_remove(struct ipam *m, struct owned *o)
{
	for (size_t i = 0; i < m->n_owned; i++) {
		if (m->owned[i] != o)
			continue;
		m->owned[i] = m->owned[--m->n_owned];
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

	return b && b->stock.n_used;
}

void ipam_blocks_done(struct ipam *m)
{
	while (m->n_owned)
		ipam_owned_remove(m, m->owned[m->n_owned - 1]);
	free(m->owned);
	ipam_claims_forget(m);
}

void ipam_block_health(const struct owned *o, char *part)
{
	char block[PREFIX_TEXT];

	snprintf(part, HEALTH_PART, "block/%s/%s", o->copy.network,
		 prefix_print_key(&o->copy.block, block));
}

static const char *show(const struct owned *o, char *text)
{
	return prefix_print(&o->copy.block, text);
}

void ipam_block_set(struct ipam *m, struct owned *o, enum block_state state)
{
	struct err err = { "" };
	int r = allocator_block_set(m->allocator, o->copy.network, o->copy.pool, &o->copy.block,
				    state, ipam_now(), &err);
	char part[HEALTH_PART];

	ipam_block_health(o, part);
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
	for (size_t i = 0; i < m->n_owned; i++)
		learn_routed(m, m->owned[i]);
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

int64_t ipam_fence_revision(const struct ipam *m)
{
	const struct fence *fence = m->o.fence(m->o.arg);

	return fence ? fence->mod_revision : 0;
}

static void on_index_written(const struct store_reply *reply, void *arg)
{
	(void)reply; /* The watch tells. */
}

/* The whole keys of a block and of its index. */
static int own_keys(const struct ipam *m, const struct owned *o, char *block, char *index)
{
	char relative[KEY_TEXT];
	int r = key_block(relative, o->copy.network, &o->copy.block);

	r = r ?: key_full(m->o.prefix, relative, block);
	r = r ?: key_host_block(relative, m->o.node, o->copy.network, &o->copy.block);
	return r ?: key_full(m->o.prefix, relative, index);
}

/* A block without its index is invisible to whoever reads the node's keys. */
static void write_index(struct ipam *m, const struct owned *o)
{
	char block[KEY_FULL_TEXT], index[KEY_FULL_TEXT];
	struct host_block record = { .pool = o->copy.pool };
	AUTO(free) char *text = NULL;
	struct store_compare same = { .key = block,
				      .target = STORE_MOD_REVISION,
				      .number = o->revision };
	struct store_op put = { .kind = STORE_PUT, .key = index };
	struct store_txn txn = { &same, 1, &put, NULL, 1, 0, true, false };

	clock_utc_text(record.claimed);
	if (own_keys(m, o, block, index) < 0 || host_block_encode(&record, &text) < 0)
		return;
	put.value = text;
	put.value_len = strlen(text);
	log_warning("ipam", "%s is missing and written again", index);
	store_txn(m->o.store, &txn, 0, on_index_written, NULL, NULL);
}

void ipam_block_confirmed(struct ipam *m, struct owned *o, int64_t revision)
{
	char part[HEALTH_PART], text[PREFIX_TEXT];
	int r;

	learn_cidr(m, o);
	learn_routed(m, o);
	o->revision = revision;
	o->claimed = 0;
	o->copy.lost = o->cut_apart = false;
	r = local_copy_put_block(m->copy, &o->copy);
	ipam_block_health(o, part);
	if (r < 0) {
		/* Without its file a restart would not know it: it must not serve. */
		health_set(m->o.health, part, LOG_LEVEL_ERROR, "block %s: its file: %s",
			   show(o, text), strerror(-r));
		return;
	}
	health_clear(m->o.health, part);
	ipam_block_set(m, o, BLOCK_OWNED);
	if (!o->indexed && records_in_sync(m->wants[INPUT_HOST]))
		write_index(m, o);
	ipam_retry_waiting(m, o->copy.pool, NULL);
}

/* An index that points at another's block, or at none; compare says what was seen of the block. */
static void drop_index(struct ipam *m, struct owned *o, struct store_compare seen)
{
	char block[KEY_FULL_TEXT], index[KEY_FULL_TEXT];
	struct store_op drop = { .kind = STORE_DELETE, .key = index };
	struct store_txn txn = { &seen, 1, &drop, NULL, 1, 0, true, false };

	if (!o->indexed || own_keys(m, o, block, index) < 0)
		return;
	seen.key = block;
	o->indexed = false;
	store_txn(m->o.store, &txn, 0, on_index_written, NULL, NULL);
}

void ipam_block_lost(struct ipam *m, struct owned *o, const char *owner, int64_t revision)
{
	const struct own_block *block = allocator_block(m->allocator, o->copy.network,
							&o->copy.block);
	char part[HEALTH_PART], text[PREFIX_TEXT];

	/* After a crash too nothing may be given from it. */
	o->copy.lost = true;
	if (local_copy_put_block(m->copy, &o->copy) < 0)
		local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
	if (revision)
		drop_index(
			m, o,
			(struct store_compare){ .target = STORE_MOD_REVISION, .number = revision });
	ipam_block_health(o, part);
	if (!block || allocator_block_remove(m->allocator, o->copy.network, &o->copy.block) == 0) {
		log_warning("ipam", "block %s belongs to node %s and is forgotten", show(o, text),
			    owner);
		local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
		health_clear(m->o.health, part);
		ipam_owned_remove(m, o);
		return;
	}
	o->revision = 0;
	ipam_block_set(m, o, BLOCK_LOST);
	health_set(m->o.health, part, LOG_LEVEL_ERROR,
		   "block %s of pool %s belongs to node %s now, but pods here still use it: delete "
		   "them, or give the block back to this node",
		   show(o, text), o->copy.pool, owner);
}

/* Not as fast as etcd answers: what was in the way may well stay there. */
void ipam_later(struct ipam *m, uint64_t ms)
{
	if (!m->again.set)
		timer_set(m->o.timers, &m->again, ms, ms);
}

void ipam_on_again(void *arg)
{
	struct ipam *m = arg;

	m->prove = true;
	for (size_t i = 0; i < m->n_owned; i++) {
		m->owned[i]->verify = m->owned[i]->verify || m->owned[i]->again;
		m->owned[i]->again = false;
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
		log_info("ipam", "block %s had vanished from etcd and is claimed again",
			 show(o, text));
		ipam_accepted(m);
		o->indexed = true;
		ipam_block_confirmed(m, o, result->revision);
		break;
	case CLAIM_TAKEN:
		/* In a recovery what the record says decides whether it counts. */
		if (ipam_recovery_id(m)[0])
			o->verify = true;
		else
			ipam_block_lost(m, o, result->owner, 0);
		break;
	default:
		log_debug("ipam", "block %s: %s", show(o, text), result->text);
		o->again = true;
		if (result->outcome == CLAIM_FAILED)
			ipam_refused(m, result->text);
		else
			ipam_later(m, RECLAIM_AGAIN_MS);
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
		ipam_block_health(o, part);
		health_set(
			m->o.health, part, LOG_LEVEL_ERROR,
			"block %s has vanished from etcd, and pool %s cuts %s into /%u there now: "
			"pods here keep their addresses, but nothing new is given",
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

void ipam_block_vanished(struct ipam *m, struct owned *o)
{
	const struct own_block *block = allocator_block(m->allocator, o->copy.network,
							&o->copy.block);
	char text[PREFIX_TEXT];
	int r;

	o->revision = 0;
	o->damaged = false;
	if (!block || allocator_block_remove(m->allocator, o->copy.network, &o->copy.block) == 0) {
		log_warning("ipam", "block %s has vanished from etcd; nothing here used it",
			    show(o, text));
		local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
		drop_index(m, o, (struct store_compare){ .target = STORE_CREATE_REVISION });
		ipam_owned_remove(m, o);
		m->o.changed(m->o.arg);
		return;
	}
	ipam_block_set(m, o, BLOCK_CLAIMING);
	r = reclaim(m, o, NULL, 0);
	/* That one until the next look of the minute. */
	o->cut_apart = r == -EEXIST;
	o->verify = r < 0 && !o->cut_apart;
}

/*
 * Who held it when etcd went back has pods in it, and was alone: a record that a restore brought
 * back does not count against that. One that was written in this recovery does.
 */
bool ipam_block_take_back(struct ipam *m, struct owned *o, const struct block *found,
			  int64_t revision)
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

void ipam_block_doubtful(struct ipam *m, struct owned *o)
{
	o->revision = 0;
	ipam_block_set(m, o, BLOCK_CLAIMING);
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
	char relative[KEY_TEXT], block[KEY_FULL_TEXT], key[KEY_FULL_TEXT];
	struct extent extent;
	AUTO(free) char *text = NULL;
	struct store_compare compares[] = {
		{ .key = key, .target = STORE_CREATE_REVISION },
		{ .key = block, .target = STORE_MOD_REVISION, .number = o->revision },
	};
	struct store_op put = { .kind = STORE_PUT, .key = key };
	struct store_txn txn = { compares, 2, &put, NULL, 1, 0, true, false };

	o->extent_asked = true;
	if (!known_extent(m, o, &extent))
		return;
	clock_utc_text(extent.made);
	if (key_block(relative, o->copy.network, &o->copy.block) < 0 ||
	    key_full(m->o.prefix, relative, block) < 0 ||
	    key_extent(relative, o->copy.network, o->copy.pool) < 0 ||
	    key_full(m->o.prefix, relative, key) < 0 || extent_encode(&extent, &text) < 0)
		return;
	put.value = text;
	put.value_len = strlen(text);
	log_warning("ipam", "%s has vanished and is written again", relative);
	store_txn(m->o.store, &txn, 0, on_index_written, NULL, NULL);
}

/* Without it the pool, should it have been edited, would be cut another way under our blocks. */
void ipam_restore_extents(struct ipam *m)
{
	for (size_t i = 0; i < m->n_owned && ipam_can_claim(m, NULL); i++) {
		struct owned *o = m->owned[i];
		int64_t created;

		ipam_extent(m, o->copy.network, o->copy.pool, &created);
		if (created)
			o->extent_asked = false;
		else if (o->revision && !o->call && !o->extent_asked && o->copy.pool[0])
			write_extent(m, o);
	}
}
