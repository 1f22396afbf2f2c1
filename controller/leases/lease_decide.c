/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_decide.h"

#include <errno.h>
#include <string.h>

#include "controller/decide/decide_leases.h"
#include "controller/decide/decide_recovery.h"
#include "ipam/allocator/candidates.h"
#include "lib/base/array.h"
#include "lib/model/lease_holder.h"
#include "lib/model/vtep.h"

/* So many guesses by hash before everything that is taken is looked at. */
#define GUESSES 16

void lease_decision_done(struct lease_decision *d)
{
	plans_done(&d->plans);
	free(d->answer);
	*d = (struct lease_decision){ 0 };
}

/* Of those who say nothing of themselves. */
static const struct lease_wish nothing;

struct deciding {
	const struct lease_view *view;
	const struct mirror *mirror;
	const struct lease_call *call;
	const struct lease_wish *wish;
	const struct lease_caller *caller;
	const struct lease_clock *clock;
	const struct pool_view *pool;
	lease_busy_fn *busy;
	void *arg;
	char holder[NODE_NAME_TEXT];
	const char *recovery; /* the id of the open one; "": none */
	struct lease_decision *ret;
	struct plan *plan;
	struct err *err;
};

static enum lease_verdict out_of_memory(struct deciding *d)
{
	err_set(d->err, -ENOMEM, "out of memory");
	return LEASE_NO_MEMORY;
}

#define WENT_BACK                                                                                  \
	"etcd went back: no subnet changes its holder before all nodes have reported their "       \
	"blocks; try again later"
#define REFUSE(d, ...) (err_set((d)->err, 0, __VA_ARGS__), LEASE_REFUSED)
#define FORBID(d, ...) (err_set((d)->err, 0, __VA_ARGS__), LEASE_FORBIDDEN)

/* --- what there is -------------------------------------------------------------------------- */

/* The block's entry and record; NULL: it is free. A record that cannot be read is all zero: it
 * belongs to nobody that we know. */
static const struct mirrored *find_block(const struct deciding *d, const struct prefix *subnet,
					 struct block *ret)
{
	const struct mirrored *e;
	char key[KEY_TEXT];

	if (key_block(key, d->call->network, subnet) < 0 || !(e = mirror_find(d->mirror, key)))
		return NULL;
	if (block_decode(key, e->kv.value, e->kv.value_len, ret, NULL) < 0)
		*ret = (struct block){ .node = NULL };
	return e;
}

static bool fits_pool(const struct pool_view *p, const struct prefix *subnet)
{
	return p && subnet->length == p->block_size && prefix_contains_prefix(&p->cidr, subnet);
}

/* Which of a holder's own it gets first. */
static int rank(const struct block *block)
{
	if (block->lease.revoked)
		return 1;
	return block->lease.expires[0] ? 2 : 3;
}

/* The holder's own: a reservation before others, one that was taken back at last; the lowest. */
static const struct mirrored *find_own(const struct deciding *d, struct prefix *ret)
{
	const struct mirrored *found = NULL;
	char beginning[KEY_TEXT];
	int best = 0;

	if (keys_of_blocks(beginning, d->call->network) < 0)
		return NULL;
	MIRROR_EACH(d->mirror, e, beginning) {
		AUTO_DONE(block_done) struct block block = { 0 };

		if (!e->note || strcmp(e->note, d->holder) != 0 ||
		    block_decode(KV_ARGS(&e->kv), &block, NULL) < 0 ||
		    !block.lease.public_ip.family || !fits_pool(d->pool, &block.block))
			continue;
		if (rank(&block) <= best)
			continue;
		found = e;
		best = rank(&block);
		*ret = block.block;
	}
	return found;
}

/* --- whose it is ---------------------------------------------------------------------------- */

static enum lease_verdict check_lease(struct deciding *d, const struct block *block)
{
	const char *owner = block->lease.owner ?: "";
	char subnet[PREFIX_TEXT], address[ADDRESS_TEXT];

