/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/model.h"

#include <errno.h>
#include <string.h>

#include "lib/model/record.h"

static const char *const prefixes[] = { "host", "pool", NULL };
static const char *const encapsulations[] = { "none", "vxlan", "vxlan-cross-subnet", NULL };

static const struct field namespace = { ELEMENT(text), .check = namespace_pattern_check };
static const struct field range = { ELEMENT(range) };
static const struct field word = { ELEMENT(text), .check = word_check };
static const struct field nameserver = { ELEMENT(address) };

static const struct field route_fields[] = {
	{ FIELD(pool_route, dst, "dst", prefix), .required = true },
	{ FIELD(pool_route, gw, "gw", address) },
};
static const struct field route = { ELEMENT_OBJECT(pool_route, route_fields) };

static const struct field dns_fields[] = {
	{ LIST(pool_dns, nameservers, "nameservers", &nameserver) },
	{ FIELD(pool_dns, domain, "domain", text), .check = word_check },
	{ LIST(pool_dns, search, "search", &word) },
	{ LIST(pool_dns, options, "options", &word) },
};

/* The first ones decide the defaults of others. */
static const struct field pool_fields[] = {
	{ FIELD(pool, cidr, "cidr", prefix), .required = true },
	{ FIELD(pool, network, "network", text), .check = network_check,
	  .initial_text = "default" },
	{ FIELD(pool, prefix, "prefix", choice), .choices = prefixes },
	{ FIELD(pool, encapsulation, "encapsulation", choice), .choices = encapsulations },
#define POOL_BASIS 4
	{ FIELD(pool, block_size, "blockSize", number), .max = UINT32_MAX },
	{ FIELD(pool, routed, "routed", flag) },
	{ FIELD(pool, node_selector, "nodeSelector", selector) },
	{ LIST(pool, namespaces, "namespaces", &namespace) },
	{ FIELD(pool, priority, "priority", number), .max = 1000, .initial = POOL_PRIORITY },
	{ FIELD(pool, strict, "strict", flag) },
	{ FIELD(pool, range_start, "rangeStart", address) },
	{ FIELD(pool, range_end, "rangeEnd", address) },
	{ LIST(pool, exclude, "exclude", &range) },
	{ FIELD(pool, gateway, "gateway", address) },
	{ LIST(pool, routes, "routes", &route) },
	{ OBJECT(pool, dns, "dns", dns_fields) },
	{ FIELD(pool, reserve_edges, "reserveEdges", flag) },
	{ FIELD(pool, announce, "announce", flag) },
	{ FIELD(pool, nat_outgoing, "natOutgoing", flag) },
	{ FIELD(pool, preallocate, "preallocate", number), .max = 1U << POOL_BLOCKS_MAX_BITS },
	{ FIELD(pool, max_blocks_per_node, "maxBlocksPerNode", number),
	  .max = 1U << POOL_BLOCKS_MAX_BITS },
	{ FIELD(pool, cooldown_seconds, "cooldownSeconds", number), .max = INT32_MAX,
	  .initial = 60 },
	{ FIELD(pool, disabled, "disabled", flag) },
	{ FIELD(pool, origin, "origin", text), .check = name_check },
};

static void pool_derive(const void *basis, void *record)
{
	const struct pool *b = basis;
	struct pool *pool = record;
	uint32_t usual = b->cidr.address.family == AF_INET ? 26 : 122;
	uint32_t most = b->cidr.length + POOL_BLOCKS_MAX_BITS;

	/* Of a large IPv6 pool larger blocks, so that there are not too many. */
	usual = usual > most ? most : usual;
	pool->block_size = b->cidr.length > usual ? b->cidr.length : usual;
	pool->routed = strcmp(b->network ?: "", "default") == 0;
	pool->range_start = prefix_first(&b->cidr);
	pool->range_end = prefix_last(&b->cidr);
	pool->reserve_edges = b->prefix == POOL_PREFIX_POOL;
	pool->announce = b->encapsulation != ENCAPSULATION_VXLAN;
}

/* --- rules ---------------------------------------------------------------------------------- */

static int block_size_check(const struct prefix *cidr, uint32_t size, struct err *err)
{
	unsigned bits = address_bits(&cidr->address);
	char text[PREFIX_TEXT];

	if (size < cidr->length || size > bits)
		return err_set(err, -EINVAL, "field \"blockSize\": %u is not between %u and %u",
			       size, cidr->length, bits);
	if (size - cidr->length > POOL_BLOCKS_MAX_BITS)
		return err_set(err, -EINVAL,
			       "field \"blockSize\": %u cuts %s into 2^%u blocks, more than 2^%u: "
			       "use at most %u",
			       size, prefix_print(cidr, text), size - cidr->length,
			       POOL_BLOCKS_MAX_BITS, cidr->length + POOL_BLOCKS_MAX_BITS);
	return 0;
}

