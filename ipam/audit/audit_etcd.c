/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does not fit together in etcd: blocks and the indexes of their owners, how pools are cut,
 * nodes that have something but no record, addresses outside of what their node owns.
 *
 * The block's own record rules: an index that differs from it goes, one that is missing is written.
 * Where the block is what is missing, it is made again for the only node that has addresses in it,
 * and kept for a while for the holder of a lost lease; an index that nothing stands behind goes.
 * That a node's record is missing proves nothing: it may have been deleted by hand under a living
 * node.
 */
#include <string.h>

#include "ipam/audit/audit_state.h"
#include "lib/model/lease_holder.h"

/* Keys of one transaction, beside the compares that all of them share. */
#define KEYS_AT_ONCE (AUDIT_COMPARES_MAX - 3)

/* The keys of nodes without a record are reported together: nodes(). */
static bool is_reported_elsewhere(const struct seen_node *node)
{
	return !node->kv;
}

static const char *plural(size_t n, const char *ending)
{
	return n == 1 ? "" : ending;
}

/* --- blocks without index ------------------------------------------------------------------- */

static char *index_value(const struct seen_block *b)
{
	struct host_block index = { .pool = b->record.pool };
	char *text = NULL;

	memcpy(index.claimed, b->record.claimed, sizeof(index.claimed));
	return host_block_encode(&index, &text) < 0 ? NULL : text;
}

static void block_without_index(struct audit *a, const struct seen_block *b)
{
	char key[KEY_TEXT], text[PREFIX_TEXT];

	key_host_block(key, b->owner->name, b->network, &b->block);
	finding_new(a, FINDING_BLOCK_WITHOUT_INDEX, SEVERITY_WARNING, b->kv->key,
		    "block %s belongs to node %s, which has no index of it, so its agent "
		    "does not know of it",
		    prefix_print(&b->block, text), b->owner->name);
	finding_from(a, b->kv);
	finding_from(a, b->owner->kv);
	finding_from_absent(a, key);
	finding_todo(a, "writes %s", key);
	finding_puts(a, key, index_value(b));
}

/* --- indexes whose block is another's ------------------------------------------------------- */

static void foreign_index(struct audit *a, const struct seen_index *x, const struct seen_block *b)
{
	const struct seen_index *own = audit_index(a, b->network, &b->block, b->owner->name);
	size_t held = audit_addresses_in(a, x->network, &x->block, x->node);
	char text[PREFIX_TEXT];

	finding_new(a, own ? FINDING_TWO_INDEXES : FINDING_FOREIGN_INDEX, SEVERITY_ERROR,
		    x->kv->key, "node %s has an index of block %s, which belongs to node %s%s",
		    x->node->name, prefix_print(&x->block, text), b->owner->name,
		    own ? " and is in its index too" : "");
	finding_from(a, x->kv);
	finding_from(a, b->kv);
	if (held)
		finding_todo(a,
			     "deletes the index; the %zu address%s of node %s in the block "
			     "stay%s until the pods there are deleted",
			     held, plural(held, "es"), x->node->name, held == 1 ? "s" : "");
	finding_deletes(a, x->kv->key);
}

/* --- indexes without block ------------------------------------------------------------------ */

/* The extent that the block is cut from; NULL: it fits none. */
static const struct seen_extent *cut_from(const struct audit *a, const struct seen_index *x)
{
	for (size_t i = 0; i < a->extents.n; i++) {
		const struct seen_extent *e = &a->extents.v[i];

		if (strcmp(e->network, x->network) == 0 && !e->damaged &&
		    e->record.block_size == x->block.length &&
		    prefix_contains_prefix(&e->record.cidr, &x->block))
			return e;
	}
	return NULL;
}

static bool overlaps_a_block(const struct audit *a, const struct seen_index *x)
{
	for (size_t i = 0; i < a->blocks.n; i++)
		if (strcmp(a->blocks.v[i].network, x->network) == 0 &&
		    prefix_overlaps(&a->blocks.v[i].block, &x->block))
			return true;
	return false;
}

/* What its holder said of it is lost too: it is kept until the holder asks for it again. */
static bool is_lost_lease(const struct seen_index *x)
{
	return lease_holder_is(x->node->name) && node_is_lease(&x->node->record);
}

