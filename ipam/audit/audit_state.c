/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of etcd as what the audit compares: decoded, sorted, found by what they are about. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "ipam/audit/audit_state.h"
#include "lib/model/record.h"

#define sort(array, compare)                                                                       \
	({                                                                                         \
		if ((array)->n)                                                                    \
			qsort((array)->v, (array)->n, sizeof(*(array)->v), compare);               \
	})

/* --- order ---------------------------------------------------------------------------------- */

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct seen_node *)a)->name, ((const struct seen_node *)b)->name);
}

static int compare_places(const char *a, const struct prefix *pa, const char *b,
			  const struct prefix *pb)
{
	return strcmp(a, b) ?: prefix_compare(pa, pb);
}

static int compare_blocks(const void *x, const void *y)
{
	const struct seen_block *a = x, *b = y;

	return compare_places(a->network, &a->block, b->network, &b->block);
}

static int compare_indexes(const void *x, const void *y)
{
	const struct seen_index *a = x, *b = y;

	return compare_places(a->network, &a->block, b->network, &b->block)
		       ?: strcmp(a->node->name, b->node->name);
}

static int compare_addresses(const void *x, const void *y)
{
	const struct seen_address *a = x, *b = y;

	return strcmp(a->network, b->network)
		       ?: address_compare(&a->address, &b->address)
				  ?: strcmp(a->node->name, b->node->name);
}

static int compare_extents(const void *x, const void *y)
{
	const struct seen_extent *a = x, *b = y;

	return compare_places(a->network, &a->record.cidr, b->network, &b->record.cidr)
		       ?: strcmp(a->pool, b->pool);
}

static int compare_pools(const void *a, const void *b)
{
	return strcmp(((const struct seen_pool *)a)->name, ((const struct seen_pool *)b)->name);
}

/* --- finding -------------------------------------------------------------------------------- */

const struct seen_node *audit_node(const struct audit *a, const char *name)
{
	return array_find(a->nodes.v, a->nodes.n, x, strcmp(x->name, name));
}

const struct seen_block *audit_block(const struct audit *a, const char *network,
				     const struct prefix *block)
{
	return array_find(a->blocks.v, a->blocks.n, x,
			  compare_places(x->network, &x->block, network, block));
}

const struct seen_index *audit_indexes(const struct audit *a, const char *network,
				       const struct prefix *block, size_t *ret_n)
{
	const struct seen_index *v = array_find(
		a->indexes.v, a->indexes.n, x,
		compare_places(x->network, &x->block, network, block));
	const struct seen_index *end = a->indexes.v + a->indexes.n, *i = v;

	while (v && i < end && compare_places(i->network, &i->block, network, block) == 0)
		i++;
	*ret_n = v ? (size_t)(i - v) : 0;
	return v;
}

const struct seen_index *audit_index(const struct audit *a, const char *network,
				     const struct prefix *block, const char *node)
{
	size_t n;
	const struct seen_index *v = audit_indexes(a, network, block, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].node->name, node) == 0)
			return &v[i];
	return NULL;
}

const struct seen_extent *audit_extent(const struct audit *a, const char *network, const char *pool)
{
	for (size_t i = 0; i < a->extents.n; i++)
		if (strcmp(a->extents.v[i].network, network) == 0 &&
		    strcmp(a->extents.v[i].pool, pool) == 0)
			return &a->extents.v[i];
	return NULL;
}

const struct seen_pool *audit_pool(const struct audit *a, const char *name)
{
	return array_find(a->pools.v, a->pools.n, x, strcmp(x->name, name));
}

const struct seen_block *audit_block_around(const struct audit *a, const char *network,
					    const struct address *address,
					    const struct seen_node *node)
{
	for (unsigned length = address_bits(address) + 1; length-- > 0;) {
		struct prefix p = prefix_of(address, (uint8_t)length);
		const struct seen_block *b = NULL;

		if (a->lengths[address->family == AF_INET6][length])
			b = audit_block(a, network, &p);
		if (b && (!node || b->owner == node))
			return b;
	}
	return NULL;
}

/* The position of the first address of a network that is not below this one. */
static size_t addresses_from(const struct audit *a, const char *network,
			     const struct address *address)
{
	return array_place(a->addresses.v, a->addresses.n, x,
			   strcmp(x->network, network) ?: address_compare(&x->address, address));
}

