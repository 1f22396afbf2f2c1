/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/prefix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- numbers: all below is arithmetic on these ---------------------------------------------- */

/* C leaves a shift by the full width undefined; here it pushes everything out. */
static address_count shift_left(address_count n, unsigned by)
{
	return by >= 128 ? 0 : n << by;
}

static address_count shift_right(address_count n, unsigned by)
{
	return by >= 128 ? 0 : n >> by;
}

static address_count low_ones(unsigned n)
{
	return shift_left(1, n) - 1;
}

static address_count to_number(const struct address *a)
{
	address_count n = 0;
	uint32_t ipv4;

	/* Most are; a large overlay has tens of thousands of them at a time. */
	if (a->family != AF_INET6) {
		memcpy(&ipv4, a->bytes, sizeof(ipv4));
		return ntohl(ipv4);
	}
	for (size_t i = 0; i < sizeof(a->bytes); i++)
		n = n << 8 | a->bytes[i];
	return n;
}

/* Bytes that IPv4 does not use are zero, so that equal addresses are equal memory. */
static struct address from_number(sa_family_t family, address_count n)
{
	struct address a = { .family = family };
	uint32_t ipv4 = htonl((uint32_t)n);

	if (family == AF_INET6)
		for (size_t i = sizeof(a.bytes); i-- > 0; n >>= 8)
			a.bytes[i] = (uint8_t)n;
	else
		memcpy(a.bytes, &ipv4, sizeof(ipv4));
	return a;
}

static unsigned host_bits(const struct prefix *p)
{
	unsigned bits = address_bits(&p->address);

	return p->length < bits ? bits - p->length : 0;
}

static address_count network(const struct prefix *p)
{
	return to_number(&p->address) & ~low_ones(host_bits(p));
}

/* --- addresses ------------------------------------------------------------------------------ */

int address_parse(const char *text, struct address *ret)
{
	struct address a = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };

	if (inet_pton(a.family, text, a.bytes) != 1)
		return -EINVAL;
	*ret = a;
	return 0;
}

/* glibc's way is a sprintf, and was a quarter of the time of a plan for a thousand peers. */
static void print_ipv4(const unsigned char *bytes, char *text)
{
	for (int i = 0; i < 4; i++) {
		unsigned n = bytes[i];

		if (n >= 100)
			*text++ = (char)('0' + n / 100);
		if (n >= 10)
			*text++ = (char)('0' + n / 10 % 10);
		*text++ = (char)('0' + n % 10);
		*text++ = i < 3 ? '.' : '\0';
	}
}

const char *address_print(const struct address *a, char *text)
{
	if (a->family == AF_INET6)
		inet_ntop(AF_INET6, a->bytes, text, ADDRESS_TEXT);
	else
		print_ipv4(a->bytes, text);
	return text;
}

int address_compare(const struct address *a, const struct address *b)
{
	if (a->family != b->family)
		return a->family == AF_INET ? -1 : 1;
	/* Tens of thousands are compared at a time; a call for four bytes would be most of it. */
	if (a->family == AF_INET) {
		uint32_t x, y;

		memcpy(&x, a->bytes, sizeof(x));
		memcpy(&y, b->bytes, sizeof(y));
		x = ntohl(x);
		y = ntohl(y);
		return (x > y) - (x < y);
	}
	return memcmp(a->bytes, b->bytes, address_bits(a) / 8);
}

unsigned address_bits(const struct address *a)
{
	return a->family == AF_INET6 ? 128 : 32;
}

int address_add(const struct address *a, address_count n, struct address *ret)
{
	address_count number = to_number(a);

	if (n > low_ones(address_bits(a)) - number)
		return -ERANGE;
	*ret = from_number(a->family, number + n);
	return 0;
}

int address_distance(const struct address *a, const struct address *b, address_count *ret)
{
	if (a->family != b->family || address_compare(a, b) > 0)
		return -ERANGE;
	*ret = to_number(b) - to_number(a);
	return 0;
}

bool address_is_loopback(const struct address *a)
{
	return a->family == AF_INET6 ? to_number(a) == 1 : a->bytes[0] == 127;
}

bool address_is_link_local(const struct address *a)
{
	if (a->family == AF_INET6)
		return a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
	return a->bytes[0] == 169 && a->bytes[1] == 254;
}

bool address_is_multicast(const struct address *a)
{
	return a->family == AF_INET6 ? a->bytes[0] == 0xff : (a->bytes[0] & 0xf0) == 0xe0;
}

bool address_is_unspecified(const struct address *a)
{
	return to_number(a) == 0;
}

/* --- prefixes: text ------------------------------------------------------------------------- */

/* By hand: strtoul would let blanks, signs and leading zeros pass. */
static int parse_length(const char *text, unsigned max, uint8_t *ret)
{
	unsigned n = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		n = n * 10 + (unsigned)(*text - '0');
		if (n > max)
			return -EINVAL;
	}
	*ret = (uint8_t)n;
	return 0;
}

static int parse_separated(const char *text, char separator, struct prefix *ret)
{
	const char *end = strchr(text, separator);
	char address[ADDRESS_TEXT];
	struct prefix p = { 0 };
	int r;

	if (!end || end - text >= ADDRESS_TEXT)
		return -EINVAL;
	memcpy(address, text, (size_t)(end - text));
	address[end - text] = '\0';

	r = address_parse(address, &p.address);
	if (r == 0)
		r = parse_length(end + 1, address_bits(&p.address), &p.length);
	if (r == 0)
		*ret = p;
	return r;
}

