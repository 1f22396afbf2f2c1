/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of etcd as what the audit compares: decoded, sorted, found by what they are about. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "ipam/audit/audit_parts.h"
#include "lib/model/record.h"

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

static void sort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	if (n)
		qsort(v, n, size, compare);
}

/* --- finding -------------------------------------------------------------------------------- */

const struct seen_node *audit_node(const struct audit *a, const char *name)
{
	struct seen_node key = { .name = (char *)(uintptr_t)name };

	return a->n_nodes ? bsearch(&key, a->nodes, a->n_nodes, sizeof(key), compare_nodes) : NULL;
}

const struct seen_block *audit_block(const struct audit *a, const char *network,
				     const struct prefix *block)
{
	struct seen_block key = { .block = *block };

	snprintf(key.network, sizeof(key.network), "%s", network);
	return a->n_blocks ? bsearch(&key, a->blocks, a->n_blocks, sizeof(key), compare_blocks)
			   : NULL;
}

const struct seen_index *audit_indexes(const struct audit *a, const char *network,
				       const struct prefix *block, size_t *ret_n)
{
	size_t low = 0, high = a->n_indexes, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_places(a->indexes[middle].network, &a->indexes[middle].block, network,
				   block) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < a->n_indexes &&
	       compare_places(a->indexes[low + n].network, &a->indexes[low + n].block, network,
			      block) == 0)
		n++;
	*ret_n = n;
	return n ? &a->indexes[low] : NULL;
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
	for (size_t i = 0; i < a->n_extents; i++)
		if (strcmp(a->extents[i].network, network) == 0 &&
		    strcmp(a->extents[i].pool, pool) == 0)
			return &a->extents[i];
	return NULL;
}