	if (lease_caller_may(d->caller, &block->lease))
		return LEASE_DO;
	prefix_print(&block->block, subnet);
	address_print(&block->lease.public_ip, address);
	if (owner[0])
		return FORBID(d, "the lease of %s for %s belongs to %s, not to %s", subnet, address,
			      owner, d->caller->owner);
	return FORBID(d,
		      "the lease of %s has no owner yet: it is bound to the client that renews it "
		      "from %s, and this one is %s",
		      subnet, address, d->caller->owner);
}

/* Of an address that holds leases, in any network: its node record is one. Of a new one: without
 * certificates nobody speaks for another address. */
static enum lease_verdict check_holder(struct deciding *d)
{
	char address[ADDRESS_TEXT];
	bool holds = false;

	MIRROR_EACH(d->mirror, e, KEYS_BLOCK) {
		AUTO_DONE(block_done) struct block block = { 0 };
		enum lease_verdict r;
		struct key key;

		if (!e->note || strcmp(e->note, d->holder) != 0 ||
		    block_decode(KV_ARGS(&e->kv), &block, NULL) < 0 ||
		    !block.lease.public_ip.family || key_parse(e->kv.key, &key) < 0)
			continue;
		block.block = key.block;
		r = check_lease(d, &block);
		if (r != LEASE_DO)
			return r;
		holds = true;
	}
	if (holds || d->caller->certified || d->caller->operator_ ||
	    address_compare(&d->caller->peer, &d->wish->public_ip) == 0)
		return LEASE_DO;
	return FORBID(d,
		      "PublicIP %s is not the address of the client, %s: without certificates a "
		      "client gets leases for its own address only. Connect from that address, use "
		      "--lease-client-ca, or name a trusted proxy by --lease-operator",
		      address_print(&d->wish->public_ip, address), d->caller->owner);
}

/* Subnets that the client has in the network, beside this one. */
static enum lease_verdict check_quota(struct deciding *d, const struct prefix *subnet)
{
	const char *owner = d->caller->owner;
	char beginning[KEY_TEXT], text[PREFIX_TEXT] = "";
	uint32_t n = 0;

	if (d->caller->operator_ || keys_of_blocks(beginning, d->call->network) < 0)
		return LEASE_DO;
	MIRROR_EACH(d->mirror, e, beginning) {
		AUTO_DONE(block_done) struct block block = { 0 };
		struct key key;

		/* A look at the text first: a pool has thousands of blocks. */
		if (!strstr(e->kv.value, owner) && (!e->note || strcmp(e->note, d->holder) != 0))
			continue;
		if (block_decode(KV_ARGS(&e->kv), &block, NULL) < 0 ||
		    !block.lease.public_ip.family || key_parse(e->kv.key, &key) < 0 ||
		    prefix_compare(&key.block, subnet) == 0)
			continue;
		if (strcmp(block.lease.owner ?: "", owner) != 0 &&
		    strcmp(block.node ?: "", d->holder) != 0)
			continue;
		prefix_print(&key.block, text);
		n++;
	}
	if (n < d->caller->quota)
		return LEASE_DO;
	return FORBID(
		d,
		"%s has %u leases already, such as %s, and --lease-quota allows %u: delete "
		"one (`roostctl lease delete %s`), give each client a certificate of its own, "
		"or raise --lease-quota",
		owner, n, text, d->caller->quota, text);
}

static enum lease_verdict check_operator(struct deciding *d)
{
	if (d->caller->operator_)
		return LEASE_DO;
	return FORBID(d,
		      "reservations are for operators, and %s is none: start the controllers with "
		      "--lease-operator %s if it should be",
		      d->caller->owner, d->caller->owner);
}

/* --- parts of the plan ---------------------------------------------------------------------- */

static void begin(struct deciding *d, const char *subject)
{
	d->plan = plans_add(&d->ret->plans, subject);
}

/*
 * The node that has this MAC already, in its record or, of an agent, by its name; NULL: none. An
 * agent's counts before its tunnel is there. A lease keeps its own: mine is not compared.
 */
