/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own keys in etcd, host/<self>/: the index of blocks and the address keys.
 *
 * The index is what the agent watches; the block key itself says who owns a
 * block. So whatever the index shows, or stops to show, leads to a look at the
 * block keys, many at a time, and that look decides: ours, another's, gone.
 */
#include "agent/addresses/ipam_parts.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "ipam/attachments/attachment_file.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"

/* --- address keys --------------------------------------------------------------------------- */

/* What CLOCK_REALTIME shows above CLOCK_BOOTTIME: turns an attachment's time into one for people.
 */
static int64_t boot_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)clock_boottime_ns();
}

static int want_key(struct ipam *m, const struct attachment *a, size_t i, bool wanted)
{
	const struct held_address *held = &a->addresses.v[i];
	struct address_record record;
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];
	AUTO(free) char *text = NULL;
	/* A mere route has no network; nobody could read the key. */
	int r = held->network[0] ? 0 : -ENOENT;

	r = r ?: key_address(relative, m->o.node, held->network, &held->address);
	r = r ?: key_full(m->o.prefix, relative, key);
	if (r < 0)
		return 0;
	if (!wanted) {
		behind_drop(m->behind, key);
		return 0;
	}
	record = attachment_record(a, i, m->o.node, m->o.boot, boot_time());
	r = address_record_encode(&record, &text);
	return r ?: behind_want(m->behind, key, text);
}

int ipam_wants_keys(struct ipam *m, const struct attachment *a, bool wanted)
{
	int first = 0;

	for (size_t i = 0; i < a->addresses.n; i++) {
		int r = want_key(m, a, i, wanted);

		first = first ?: r;
	}
	return first;
}

/* A key of this boot without a file: the address is in use, though we do not know by whom. */
static void address_put(struct ipam *m, const struct key *key, const struct store_kv *kv)
{
	AUTO_DONE(address_record_done) struct address_record record = { 0 };
	const char *relative = kv->key + strlen(m->o.prefix);
	int r = address_record_decode(relative, kv->value, kv->value_len, &record, NULL);

	if (behind_seen(m->behind, kv->key, kv->value, kv->value_len, kv->mod_revision) < 0)
		log_error("ipam", "out of memory at %s", relative);
	/* Damaged, of an earlier boot, or written by ourselves. The first two go away by
	 * themselves. */
	if (r < 0 || (strcmp(record.boot, m->o.boot) != 0 && !record.reserved) || m->host_listed)
		return;
	/* Its DEL came, but etcd had not heard of it when the agent was killed. Or etcd went back
	 * since an agent ran here: then the files know more than it does. */
	if (ipam_released(m, key->network, &key->address) || (m->recovery.noticed && !m->damaged))
		return;
	r = allocator_mark(m->allocator, key->network, &key->address, &record, ipam_now());
	if (r > 0) {
		log_warning("ipam", "%s is held as in use: etcd says so, but its file is gone",
			    relative);
		r = behind_want(m->behind, kv->key, kv->value);
	}
	if (r < 0)
		log_error("ipam", "out of memory at %s", relative);
}

/* --- the index ------------------------------------------------------------------------------ */

static void index_put(struct ipam *m, const struct key *key, const struct store_kv *kv)
{
	AUTO_DONE(host_block_done) struct host_block index = { 0 };
	const char *relative = kv->key + strlen(m->o.prefix);
	struct owned *o = ipam_owned_find(m, key->network, &key->block);
	struct err err = { "" };
	int r = host_block_decode(relative, kv->value, kv->value_len, &index, &err);

	if (r < 0)
		health_set(m->o.health, relative, LOG_LEVEL_ERROR, "%s", err.text);
	else
		health_clear(m->o.health, relative);
	if (!o) {
		struct block_copy copy = { .block = key->block,
					   .cidr = key->block,
					   .unrouted = ipam_unrouted_at_first(key->network) };

		snprintf(copy.network, sizeof(copy.network), "%s", key->network);
		snprintf(copy.pool, sizeof(copy.pool), "%s", r < 0 ? "" : index.pool);
		if (ipam_owned_add(m, &copy, &o) < 0) {
			log_error("ipam", "out of memory at %s", relative);
			return;
		}
		/* After a restore this may be one that we gave back, and another uses. */
		o->restored = ipam_recovering(m, NULL);
	}
	/* A damaged one is written again once the block's own record says that it is ours. */
	o->indexed = r == 0 && (!o->copy.pool[0] || strcmp(index.pool, o->copy.pool) == 0);
	o->verify = o->verify || !o->revision || !o->indexed;
	pass_mark(m->pass);
}

