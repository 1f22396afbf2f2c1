/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lease/lease_mirror.h"

#include <string.h>

#include "lib/model/keys.h"
#include "lib/model/lease_holder.h"
#include "lib/model/model.h"

/* Taken, but nobody can tell by whom. */
#define UNKNOWN_HOLDER "lease-unknown"
/* Seconds; the least that config takes, and what it is without a word. */
#define RECLAIM_MIN 900
#define RECLAIM_MAX LEASE_PROMISE_MAX

/* --- the table ------------------------------------------------------------------------------ */

static int by_subnet(const struct lease *a, const struct lease *b)
{
	return prefix_compare(&a->subnet, &b->subnet);
}

static int by_holder(const struct lease *a, const struct lease *b)
{
	/* Holders that are unknown have no family. */
	int r = (int)a->holder.family - (int)b->holder.family;

	r = r ?: address_compare(&a->holder, &b->holder);
	return r ?: by_subnet(a, b);
}

typedef int order_fn(const struct lease *a, const struct lease *b);

static size_t place_of(const struct lease_table *t, const struct lease *lease, order_fn *order)
{
	return array_place(t->v, t->n, x, order(*x, lease));
}

static void insert(struct lease_table *t, struct lease *lease, order_fn *order)
{
	*(struct lease **)memory_must(array_insert(t, place_of(t, lease, order))) = lease;
}

static struct lease *find(const struct lease_mirror *m, const struct prefix *subnet)
{
	struct lease **found = array_find(m->by_subnet.v, m->by_subnet.n, x,
					  prefix_compare(&(*x)->subnet, subnet));

	return found ? *found : NULL;
}

const struct lease *lease_mirror_find(const struct lease_mirror *m, const struct prefix *subnet)
{
	return find(m, subnet);
}

static void table_add(struct lease_mirror *m, const struct lease *lease)
{
	struct lease *copy = memory_must(malloc(sizeof(*copy)));

	*copy = *lease;
	insert(&m->by_subnet, copy, by_subnet);
	insert(&m->by_holder, copy, by_holder);
}

static void table_remove(struct lease_mirror *m, struct lease *lease)
{
	array_remove(&m->by_subnet, place_of(&m->by_subnet, lease, by_subnet));
	array_remove(&m->by_holder, place_of(&m->by_holder, lease, by_holder));
	free(lease);
}

/* Where a holder's leases begin. */
static size_t place_of_holder(const struct lease_mirror *m, const struct address *holder)
{
	struct lease least = { .holder = *holder, .subnet.address.family = AF_INET };

	return place_of(&m->by_holder, &least, by_holder);
}

/* The first lease of a holder speaks for it; NULL: it has none. */
static const struct lease *first_of(const struct lease_mirror *m, const struct address *holder)
{
	size_t at = place_of_holder(m, holder);

	return at < m->by_holder.n && address_compare(&m->by_holder.v[at]->holder, holder) == 0
		       ? m->by_holder.v[at]
		       : NULL;
}

bool lease_is_own(const struct lease_mirror *m, const struct lease *lease)
{
	return m->self.family && address_compare(&m->self, &lease->holder) == 0;
}

const struct lease *lease_mirror_own(const struct lease_mirror *m, const struct lease *after)
{
	size_t at;

	if (!m->self.family)
		return NULL;
	if (!after)
		return first_of(m, &m->self);
	at = place_of(&m->by_holder, after, by_holder) + 1;
	return at < m->by_holder.n && lease_is_own(m, m->by_holder.v[at]) ? m->by_holder.v[at]
									  : NULL;
}

/* --- keys ----------------------------------------------------------------------------------- */

/* value NULL: the key shall not be. What cannot be a key cannot be a record either. */
static void set_key(struct lease_mirror *m, const char *relative, const char *value)
{
	const struct memory_kv *found;
	char key[KEY_FULL_TEXT];

	if (key_full(m->prefix, relative, key) < 0)
		return;
	found = memory_find(m->etcd, key);
	if (value ? found && strcmp(found->kv.value, value) == 0 : !found)
		return;
	if (value)
		memory_put(m->etcd, &(struct store_op){ .kind = STORE_PUT,
							.key = key,
							.value = value,
							.value_len = strlen(value) });
	else
		memory_delete(m->etcd, key, NULL);
	m->changed = true;
}

static bool owned_already(const struct lease_mirror *m, const char *relative)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	const struct memory_kv *found;
	char key[KEY_FULL_TEXT];

	if (key_full(m->prefix, relative, key) < 0)
		return false;
	found = memory_find(m->etcd, key);
	return found &&
	       block_decode(relative, found->kv.value, found->kv.value_len, &block, NULL) == 0 &&
	       strcmp(block.node, m->node) == 0;
}