static const char *mac_owner(const struct deciding *d, const struct mac *mac, bool mine)
{
	char text[MAC_TEXT];

	mac_print(mac, text);
	MIRROR_EACH(d->mirror, e, KEYS_NODE) {
		const char *name = mirrored_name(e);
		bool lease = lease_holder_is(name);
		struct mac derived;

		if (strcmp(name, d->holder) == 0)
			continue;
		if (lease && !mine && memmem(e->kv.value, e->kv.value_len, text, strlen(text)))
			return name;
		if (lease)
			continue;
		derived = vtep_mac(name);
		if (memcmp(&derived, mac, sizeof(derived)) == 0)
			return name;
	}
	return NULL;
}

/* Compared and put each time, also when nothing in it changes: it is the holder's lock. */
static enum lease_verdict lock_holder(struct deciding *d, const struct mac *mac)
{
	AUTO_DONE(node_done) struct node node = { 0 };
	AUTO(free) char *value = NULL;
	const struct mirrored *e;
	char key[KEY_TEXT], shown[MAC_TEXT];
	const char *owner;

	if (key_node(key, d->holder) < 0)
		return REFUSE(d, "%s is not a valid node name", d->holder);
	e = mirror_find(d->mirror, key);
	if (e && (node_decode(key, e->kv.value, e->kv.value_len, &node, NULL) < 0 ||
		  !node_is_lease(&node)))
		return REFUSE(d, "node %s exists and is not a holder of leases", d->holder);
	/* Who only reserves says nothing of its tunnel. */
	if (memcmp(mac, &(struct mac){ { 0 } }, sizeof(*mac)) == 0)
		mac = &node.vtep.mac;
	else if ((owner = mac_owner(d, mac, memcmp(mac, &node.vtep.mac, sizeof(*mac)) == 0)))
		return REFUSE(
			d,
			"\"VtepMAC\": %s is the tunnel MAC of node %s; if this machine has a new "
			"address, delete the lease of its former one: `roostctl lease "
			"delete SUBNET`",
			mac_print(mac, shown), owner);
	if (lease_holder_record(&d->wish->public_ip, mac, d->recovery, &value) < 0)
		return out_of_memory(d);
	plan_if_seen(d->plan, d->mirror, key);
	txn_then(&d->plan->txn, op_put(key, value));
	return LEASE_DO;
}

static enum lease_verdict put_block(struct deciding *d, const struct block *block)
{
	AUTO(free) char *value = NULL;
	char key[KEY_TEXT];

	d->ret->block = block->block;
	if (key_block(key, d->call->network, &block->block) < 0)
		return REFUSE(d, "this is not a block");
	if (block_encode(block, &value) < 0)
		return out_of_memory(d);
	plan_if_seen(d->plan, d->mirror, key);
	txn_then(&d->plan->txn, op_put(key, value));
	if (d->call->verb == LEASE_RESERVE || d->call->verb == LEASE_UNRESERVE)
		d->ret->answer = strdup("");
	else if (lease_render(block, NULL, &d->view->vxlan, &d->ret->answer, NULL) < 0)
		d->ret->answer = NULL;
	return d->ret->answer && !plans_failed(&d->ret->plans) ? LEASE_DO : out_of_memory(d);
}

static enum lease_verdict put_index(struct deciding *d, const struct prefix *subnet)
{
	struct host_block index = { .pool = d->pool->name };
	AUTO(free) char *value = NULL;
	char key[KEY_TEXT];

	memcpy(index.claimed, d->clock->now, sizeof(index.claimed));
	if (key_host_block(key, d->holder, d->call->network, subnet) < 0 ||
	    host_block_encode(&index, &value) < 0)
		return out_of_memory(d);
	txn_then(&d->plan->txn, op_put(key, value));
	return LEASE_DO;
}

/* How the pool is cut, as every claim compares it; made by the first. */
static enum lease_verdict hold_extent(struct deciding *d)
{
	struct extent extent = { .cidr = d->pool->cidr, .block_size = d->pool->block_size };
	AUTO(free) char *value = NULL;
	char key[KEY_TEXT], all[KEY_TEXT];