/* As a claim would be, but for the owner that the index names; the token is one nobody else has. */
static char *block_value(const struct audit *a, const struct seen_index *x)
{
	struct block block = { .node = x->node->name, .pool = x->record.pool };
	char token[40], *text = NULL;

	snprintf(token, sizeof(token), "repaired-%lld", (long long)a->in->revision);
	block.token = token;
	memcpy(block.claimed, x->record.claimed, sizeof(block.claimed));
	if (is_lost_lease(x)) {
		const struct node *holder = &x->node->record;

		block.lease.public_ip = holder->ipv4.address.family ? holder->ipv4.address
								    : holder->ipv6.address;
		block.lease.revoked = true;
		snprintf(block.lease.expires, sizeof(block.lease.expires), "%s", a->in->kept);
	}
	return block_encode(&block, &text) < 0 ? NULL : text;
}

static void restore_block(struct audit *a, const struct seen_index *x, const char *key)
{
	const struct seen_extent *e = cut_from(a, x);

	if (x->damaged || !e || overlaps_a_block(a, x)) {
		finding_todo(a, "fix the other findings about this block first");
		finding_left(a, "%s",
			     x->damaged ? "the index cannot be read"
			     : e        ? "another block overlaps it"
					: "no extent of its network is cut into such blocks");
		return;
	}
	/* While the extent is as it was, nobody can claim what overlaps it but itself. */
	finding_from(a, e->kv);
	finding_from(a, x->node->kv);
	finding_todo(a, "writes %s for node %s again", key, x->node->name);
	finding_puts(a, key, block_value(a, x));
}

static void drop_index(struct audit *a, const struct seen_index *x)
{
	char beginning[KEY_TEXT];

	/* Nor has the node noted an address there since. */
	if (keys_of_host_addresses(beginning, x->node->name) == 0)
		finding_from_no_newer(a, beginning);
	finding_todo(a, "deletes the index: no address of node %s lies in it", x->node->name);
	finding_deletes(a, x->kv->key);
}

static void index_without_block(struct audit *a, const struct seen_index *x, size_t n_indexes,
				size_t holders)
{
	size_t held = audit_addresses_in(a, x->network, &x->block, x->node);
	const enum finding_severity severity = held ? SEVERITY_ERROR : SEVERITY_WARNING;
	char key[KEY_TEXT], text[PREFIX_TEXT];

	key_block(key, x->network, &x->block);
	prefix_print(&x->block, text);
	if (n_indexes > 1)
		finding_new(a, FINDING_TWO_INDEXES, severity, x->kv->key,
			    "node %s has an index of block %s, and so have %zu others, but "
			    "the block has no owner: there is no %s",
			    x->node->name, text, n_indexes - 1, key);
	else
		finding_new(a, FINDING_INDEX_WITHOUT_BLOCK, severity, x->kv->key,
			    "node %s has an index of block %s, but there is no %s: any "
			    "node may claim it",
			    x->node->name, text, key);
	finding_from(a, x->kv);
	finding_from_absent(a, key);
	if (!held && !is_lost_lease(x)) {
		drop_index(a, x);
	} else if (holders > 1) {
		finding_todo(a, "delete the pods that use it on all nodes but one");
		finding_left(a, "%zu nodes have addresses in it: whose it is cannot be told",
			     holders);
	} else {
		restore_block(a, x, key);
	}
}

/* --- all indexes of one block --------------------------------------------------------------- */

static void damaged_index(struct audit *a, const struct seen_index *x, const struct seen_block *b)
{
	AUTO_DONE(host_block_done) struct host_block ignored = { 0 };
	struct err err = { "" };

	if (host_block_decode(x->kv->key, x->kv->value, x->kv->value_len, &ignored, &err) == 0)
		return;
	audit_undecodable(a, x->kv, err.text);
	if (!b || !b->owner || b->owner != x->node || is_reported_elsewhere(x->node))
		return;
	finding_from(a, b->kv);
	finding_left(a, "%s", "");
	finding_todo(a, "writes it again from %s", b->kv->key);
	finding_puts(a, x->kv->key, index_value(b));
}

