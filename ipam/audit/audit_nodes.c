/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that have something but no record, and addresses outside of what their node owns. That a
 * node's record is missing proves nothing: it may have been deleted by hand under a living node.
 */
#include <string.h>

#include "ipam/audit/audit_parts.h"

/* Keys of one transaction, beside the compares that all of them share. */
#define KEYS_AT_ONCE (AUDIT_COMPARES_MAX - 3)

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

static void gather_all(const struct audit *a, struct gathering *g)
{
	for (size_t i = 0; i < a->n_blocks; i++)
		gather(g, a->blocks[i].owner, a->blocks[i].kv);
	for (size_t i = 0; i < a->n_indexes; i++)
		gather(g, a->indexes[i].node, a->indexes[i].kv);
	for (size_t i = 0; i < a->n_addresses; i++)
		gather(g, a->addresses[i].node, a->addresses[i].kv);
}

static struct finding *no_node(struct audit *a, const struct seen_node *n, const char *key)
{
	struct finding *f = finding_new(a, FINDING_NO_NODE, SEVERITY_WARNING, key);

	finding_says(a, f,
		     "node %s has %zu block%s, %zu index key%s and %zu address%s, but no "
		     "record of its own",
		     n->name, n->blocks, n->blocks == 1 ? "" : "s", n->indexes,
		     n->indexes == 1 ? "" : "s", n->addresses, n->addresses == 1 ? "" : "es");
	because_absent(f, key);
	return f;
}

static void leave_node(struct audit *a, const struct seen_node *n, const char *key)
{
	struct finding *f = no_node(a, n, key);

	if (n->status)
		finding_todo(a, f, "its agent lives and registers again by itself");
	else if (n->removed)
		finding_todo(a, f,
			     "wait until reclaimAfter has passed, or say roostctl node delete "
			     "%s --now if the machine is off for certain",
			     n->name);
	else
		finding_todo(a, f,
			     "start its agent, or roostctl node delete %s if it is gone for "
			     "good",
			     n->name);
	finding_left(a, f, "%s",
		     n->status    ? "it is alive"
		     : n->removed ? "it was removed, but nobody has said that the machine is off"
				  : "a missing record does not prove that no pod runs there");
}

/* Somebody has removed it and says that it is off: nothing can use these any more. */
static void reclaim_node(struct audit *a, const struct seen_node *n, const char *key)
{
	const size_t all = n->blocks + n->indexes + n->addresses;

	for (size_t skip = 0; skip < all; skip += KEYS_AT_ONCE) {
		struct gathering g = { .node = n, .skip = skip };
		struct finding *f = no_node(a, n, key);
		char status[KEY_TEXT];

		gather_all(a, &g);
		because(f, n->removed);
		if (key_status_node(status, n->name) == 0)
			because_absent(f, status);
		for (size_t i = 0; i < g.n; i++) {
			because(f, g.kvs[i]);
			repair_delete(f, g.kvs[i]->key);
		}
		finding_todo(a, f,
			     "deletes %s (keys %zu to %zu of %zu): %s says that the machine is "
			     "off",
			     all > 1 ? "them" : "it", skip + 1, skip + g.n, all, n->removed->key);
	}
}

static void status_without_node(struct audit *a, const struct seen_node *n, const char *key)
{
	struct finding *f = finding_new(a, FINDING_STATUS_WITHOUT_NODE, SEVERITY_NOTE,
					n->status->key);

	because(f, n->status);
	because_absent(f, key);
	finding_says(a, f, "there is a status of node %s, but no %s", n->name, key);
	if (n->status->lease) {
		finding_todo(a, f,
			     "goes with its lease within a minute, or its agent registers "
			     "again");
		finding_left(a, f, "its lease lives");
		return;
	}
	finding_todo(a, f, "deletes the status: it has no lease, so no agent wrote it");
	repair_delete(f, n->status->key);
}

void audit_nodes(struct audit *a)
{
	for (size_t i = 0; i < a->n_nodes; i++) {
		const struct seen_node *n = &a->nodes[i];
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
	struct finding *f = finding_new(a, FINDING_ADDRESS_OUTSIDE,
					b ? SEVERITY_ERROR : SEVERITY_WARNING, s->kv->key);
	char text[ADDRESS_TEXT], block[PREFIX_TEXT];

	because(f, s->kv);
	because(f, s->node->kv);
	address_print(&s->address, text);
	if (b) {
		because(f, b->kv);
		finding_says(a, f,
			     "node %s says that it uses %s, which lies in block %s of node "
			     "%s",
			     s->node->name, text, prefix_print(&b->block, block), b->owner->name);
	} else {
		finding_says(a, f, "node %s says that it uses %s, which lies in no block of it",
			     s->node->name, text);
	}
	if (!s->reserved && s->node->record.boot && strcmp(s->boot, s->node->record.boot) != 0) {
		finding_todo(a, f, "deletes the key: it is of an earlier boot, so its pod is gone");
		repair_delete(f, s->kv->key);
		return;
	}
	finding_todo(a, f,
		     "if no pod of node %s has it, its agent deletes the key at its next "
		     "start; else delete that pod",
		     s->node->name);
	finding_left(a, f, s->reserved ? "it is reserved" : "it may be in use: it is of this boot");
}

void audit_addresses(struct audit *a)
{
	for (size_t i = 0; i < a->n_addresses; i++) {
		const struct seen_address *s = &a->addresses[i];
		const struct seen_block *b;

		if (s->damaged || !s->node->kv ||
		    audit_block_around(a, s->network, &s->address, s->node))
			continue;
		b = audit_block_around(a, s->network, &s->address, NULL);
		/* Whose block that is cannot be read, or its index tells. */
		if (b ? !b->owner : in_own_index(a, s))
			continue;
		address_outside(a, s, b);
	}
}