static int inside(const struct pool *pool, const char *field, const struct prefix *p,
		  struct err *err)
{
	char inner[PREFIX_TEXT], outer[PREFIX_TEXT];

	if (prefix_contains_prefix(&pool->cidr, p))
		return 0;
	return err_set(err, -EINVAL, "field \"%s\": %s is not in %s", field, prefix_print(p, inner),
		       prefix_print(&pool->cidr, outer));
}

static int address_inside(const struct pool *pool, const char *field, const struct address *a,
			  struct err *err)
{
	const struct prefix p = prefix_of(a, (uint8_t)address_bits(a));

	return inside(pool, field, &p, err);
}

static int range_check(const struct pool *pool, struct err *err)
{
	char start[ADDRESS_TEXT], end[ADDRESS_TEXT], field[32];
	int r = address_inside(pool, "rangeStart", &pool->range_start, err);

	if (r == 0)
		r = address_inside(pool, "rangeEnd", &pool->range_end, err);
	for (size_t i = 0; r == 0 && i < pool->exclude.n; i++) {
		snprintf(field, sizeof(field), "exclude[%zu]", i);
		r = inside(pool, field, &pool->exclude.v[i], err);
	}
	if (r < 0)
		return r;
	if (address_compare(&pool->range_start, &pool->range_end) > 0)
		return err_set(err, -EINVAL, "field \"rangeEnd\": %s comes before rangeStart %s",
			       address_print(&pool->range_end, end),
			       address_print(&pool->range_start, start));
	return 0;
}

static int same_family(const struct pool *pool, const char *field, const struct address *a,
		       struct err *err)
{
	char text[ADDRESS_TEXT], cidr[PREFIX_TEXT];

	if (!a->family || a->family == pool->cidr.address.family)
		return 0;
	return err_set(err, -EINVAL, "field \"%s\": %s is not of the family of %s", field,
		       address_print(a, text), prefix_print(&pool->cidr, cidr));
}

static int result_check(const struct pool *pool, struct err *err)
{
	char field[40];
	int r = same_family(pool, "gateway", &pool->gateway, err);

	for (size_t i = 0; r == 0 && i < pool->routes.n; i++) {
		snprintf(field, sizeof(field), "routes[%zu].dst", i);
		r = same_family(pool, field, &pool->routes.v[i].dst.address, err);
		snprintf(field, sizeof(field), "routes[%zu].gw", i);
		if (r == 0)
			r = same_family(pool, field, &pool->routes.v[i].gw, err);
	}
	return r;
}

static int pool_check(const void *record, struct err *err)
{
	const struct pool *pool = record;
	int r = block_size_check(&pool->cidr, pool->block_size, err);

	if (r == 0)
		r = range_check(pool, err);
	if (r == 0)
		r = result_check(pool, err);
	if (r < 0)
		return r;
	if (pool->strict && pool->namespaces.n == 0)
		return err_set(err, -EINVAL, "field \"strict\": needs \"namespaces\"");
	if (pool->max_blocks_per_node && pool->preallocate > pool->max_blocks_per_node)
		return err_set(err, -EINVAL,
			       "field \"preallocate\": %u is more than maxBlocksPerNode %u",
			       pool->preallocate, pool->max_blocks_per_node);
	return 0;
}

static const struct record_part pool_parts[] = { RECORD_PART(pool, name, text, pool) };

const struct record pool_record = {
	.kind = KEY_POOL,
	.size = sizeof(struct pool),
	.parts = pool_parts,
	.n_parts = ARRAY_SIZE(pool_parts),
	.fields = pool_fields,
	.n_fields = ARRAY_SIZE(pool_fields),
	.n_basis = POOL_BASIS,
	.derive = pool_derive,
	.check = pool_check,
};

RECORD_DEFINE(pool, pool_record)

int pool_order(const struct pool *a, const struct pool *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* --- extent --------------------------------------------------------------------------------- */

static const struct field extent_fields[] = {
	{ FIELD(extent, cidr, "cidr", prefix), .required = true },
	{ FIELD(extent, block_size, "blockSize", number), .required = true, .max = UINT32_MAX },
	{ FIELD(extent, made, "made", time) },
};

static int extent_check(const void *record, struct err *err)
{
	const struct extent *extent = record;

	return block_size_check(&extent->cidr, extent->block_size, err);
}

static const struct record_part extent_parts[] = {
	RECORD_PART(extent, network, text, network),
	RECORD_PART(extent, pool, text, pool),
};

const struct record extent_record = {
	.kind = KEY_EXTENT,
	.size = sizeof(struct extent),
	.parts = extent_parts,
	.n_parts = ARRAY_SIZE(extent_parts),
	.fields = extent_fields,
	.n_fields = ARRAY_SIZE(extent_fields),
	.check = extent_check,
};

RECORD_DEFINE(extent, extent_record)