/* One key's value, made by its encoder. */
#define SET_RECORD(m, key, encode, record)                                                         \
	do {                                                                                       \
		AUTO(free) char *text_ = NULL;                                                     \
		if (encode(record, &text_) < 0)                                                    \
			abort();                                                                   \
		set_key(m, key, text_);                                                            \
	} while (0)

static void write_index(struct lease_mirror *m, const struct lease *lease, bool own)
{
	const struct host_block index = { .pool = LEASE_POOL };
	char key[KEY_TEXT];

	if (key_host_block(key, m->node, m->network, &lease->subnet) < 0)
		return;
	if (own)
		SET_RECORD(m, key, host_block_encode, &index);
	else
		set_key(m, key, NULL);
}

static void write_block(struct lease_mirror *m, const struct lease *lease)
{
	char key[KEY_TEXT], holder[NODE_NAME_TEXT];
	bool own = lease_is_own(m, lease);
	const struct block block = { .node = own ? m->node : holder, .pool = LEASE_POOL };

	if (key_block(key, m->network, &lease->subnet) < 0)
		return;
	if (lease->holder.family)
		lease_holder_name(&lease->holder, holder);
	else
		snprintf(holder, sizeof(holder), UNKNOWN_HOLDER);
	/* A claim of ours has written it with a token of its own. */
	if (!own || !owned_already(m, key))
		SET_RECORD(m, key, block_encode, &block);
	write_index(m, lease, own);
}

static void drop_block(struct lease_mirror *m, const struct lease *lease)
{
	char key[KEY_TEXT];

	if (key_block(key, m->network, &lease->subnet) == 0)
		set_key(m, key, NULL);
	write_index(m, lease, false);
}

static void write_holder(struct lease_mirror *m, const struct address *holder)
{
	const struct lease *first = first_of(m, holder);
	char key[KEY_TEXT], name[NODE_NAME_TEXT];
	AUTO(free) char *text = NULL;

	/* Of one that is unknown only the block is known. */
	if (!holder->family || key_node(key, lease_holder_name(holder, name)) < 0)
		return;
	/* Our own record is the registration's. */
	if (first && !lease_is_own(m, first) &&
	    lease_holder_record(holder, &first->mac, "", &text) < 0)
		abort();
	set_key(m, key, text);
}

/* --- changes -------------------------------------------------------------------------------- */

static bool revised(struct lease_mirror *m)
{
	bool changed = m->changed;

	m->changed = false;
	m->etcd->revision += changed;
	return changed;
}

static void put(struct lease_mirror *m, const struct lease *lease)
{
	struct lease *old = find(m, &lease->subnet);
	struct address before = { 0 };

	/* A lease that cannot be understood any more stays what it was. */
	if (old && !lease->holder.family)
		return;
	if (old && by_holder(old, lease) == 0 &&
	    memcmp(&old->mac, &lease->mac, sizeof(old->mac)) == 0) {
		old->expires = lease->expires;
	} else {
		if (old) {
			before = old->holder;
			table_remove(m, old);
		}
		table_add(m, lease);
		if (before.family)
			write_holder(m, &before);
		write_holder(m, &lease->holder);
	}
	/* Also when nothing has changed: somebody may have written to our own keys. */
	write_block(m, lease);
}

static void drop(struct lease_mirror *m, struct lease *lease)
{
	struct lease gone = *lease;

	table_remove(m, lease);
	drop_block(m, &gone);
	write_holder(m, &gone.holder);
}

static int by_subnet_of_change(const void *a, const void *b)
{
	const struct lease_change *x = a, *y = b;

	return by_subnet(&x->lease, &y->lease);
}

/* Only what the snapshot proves gone. */
static void drop_missing(struct lease_mirror *m, const struct lease_changes *changes)
{
	size_t size = (changes->n ?: 1) * sizeof(*changes->v);
	AUTO(free) struct lease_change *sorted = memory_must(malloc(size));

	if (changes->n)
		memcpy(sorted, changes->v, changes->n * sizeof(*sorted));
	qsort(sorted, changes->n, sizeof(*sorted), by_subnet_of_change);
	for (size_t i = m->by_subnet.n; i-- > 0;) {
		struct lease_change wanted = { .lease = *m->by_subnet.v[i] };

		if (!bsearch(&wanted, sorted, changes->n, sizeof(*sorted), by_subnet_of_change))
			drop(m, m->by_subnet.v[i]);
	}
}

