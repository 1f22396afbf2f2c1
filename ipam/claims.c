/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/claims.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "ipam/allocator/candidates.h"
#include "lib/base/array.h"
#include "lib/base/clock.h"
#include "lib/model/keys.h"
#include "lib/store/txn.h"

struct claims_call {
	TAILQ_ENTRY(claims_call) entry;
	struct claims *claims;
	struct store_call *pending;
	struct claim asked;
	struct block_need need; /* of asked; block: the one that is tried at the moment */
	char recovery[RECOVERY_TEXT];
	int64_t fence;
	unsigned tries;
	struct candidates candidates;
	ARRAY(uint32_t) taken; /* numbers of blocks, once listed */
	bool listed;
	claim_fn *on_claim;
	release_fn *on_release;
	void *arg;
	char replaced_key[KEY_TEXT]; /* the former owner's index */
};

struct claims {
	struct claims_config config;
	TAILQ_HEAD(claims_calls, claims_call) calls;
	struct claims_stats stats;
};

static int try_block(struct claims_call *c);

int claims_new(const struct claims_config *config, struct claims **ret)
{
	struct claims *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->config = *config;
	TAILQ_INIT(&c->calls);
	*ret = c;
	return 0;
}

struct claims_stats claims_stats(const struct claims *c)
{
	return c->stats;
}

static void call_free(struct claims_call *c)
{
	block_need_done(&c->need);
	array_done(&c->taken);
	free(c);
}
AUTO_DEFINE(struct claims_call *, call_free)

void claims_cancel(struct claims_call *c)
{
	if (!c)
		return;
	store_cancel(c->pending);
	TAILQ_REMOVE(&c->claims->calls, c, entry);
	call_free(c);
}

void claims_cancel_all(struct claims *c)
{
	while (!TAILQ_EMPTY(&c->calls))
		claims_cancel(TAILQ_FIRST(&c->calls));
}

void claims_free(struct claims *c)
{
	if (c)
		claims_cancel_all(c);
	free(c);
}

bool claims_busy(const struct claims *c)
{
	return !TAILQ_EMPTY(&c->calls);
}

bool claims_has(const struct claims *claims, claim_fn *by, const char *pool,
		const struct prefix *specific)
{
	const struct claims_call *c;

	TAILQ_FOREACH(c, &claims->calls, entry)
		if (c->on_claim == by && strcmp(c->need.pool, pool) == 0 &&
		    c->need.specific == (specific != NULL) &&
		    (!specific || prefix_compare(&c->need.block, specific) == 0))
			return true;
	return false;
}

bool claims_tries(const struct claims *claims, claim_fn *by, const char *network,
		  const struct prefix *block)
{
	const struct claims_call *c;

	TAILQ_FOREACH(c, &claims->calls, entry)
		if (c->on_claim == by && strcmp(c->need.network, network) == 0 &&
		    prefix_compare(&c->need.block, block) == 0)
			return true;
	return false;
}

/* --- the outcome ---------------------------------------------------------------------------- */

static void deliver(struct claims_call *c, const struct claim_result *result)
{
	struct claim_result r = *result;

	r.claim = &c->asked;
	r.tries = c->tries;
	if (r.outcome == CLAIM_DONE)
		c->claims->stats.claimed++;
	/* What it makes the owner claim next is another one. */
	TAILQ_REMOVE(&c->claims->calls, c, entry);
	c->on_claim(&r, c->arg);
	call_free(c);
}

static void deliver_outcome(struct claims_call *c, enum claim_outcome outcome, const char *text)
{
	struct claim_result r = { .outcome = outcome };

	snprintf(r.text, sizeof(r.text), "%s", text);
	deliver(c, &r);
}

/* made: revision of the transaction that made block and extent; 0: it was there before. */
static void deliver_done(struct claims_call *c, int64_t revision, int64_t made)
{
	struct claim_result r = {
		.outcome = CLAIM_DONE,
		.block = c->need.block,
		.found = !made,
		.revision = revision,
		.extent_revision = c->asked.extent_revision ?: made,
	};

	deliver(c, &r);
}

static void deliver_taken(struct claims_call *c, const char *owner)
{
	struct claim_result r = { .outcome = CLAIM_TAKEN, .block = c->need.block };
	char text[PREFIX_TEXT];

	snprintf(r.owner, sizeof(r.owner), "%s", owner);
	snprintf(r.text, sizeof(r.text), "block %s belongs to node %s",
		 prefix_print(&c->need.block, text), owner);
	deliver(c, &r);
}

/* --- which block ---------------------------------------------------------------------------- */

