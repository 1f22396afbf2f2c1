/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks are given back: empty ones that nobody here will need, all empty ones of a node that is
 * drained or removed. The allocator says which; the file goes before the release is sent.
 */
#include "agent/addresses/ipam_parts.h"

#include <errno.h>

static void on_released(bool released, int64_t revision, const char *why, void *arg)
{
	struct owned *o = arg;
	struct ipam *m = o->ipam;
	char text[PREFIX_TEXT];

	o->call = NULL;
	if (released)
		ipam_accepted(m);
	if (released && o->claimed) {
		ipam_block_confirmed(m, o, o->claimed);
	} else if (released && allocator_block_remove(m->allocator, o->copy.network,
						      &o->copy.block) == -EBUSY) {
		/* Cannot be: nothing is given from a block on its way back. But if it was: */
		ipam_block_vanished(m, o);
	} else if (released) {
		log_info("ipam", "block %s of pool %s is given back",
			 prefix_print(&o->copy.block, text), o->copy.pool);
		/* A restart must know of a restore that would make it ours again. */
		m->unsaved = true;
		ipam_owned_remove(m, o);
	} else {
		log_warning("ipam", "block %s could not be given back: %s",
			    prefix_print(&o->copy.block, text), why);
		if (revision) {
			ipam_block_confirmed(m, o, revision);
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
	ipam_block_set(m, o, BLOCK_RELEASING);
	r = local_copy_remove_block(m->copy, o->copy.network, &o->copy.block);
	r = r
		    ?: claims_release(m->claims, o->copy.network, &o->copy.block, o->revision,
				      on_released, o, &o->call);
	if (r < 0) {
		local_copy_put_block(m->copy, &o->copy);
		ipam_block_set(m, o, BLOCK_OWNED);
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
		if (blocks->v[i]->state == BLOCK_OWNED && !blocks->v[i]->stock.n_used)
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
		ipam_block_health(o, part);
		health_clear(m->o.health, part);
		local_copy_remove_block(m->copy, b->network, &b->prefix);
		allocator_block_remove(m->allocator, b->network, &b->prefix);
		ipam_owned_remove(m, o);
	}
	wake_when_ripe(m);
}