	if (key_extent(key, d->call->network, d->pool->name) < 0 ||
	    keys_of_extents(all, d->call->network) < 0)
		return REFUSE(d, "this is not an extent");
	plan_if_seen(d->plan, d->mirror, key);
	if (mirror_find(d->mirror, key))
		return LEASE_DO;
	/* Nobody has cut anything in this network since we looked for overlaps. */
	txn_if_prefix(&d->plan->txn, all, if_none_made_after(NULL, NULL, d->view->mirror.revision));
	memcpy(extent.made, d->clock->now, sizeof(extent.made));
	if (extent_encode(&extent, &value) < 0)
		return out_of_memory(d);
	txn_then(&d->plan->txn, op_put(key, value));
	return LEASE_DO;
}

/* --- to claim ------------------------------------------------------------------------------- */

/*
 * Another holder's index of a subnet without a block; NULL: none. Whoever frees a lease deletes
 * both, so the block was lost, and its holder does not know that yet.
 */
static const struct mirrored *indexed_by(const struct deciding *d, const struct prefix *subnet)
{
	const struct mirror *m = d->mirror;

	if (!lease_view_lost(d->view))
		return NULL;
	MIRROR_EACH(m, e, KEYS_HOST) {
		struct key key;

		if (key_parse(e->kv.key, &key) == 0 && strcmp(key.network, d->call->network) == 0 &&
		    prefix_compare(&key.block, subnet) == 0 && strcmp(key.node, d->holder) != 0)
			return e;
	}
	return NULL;
}

static bool is_taken(const struct deciding *d, address_count n, struct prefix *ret)
{
	char key[KEY_TEXT];

	if (prefix_nth_block(&d->pool->cidr, d->pool->block_size, n, ret) < 0 ||
	    key_block(key, d->call->network, ret) < 0)
		return true;
	return mirror_find(d->mirror, key) || indexed_by(d, ret) ||
	       d->busy(d->call->network, ret, d->arg);
}

struct taken {
	uint32_t *v;
	size_t n, room;
};

static int note_taken(const struct pool_view *p, struct taken *t, const struct prefix *block)
{
	address_count n;

	if (prefix_block_index(&p->cidr, p->block_size, &block->address, &n) < 0 || n > UINT32_MAX)
		return 0;
	return array_append(t, (uint32_t)n);
}

/* 0, -ENOSPC, -ENOMEM. One that is busy may be found: its claim then fails, and it is asked anew.
 */
static int find_untaken(const struct deciding *d, struct prefix *ret)
{
	struct taken t = { 0 };
	char beginning[KEY_TEXT];
	struct key key;
	address_count n;
	int r = keys_of_blocks(beginning, d->call->network);

	if (r < 0)
		return r;
	MIRROR_EACH(d->mirror, e, beginning)
		if (r == 0 && key_parse(e->kv.key, &key) == 0)
			r = note_taken(d->pool, &t, &key.block);
	if (lease_view_lost(d->view))
		MIRROR_EACH(d->mirror, e, KEYS_HOST)
			if (r == 0 && key_parse(e->kv.key, &key) == 0 &&
			    strcmp(key.network, d->call->network) == 0 &&
			    strcmp(key.node, d->holder) != 0)
				r = note_taken(d->pool, &t, &key.block);
	r = r ?: candidate_free(&d->pool->usable, t.v, t.n, d->clock->random, &n);
	array_done(&t);
	return r ?: prefix_nth_block(&d->pool->cidr, d->pool->block_size, n, ret);
}

static int find_free(const struct deciding *d, struct prefix *ret)
{
	struct candidates c = candidates(&d->pool->usable, d->holder, d->call->network,
					 d->pool->name);
	address_count n;

	for (int i = 0; i < GUESSES && candidate_next(&c, &n); i++)
		if (!is_taken(d, n, ret))
			return 0;
	return find_untaken(d, ret);
}

static void fill_lease(const struct deciding *d, struct block *block, bool reserved)
{
	block->lease.public_ip = d->wish->public_ip;
	block->lease.backend_type = d->wish->backend_type;
	block->lease.backend_data = d->wish->backend_data;
	block->lease.owner = lease_caller_binds(d->caller, block->lease.owner);
	block->lease.revoked = false;
	if (reserved)
		block->lease.expires[0] = '\0';
	else
		memcpy(block->lease.expires, d->clock->expires, sizeof(block->lease.expires));
}