static void indexes_of_block(struct audit *a, const struct seen_index *v, size_t n)
{
	const struct seen_block *b = audit_block(a, v->network, &v->block);
	size_t holders = 0;

	for (size_t i = 0; i < n && !b; i++)
		holders += audit_addresses_in(a, v[i].network, &v[i].block, v[i].node) > 0;
	for (size_t i = 0; i < n; i++) {
		if (v[i].damaged)
			damaged_index(a, &v[i], b);
		if (is_reported_elsewhere(v[i].node))
			continue;
		if (!b)
			index_without_block(a, &v[i], n, holders);
		else if (b->owner && b->owner != v[i].node)
			foreign_index(a, &v[i], b);
	}
}

/* --- overlaps ------------------------------------------------------------------------------- */

/* Sorted prefixes nest: each is compared with the outermost one that began before it. */
static void overlapping_blocks(struct audit *a)
{
	const struct seen_block *outer = NULL;

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct seen_block *b = &a->blocks.v[i];
		char first[PREFIX_TEXT], second[PREFIX_TEXT];

		if (!outer || strcmp(outer->network, b->network) != 0 ||
		    !prefix_contains_prefix(&outer->block, &b->block)) {
			outer = b;
			continue;
		}
		finding_new(a, FINDING_OVERLAPPING_BLOCKS, SEVERITY_ERROR, b->kv->key,
			    "block %s of node %s overlaps block %s of node %s: an address "
			    "may be given twice",
			    prefix_print(&b->block, second), b->owner ? b->owner->name : "?",
			    prefix_print(&outer->block, first),
			    outer->owner ? outer->owner->name : "?");
		finding_from(a, outer->kv);
		finding_from(a, b->kv);
	}
}

static void overlapping_extents(struct audit *a)
{
	const struct seen_extent *outer = NULL;

	for (size_t i = 0; i < a->extents.n; i++) {
		const struct seen_extent *e = &a->extents.v[i];
		struct err err = { "" };

		if (e->damaged)
			continue;
		if (!outer || extent_conflicts_extent(&outer->record, &e->record, &err) == 0) {
			outer = e;
			continue;
		}
		finding_new(a, FINDING_OVERLAPPING_EXTENTS, SEVERITY_ERROR, e->kv->key, "%s",
			    err.text);
		finding_from(a, outer->kv);
		finding_from(a, e->kv);
	}
}

/* --- blocks and extents --------------------------------------------------------------------- */

/* Some extent of the network that the block touches; *ret_fits: one that is cut just so. */
static const struct seen_extent *extent_around(const struct audit *a, const struct seen_block *b,
					       bool *ret_fits)
{
	const struct seen_extent *touched = NULL;

	for (size_t i = 0; i < a->extents.n; i++) {
		const struct seen_extent *e = &a->extents.v[i];

		if (strcmp(e->network, b->network) != 0 || e->damaged ||
		    !prefix_overlaps(&e->record.cidr, &b->block))
			continue;
		touched = e;
		*ret_fits = *ret_fits || (e->record.block_size == b->block.length &&
					  prefix_contains_prefix(&e->record.cidr, &b->block));
	}
	return touched;
}

static void block_outside(struct audit *a, const struct seen_block *b, const struct seen_extent *e)
{
	char text[PREFIX_TEXT], cidr[PREFIX_TEXT];

	prefix_print(&b->block, text);
	if (e)
		finding_new(a, FINDING_BLOCK_OUTSIDE, SEVERITY_ERROR, b->kv->key,
			    "block %s of node %s is no block of %s, which is cut into /%u "
			    "of %s",
			    text, b->owner->name, e->kv->key, e->record.block_size,
			    prefix_print(&e->record.cidr, cidr));
	else
		finding_new(a, FINDING_BLOCK_OUTSIDE, SEVERITY_ERROR, b->kv->key,
			    "block %s of node %s lies in no extent of network %s", text,
			    b->owner->name, b->network);
	finding_from(a, b->kv);
	finding_from(a, e ? e->kv : NULL);
	finding_left(a, "pods of node %s may use it", b->owner->name);
}