static void index_deleted(struct ipam *m, const struct key *key, const char *relative)
{
	struct owned *o = ipam_owned_find(m, key->network, &key->block);

	if (!o)
		return;
	o->indexed = false;
	health_clear(m->o.health, relative);
	/* Our own release deletes it too, and tells by itself. */
	o->verify = !o->call;
	pass_mark(m->pass);
}

/* --- requests of the controller ------------------------------------------------------------- */

static void give_back_put(struct ipam *m, const char *network)
{
	const char **grown;
	char *copy;

	m->modest_until = ipam_now() + (int64_t)m->o.minute * 1000000;
	for (size_t i = 0; i < m->give_back.n; i++)
		if (strcmp(m->give_back.v[i], network) == 0)
			return;
	copy = strdup(network);
	grown = reallocarray(m->give_back.v, m->give_back.n + 1, sizeof(*grown));
	if (grown)
		m->give_back.v = grown;
	if (copy && grown)
		m->give_back.v[m->give_back.n++] = copy;
	else
		free(copy);
	pass_mark(m->pass);
}

static void give_back_deleted(struct ipam *m, const char *network)
{
	for (size_t i = 0; i < m->give_back.n; i++) {
		if (strcmp(m->give_back.v[i], network) != 0)
			continue;
		free((char *)(uintptr_t)m->give_back.v[i]);
		m->give_back.v[i] = m->give_back.v[--m->give_back.n];
		return;
	}
}

static void on_answered(const struct store_reply *reply, void *arg)
{
	struct ipam *m = arg;

	m->answering = NULL;
	/* The watch tells that the key is gone; if it is not, the next pass tries again. */
	if (reply->err && reply->err != -ECANCELED)
		ipam_refused(m, reply->text);
}

static int answer(struct ipam *m, const char *network)
{
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];
	const struct store_compare ours = { .key = m->fence_key,
					    .target = STORE_MOD_REVISION,
					    .number = ipam_fence_revision(m) };
	const struct store_op drop = { .kind = STORE_DELETE, .key = key };
	const struct store_txn txn = { &ours, 1, &drop, NULL, 1, 0, true, false };
	int r = key_give_back(relative, m->o.node, network);

	r = r ?: key_full(m->o.prefix, relative, key);
	return r ?: store_txn(m->o.store, &txn, 0, on_answered, m, &m->answering);
}

void ipam_answer_requests(struct ipam *m)
{
	for (size_t i = 0; i < m->give_back.n && !m->answering; i++) {
		const char *network = m->give_back.v[i];

		if (!ipam_can_claim(m, NULL) ||
		    allocator_can_spare(m->allocator, &m->give_back, network, ipam_now()))
			continue;
		log_info("ipam",
			 "the controller asked for blocks of network %s: there is none left "
			 "to give back",
			 network);
		answer(m, network);
	}
}

void ipam_index_done(struct ipam *m)
{
	store_cancel(m->verifying);
	store_cancel(m->answering);
	for (size_t i = 0; i < m->give_back.n; i++)
		free((char *)(uintptr_t)m->give_back.v[i]);
	free(m->give_back.v);
}

void ipam_host_put(struct ipam *m, const struct key *key, const struct store_kv *kv)
{
	switch (key->kind) {
	case KEY_HOST_BLOCK:
		index_put(m, key, kv);
		break;
	case KEY_ADDRESS:
		address_put(m, key, kv);
		pass_mark(m->pass);
		break;
	case KEY_GIVE_BACK:
		give_back_put(m, key->network);
		break;
	default:
		break;
	}
}

void ipam_host_deleted(struct ipam *m, const struct key *key, const char *relative,
		       int64_t revision)
{
	char full[KEY_FULL_TEXT];

	switch (key->kind) {
	case KEY_HOST_BLOCK:
		index_deleted(m, key, relative);
		break;
	case KEY_ADDRESS:
		if (key_full(m->o.prefix, relative, full) == 0)
			behind_gone(m->behind, full, revision);
		pass_mark(m->pass);
		break;
	case KEY_GIVE_BACK:
		give_back_deleted(m, key->network);
		break;
	default:
		break;
	}
}

/* The registration is looked at by its own module meanwhile. */
#define LOOK_AGAIN_MS 50
/* Beside the blocks a look asks for status/node/<self> and removed/<self>: agent/addresses/authority.h. */
#define LOOK_FIRST 2

/* --- looking at block keys ------------------------------------------------------------------ */