/* any: of the server's choice; else the client says which one it holds. */
static enum lease_verdict claim(struct deciding *d, const struct prefix *subnet, bool any)
{
	struct block block = {
		.node = d->holder,
		.pool = d->pool->name,
		.token = d->clock->token,
		.recovery = d->recovery,
		.block = *subnet,
	};
	const struct mirrored *former;
	enum lease_verdict r;
	char key[KEY_TEXT];

	if (any && lease_view_recovering(d->view))
		return REFUSE(d, WENT_BACK);
	r = check_quota(d, subnet);
	if (r != LEASE_DO)
		return r;
	memcpy(block.claimed, d->clock->now, sizeof(block.claimed));
	fill_lease(d, &block, d->call->verb == LEASE_RESERVE);
	begin(d, d->holder);
	plan_if_seen(d->plan, d->mirror, "recovery");
	r = put_block(d, &block);
	r = r == LEASE_DO ? put_index(d, subnet) : r;
	/* Of whom a restore brought it back to. */
	if (key_block(key, d->call->network, subnet) == 0 &&
	    (former = mirror_find(d->mirror, key)) && former->note &&
	    strcmp(former->note, d->holder) != 0 &&
	    key_host_block(key, former->note, d->call->network, subnet) == 0)
		txn_then(&d->plan->txn, op_delete(key));
	r = r == LEASE_DO ? lock_holder(d, &d->wish->mac) : r;
	return r == LEASE_DO ? hold_extent(d) : r;
}

/*
 * Whether a renewal would write what is there, but for a moment more of time. Clients whose margin
 * before the expiration is as long as the lease itself renew as fast as they are answered.
 */
static enum lease_verdict look_for_repeat(struct deciding *d, const struct mirrored *e,
					  const struct block *old, struct block block, bool *ret)
{
	AUTO(free) char *value = NULL, *holder = NULL;
	const struct mirrored *node = NULL;
	char key[KEY_TEXT];

	*ret = false;
	if (d->call->verb != LEASE_RENEW || lease_view_recovering(d->view) ||
	    !old->lease.expires[0] || strcmp(old->lease.expires, d->clock->recent) < 0 ||
	    strcmp(old->lease.expires, d->clock->expires) > 0 || key_node(key, d->holder) < 0 ||
	    !(node = mirror_find(d->mirror, key)))
		return LEASE_DO;
	memcpy(block.lease.expires, old->lease.expires, sizeof(block.lease.expires));
	if (block_encode(&block, &value) < 0 ||
	    lease_holder_record(&d->wish->public_ip, &d->wish->mac, "", &holder) < 0)
		return out_of_memory(d);
	*ret = strcmp(value, e->kv.value) == 0 && strcmp(holder, node->kv.value) == 0;
	return LEASE_DO;
}

/* The answer is what stands, and etcd is asked whether it does: a renewal is a proof. */
static enum lease_verdict repeat(struct deciding *d, const struct mirrored *e,
				 const struct block *block)
{
	d->ret->block = block->block;
	d->ret->repeated = true;
	begin(d, d->holder);
	plan_if_seen(d->plan, d->mirror, "recovery");
	plan_if_seen(d->plan, d->mirror, e->kv.key);
	txn_then(&d->plan->txn, op_get(e->kv.key));
	if (lease_render(block, NULL, &d->view->vxlan, &d->ret->answer, NULL) < 0 ||
	    plans_failed(&d->ret->plans))
		return out_of_memory(d);
	return LEASE_DO;
}

/* It is the holder's: new attributes, a new expiration; a reservation stays one. */
static enum lease_verdict refresh(struct deciding *d, const struct mirrored *e)
{
	AUTO_DONE(block_done) struct block old = { 0 };
	enum lease_verdict r;
	struct block block;
	bool reserved, repeated;

