/* SPDX-License-Identifier: Apache-2.0 */
/* How pools are cut: extents, what lies outside of them, what overlaps, what nobody needs. */
#include <string.h>

#include "ipam/audit/audit_parts.h"

/* --- overlaps ------------------------------------------------------------------------------- */

/* Sorted prefixes nest: each is compared with the outermost one that began before it. */
static void overlapping_blocks(struct audit *a)
{
	const struct seen_block *outer = NULL;

	for (size_t i = 0; i < a->n_blocks; i++) {
		const struct seen_block *b = &a->blocks[i];
		char first[PREFIX_TEXT], second[PREFIX_TEXT];
		struct finding *f;

		if (!outer || strcmp(outer->network, b->network) != 0 ||
		    !prefix_contains_prefix(&outer->block, &b->block)) {
			outer = b;
			continue;
		}
		f = finding_new(a, FINDING_OVERLAPPING_BLOCKS, SEVERITY_ERROR, b->kv->key);
		because(f, outer->kv);
		because(f, b->kv);
		finding_says(a, f,
			     "block %s of node %s overlaps block %s of node %s: an address "
			     "may be given twice",
			     prefix_print(&b->block, second), b->owner ? b->owner->name : "?",
			     prefix_print(&outer->block, first),
			     outer->owner ? outer->owner->name : "?");
		finding_todo(a, f,
			     "delete the pods in one of the two; its node then gives it back, "
			     "or delete its keys");
		finding_left(a, f, "both may be in use");
	}
}

static void overlapping_extents(struct audit *a)
{
	const struct seen_extent *outer = NULL;

	for (size_t i = 0; i < a->n_extents; i++) {
		const struct seen_extent *e = &a->extents[i];
		struct err err = { "" };
		struct finding *f;

		if (e->damaged)
			continue;
		if (!outer || extent_conflicts_extent(&outer->record, &e->record, &err) == 0) {
			outer = e;
			continue;
		}
		f = finding_new(a, FINDING_OVERLAPPING_EXTENTS, SEVERITY_ERROR, e->kv->key);
		because(f, outer->kv);
		because(f, e->kv);
		finding_says(a, f, "%s", err.text);
		finding_todo(a, f,
			     "disable one of the two pools, wait until its blocks are given "
			     "back, then delete it and its extent");
		finding_left(a, f, "blocks may have been cut from both");
	}
}

/* --- blocks and extents --------------------------------------------------------------------- */

