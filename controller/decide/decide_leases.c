/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_leases.h"

#include <string.h>

#include "lib/model/lease_holder.h"

/* "2026-11-16T02:45:55": without fractions times compare as texts. */
#define SECONDS_TEXT 19

const char *lease_subject(const char *holder, char *text)
{
	snprintf(text, KEY_TEXT, "lease/%s", holder);
	return text;
}

static bool has_other_block(const struct mirror *m, const char *holder, const char *key)
{
	MIRROR_EACH(m, e, KEYS_BLOCK)
		if (e->note && strcmp(e->note, holder) == 0 && strcmp(e->kv.key, key) != 0)
			return true;
	return false;
}

void lease_plan_free(const struct mirror *m, const struct mirrored *e, const struct block *block,
		     struct plan *plan, struct plans *ret)
{
	const struct mirrored *node = NULL;
	char key[KEY_TEXT], index[KEY_TEXT];

	txn_if(&plan->txn, if_unchanged(e->kv.key, e->kv.mod_revision));
	txn_then(&plan->txn, op_delete(e->kv.key));
	if (key_host_block(index, block->node, block->network, &block->block) == 0)
		txn_then(&plan->txn, op_delete(index));
	if (key_node(key, block->node) < 0)
		return;
	/* Whoever gets a lease puts this: so it is seen whether this one is the last. */
	node = mirror_find(m, key);
	if (!node) {
		txn_if(&plan->txn, if_absent(key));
		return;
	}
	txn_if(&plan->txn, if_unchanged(key, node->kv.mod_revision));
	if (has_other_block(m, block->node, e->kv.key))
		txn_then(&plan->txn, op_put(key, node->kv.value));
	else
		txn_then(&plan->txn, op_delete(key));
}

static bool is_expired(const struct block *block, const char *expired)
{
	return block->lease.public_ip.family && block->lease.expires[0] &&
	       strncmp(block->lease.expires, expired, SECONDS_TEXT) < 0;
}

void leases_decide(const struct mirror *m, const char *expired, struct plans *ret)
{
	MIRROR_EACH(m, e, KEYS_BLOCK) {
		AUTO_DONE(block_done) struct block block = { 0 };
		char subject[KEY_TEXT], text[PREFIX_TEXT];
		struct plan *plan;

		if (!e->note || !lease_holder_is(e->note) ||
		    block_decode(KV_ARGS(&e->kv), &block, NULL) < 0 || !is_expired(&block, expired))
			continue;
		plan = plans_add(ret, lease_subject(block.node, subject));
		lease_plan_free(m, e, &block, plan, ret);
		plan_says(ret, plan,
			  "the lease of %s on network %s, held by %s, expired at %s: freed its "
			  "subnet",
			  prefix_print(&block.block, text), block.network, block.node,
			  block.lease.expires);
	}
}