bool lease_mirror_changes(struct lease_mirror *m, const struct lease_changes *changes)
{
	if (changes->reset)
		drop_missing(m, changes);
	for (size_t i = 0; i < changes->n; i++) {
		struct lease *old = find(m, &changes->v[i].lease.subnet);

		if (!changes->v[i].removed)
			put(m, &changes->v[i].lease);
		else if (old)
			drop(m, old);
	}
	return revised(m);
}

bool lease_mirror_put(struct lease_mirror *m, const struct lease *lease)
{
	put(m, lease);
	return revised(m);
}

void lease_mirror_forget(struct lease_mirror *m, const struct prefix *subnet)
{
	struct lease *lease = find(m, subnet);

	if (lease)
		table_remove(m, lease);
}

static void write_all_of(struct lease_mirror *m, const struct address *holder)
{
	if (!holder->family)
		return;
	write_holder(m, holder);
	for (size_t i = place_of_holder(m, holder);
	     i < m->by_holder.n && address_compare(&m->by_holder.v[i]->holder, holder) == 0; i++)
		write_block(m, m->by_holder.v[i]);
}

bool lease_mirror_self(struct lease_mirror *m, const struct address *self)
{
	struct address before = m->self;

	if (address_compare(&before, self) == 0)
		return false;
	m->self = *self;
	write_all_of(m, &before);
	write_all_of(m, self);
	return revised(m);
}

/* --- the network ---------------------------------------------------------------------------- */

static void write_config(struct lease_mirror *m, const struct lease_network *n)
{
	char value[256];

	/* Routes to other holders are the overlay's; BIRD has nothing to tell anybody here. */
	snprintf(value, sizeof(value),
		 "{\"protocol\":\"none\",\"mesh\":false,\"vxlan\":{\"vni\":%u,\"port\":%u},"
		 "\"reclaimAfter\":%u}",
		 n->vni, n->port, m->reclaim_after);
	set_key(m, "config", value);
}

static void write_pool(struct lease_mirror *m, const struct lease_network *n)
{
	char key[KEY_TEXT], cidr[PREFIX_TEXT], value[512];

	if (key_pool(key, LEASE_POOL) < 0)
		return;
	snprintf(value, sizeof(value),
		 "{\"cidr\":\"%s\",\"blockSize\":%u,\"network\":\"%s\",\"encapsulation\":\"%s\","
		 "\"preallocate\":1,\"maxBlocksPerNode\":1}",
		 prefix_print(&n->cidr, cidr), n->subnet_len, m->network,
		 n->direct ? "vxlan-cross-subnet" : "vxlan");
	set_key(m, key, value);
}

static void write_extent(struct lease_mirror *m, const struct lease_network *n)
{
	const struct extent extent = { .cidr = n->cidr, .block_size = n->subnet_len };
	char key[KEY_TEXT];

	if (key_extent(key, m->network, LEASE_POOL) == 0)
		SET_RECORD(m, key, extent_encode, &extent);
}

bool lease_mirror_network(struct lease_mirror *m, const struct lease_network *network)
{
	m->cut = *network;
	m->reclaim_after = m->reclaim_after ?: RECLAIM_MAX;
	write_config(m, network);
	write_pool(m, network);
	write_extent(m, network);
	return revised(m);
}

/*
 * A lease is renewed at its half, so half of it is left when a server that was heard falls silent;
 * an agent that is cut off stops ten minutes before reclaimAfter.
 */
bool lease_mirror_lasts(struct lease_mirror *m, int64_t seconds)
{
	int64_t half = seconds / 2;

	if (!m->reclaim_after)
		return false;
	m->reclaim_after = half < RECLAIM_MIN   ? RECLAIM_MIN
			   : half > RECLAIM_MAX ? RECLAIM_MAX
						: (uint32_t)half;
	write_config(m, &m->cut);
	return revised(m);
}

/* --- the whole ------------------------------------------------------------------------------ */

void lease_mirror_init(struct lease_mirror *m, struct memory_etcd *etcd, const char *prefix,
		       const char *network, const char *node)
{
	*m = (struct lease_mirror){
		.etcd = etcd, .prefix = prefix, .network = network, .node = node
	};
}

void lease_mirror_done(struct lease_mirror *m)
{
	for (size_t i = 0; i < m->by_subnet.n; i++)
		free(m->by_subnet.v[i]);
	array_done(&m->by_subnet);
	array_done(&m->by_holder);
}
