/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks and the indexes of their owners. The block's own record rules: an index that differs from
 * it goes, one that is missing is written. Where the block is what is missing, it is made again for
 * the only node that has addresses in it, and kept for a while for the holder of a lost lease; an
 * index that nothing stands behind goes.
 */
#include <string.h>

#include "ipam/audit/audit_parts.h"
#include "lib/model/lease_holder.h"

/* The keys of nodes without a record are told together: audit_nodes(). */
static bool is_told_elsewhere(const struct seen_node *node)
{
	return !node->kv;
}

static char *index_value(const struct seen_block *b)
{
	struct host_block index = { .pool = b->record.pool };
	char *text = NULL;

	memcpy(index.claimed, b->record.claimed, sizeof(index.claimed));
	return host_block_encode(&index, &text) < 0 ? NULL : text;
}

static void block_without_index(struct audit *a, const struct seen_block *b)
{
	struct finding *f = finding_new(a, FINDING_BLOCK_WITHOUT_INDEX, SEVERITY_WARNING,
					b->kv->key);
	char key[KEY_TEXT], text[PREFIX_TEXT];

	key_host_block(key, b->owner->name, b->network, &b->block);
	because(f, b->kv);
	because(f, b->owner->kv);
	because_absent(f, key);
	finding_says(a, f,
		     "block %s belongs to node %s, which has no index of it, so its agent "
		     "does not know of it",
		     prefix_print(&b->block, text), b->owner->name);
	finding_todo(a, f, "writes %s", key);
	repair_put(f, key, index_value(b));
}

void audit_blocks(struct audit *a)
{
	for (size_t i = 0; i < a->n_blocks; i++) {
		const struct seen_block *b = &a->blocks[i];

		if (b->owner && !is_told_elsewhere(b->owner) &&
		    !audit_index(a, b->network, &b->block, b->owner->name))
			block_without_index(a, b);
	}
}

/* --- indexes whose block is another's ------------------------------------------------------- */

static void foreign_index(struct audit *a, const struct seen_index *x, const struct seen_block *b)
{
	const struct seen_index *own = audit_index(a, b->network, &b->block, b->owner->name);
	struct finding *f = finding_new(a, own ? FINDING_TWO_INDEXES : FINDING_FOREIGN_INDEX,
					SEVERITY_ERROR, x->kv->key);
	size_t held = audit_addresses_in(a, x->network, &x->block, x->node);
	char text[PREFIX_TEXT];

	because(f, x->kv);
	because(f, b->kv);
	finding_says(a, f, "node %s has an index of block %s, which belongs to node %s%s",
		     x->node->name, prefix_print(&x->block, text), b->owner->name,
		     own ? " and is in its index too" : "");
	if (held)
		finding_todo(a, f,
			     "deletes the index; the %zu address%s of node %s in the block "
			     "stay%s until the pods there are deleted",
			     held, held == 1 ? "" : "es", x->node->name, held == 1 ? "s" : "");
	else
		finding_todo(a, f, "deletes the index");
	repair_delete(f, x->kv->key);
}

/* --- indexes without block ------------------------------------------------------------------ */

/* How many nodes have addresses in it. */
static size_t count_holders(const struct audit *a, const struct seen_index *v, size_t n)
{
	size_t holders = 0;

	for (size_t i = 0; i < n; i++)
		holders += audit_addresses_in(a, v[i].network, &v[i].block, v[i].node) > 0;
	return holders;
}

/* The extent that the block is cut from; NULL: it fits none. */
static const struct seen_extent *cut_from(const struct audit *a, const struct seen_index *x)
{
	for (size_t i = 0; i < a->n_extents; i++) {
		const struct seen_extent *e = &a->extents[i];

		if (strcmp(e->network, x->network) == 0 && !e->damaged &&
		    e->record.block_size == x->block.length &&
		    prefix_contains_prefix(&e->record.cidr, &x->block))
			return e;
	}
	return NULL;
}

static bool overlaps_a_block(const struct audit *a, const struct seen_index *x)
{
	for (size_t i = 0; i < a->n_blocks; i++)
		if (strcmp(a->blocks[i].network, x->network) == 0 &&
		    prefix_overlaps(&a->blocks[i].block, &x->block))
			return true;
	return false;
}

/* As a claim would be, but for the owner that the index names; the token is one nobody else has. */
/* What its holder said of it is lost too: it is kept until the holder asks for it again. */
static bool is_lost_lease(const struct seen_index *x)
{
	return lease_holder_is(x->node->name) && node_is_lease(&x->node->record);
}

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