static int note_taken(struct claims_call *c, const struct prefix *block)
{
	address_count n;

	/* Of whatever length: what was cut here, however wrongly, is taken. */
	if (prefix_block_index(&c->need.cidr, c->need.block_size, &block->address, &n) < 0 ||
	    n > UINT32_MAX)
		return 0;
	return array_append(&c->taken, (uint32_t)n);
}

/* After a miss, once it is known what is taken. */
static void try_untaken(struct claims_call *c)
{
	uint64_t random;
	address_count n;
	int r;

	/* Each that comes this far should pick another place. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = clock_boottime_ns();
	r = candidate_free(&c->need.usable, c->taken.v, c->taken.n, random, &n);
	r = r ?: prefix_nth_block(&c->need.cidr, c->need.block_size, n, &c->need.block);
	if (r == -ENOSPC) {
		deliver_outcome(c, CLAIM_FULL, "every block of the pool is taken");
		return;
	}
	r = r ?: try_block(c);
	if (r < 0)
		deliver_outcome(c, CLAIM_STALE, "could not go on with the claim");
}

static void on_taken_page(const struct store_reply *reply, void *arg)
{
	struct claims_call *c = arg;
	struct key key;
	int r = 0;

	if (!reply->more)
		c->pending = NULL;
	if (reply->err) {
		deliver_outcome(c, CLAIM_FAILED, reply->text);
		return;
	}
	for (size_t i = 0; r == 0 && i < reply->ops[0].n; i++)
		if (key_parse_full(c->claims->config.prefix, reply->ops[0].kvs[i].key, &key) == 0)
			r = note_taken(c, &key.block);
	if (r < 0) {
		store_cancel(TAKE(c->pending));
		deliver_outcome(c, CLAIM_FAILED, "out of memory");
	} else if (!reply->more) {
		c->listed = true;
		try_untaken(c);
	}
}

static int list_taken(struct claims_call *c)
{
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];
	AUTO(free) char *end = NULL;
	int r = keys_of_blocks(relative, c->need.network);

	r = r ?: key_full(c->claims->config.prefix, relative, key);
	if (r < 0)
		return r;
	end = store_prefix_end(key);
	if (!end)
		return -ENOMEM;
	c->claims->stats.listed++;
	return store_list(c->claims->config.store, key, end, STORE_FOREVER, on_taken_page, c,
			  &c->pending);
}

static int next_guess(struct claims_call *c)
{
	address_count n;

	if (!candidate_next(&c->candidates, &n))
		return -ENOSPC;
	return prefix_nth_block(&c->need.cidr, c->need.block_size, n, &c->need.block);
}

static void next_block(struct claims_call *c, const char *owner)
{
	int r;

	if (c->need.specific) {
		deliver_taken(c, owner);
		return;
	}
	if (c->listed) {
		r = note_taken(c, &c->need.block);
		if (r == 0) {
			try_untaken(c);
			return;
		}
	} else if (c->tries < CANDIDATE_TRIES && next_guess(c) == 0) {
		r = try_block(c);
	} else {
		r = list_taken(c);
	}
	if (r < 0)
		deliver_outcome(c, CLAIM_STALE, "could not go on with the claim");
}

/* --- the reply ------------------------------------------------------------------------------ */

/* The owner by a block's record; "" if it is damaged: then it is certainly not ours. */
static void owner_of(const struct claims_call *c, const struct store_kv *kv, char *owner)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const char *relative = kv->key + strlen(c->claims->config.prefix);

	owner[0] = '\0';
	if (block_decode(relative, kv->value, kv->value_len, &block, NULL) == 0)
		snprintf(owner, NODE_NAME_TEXT, "%s", block.node);
}

/*
 * The block's record is not what was compared. Ours: an earlier claim of this node whose reply nobody
 * waited for. Absent: the record that was to be replaced is gone.
 */
static void block_differs(struct claims_call *c, const struct store_kv *kv)
{
	char owner[NODE_NAME_TEXT];

	if (!kv) {
		deliver_outcome(c, CLAIM_STALE, "the block's record was deleted meanwhile");
		return;
	}
	owner_of(c, kv, owner);
	if (strcmp(owner, c->claims->config.node) == 0)
		deliver_done(c, kv->mod_revision, 0);
	else
		next_block(c, owner[0] ? owner : "unknown (its record is damaged)");
}

static const struct store_kv *first(const struct store_op_reply *op)
{
	return op->n ? &op->kvs[0] : NULL;
}

/* Absent, or the record that is to be replaced. */
static bool is_as_compared(const struct claims_call *c, const struct store_kv *block)
{
	return (block ? block->mod_revision : 0) == c->asked.replaces;
}