size_t audit_addresses_in(const struct audit *a, const char *network, const struct prefix *block,
			  const struct seen_node *node)
{
	struct address first = prefix_first(block);
	size_t n = 0;

	for (size_t i = addresses_from(a, network, &first); i < a->addresses.n; i++) {
		if (strcmp(a->addresses.v[i].network, network) != 0 ||
		    !prefix_contains(block, &a->addresses.v[i].address))
			break;
		n += !node || a->addresses.v[i].node == node;
	}
	return n;
}

const struct seen_address *audit_address(const struct audit *a, const char *node,
					 const char *network, const struct address *address)
{
	for (size_t i = addresses_from(a, network, address); i < a->addresses.n; i++) {
		const struct seen_address *s = &a->addresses.v[i];

		if (strcmp(s->network, network) != 0 || address_compare(&s->address, address) != 0)
			break;
		if (strcmp(s->node->name, node) == 0)
			return s;
	}
	return NULL;
}

/* --- reading -------------------------------------------------------------------------------- */

/* Keys come sorted, so most repeat the one before. */
static int note_node(struct audit *a, const char *name)
{
	char *copy;

	if (!name[0] || (a->nodes.n && strcmp(a->nodes.v[a->nodes.n - 1].name, name) == 0))
		return 0;
	copy = strdup(name);
	if (copy && array_append(&a->nodes, (struct seen_node){ .name = copy }) == 0)
		return 0;
	free(copy);
	return -ENOMEM;
}

static void unique_nodes(struct audit *a)
{
	size_t kept = 0;

	sort(&a->nodes, compare_nodes);
	for (size_t i = 0; i < a->nodes.n; i++) {
		if (kept && strcmp(a->nodes.v[kept - 1].name, a->nodes.v[i].name) == 0)
			free(a->nodes.v[i].name);
		else
			a->nodes.v[kept++] = a->nodes.v[i];
	}
	a->nodes.n = kept;
}

static struct seen_node *the_node(struct audit *a, const char *name)
{
	return (struct seen_node *)(uintptr_t)audit_node(a, name);
}

/* Into record, which is of its kind. -ENOMEM, or 0: what cannot be decoded is a finding. */
static int decode(struct audit *a, const struct key *key, const struct store_kv *kv, void *record,
		  bool *damaged)
{
	struct err err = { "" };
	int r = record_decode(record_of(key->kind), kv->key, kv->value, kv->value_len, record,
			      &err);

	if (r == -ENOMEM)
		return r;
	*damaged = r < 0;
	if (r < 0)
		audit_undecodable(a, kv, err.text);
	return 0;
}

/* Before the names of all nodes are known; owners are looked up when they are. */
static int read_first(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_block *b;
	bool damaged = false;
	int r;

	/* A label for a machine that has yet to come is no trace of one. */
	if (key->kind != KEY_BLOCK)
		return key->kind == KEY_SPEC ? 0 : note_node(a, key->node);
	b = array_add(&a->blocks);
	if (!b)
		return -ENOMEM;
	b->kv = kv;
	memcpy(b->network, key->network, sizeof(b->network));
	b->block = key->block;
	a->lengths[key->block.address.family == AF_INET6][key->block.length] = true;
	r = decode(a, key, kv, &b->record, &damaged);
	return r < 0 || damaged ? r : note_node(a, b->record.node);
}

static int read_pool(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_pool *p = array_add(&a->pools);

	if (!p)
		return -ENOMEM;
	p->kv = kv;
	memcpy(p->name, key->pool, sizeof(p->name));
	return decode(a, key, kv, &p->record, &p->damaged);
}

static int read_extent(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_extent *e = array_add(&a->extents);

	if (!e)
		return -ENOMEM;
	e->kv = kv;
	memcpy(e->network, key->network, sizeof(e->network));
	memcpy(e->pool, key->pool, sizeof(e->pool));
	return decode(a, key, kv, &e->record, &e->damaged);
}

static int read_index(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_index *i = array_add(&a->indexes);
	int r;

	if (!i)
		return -ENOMEM;
	i->kv = kv;
	memcpy(i->network, key->network, sizeof(i->network));
	i->block = key->block;
	i->node = the_node(a, key->node);
	i->node->indexes++;
	/* What it should say follows from the block: see audit_etcd(). */
	r = host_block_decode(kv->key, kv->value, kv->value_len, &i->record, NULL);
	i->damaged = r < 0;
	return r == -ENOMEM ? r : 0;
}