static void restore_block(struct audit *a, struct finding *f, const struct seen_index *x,
			  const char *key)
{
	const struct seen_extent *e = cut_from(a, x);

	if (x->damaged || !e || overlaps_a_block(a, x)) {
		finding_todo(a, f, "see to the other findings about this block first");
		finding_left(a, f, "%s",
			     x->damaged ? "the index cannot be read"
			     : e        ? "another block overlaps it"
					: "no extent of its network is cut into such blocks");
		return;
	}
	/* While the extent is as it was, nobody can claim what overlaps it but itself. */
	because(f, e->kv);
	because(f, x->node->kv);
	finding_todo(a, f, "writes %s for node %s again", key, x->node->name);
	repair_put(f, key, block_value(a, x));
}

static void drop_index(struct audit *a, struct finding *f, const struct seen_index *x)
{
	char beginning[KEY_TEXT];

	/* Nor has the node noted an address there since. */
	if (keys_of_host_addresses(beginning, x->node->name) == 0)
		because_no_newer(a, f, beginning);
	finding_todo(a, f, "deletes the index: no address of node %s lies in it", x->node->name);
	repair_delete(f, x->kv->key);
}

static void index_without_block(struct audit *a, const struct seen_index *x, size_t n_indexes,
				size_t holders)
{
	size_t held = audit_addresses_in(a, x->network, &x->block, x->node);
	struct finding *f = finding_new(
		a, n_indexes > 1 ? FINDING_TWO_INDEXES : FINDING_INDEX_WITHOUT_BLOCK,
		held ? SEVERITY_ERROR : SEVERITY_WARNING, x->kv->key);
	char key[KEY_TEXT], text[PREFIX_TEXT];

	key_block(key, x->network, &x->block);
	because(f, x->kv);
	because_absent(f, key);
	prefix_print(&x->block, text);
	if (n_indexes > 1)
		finding_says(a, f,
			     "node %s has an index of block %s, and so have %zu others, but "
			     "the block has no owner: there is no %s",
			     x->node->name, text, n_indexes - 1, key);
	else
		finding_says(a, f,
			     "node %s has an index of block %s, but there is no %s: any "
			     "node may claim it",
			     x->node->name, text, key);
	if (!held && !is_lost_lease(x)) {
		drop_index(a, f, x);
	} else if (holders > 1) {
		finding_todo(a, f, "delete the pods that use it on all nodes but one");
		finding_left(a, f, "%zu nodes have addresses in it: whose it is cannot be told",
			     holders);
	} else {
		restore_block(a, f, x, key);
	}
}

/* --- all indexes of one block --------------------------------------------------------------- */

static void damaged_index(struct audit *a, const struct seen_index *x, const struct seen_block *b)
{
	AUTO_DONE(host_block_done) struct host_block ignored = { 0 };
	struct err err = { "" };
	struct finding *f;

	if (host_block_decode(x->kv->key, x->kv->value, x->kv->value_len, &ignored, &err) == 0)
		return;
	audit_undecodable(a, x->kv, err.text);
	f = &a->findings.v[a->findings.n - 1];
	if (a->failed || !b || !b->owner || b->owner != x->node || is_told_elsewhere(x->node))
		return;
	because(f, b->kv);
	finding_left(a, f, "%s", "");
	finding_todo(a, f, "writes it anew from %s", b->kv->key);
	repair_put(f, x->kv->key, index_value(b));
}

static void indexes_of_block(struct audit *a, const struct seen_index *v, size_t n)
{
	const struct seen_block *b = audit_block(a, v->network, &v->block);
	size_t holders = b ? 0 : count_holders(a, v, n);

	for (size_t i = 0; i < n; i++) {
		if (v[i].damaged)
			damaged_index(a, &v[i], b);
		if (is_told_elsewhere(v[i].node))
			continue;
		if (!b)
			index_without_block(a, &v[i], n, holders);
		else if (b->owner && b->owner != v[i].node)
			foreign_index(a, &v[i], b);
	}
}

void audit_indexes_all(struct audit *a)
{
	size_t n;

	for (size_t i = 0; i < a->n_indexes; i += n) {
		const struct seen_index *v = audit_indexes(a, a->indexes[i].network,
							   &a->indexes[i].block, &n);

		indexes_of_block(a, v, n);
	}
}