/* The compares failed: the failure branch shows which. */
static void refused(struct claims_call *c, const struct store_reply *reply)
{
	const struct store_kv *node, *block;

	if (reply->n_ops != 2) {
		deliver_outcome(c, CLAIM_FAILED, "etcd's reply lacks what was asked for");
		return;
	}
	node = first(&reply->ops[0]);
	block = first(&reply->ops[1]);
	if (!node || node->mod_revision != c->fence)
		deliver_outcome(c, CLAIM_STALE, "our node record has changed");
	else if (!is_as_compared(c, block))
		block_differs(c, block);
	else
		deliver_outcome(c, CLAIM_STALE,
				"the extents of the network or the recovery have changed");
}

static void settled_after_loss(struct claims_call *c, const struct store_settled *s)
{
	const struct claims_config *config = &c->claims->config;

	c->claims->stats.settled++;
	config->fence_moved(s->fence_revision, config->arg);
	if (s->outcome == STORE_APPLIED)
		deliver_done(c, s->witness->mod_revision, s->witness->create_revision);
	else if (!is_as_compared(c, s->witness))
		block_differs(c, s->witness);
	else if (try_block(c) < 0)
		deliver_outcome(c, CLAIM_STALE, "our node record has changed");
}

static void on_settled(const struct store_settled *s, void *arg)
{
	struct claims_call *c = arg;

	c->pending = NULL;
	if (s->outcome == STORE_UNSETTLED)
		deliver_outcome(c, CLAIM_FAILED, "the store was closed");
	else if (s->was_lost)
		settled_after_loss(c, s);
	else if (s->reply->err)
		deliver_outcome(c, CLAIM_FAILED, s->reply->text);
	else if (s->outcome == STORE_APPLIED)
		deliver_done(c, s->reply->revision, s->reply->revision);
	else
		refused(c, s->reply);
}

/* --- the transaction ------------------------------------------------------------------------ */

/* The texts of a claim's records. */
struct values {
	char *block, *index, *extent;
};

static void values_done(struct values *v)
{
	free(v->block);
	free(v->index);
	free(v->extent);
}

static int make_values(const struct claims_call *c, struct values *v)
{
	char token[64], now[TIME_TEXT];
	struct block block = { .network = c->need.network,
			       .node = c->claims->config.node,
			       .pool = c->need.pool,
			       .recovery = c->recovery };
	struct host_block index = { .pool = c->need.pool };
	struct extent extent = { .cidr = c->need.cidr, .block_size = c->need.block_size };
	uint64_t random;
	int r;

	/* The token makes the value one that nobody else writes: the settling depends on it. */
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(token, sizeof(token), "%016" PRIx64, random);
	clock_utc_text(now);
	block.token = token;
	memcpy(block.claimed, now, sizeof(now));
	memcpy(index.claimed, now, sizeof(now));
	memcpy(extent.made, now, sizeof(now));
	r = block_encode(&block, &v->block);
	r = r ?: host_block_encode(&index, &v->index);
	return r ?: extent_encode(&extent, &v->extent);
}

/*
 * The first compare is the fence, the first operation the witness. Where the compares fail, the keys
 * of the first n_looks of them are read.
 */
static int send_txn(struct claims_call *c, const struct txn *relative, size_t n_looks,
		    store_settled_fn *fn)
{
	const struct claims_config *config = &c->claims->config;
	AUTO_DONE(txn_done) struct txn whole = { 0 };
	struct store_op looks[2];
	struct store_txn txn;

	txn_add(&whole, config->prefix, relative);
	if (relative->failed || whole.failed)
		return -ENOMEM;
	for (size_t i = 0; i < n_looks; i++)
		looks[i] = op_get(whole.compares.v[i].key);
	txn = txn_of(&whole);
	txn.failure = looks;
	txn.n_failure = n_looks;
	return store_txn_settled(config->store, &txn, 0, 0, fn, c, &c->pending);
}

static int try_block(struct claims_call *c)
{
	const struct claims_config *config = &c->claims->config;
	const struct block_need *need = &c->need;
	AUTO_DONE(values_done) struct values v = { 0 };
	AUTO_DONE(txn_done) struct txn t = { 0 };
	char node[KEY_TEXT], block[KEY_TEXT], index[KEY_TEXT], extent[KEY_TEXT], extents[KEY_TEXT];
	int r;

	c->fence = config->fence(config->arg);
	if (!c->fence)
		return -ENOTCONN;
	r = key_node(node, config->node);
	r = r ?: key_block(block, need->network, &need->block);
	r = r ?: key_host_block(index, config->node, need->network, &need->block);
	r = r ?: key_extent(extent, need->network, need->pool);
	r = r ?: keys_of_extents(extents, need->network);
	r = r ?: make_values(c, &v);
	if (r < 0)
		return r;
	txn_if(&t, if_unchanged(node, c->fence));
	txn_if(&t, if_unchanged(block, c->asked.replaces));
	txn_if(&t, if_created(extent, c->asked.extent_revision));
	txn_if(&t, if_unchanged("recovery", c->asked.recovery_seen));
	txn_then(&t, op_put(block, v.block));
	txn_then(&t, op_put(index, v.index));
	if (!c->asked.extent_revision) {
		/* Nobody has cut anything in this network since we checked for overlaps. */
		txn_if_prefix(&t, extents, if_none_made_after(NULL, NULL, c->asked.extents_seen));
		txn_then(&t, op_put(extent, v.extent));
	}
	if (c->asked.replaces)
		txn_then(&t, op_delete(c->replaced_key));
	c->tries++;
	c->claims->stats.tried++;
	return send_txn(c, &t, 2, on_settled);
}

