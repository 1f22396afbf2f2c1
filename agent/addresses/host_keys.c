/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own keys in etcd, host/<self>/: the index of blocks, the address keys, the controller's
 * requests for blocks.
 *
 *   watch -> [host_keys] -> own_blocks: look at the block's key, which says who owns it
 *   attachments -> [host_keys] -> behind -> address keys
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/addresses/ipam_state.h"
#include "ipam/attachments/attachment_file.h"

/* --- address keys --------------------------------------------------------------------------- */

/* What CLOCK_REALTIME shows above CLOCK_BOOTTIME: makes UTC of an attachment's time. */
static int64_t boot_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)clock_boottime_ns();
}

int ipam_wants_keys(struct ipam *m, const struct attachment *a, bool wanted)
{
	int first = 0, r;

	for (size_t i = 0; i < a->addresses.n; i++) {
		const struct held_address *held = &a->addresses.v[i];
		struct address_record record;
		char relative[KEY_TEXT], key[KEY_FULL_TEXT];
		AUTO(free) char *text = NULL;

		/* A mere route has no network; nobody could read the key. */
		if (!held->network[0] ||
		    key_address(relative, m->o.node, held->network, &held->address) < 0 ||
		    key_full(m->o.prefix, relative, key) < 0)
			continue;
		if (!wanted) {
			behind_drop(m->behind, key);
			continue;
		}
		record = attachment_record(a, i, m->o.node, m->o.boot, boot_time());
		r = address_record_encode(&record, &text);
		r = r ?: behind_want(m->behind, key, text);
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
		log_warning("ipam",
			    "%s counts as in use: etcd has its key, but its file is missing",
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
		o = ipam_owned_add(m, key->network, r < 0 ? "" : index.pool, &key->block,
				   &key->block);
		if (!o) {
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

static void answer(struct ipam *m, const char *network)
{
	char relative[KEY_TEXT], key[KEY_FULL_TEXT];

	if (key_give_back(relative, m->o.node, network) == 0 &&
	    key_full(m->o.prefix, relative, key) == 0)
		store_txn(m->o.store,
			  &(struct store_txn){
				  TXN_IF(if_unchanged(m->fence_key, ipam_fence_revision(m))),
				  TXN_THEN(op_delete(key)), .repeatable = true },
			  0, on_answered, m, &m->answering);
}

void ipam_answer_requests(struct ipam *m)
{
	for (size_t i = 0; i < m->give_back.n && !m->answering; i++) {
		const char *network = m->give_back.v[i];

		if (!ipam_can_claim(m, NULL) ||
		    allocator_can_spare(m->allocator, &m->give_back, network, ipam_now()))
			continue;
		log_info("ipam",
			 "the controller requested blocks of network %s: this node has none "
			 "to release",
			 network);
		answer(m, network);
	}
}

void ipam_host_done(struct ipam *m)
{
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