static void block_found(struct ipam *m, struct owned *o, const struct store_kv *kv)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const char *relative = kv->key + strlen(m->o.prefix);
	struct err err = { "" };

	if (block_decode(relative, kv->value, kv->value_len, &block, &err) < 0) {
		health_set(m->o.health, relative, LOG_LEVEL_ERROR,
			   "%s; nothing is given from this block until the record is put right, or "
			   "deleted",
			   err.text);
		o->damaged = true;
		ipam_block_doubtful(m, o);
		return;
	}
	o->damaged = false;
	health_clear(m->o.health, relative);
	if (block.pool[0])
		snprintf(o->copy.pool, sizeof(o->copy.pool), "%s", block.pool);
	if (strcmp(block.node, m->o.node) == 0)
		ipam_block_confirmed(m, o, kv->mod_revision);
	else if (!ipam_block_take_back(m, o, &block, kv->mod_revision))
		ipam_block_lost(m, o, block.node, kv->mod_revision);
}

static void look_again(struct ipam *m)
{
	uint64_t delay = backoff_usec(++m->look_failures, 1000 * LOOK_AGAIN_MS, 30000000) / 1000;

	for (size_t i = 0; i < m->n_looking; i++)
		if (m->looking[i])
			m->looking[i]->again = true;
	ipam_later(m, delay);
}

static void on_verified(const struct store_reply *reply, void *arg)
{
	struct ipam *m = arg;

	m->verifying = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (!reply->err && reply->revision > m->newest)
		m->newest = reply->revision;
	err_set(&m->unproven, 0, "%s", reply->text);
	if (!reply->err && reply->succeeded)
		m->look_failures = 0;
	if (!reply->err && reply->succeeded && reply->n_ops >= LOOK_FIRST) {
		/* Without a status: the report says when it stands. */
		if (reply->ops[0].n && !reply->ops[1].n)
			ipam_proved(m, reply->sent);
	}
	/* Not our registration any more, or another revision of it: what was read proves nothing.
	 */
	if (reply->err || !reply->succeeded)
		look_again(m);
	for (size_t i = 0; i < m->n_looking && !reply->err && reply->succeeded; i++) {
		struct owned *o = m->looking[i];
		const size_t at = i + LOOK_FIRST;

		/* Older than what a claim has told meanwhile: no news. */
		if (!o || o->call || at >= reply->n_ops || reply->revision < o->revision)
			continue;
		if (reply->ops[at].n)
			block_found(m, o, &reply->ops[at].kvs[0]);
		else
			ipam_block_vanished(m, o);
	}
	m->n_looking = 0;
	pass_mark(m->pass);
}

static size_t choose_looks(struct ipam *m, char (*keys)[KEY_FULL_TEXT], struct store_op *ops)
{
	const bool recovering = ipam_recovering(m, NULL);
	size_t n = 0;

	for (size_t i = 0; i < m->n_owned && n < STORE_TXN_MAX - LOOK_FIRST; i++) {
		struct owned *o = m->owned[i];
		char relative[KEY_TEXT];

		/* Another node held it when etcd went back: that one asserts it, or nobody does. */
		o->restored = o->restored || (o->copy.lost && recovering);
		/* Not settled: its claim tells, and until then it serves nothing. */
		if (!o->verify || o->restored || o->call || ipam_is_claimed(m, o) ||
		    key_block(relative, o->copy.network, &o->copy.block) < 0 ||
		    key_full(m->o.prefix, relative, keys[n]) < 0)
			continue;
		ops[n] = (struct store_op){ .kind = STORE_GET, .key = keys[n] };
		m->looking[n++] = o;
	}
	return n;
}

void ipam_verify(struct ipam *m)
{
	AUTO(free) char(*keys)[KEY_FULL_TEXT] = NULL;
	struct store_op ops[STORE_TXN_MAX] = {
		{ .kind = STORE_GET, .key = m->status_key, .keys_only = true },
		{ .kind = STORE_GET, .key = m->removed_key, .keys_only = true },
	};
	const struct store_compare ours = { .key = m->fence_key,
					    .target = STORE_MOD_REVISION,
					    .number = ipam_fence_revision(m) };
	size_t n;

	/* Only the registered owner may draw conclusions from what is missing. */
	if (m->verifying || !records_in_sync(m->wants[INPUT_HOST]) || !m->o.fence(m->o.arg) ||
	    !ipam_may_assert(m))
		return;
	keys = calloc(STORE_TXN_MAX, sizeof(*keys));
	n = keys ? choose_looks(m, keys, ops + LOOK_FIRST) : 0;
	if ((!n && !m->prove) || store_txn(m->o.store,
					   &(struct store_txn){ .compares = &ours,
								.n_compares = 1,
								.success = ops,
								.n_success = n + LOOK_FIRST,
								.repeatable = true },
					   STORE_FOREVER, on_verified, m, &m->verifying) < 0)
		return;
	m->prove = false;
	m->n_looking = n;
	for (size_t i = 0; i < n; i++)
		m->looking[i]->verify = false;
}