static int read_address(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	AUTO_DONE(address_record_done) struct address_record record = { 0 };
	struct seen_address *s = array_add(&a->addresses);
	int r;

	if (!s)
		return -ENOMEM;
	s->kv = kv;
	memcpy(s->network, key->network, sizeof(s->network));
	s->address = key->address;
	s->node = the_node(a, key->node);
	s->node->addresses++;
	r = decode(a, key, kv, &record, &s->damaged);
	if (r == 0 && !s->damaged) {
		s->reserved = record.reserved;
		snprintf(s->boot, sizeof(s->boot), "%s", record.boot);
	}
	return r;
}

static int read_removed(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	AUTO_DONE(node_removed_done) struct node_removed record = { 0 };
	struct seen_node *n = the_node(a, key->node);
	bool damaged = false;
	int r = decode(a, key, kv, &record, &damaged);

	n->removed = kv;
	n->removed_now = r == 0 && !damaged && record.now;
	return r;
}

/* Kinds of which only the form matters here. */
static int read_other(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	const struct record *type = record_of(key->kind);
	AUTO(free) void *record = type ? calloc(1, type->size) : NULL;
	bool damaged = false;
	int r;

	if (!record)
		return type ? -ENOMEM : 0;
	r = decode(a, key, kv, record, &damaged);
	if (r == 0 && !damaged)
		record_done(type, record);
	return r;
}

static int read_second(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	bool damaged;

	switch (key->kind) {
	case KEY_BLOCK:
		return 0;
	case KEY_POOL:
		return read_pool(a, key, kv);
	case KEY_EXTENT:
		return read_extent(a, key, kv);
	case KEY_HOST_BLOCK:
		return read_index(a, key, kv);
	case KEY_ADDRESS:
		return read_address(a, key, kv);
	case KEY_NODE:
		the_node(a, key->node)->kv = kv;
		return decode(a, key, kv, &the_node(a, key->node)->record, &damaged);
	case KEY_REMOVED:
		return read_removed(a, key, kv);
	case KEY_STATUS_NODE:
		the_node(a, key->node)->status = kv;
		return 0;
	default:
		return read_other(a, key, kv);
	}
}

static int read_keys(struct audit *a,
		     int (*read)(struct audit *, const struct key *, const struct store_kv *))
{
	struct key key;
	int r = 0;

	/* Whatever else lies there is not ours. */
	for (size_t i = 0; r == 0 && i < a->in->n; i++)
		if (key_parse(a->in->kvs[i].key, &key) == 0)
			r = read(a, &key, &a->in->kvs[i]);
	return r;
}

int audit_read(struct audit *a)
{
	int r = read_keys(a, read_first);

	unique_nodes(a);
	r = r ?: read_keys(a, read_second);
	if (r < 0)
		return r;
	for (size_t i = 0; i < a->blocks.n; i++) {
		struct seen_block *b = &a->blocks.v[i];

		if (!b->record.node)
			continue;
		b->owner = the_node(a, b->record.node);
		b->owner->blocks++;
	}
	sort(&a->blocks, compare_blocks);
	sort(&a->indexes, compare_indexes);
	sort(&a->addresses, compare_addresses);
	sort(&a->extents, compare_extents);
	sort(&a->pools, compare_pools);
	return 0;
}

void audit_forget(struct audit *a)
{
	for (size_t i = 0; i < a->nodes.n; i++) {
		free(a->nodes.v[i].name);
		node_done(&a->nodes.v[i].record);
	}
	for (size_t i = 0; i < a->blocks.n; i++)
		block_done(&a->blocks.v[i].record);
	for (size_t i = 0; i < a->indexes.n; i++)
		host_block_done(&a->indexes.v[i].record);
	for (size_t i = 0; i < a->extents.n; i++)
		extent_done(&a->extents.v[i].record);
	for (size_t i = 0; i < a->pools.n; i++)
		pool_done(&a->pools.v[i].record);
	array_done(&a->nodes);
	array_done(&a->blocks);
	array_done(&a->indexes);
	array_done(&a->addresses);
	array_done(&a->extents);
	array_done(&a->pools);
}