	if (block_decode(KV_ARGS(&e->kv), &old, NULL) < 0)
		return REFUSE(d, "the record %s is invalid", e->kv.key);
	block = old;
	reserved = !old.lease.expires[0] && d->call->verb != LEASE_UNRESERVE;
	fill_lease(d, &block, reserved || d->call->verb == LEASE_RESERVE);
	/* Neither says anything of the backend. */
	if (d->call->verb == LEASE_RESERVE || d->call->verb == LEASE_UNRESERVE) {
		block.lease.backend_type = old.lease.backend_type;
		block.lease.backend_data = old.lease.backend_data;
	}
	if (d->recovery[0])
		block.recovery = d->recovery;
	r = look_for_repeat(d, e, &old, block, &repeated);
	if (r != LEASE_DO || repeated)
		return r == LEASE_DO ? repeat(d, e, &old) : r;
	begin(d, d->holder);
	plan_if_seen(d->plan, d->mirror, "recovery");
	r = put_block(d, &block);
	return r == LEASE_DO ? lock_holder(d, &d->wish->mac) : r;
}

static enum lease_verdict check_pool(struct deciding *d)
{
	struct err why = { "" };

	if (!d->pool)
		return REFUSE(d,
			      "network %s has no pool for leases: create one with encapsulation "
			      "vxlan and IPv4 addresses",
			      d->call->network);
	if (pool_view_check(d->pool, &why) < 0)
		return REFUSE(d, "network %s gives no lease: %s", d->call->network, why.text);
	return LEASE_DO;
}

static enum lease_verdict acquire(struct deciding *d)
{
	struct prefix subnet = { 0 };
	const struct mirrored *own = find_own(d, &subnet);
	char shown[POOL_SHOW_TEXT];
	enum lease_verdict r;
	int found;

	/* What a restore brought back may have been given to another since. */
	if (own && lease_view_recovering(d->view) && !recovery_wrote(own, d->recovery))
		return REFUSE(d, WENT_BACK);
	if (own)
		return refresh(d, own);
	r = check_pool(d);
	if (r != LEASE_DO)
		return r;
	found = find_free(d, &subnet);
	if (found == -ENOSPC)
		return REFUSE(d, "every subnet of %s is taken", pool_view_show(d->pool, shown));
	return found < 0 ? out_of_memory(d) : claim(d, &subnet, true);
}

static enum lease_verdict taken_by(struct deciding *d, const struct block *block,
				   const struct prefix *subnet)
{
	char text[PREFIX_TEXT];

	return REFUSE(d, "lease taken: %s belongs to node %s", prefix_print(subnet, text),
		      block->node ?: "unknown: its record is invalid");
}

/* PUT of a lease, POST of a reservation: just this subnet, if it is free or the holder's. */
static enum lease_verdict take_one(struct deciding *d)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct prefix *subnet = &d->wish->subnet;
	const struct mirrored *e = find_block(d, subnet, &block);
	bool own = e && strcmp(block.node ?: "", d->holder) == 0;
	char text[PREFIX_TEXT], shown[POOL_SHOW_TEXT];
	const struct mirrored *lost;
	enum lease_verdict r;

	/*
	 * Who counted on a lease when etcd went back has it, whatever the restored record says,
	 * unless another has said the same since. What had run out may have been another's.
	 */
	if (lease_view_recovering(d->view) && d->wish->expires <= d->clock->seconds)
		return REFUSE(d, WENT_BACK);
	if (e && !own && lease_view_recovering(d->view) && !recovery_wrote(e, d->recovery))
		e = NULL;
	if (own && block.lease.public_ip.family)
		return refresh(d, e);
	if (e)
		return taken_by(d, &block, subnet);
	r = check_pool(d);
	if (r != LEASE_DO)
		return r;
	if (!fits_pool(d->pool, subnet))
		return REFUSE(d, "%s is not a /%u of %s", prefix_print(subnet, text),
			      d->pool->block_size, pool_view_show(d->pool, shown));
	if ((lost = indexed_by(d, subnet)))
		return REFUSE(d,
			      "lease taken: %s has lost its block, and the subnet is reserved for "
			      "its holder",
			      lost->kv.key);
	if (d->busy(d->call->network, subnet, d->arg))
		return REFUSE(d, "lease taken: another client is getting %s now",
			      prefix_print(subnet, text));
	return claim(d, subnet, false);
}