int prefix_parse_host(const char *text, struct prefix *ret)
{
	return parse_separated(text, '/', ret);
}

int prefix_parse(const char *text, struct prefix *ret)
{
	struct prefix p = { 0 };

	if (parse_separated(text, '/', &p) < 0 || prefix_has_host_bits(&p))
		return -EINVAL;
	*ret = p;
	return 0;
}

int prefix_parse_key(const char *text, struct prefix *ret)
{
	char canonical[PREFIX_TEXT];
	struct prefix p = { 0 };

	if (parse_separated(text, '-', &p) < 0 || prefix_has_host_bits(&p))
		return -EINVAL;
	/* A second spelling would be a second key, hence a second claim on one block. */
	if (strcmp(prefix_print_key(&p, canonical), text) != 0)
		return -EINVAL;
	*ret = p;
	return 0;
}

static const char *print_separated(const struct prefix *p, char separator, char *text)
{
	size_t n = strlen(address_print(&p->address, text));

	snprintf(text + n, PREFIX_TEXT - n, "%c%u", separator, p->length);
	return text;
}

const char *prefix_print(const struct prefix *p, char *text)
{
	return print_separated(p, '/', text);
}

const char *prefix_print_key(const struct prefix *p, char *text)
{
	return print_separated(p, '-', text);
}

/* --- prefixes: sets of addresses ------------------------------------------------------------ */

int prefix_compare(const struct prefix *a, const struct prefix *b)
{
	return address_compare(&a->address, &b->address) ?: (int)a->length - (int)b->length;
}

struct prefix prefix_of(const struct address *a, uint8_t length)
{
	return prefix_mask(&(struct prefix){ .address = *a, .length = length });
}

struct prefix prefix_mask(const struct prefix *p)
{
	return (struct prefix){ .address = prefix_first(p), .length = p->length };
}

bool prefix_has_host_bits(const struct prefix *p)
{
	return to_number(&p->address) != network(p);
}

bool prefix_contains(const struct prefix *p, const struct address *a)
{
	address_count different = to_number(a) ^ to_number(&p->address);

	return p->address.family == a->family && shift_right(different, host_bits(p)) == 0;
}

bool prefix_contains_prefix(const struct prefix *outer, const struct prefix *inner)
{
	return outer->length <= inner->length && prefix_contains(outer, &inner->address);
}

/* Two prefixes are nested or apart, never crossed. */
bool prefix_overlaps(const struct prefix *a, const struct prefix *b)
{
	return prefix_contains_prefix(a, b) || prefix_contains_prefix(b, a);
}

struct address prefix_first(const struct prefix *p)
{
	return from_number(p->address.family, network(p));
}

struct address prefix_last(const struct prefix *p)
{
	return from_number(p->address.family, network(p) | low_ones(host_bits(p)));
}

address_count prefix_size(const struct prefix *p)
{
	return shift_left(1, host_bits(p));
}

int prefix_nth(const struct prefix *p, address_count n, struct address *ret)
{
	/* Against the last index, not the size: the size of ::/0 has no number. */
	if (n > low_ones(host_bits(p)))
		return -ERANGE;
	*ret = from_number(p->address.family, network(p) | n);
	return 0;
}

int prefix_index(const struct prefix *p, const struct address *a, address_count *ret)
{
	if (!prefix_contains(p, a))
		return -ERANGE;
	*ret = to_number(a) - network(p);
	return 0;
}

/* --- blocks --------------------------------------------------------------------------------- */

static bool cut_valid(const struct prefix *pool, uint8_t block_length)
{
	return pool->length <= block_length && block_length <= address_bits(&pool->address);
}

static unsigned block_host_bits(const struct prefix *pool, uint8_t block_length)
{
	return address_bits(&pool->address) - block_length;
}

address_count prefix_block_count(const struct prefix *pool, uint8_t block_length)
{
	return cut_valid(pool, block_length) ? shift_left(1, block_length - pool->length) : 0;
}

int prefix_nth_block(const struct prefix *pool, uint8_t block_length, address_count n,
		     struct prefix *ret)
{
	address_count offset;

	if (!cut_valid(pool, block_length))
		return -EINVAL;
	if (n > low_ones(block_length - pool->length))
		return -ERANGE;
	offset = shift_left(n, block_host_bits(pool, block_length));
	*ret = (struct prefix){
		.address = from_number(pool->address.family, network(pool) | offset),
		.length = block_length,
	};
	return 0;
}

int prefix_block_index(const struct prefix *pool, uint8_t block_length, const struct address *a,
		       address_count *ret)
{
	address_count offset;
	int r;

	if (!cut_valid(pool, block_length))
		return -EINVAL;
	r = prefix_index(pool, a, &offset);
	if (r < 0)
		return r;
	*ret = shift_right(offset, block_host_bits(pool, block_length));
	return 0;
}

struct block_iter block_iter(const struct prefix *pool, uint8_t block_length, address_count start)
{
	address_count count = prefix_block_count(pool, block_length);

	return (struct block_iter){
		.pool = *pool,
		.block_length = block_length,
		.done = !cut_valid(pool, block_length),
		.next = count ? start % count : start,
		.count = count,
		.left = count - 1,
	};
}

bool block_next(struct block_iter *it, struct prefix *ret)
{
	if (it->done || prefix_nth_block(&it->pool, it->block_length, it->next, ret) < 0)
		return false;
	/* A count of 2^128 is 0, and there next wraps to 0 by itself. */
	if (++it->next == it->count)
		it->next = 0;
	it->done = it->left-- == 0;
	return true;
}