/* Some extent of the network that the block touches; *ret_fits: one that is cut just so. */
static const struct seen_extent *extent_around(const struct audit *a, const struct seen_block *b,
					       bool *ret_fits)
{
	const struct seen_extent *touched = NULL;

	for (size_t i = 0; i < a->n_extents; i++) {
		const struct seen_extent *e = &a->extents[i];

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
	struct finding *f = finding_new(a, FINDING_BLOCK_OUTSIDE, SEVERITY_ERROR, b->kv->key);
	char text[PREFIX_TEXT], cidr[PREFIX_TEXT];

	because(f, b->kv);
	prefix_print(&b->block, text);
	if (e) {
		because(f, e->kv);
		finding_says(a, f,
			     "block %s of node %s is no block of %s, which is cut into /%u "
			     "of %s",
			     text, b->owner->name, e->kv->key, e->record.block_size,
			     prefix_print(&e->record.cidr, cidr));
	} else {
		finding_says(a, f, "block %s of node %s lies in no extent of network %s", text,
			     b->owner->name, b->network);
	}
	finding_todo(a, f, "delete the pods that use it; its node then gives it back");
	finding_left(a, f, "pods of node %s may use it", b->owner->name);
}

/* The pool says how it would be cut today; that is how it was cut if all its blocks are so. */
static const char *cannot_restore(const struct audit *a, const struct seen_block *first,
				  const struct seen_pool *p)
{
	if (!p || p->damaged || strcmp(p->record.network, first->network) != 0)
		return "its pool is gone, so nobody knows how it was cut";
	for (size_t i = 0; i < a->n_blocks; i++) {
		const struct seen_block *b = &a->blocks[i];

		if (b->owner && strcmp(b->network, first->network) == 0 &&
		    strcmp(b->record.pool, first->record.pool) == 0 &&
		    (b->block.length != p->record.block_size ||
		     !prefix_contains_prefix(&p->record.cidr, &b->block)))
			return "the pool has been edited: its blocks are cut another way";
	}
	for (size_t i = 0; i < a->n_extents; i++)
		if (strcmp(a->extents[i].network, first->network) == 0 &&
		    (a->extents[i].damaged ||
		     prefix_overlaps(&a->extents[i].record.cidr, &p->record.cidr)))
			return "another extent of this network is in the way";
	return NULL;
}

static void restore_extent(struct audit *a, struct finding *f, const struct seen_block *b,
			   const struct seen_pool *p, const char *key)
{
	struct extent extent = { .cidr = p->record.cidr, .block_size = p->record.block_size };
	char beginning[KEY_TEXT], text[PREFIX_TEXT], *value = NULL;

	snprintf(extent.made, sizeof(extent.made), "%s", a->in->now ?: "");
	/* Without it nobody can claim from the pool, and nobody has cut anything since. */
	because(f, p->kv);
	if (keys_of_extents(beginning, b->network) == 0)
		because_no_newer(a, f, beginning);
	finding_todo(a, f, "writes %s: %s in blocks of /%u, as the pool and all its blocks say",
		     key, prefix_print(&extent.cidr, text), extent.block_size);
	if (extent_encode(&extent, &value) < 0)
		value = NULL;
	repair_put(f, key, value);
}

static void extent_missing(struct audit *a, const struct seen_block *b)
{
	const struct seen_pool *p = audit_pool(a, b->record.pool);
	const char *why;
	struct finding *f;
	char key[KEY_TEXT], text[PREFIX_TEXT];

	key_extent(key, b->network, b->record.pool);
	/* Once for all its blocks. */
	if (findings_find(&a->findings, FINDING_EXTENT_MISSING, key))
		return;
	why = cannot_restore(a, b, p);
	f = finding_new(a, FINDING_EXTENT_MISSING, SEVERITY_ERROR, key);
	because(f, b->kv);
	because_absent(f, key);
	finding_says(a, f,
		     "pool %s has blocks on network %s, such as %s of node %s, but no "
		     "extent: after an edit of the pool they could be cut anew",
		     b->record.pool, b->network, prefix_print(&b->block, text), b->owner->name);
	if (!why) {
		restore_extent(a, f, b, p, key);
		return;
	}
	finding_todo(a, f, "the agents write it while they hold such blocks; else put it by hand");
	finding_left(a, f, "%s", why);
}

static void deleted_pool(struct audit *a, const struct seen_block *b)
{
	size_t n = audit_addresses_in(a, b->network, &b->block, NULL);
	struct finding *f = finding_new(a, FINDING_DELETED_POOL, SEVERITY_NOTE, b->kv->key);
	char key[KEY_TEXT], text[PREFIX_TEXT];

	because(f, b->kv);
	if (key_pool(key, b->record.pool) == 0)
		because_absent(f, key);
	finding_says(a, f, "pool %s was deleted, node %s still has its block %s with %zu address%s",
		     b->record.pool, b->owner->name, prefix_print(&b->block, text), n,
		     n == 1 ? "" : "es");
	finding_todo(a, f, "its agent gives it back by itself when its last pod is gone");
	finding_left(a, f, "%s", n ? "it is in use" : "only its agent knows that it is empty");
}

static void cut_of_block(struct audit *a, const struct seen_block *b)
{
	bool fits = false;
	const struct seen_extent *e;

	if (!b->owner)
		return;
	e = extent_around(a, b, &fits);
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
	for (size_t i = 0; i < a->n_blocks; i++) {
		const struct seen_block *b = &a->blocks[i];

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
	struct finding *f;
	char key[KEY_TEXT], beginning[KEY_TEXT];

	if (e->damaged || (p && (p->damaged || strcmp(p->record.network, e->network) == 0)) ||
	    has_blocks(a, e))
		return;
	f = finding_new(a, FINDING_UNUSED_EXTENT, SEVERITY_NOTE, e->kv->key);
	because(f, e->kv);
	if (p)
		because(f, p->kv);
	else if (key_pool(key, e->pool) == 0)
		because_absent(f, key);
	if (keys_of_blocks(beginning, e->network) == 0)
		because_no_newer(a, f, beginning);
	finding_says(a, f,
		     "pool %s is %s and has no block left, but its extent still keeps others "
		     "away",
		     e->pool, p ? "on another network" : "gone");
	finding_todo(a, f, "deletes the extent");
	repair_delete(f, e->kv->key);
}

void audit_cuts(struct audit *a)
{
	overlapping_blocks(a);
	overlapping_extents(a);
	for (size_t i = 0; i < a->n_blocks; i++)
		cut_of_block(a, &a->blocks[i]);
	for (size_t i = 0; i < a->n_extents; i++)
		unused_extent(a, &a->extents[i]);
}