/* --- to give back --------------------------------------------------------------------------- */

/* The block's holder, from its record: who deletes says nothing of himself. */
static const struct mirrored *find_lease(struct deciding *d, struct block *ret,
					 enum lease_verdict *ret_verdict)
{
	const struct mirrored *e = find_block(d, &d->call->subnet, ret);
	char text[PREFIX_TEXT];

	*ret_verdict = LEASE_REFUSED;
	prefix_print(&d->call->subnet, text);
	if (!e)
		err_set(d->err, 0, "there is no lease of %s on network %s", text, d->call->network);
	else if (!ret->lease.public_ip.family)
		err_set(d->err, 0, "%s belongs to node %s; only its agent can release it", text,
			ret->node ?: "unknown");
	else
		return e;
	return NULL;
}

static enum lease_verdict give_back(struct deciding *d, bool again)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	enum lease_verdict r;
	const struct mirrored *e = find_lease(d, &block, &r);

	/* It may have been this very request. */
	if (!e && again) {
		d->ret->answer = strdup("");
		return d->ret->answer ? LEASE_DO : out_of_memory(d);
	}
	if (!e)
		return r;
	r = check_lease(d, &block);
	if (r != LEASE_DO)
		return r;
	d->ret->block = block.block;
	begin(d, block.node);
	plan_if_seen(d->plan, d->mirror, "recovery");
	lease_plan_free(d->mirror, e, &block, d->plan, &d->ret->plans);
	d->ret->answer = strdup("");
	return d->ret->answer && !plans_failed(&d->ret->plans) ? LEASE_DO : out_of_memory(d);
}

static enum lease_verdict unreserve(struct deciding *d)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	enum lease_verdict r;
	const struct mirrored *e = find_lease(d, &block, &r);
	struct lease_wish same;

	if (!e)
		return r;
	same = (struct lease_wish){ .public_ip = block.lease.public_ip };
	d->wish = &same;
	lease_holder_name(&same.public_ip, d->holder);
	r = refresh(d, e);
	d->wish = &nothing;
	return r;
}

enum lease_verdict lease_decide(const struct lease_view *view, const struct lease_call *call,
				const struct lease_wish *wish, const struct lease_caller *caller,
				const struct lease_clock *clock, bool again, lease_busy_fn *busy,
				void *arg, struct lease_decision *ret, struct err *err)
{
	struct deciding d = {
		.view = view,
		.mirror = &view->mirror,
		.call = call,
		.wish = wish ?: &nothing,
		.caller = caller,
		.clock = clock,
		.pool = lease_view_pool(view, call->network),
		.busy = busy,
		.arg = arg,
		.recovery = lease_view_recovery(view),
		.ret = ret,
		.err = err,
	};
	enum lease_verdict r = LEASE_DO;

	if (call->verb == LEASE_RESERVE || call->verb == LEASE_UNRESERVE)
		r = check_operator(&d);
	if (wish)
		lease_holder_name(&wish->public_ip, d.holder);
	/* Who gives back names only the subnet. */
	if (d.wish->public_ip.family && r == LEASE_DO)
		r = check_holder(&d);
	if (r != LEASE_DO)
		return r;
	if (lease_view_recovering(view) &&
	    (!d.recovery[0] || (call->verb != LEASE_ACQUIRE && call->verb != LEASE_RENEW)))
		return REFUSE(&d, WENT_BACK);
	switch (call->verb) {
	case LEASE_ACQUIRE:
		return acquire(&d);
	case LEASE_RENEW:
	case LEASE_RESERVE:
		return take_one(&d);
	case LEASE_REVOKE:
		return give_back(&d, again);
	case LEASE_UNRESERVE:
		return unreserve(&d);
	default:
		return REFUSE(&d, "not a request that changes leases");
	}
}