const struct seen_pool *audit_pool(const struct audit *a, const char *name)
{
	struct seen_pool key = { 0 };

	snprintf(key.name, sizeof(key.name), "%s", name);
	return a->n_pools ? bsearch(&key, a->pools, a->n_pools, sizeof(key), compare_pools) : NULL;
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
	size_t low = 0, high = a->n_addresses;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct seen_address *m = &a->addresses[middle];

		if ((strcmp(m->network, network) ?: address_compare(&m->address, address)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t audit_addresses_in(const struct audit *a, const char *network, const struct prefix *block,
			  const struct seen_node *node)
{
	struct address first = prefix_first(block);
	size_t n = 0;

	for (size_t i = addresses_from(a, network, &first); i < a->n_addresses; i++) {
		if (strcmp(a->addresses[i].network, network) != 0 ||
		    !prefix_contains(block, &a->addresses[i].address))
			break;
		n += !node || a->addresses[i].node == node;
	}
	return n;
}

const struct seen_address *audit_address(const struct audit *a, const char *node,
					 const char *network, const struct address *address)
{
	for (size_t i = addresses_from(a, network, address); i < a->n_addresses; i++) {
		const struct seen_address *s = &a->addresses[i];

		if (strcmp(s->network, network) != 0 || address_compare(&s->address, address) != 0)
			break;
		if (strcmp(s->node->name, node) == 0)
			return s;
	}
	return NULL;
}

/* --- reading: the names of all nodes -------------------------------------------------------- */

/* Keys come sorted, so most repeat the one before. */
static int note_node(struct audit *a, const char *name)
{
	struct seen_node *more;
	char *copy;

	if (!name[0] || (a->n_nodes && strcmp(a->nodes[a->n_nodes - 1].name, name) == 0))
		return 0;
	copy = strdup(name);
	more = reallocarray(a->nodes, a->n_nodes + 1, sizeof(*more));
	if (more)
		a->nodes = more;
	if (!copy || !more) {
		free(copy);
		return -ENOMEM;
	}
	more[a->n_nodes++] = (struct seen_node){ .name = copy };
	return 0;
}

static void unique_nodes(struct audit *a)
{
	size_t kept = 0;

	sort(a->nodes, a->n_nodes, sizeof(*a->nodes), compare_nodes);
	for (size_t i = 0; i < a->n_nodes; i++) {
		if (kept && strcmp(a->nodes[kept - 1].name, a->nodes[i].name) == 0)
			free(a->nodes[i].name);
		else
			a->nodes[kept++] = a->nodes[i];
	}
	a->n_nodes = kept;
}

/* --- reading: one key of each kind ---------------------------------------------------------- */

/* Room for one more at the end, zeroed; NULL: out of memory. */
static void *grow(void **v, size_t *n, size_t size)
{
	void *more;

	/* Doubling: by the bits of the number there is. */
	if ((*n & (*n - 1)) == 0) {
		more = reallocarray(*v, *n ? *n * 2 : 1, size);
		if (!more)
			return NULL;
		*v = more;
	}
	more = (char *)*v + *n * size;
	memset(more, 0, size);
	(*n)++;
	return more;
}
#define GROW(a, what) grow((void **)&(a)->what, &(a)->n_##what, sizeof(*(a)->what))

static struct seen_node *the_node(struct audit *a, const char *name)
{
	return (struct seen_node *)(uintptr_t)audit_node(a, name);
}

/* -ENOMEM, or 0: what cannot be decoded is a finding. */
static int judged(struct audit *a, const struct store_kv *kv, int r, const struct err *err,
		  bool *damaged)
{
	if (r == -ENOMEM)
		return r;
	*damaged = r < 0;
	if (r < 0)
		audit_undecodable(a, kv, err->text);
	return 0;
}

static int read_pool(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_pool *p = GROW(a, pools);
	struct err err = { "" };

	if (!p)
		return -ENOMEM;
	p->kv = kv;
	memcpy(p->name, key->pool, sizeof(p->name));
	return judged(a, kv, pool_decode(kv->key, kv->value, kv->value_len, &p->record, &err), &err,
		      &p->damaged);
}

static int read_extent(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_extent *e = GROW(a, extents);
	struct err err = { "" };

	if (!e)
		return -ENOMEM;
	e->kv = kv;
	memcpy(e->network, key->network, sizeof(e->network));
	memcpy(e->pool, key->pool, sizeof(e->pool));
	return judged(a, kv, extent_decode(kv->key, kv->value, kv->value_len, &e->record, &err),
		      &err, &e->damaged);
}

/* The owner is looked up later: the nodes are not yet all known. */
static int read_block(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_block *b = GROW(a, blocks);
	struct err err = { "" };
	bool damaged = false;
	int r;

	if (!b)
		return -ENOMEM;
	b->kv = kv;
	memcpy(b->network, key->network, sizeof(b->network));
	b->block = key->block;
	a->lengths[key->block.address.family == AF_INET6][key->block.length] = true;
	r = judged(a, kv, block_decode(kv->key, kv->value, kv->value_len, &b->record, &err), &err,
		   &damaged);
	return r < 0 || damaged ? r : note_node(a, b->record.node);
}

static int read_index(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_index *i = GROW(a, indexes);
	int r;

	if (!i)
		return -ENOMEM;
	i->kv = kv;
	memcpy(i->network, key->network, sizeof(i->network));
	i->block = key->block;
	i->node = the_node(a, key->node);
	i->node->indexes++;
	/* What it should say follows from the block: see audit_indexes_all(). */
	r = host_block_decode(kv->key, kv->value, kv->value_len, &i->record, NULL);
	i->damaged = r < 0;
	return r == -ENOMEM ? r : 0;
}

static int read_address(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	AUTO_DONE(address_record_done) struct address_record record = { 0 };
	struct seen_address *s = GROW(a, addresses);
	struct err err = { "" };
	int r;

	if (!s)
		return -ENOMEM;
	s->kv = kv;
	memcpy(s->network, key->network, sizeof(s->network));
	s->address = key->address;
	s->node = the_node(a, key->node);
	s->node->addresses++;
	r = address_record_decode(kv->key, kv->value, kv->value_len, &record, &err);
	r = judged(a, kv, r, &err, &s->damaged);
	if (r == 0 && !s->damaged) {
		s->reserved = record.reserved;
		snprintf(s->boot, sizeof(s->boot), "%s", record.boot);
	}
	return r;
}

static int read_node(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	struct seen_node *n = the_node(a, key->node);
	struct err err = { "" };
	bool damaged;

	n->kv = kv;
	return judged(a, kv, node_decode(kv->key, kv->value, kv->value_len, &n->record, &err), &err,
		      &damaged);
}

static int read_removed(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	AUTO_DONE(node_removed_done) struct node_removed record = { 0 };
	struct seen_node *n = the_node(a, key->node);
	struct err err = { "" };
	bool damaged = false;
	int r = node_removed_decode(kv->key, kv->value, kv->value_len, &record, &err);

	n->removed = kv;
	r = judged(a, kv, r, &err, &damaged);
	n->removed_now = r == 0 && !damaged && record.now;
	return r;
}

/* Kinds of which only the form matters here. */
static int read_other(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	const struct record *type = record_of(key->kind);
	AUTO(free) void *record = NULL;
	struct err err = { "" };
	bool damaged;
	int r;

	if (!type)
		return 0;
	record = calloc(1, type->size);
	if (!record)
		return -ENOMEM;
	r = record_decode(type, kv->key, kv->value, kv->value_len, record, &err);
	if (r == 0)
		record_done(type, record);
	return judged(a, kv, r, &err, &damaged);
}

/* Before the names of all nodes are known. */
static int read_first(struct audit *a, const struct key *key, const struct store_kv *kv)
{
	if (key->kind == KEY_BLOCK)
		return read_block(a, key, kv);
	/* A label for a machine that has yet to come is no trace of one. */
	return key->kind == KEY_SPEC ? 0 : note_node(a, key->node);
}

static int read_second(struct audit *a, const struct key *key, const struct store_kv *kv)
{
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
		return read_node(a, key, kv);
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

static void find_owners(struct audit *a)
{
	for (size_t i = 0; i < a->n_blocks; i++) {
		struct seen_block *b = &a->blocks[i];

		if (!b->record.node)
			continue;
		b->owner = the_node(a, b->record.node);
		b->owner->blocks++;
	}
}

int audit_read(struct audit *a)
{
	int r = read_keys(a, read_first);

	unique_nodes(a);
	r = r ?: read_keys(a, read_second);
	if (r < 0)
		return r;
	find_owners(a);
	sort(a->blocks, a->n_blocks, sizeof(*a->blocks), compare_blocks);
	sort(a->indexes, a->n_indexes, sizeof(*a->indexes), compare_indexes);
	sort(a->addresses, a->n_addresses, sizeof(*a->addresses), compare_addresses);
	sort(a->extents, a->n_extents, sizeof(*a->extents), compare_extents);
	sort(a->pools, a->n_pools, sizeof(*a->pools), compare_pools);
	return 0;
}

void audit_forget(struct audit *a)
{
	for (size_t i = 0; i < a->n_nodes; i++) {
		free(a->nodes[i].name);
		node_done(&a->nodes[i].record);
	}
	for (size_t i = 0; i < a->n_blocks; i++)
		block_done(&a->blocks[i].record);
	for (size_t i = 0; i < a->n_indexes; i++)
		host_block_done(&a->indexes[i].record);
	for (size_t i = 0; i < a->n_extents; i++)
		extent_done(&a->extents[i].record);
	for (size_t i = 0; i < a->n_pools; i++)
		pool_done(&a->pools[i].record);
	free(a->nodes);
	free(a->blocks);
	free(a->indexes);
	free(a->addresses);
	free(a->extents);
	free(a->pools);
}