/* The pool says how it would be cut today; that is how it was cut if all its blocks are so. */
static const char *cannot_restore(const struct audit *a, const struct seen_block *first,
				  const struct seen_pool *p)
{
	if (!p || p->damaged || strcmp(p->record.network, first->network) != 0)
		return "its pool is gone, so how it was cut is unknown";
	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct seen_block *b = &a->blocks.v[i];

		if (b->owner && strcmp(b->network, first->network) == 0 &&
		    strcmp(b->record.pool, first->record.pool) == 0 &&
		    (b->block.length != p->record.block_size ||
		     !prefix_contains_prefix(&p->record.cidr, &b->block)))
			return "the pool has been edited: its blocks are cut another way";
	}
	for (size_t i = 0; i < a->extents.n; i++) {
		const struct seen_extent *e = &a->extents.v[i];

		if (strcmp(e->network, first->network) == 0 &&
		    (e->damaged || prefix_overlaps(&e->record.cidr, &p->record.cidr)))
			return "another extent of this network overlaps it";
	}
	return NULL;
}

static void restore_extent(struct audit *a, const struct seen_block *b, const struct seen_pool *p,
			   const char *key)
{
	struct extent extent = { .cidr = p->record.cidr, .block_size = p->record.block_size };
	char beginning[KEY_TEXT], text[PREFIX_TEXT], *value = NULL;

	snprintf(extent.made, sizeof(extent.made), "%s", a->in->now ?: "");
	/* Without it nobody can claim from the pool, and nobody has cut anything since. */
	finding_from(a, p->kv);
	if (keys_of_extents(beginning, b->network) == 0)
		finding_from_no_newer(a, beginning);
	finding_todo(a, "writes %s: %s in blocks of /%u, as the pool and all its blocks say", key,
		     prefix_print(&extent.cidr, text), extent.block_size);
	if (extent_encode(&extent, &value) < 0)
		value = NULL;
	finding_puts(a, key, value);
}

static void extent_missing(struct audit *a, const struct seen_block *b)
{
	const struct seen_pool *p = audit_pool(a, b->record.pool);
	const char *why;
	char key[KEY_TEXT], text[PREFIX_TEXT];

	key_extent(key, b->network, b->record.pool);
	/* Once for all its blocks. */
	if (findings_find(&a->findings, FINDING_EXTENT_MISSING, key))
		return;
	why = cannot_restore(a, b, p);
	finding_new(a, FINDING_EXTENT_MISSING, SEVERITY_ERROR, key,
		    "pool %s has blocks on network %s, such as %s of node %s, but no "
		    "extent: after an edit of the pool they could be cut another way",
		    b->record.pool, b->network, prefix_print(&b->block, text), b->owner->name);
	finding_from(a, b->kv);
	finding_from_absent(a, key);
	if (!why) {
		restore_extent(a, b, p, key);
		return;
	}
	finding_todo(a, "the agents write it while they hold such blocks; else put it by hand");
	finding_left(a, "%s", why);
}

static void deleted_pool(struct audit *a, const struct seen_block *b)
{
	size_t n = audit_addresses_in(a, b->network, &b->block, NULL);
	char key[KEY_TEXT], text[PREFIX_TEXT];

	finding_new(a, FINDING_DELETED_POOL, SEVERITY_NOTE, b->kv->key,
		    "pool %s was deleted, node %s still has its block %s with %zu address%s",
		    b->record.pool, b->owner->name, prefix_print(&b->block, text), n,
		    plural(n, "es"));
	finding_from(a, b->kv);
	if (key_pool(key, b->record.pool) == 0)
		finding_from_absent(a, key);
	finding_left(a, "%s", n ? "it is in use" : "only its agent knows that it is empty");
}

static void cut_of_block(struct audit *a, const struct seen_block *b)
{
	bool fits = false;
	const struct seen_extent *e = extent_around(a, b, &fits);

	if (!fits && !e && b->record.pool[0] && !audit_extent(a, b->network, b->record.pool))
		extent_missing(a, b);
	else if (!fits)
		block_outside(a, b, e);
	if (b->record.pool[0] && !audit_pool(a, b->record.pool) && b->owner->kv)
		deleted_pool(a, b);
}

/* --- extents that nobody needs -------------------------------------------------------------- */

static bool has_blocks(const struct audit *a, const struct seen_extent *e)
{
	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct seen_block *b = &a->blocks.v[i];

		if (strcmp(b->network, e->network) == 0 &&
		    ((b->owner && strcmp(b->record.pool, e->pool) == 0) ||
		     prefix_overlaps(&b->block, &e->record.cidr)))
			return true;
	}
	return false;
}

