/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks are claimed: when a request needs one, and ahead of need. The allocator says which. */
#include "agent/addresses/ipam_parts.h"

#include <errno.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/base/clock.h"

#define SECOND 1000000000LL
/* A pool found full is not asked again at once. */
#define FULL_FOR       (10 * SECOND)
#define STALE_AGAIN_MS 50

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

void ipam_claims_forget(struct ipam *m)
{
	struct claiming *c;

	while ((c = LIST_FIRST(&m->claimings))) {
		LIST_REMOVE(c, entry);
		claims_cancel(c->call);
		free(c);
	}
}

bool ipam_claiming(const struct ipam *m, const char *pool, const struct prefix *specific)
{
	const struct claiming *c;

	LIST_FOREACH(c, &m->claimings, entry)
		if (strcmp(c->pool, pool) == 0 &&
		    (!specific ? !c->specific
			       : c->specific && prefix_compare(&c->block, specific) == 0))
			return true;
	return false;
}

bool ipam_is_claimed(const struct ipam *m, const struct owned *o)
{
	const struct claiming *c;

	LIST_FOREACH(c, &m->claimings, entry)
		if (strcmp(c->network, o->copy.network) == 0 &&
		    prefix_compare(claims_block(c->call), &o->copy.block) == 0)
			return true;
	return false;
}

/* The extent that a claim has made is known at once, not when the watch brings it. */
static void remember_extent(struct ipam *m, const struct claiming *c, const struct claim_result *r)
{
	struct extent extent = { .cidr = c->cidr, .block_size = r->block.length };
	AUTO(free) char *text = NULL;
	char key[KEY_TEXT];
	int64_t created;

	ipam_extent(m, c->network, c->pool, &created);
	if (created || !r->extent_revision)
		return;
	clock_utc_text(extent.made);
	if (key_extent(key, c->network, c->pool) == 0 && extent_encode(&extent, &text) == 0)
		records_put(m->o.records, key, text, strlen(text), r->extent_revision);
}

/*
 * A claim is told what was so when etcd was asked. If the block was ours already, another claim has
 * got it, and it may have been given back since, or be on its way back: only a new look tells.
 */
static void claimed(struct ipam *m, const struct claiming *c, const struct claim_result *r)
{
	struct owned *o = ipam_owned_find(m, c->network, &r->block);
	struct block_copy copy = { .block = r->block,
				   .cidr = c->cidr,
				   .unrouted = ipam_unrouted_at_first(c->network) };
	char text[PREFIX_TEXT];

	snprintf(copy.network, sizeof(copy.network), "%s", c->network);
	snprintf(copy.pool, sizeof(copy.pool), "%s", c->pool);
	remember_extent(m, c, r);
	if (!o && ipam_owned_add(m, &copy, &o) < 0) {
		log_error("ipam", "out of memory: block %s serves later",
			  prefix_print(&r->block, text));
		return;
	}
	if (r->found) {
		o->verify = o->verify || !o->revision;
		ipam_retry_waiting(m, c->pool, NULL);
		return;
	}
	o->indexed = true;
	log_info("ipam", "block %s of pool %s is ours after %u transaction%s",
		 prefix_print(&r->block, text), c->pool, r->tries, r->tries == 1 ? "" : "s");
	if (o->call)
		o->claimed = r->revision;
	else
		ipam_block_confirmed(m, o, r->revision);
}

static bool knows_more(const struct ipam *m, const struct claiming *c)
{
	return records_seen(m->wants[INPUT_EXTENTS]) != c->extents_seen ||
	       ipam_fence_revision(m) != c->fence;
}

static void on_claimed(const struct claim_result *r, void *arg)
{
	struct claiming *c = arg;
	struct ipam *m = c->ipam;
	char failed[sizeof(r->text)] = "";

	LIST_REMOVE(c, entry);
	switch (r->outcome) {
	case CLAIM_DONE:
		ipam_accepted(m);
		claimed(m, c, r);
		allocator_pool_full(m->allocator, c->pool, 0);
		break;
	case CLAIM_FULL:
		if (c->whole)
			allocator_pool_full(m->allocator, c->pool, ipam_now() + FULL_FOR);
		snprintf(failed, sizeof(failed), "%s", r->text);
		break;
	case CLAIM_TAKEN:
		snprintf(failed, sizeof(failed), "%s", r->text);
		break;
	case CLAIM_FAILED:
		/* Who waits for it learns why from ipam_can_claim(), and waits on. */
		ipam_refused(m, r->text);
		break;
	case CLAIM_STALE:
		log_debug("ipam", "claim in pool %s: %s; looking again", c->pool, r->text);
		/* Until we have heard what has changed, it would meet the same again. */
		if (!knows_more(m, c)) {
			free(c);
			ipam_later(m, STALE_AGAIN_MS);
			return;
		}
		break;
	}
	if (r->outcome != CLAIM_DONE)
		ipam_retry_waiting(m, c->pool, failed[0] ? failed : NULL);
	free(c);
	pass_mark(m->pass);
}

int ipam_claim(struct ipam *m, const struct block_need *need)
{
	struct claim claim = { .need = need,
			       .extents_seen = records_seen(m->wants[INPUT_EXTENTS]),
			       .recovery_seen = m->recovery.revision };
	struct claiming *c;
	int r;

	if (ipam_claiming(m, need->pool, need->specific ? &need->block : NULL))
		return 0;
	if (!ipam_can_claim(m, NULL))
		return -EAGAIN;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->ipam = m;
	snprintf(c->pool, sizeof(c->pool), "%s", need->pool);
	snprintf(c->network, sizeof(c->network), "%s", need->network);
	c->cidr = need->cidr;
	c->block = need->block;
	c->specific = need->specific;
	c->whole = need->whole;
	c->extents_seen = claim.extents_seen;
	c->fence = ipam_fence_revision(m);
	ipam_extent(m, need->network, need->pool, &claim.extent_revision);
	r = claims_claim(m->claims, &claim, on_claimed, c, &c->call);
	if (r < 0) {
		free(c);
		return r;
	}
	LIST_INSERT_HEAD(&m->claimings, c, entry);
	return 0;
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
