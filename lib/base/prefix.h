/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and prefixes of both families, by arithmetic.
 *
 * Pure. Parsing is strict, so that BIRD, the kernel and etcd keys agree with us
 * on what was accepted: no octal or short IPv4 forms, no zone, no blanks, no
 * trailing bytes, decimal lengths without sign or leading zero. IPv6 may be
 * typed in any valid form (upper case, uncompressed, dotted tail); printing
 * always gives the one canonical form, inet_ntop's, and keys are accepted in
 * that form only: two keys never mean one prefix. IPv4-mapped IPv6 is IPv6.
 * Nothing here walks addresses one by one: a /8 costs what a /30 costs.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Room for the longest text with its NUL: IPv6 address, '/', length. */
#define ADDRESS_TEXT 46
#define PREFIX_TEXT  50

/* family is AF_INET or AF_INET6; IPv4 uses the first four bytes. Network order. */
struct address {
	sa_family_t family;
	uint8_t bytes[16];
};

struct prefix {
	struct address address;
	uint8_t length;
};

/* A number of addresses or an offset: wide enough for ::/0 less one. */
typedef unsigned __int128 address_count;

/* 0, or -EINVAL; like all functions here, it writes *ret only on success. */
int address_parse(const char *text, struct address *ret);
/* "10.1.0.64"; text holds ADDRESS_TEXT bytes. Returns text. */
const char *address_print(const struct address *a, char *text);
/* Orders by family (IPv4 first), then by number. */
int address_compare(const struct address *a, const struct address *b);
/* 32 or 128. */
unsigned address_bits(const struct address *a);
/* a plus n within its family; -ERANGE past the last address. */
int address_add(const struct address *a, address_count n, struct address *ret);
/* b - a; both of one family and b >= a, else -ERANGE. */
int address_distance(const struct address *a, const struct address *b, address_count *ret);
bool address_is_loopback(const struct address *a);
bool address_is_link_local(const struct address *a);
bool address_is_multicast(const struct address *a);
bool address_is_unspecified(const struct address *a);

/*
 * "10.1.0.64/26". prefix_parse refuses host bits (-EINVAL); prefix_parse_host
 * keeps them ("192.0.2.7/24" as an interface address).
 */
int prefix_parse(const char *text, struct prefix *ret);
int prefix_parse_host(const char *text, struct prefix *ret);
/*
 * The form of etcd keys and file names: "10.1.0.64-26", "fd00:1::40-122". No
 * host bits, and only what prefix_print_key writes: -EINVAL for "FD00:1::40-122".
 */
int prefix_parse_key(const char *text, struct prefix *ret);
const char *prefix_print(const struct prefix *p, char *text);     /* PREFIX_TEXT bytes */
const char *prefix_print_key(const struct prefix *p, char *text); /* PREFIX_TEXT bytes */
/* By family, then address, then length (shorter first). */
int prefix_compare(const struct prefix *a, const struct prefix *b);
/* The prefix of that length around a, without host bits; length <= address_bits(a). */
struct prefix prefix_of(const struct address *a, uint8_t length);
/* p itself with host bits cleared. */
struct prefix prefix_mask(const struct prefix *p);
bool prefix_has_host_bits(const struct prefix *p);
/* Host bits of a prefix do not matter to what follows; families never meet. */
bool prefix_contains(const struct prefix *p, const struct address *a);
/* inner lies wholly in outer (or is equal). */
bool prefix_contains_prefix(const struct prefix *outer, const struct prefix *inner);
bool prefix_overlaps(const struct prefix *a, const struct prefix *b);
struct address prefix_first(const struct prefix *p);
struct address prefix_last(const struct prefix *p);
/* Number of addresses; 0 stands for the 2^128 of ::/0, which has no other form. */
address_count prefix_size(const struct prefix *p);
/* The n-th address (0 is the network address); -ERANGE past the end. */
int prefix_nth(const struct prefix *p, address_count n, struct address *ret);
/* Position of a in p; -ERANGE if it is not in it. */
int prefix_index(const struct prefix *p, const struct address *a, address_count *ret);

/*
 * Blocks: pool cut into prefixes of block_length (pool length <= block_length <= bits).
 * The count 0 stands for the 2^128 of ::/0 cut into /128, as in prefix_size; it is also what
 * a length outside the bounds gives. The other two answer such a length with -EINVAL, and a
 * block or address outside the pool with -ERANGE.
 */
address_count prefix_block_count(const struct prefix *pool, uint8_t block_length);
int prefix_nth_block(const struct prefix *pool, uint8_t block_length, address_count n,
		     struct prefix *ret);
int prefix_block_index(const struct prefix *pool, uint8_t block_length, const struct address *a,
		       address_count *ret);

/*
 * Every block of a pool once, from the start-th (modulo their number) on and around the end;
 * none if block_length is out of bounds:
 *   struct block_iter it = block_iter(&pool, 26, start);
 *   while (block_next(&it, &block)) ...
 */
struct block_iter {
	struct prefix pool;
	uint8_t block_length;
	bool done;
	address_count next, count;
	address_count left; /* after next: so all 2^128 can be told */
};
struct block_iter block_iter(const struct prefix *pool, uint8_t block_length, address_count start);
bool block_next(struct block_iter *it, struct prefix *ret);