static void unused_extent(struct audit *a, const struct seen_extent *e)
{
	const struct seen_pool *p = audit_pool(a, e->pool);
	char key[KEY_TEXT], beginning[KEY_TEXT];

	if (e->damaged || (p && (p->damaged || strcmp(p->record.network, e->network) == 0)) ||
	    has_blocks(a, e))
		return;
	finding_new(a, FINDING_UNUSED_EXTENT, SEVERITY_NOTE, e->kv->key,
		    "pool %s is %s and has no block left, but its extent still keeps others "
		    "away",
		    e->pool, p ? "on another network" : "gone");
	finding_from(a, e->kv);
	if (p)
		finding_from(a, p->kv);
	else if (key_pool(key, e->pool) == 0)
		finding_from_absent(a, key);
	if (keys_of_blocks(beginning, e->network) == 0)
		finding_from_no_newer(a, beginning);
	finding_deletes(a, e->kv->key);
}

/* --- nodes without a record ----------------------------------------------------------------- */

/* Its keys from the skip-th on, as far as they go into one transaction. */
struct gathering {
	const struct seen_node *node;
	size_t skip, n;
	const struct store_kv *kvs[KEYS_AT_ONCE];
};

static void gather(struct gathering *g, const struct seen_node *node, const struct store_kv *kv)
{
	if (node != g->node)
		return;
	if (g->skip)
		g->skip--;
	else if (g->n < KEYS_AT_ONCE)
		g->kvs[g->n++] = kv;
}

static void no_node(struct audit *a, const struct seen_node *n, const char *key)
{
	finding_new(a, FINDING_NO_NODE, SEVERITY_WARNING, key,
		    "node %s has %zu block%s, %zu index key%s and %zu address%s, but no "
		    "record of its own",
		    n->name, n->blocks, plural(n->blocks, "s"), n->indexes, plural(n->indexes, "s"),
		    n->addresses, plural(n->addresses, "es"));
	finding_from_absent(a, key);
}

static void leave_node(struct audit *a, const struct seen_node *n, const char *key)
{
	no_node(a, n, key);
	if (n->status)
		finding_todo(a, "its agent is running and registers again");
	else if (n->removed)
		finding_todo(a,
			     "wait until reclaimAfter has passed, or run roostctl node delete "
			     "%s --now if the machine is off for certain",
			     n->name);
	else
		finding_todo(a,
			     "start its agent, or roostctl node delete %s if it is gone for "
			     "good",
			     n->name);
	finding_left(a, "%s",
		     n->status    ? "it is alive"
		     : n->removed ? "it was removed, but not with --now: the machine may be on"
				  : "a missing record does not prove that no pod runs there");
}

/* It was removed, and stated to be off: nothing can use these any more. */
static void reclaim_node(struct audit *a, const struct seen_node *n, const char *key)
{
	const size_t all = n->blocks + n->indexes + n->addresses;

	for (size_t skip = 0; skip < all; skip += KEYS_AT_ONCE) {
		struct gathering g = { .node = n, .skip = skip };
		char status[KEY_TEXT];

		for (size_t i = 0; i < a->blocks.n; i++)
			gather(&g, a->blocks.v[i].owner, a->blocks.v[i].kv);
		for (size_t i = 0; i < a->indexes.n; i++)
			gather(&g, a->indexes.v[i].node, a->indexes.v[i].kv);
		for (size_t i = 0; i < a->addresses.n; i++)
			gather(&g, a->addresses.v[i].node, a->addresses.v[i].kv);
		no_node(a, n, key);
		finding_from(a, n->removed);
		if (key_status_node(status, n->name) == 0)
			finding_from_absent(a, status);
		for (size_t i = 0; i < g.n; i++) {
			finding_from(a, g.kvs[i]);
			finding_deletes(a, g.kvs[i]->key);
		}
		finding_todo(a,
			     "deletes %s (keys %zu to %zu of %zu): %s says that the machine is "
			     "off",
			     all > 1 ? "them" : "it", skip + 1, skip + g.n, all, n->removed->key);
	}
}