/* --- interface ------------------------------------------------------------------------------ */

int claims_claim(struct claims *claims, const struct claim *claim, claim_fn *fn, void *arg,
		 struct claims_call **ret)
{
	AUTO(call_free) struct claims_call *c = calloc(1, sizeof(*c));
	const struct block_need *need = claim->need;
	int r = 0;

	if (!c)
		return -ENOMEM;
	c->claims = claims;
	c->asked = *claim;
	c->asked.need = &c->need;
	snprintf(c->recovery, sizeof(c->recovery), "%s", claim->recovery ?: "");
	c->asked.recovery = c->recovery;
	c->asked.owner = NULL;
	c->need = *need;
	c->need.usable = (struct spans){ 0 };
	c->on_claim = fn;
	c->arg = arg;
	if (claim->replaces)
		r = key_host_block(c->replaced_key, claim->owner, need->network, &need->block);
	if (!need->specific) {
		for (size_t i = 0; r == 0 && i < need->usable.n; i++)
			r = spans_add(&c->need.usable, need->usable.v[i]);
		c->candidates = candidates(&c->need.usable, claims->config.node, need->network,
					   need->pool);
		r = r ?: next_guess(c);
	}
	r = r ?: try_block(c);
	if (r < 0)
		return r;
	TAILQ_INSERT_TAIL(&claims->calls, c, entry);
	if (ret)
		*ret = c;
	c = NULL;
	return 0;
}

static void on_released(const struct store_settled *s, void *arg)
{
	struct claims_call *c = arg;
	bool released = s->outcome == STORE_APPLIED;
	int64_t revision = 0;
	const char *text = "";

	c->pending = NULL;
	if (s->outcome == STORE_UNSETTLED) {
		text = "the store was closed";
	} else if (s->was_lost) {
		c->claims->stats.settled++;
		revision = s->witness ? s->witness->mod_revision : 0;
	} else if (s->reply->err) {
		text = s->reply->text;
	} else if (!released && s->reply->n_ops == 1) {
		/* Changed by somebody: gone, another's, or still ours at another revision. */
		const struct store_kv *kv = first(&s->reply->ops[0]);
		char owner[NODE_NAME_TEXT] = "";

		if (kv)
			owner_of(c, kv, owner);
		released = strcmp(owner, c->claims->config.node) != 0;
		revision = kv ? kv->mod_revision : 0;
		text = "its record or our node record has changed";
	}
	if (released)
		c->claims->stats.released++;
	TAILQ_REMOVE(&c->claims->calls, c, entry);
	c->on_release(released, revision, text, c->arg);
	call_free(c);
}

int claims_release(struct claims *claims, const char *network, const struct prefix *block,
		   int64_t revision, release_fn *fn, void *arg, struct claims_call **ret)
{
	AUTO(call_free) struct claims_call *c = calloc(1, sizeof(*c));
	AUTO_DONE(txn_done) struct txn t = { 0 };
	char node_key[KEY_TEXT], block_key[KEY_TEXT], index_key[KEY_TEXT];
	int r;

	if (!c)
		return -ENOMEM;
	c->claims = claims;
	c->on_release = fn;
	c->arg = arg;
	c->fence = claims->config.fence(claims->config.arg);
	if (!c->fence)
		return -ENOTCONN;
	r = key_node(node_key, claims->config.node);
	r = r ?: key_block(block_key, network, block);
	r = r ?: key_host_block(index_key, claims->config.node, network, block);
	if (r < 0)
		return r;
	/* Ours alone: the next agent on this node may use the block when this comes late. */
	txn_if(&t, if_unchanged(block_key, revision));
	txn_if(&t, if_unchanged(node_key, c->fence));
	txn_then(&t, op_delete(block_key));
	txn_then(&t, op_delete(index_key));
	r = send_txn(c, &t, 1, on_released);
	if (r < 0)
		return r;
	TAILQ_INSERT_TAIL(&claims->calls, c, entry);
	if (ret)
		*ret = c;
	c = NULL;
	return 0;
}