static void status_without_node(struct audit *a, const struct seen_node *n, const char *key)
{
	finding_new(a, FINDING_STATUS_WITHOUT_NODE, SEVERITY_NOTE, n->status->key,
		    "there is a status of node %s, but no %s", n->name, key);
	finding_from(a, n->status);
	finding_from_absent(a, key);
	if (n->status->lease) {
		finding_todo(a, "goes with its lease within a minute, or its agent registers "
				"again");
		finding_left(a, "its lease has not expired");
		return;
	}
	finding_todo(a, "deletes the status: it has no lease, so no agent wrote it");
	finding_deletes(a, n->status->key);
}

static void nodes(struct audit *a)
{
	for (size_t i = 0; i < a->nodes.n; i++) {
		const struct seen_node *n = &a->nodes.v[i];
		char key[KEY_TEXT];

		if (n->kv || key_node(key, n->name) < 0)
			continue;
		if (!n->blocks && !n->indexes && !n->addresses)
			;
		else if (n->removed_now && !n->status)
			reclaim_node(a, n, key);
		else
			leave_node(a, n, key);
		if (n->status)
			status_without_node(a, n, key);
	}
}

/* --- addresses ------------------------------------------------------------------------------ */

/* An index of the node whose block is gone is a finding of its own, and decides about these. */
static bool in_own_index(const struct audit *a, const struct seen_address *s)
{
	for (unsigned length = 0; length <= address_bits(&s->address); length++) {
		struct prefix p = prefix_of(&s->address, (uint8_t)length);

		if (audit_index(a, s->network, &p, s->node->name))
			return true;
	}
	return false;
}

static void address_outside(struct audit *a, const struct seen_address *s,
			    const struct seen_block *b)
{
	char text[ADDRESS_TEXT], block[PREFIX_TEXT];

	address_print(&s->address, text);
	if (b)
		finding_new(a, FINDING_ADDRESS_OUTSIDE, SEVERITY_ERROR, s->kv->key,
			    "node %s says that it uses %s, which lies in block %s of node "
			    "%s",
			    s->node->name, text, prefix_print(&b->block, block), b->owner->name);
	else
		finding_new(a, FINDING_ADDRESS_OUTSIDE, SEVERITY_WARNING, s->kv->key,
			    "node %s says that it uses %s, which lies in no block of it",
			    s->node->name, text);
	finding_from(a, s->kv);
	finding_from(a, s->node->kv);
	finding_from(a, b ? b->kv : NULL);
	if (!s->reserved && s->node->record.boot && strcmp(s->boot, s->node->record.boot) != 0) {
		finding_todo(a, "deletes the key: it is of an earlier boot, so its pod is gone");
		finding_deletes(a, s->kv->key);
		return;
	}
	finding_todo(a,
		     "if no pod of node %s has it, its agent deletes the key at its next "
		     "start; else delete that pod",
		     s->node->name);
	finding_left(a, s->reserved ? "it is reserved" : "it may be in use: it is of this boot");
}

static void addresses(struct audit *a)
{
	for (size_t i = 0; i < a->addresses.n; i++) {
		const struct seen_address *s = &a->addresses.v[i];
		const struct seen_block *b;

		if (s->damaged || !s->node->kv ||
		    audit_block_around(a, s->network, &s->address, s->node))
			continue;
		b = audit_block_around(a, s->network, &s->address, NULL);
		/* Whose block that is cannot be read, or its index tells. */
		if (b ? b->owner != NULL : !in_own_index(a, s))
			address_outside(a, s, b);
	}
}

void audit_etcd(struct audit *a)
{
	size_t n;

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct seen_block *b = &a->blocks.v[i];

		if (b->owner && !is_reported_elsewhere(b->owner) &&
		    !audit_index(a, b->network, &b->block, b->owner->name))
			block_without_index(a, b);
	}
	for (size_t i = 0; i < a->indexes.n; i += n) {
		const struct seen_index *v = audit_indexes(a, a->indexes.v[i].network,
							   &a->indexes.v[i].block, &n);

		indexes_of_block(a, v, n);
	}
	overlapping_blocks(a);
	overlapping_extents(a);
	for (size_t i = 0; i < a->blocks.n; i++)
		if (a->blocks.v[i].owner)
			cut_of_block(a, &a->blocks.v[i]);
	for (size_t i = 0; i < a->extents.n; i++)
		unused_extent(a, &a->extents.v[i]);
	nodes(a);
	addresses(a);
}
