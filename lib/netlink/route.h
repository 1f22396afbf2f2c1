/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes as the kernel has them, as plain values.
 *
 *   message ─> [kroute_read] ─> kroute ─> message: request.h
 *
 * Pure.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/prefix.h"
#include "lib/base/route_protocol.h"

/*
 * IPv6 has no metric 0: the kernel turns it into 1024, worse than the 32 of a route that BIRD
 * learns for the same prefix from a stale owner. The lowest that can be asked for is ours.
 */
#define ROUTE_METRIC6 1

/* One way out. */
struct khop {
	struct address gateway; /* family AF_UNSPEC: the destination is on the link itself */
	uint32_t oif;
	bool onlink; /* the gateway need not be in a connected subnet */
};
int khop_compare(const struct khop *a, const struct khop *b);

/*
 * Several of them (ECMP), as a number: the same set has the same number, in any order, so that a
 * route stays small and is copied as a value. Sets are kept to the end: there are as many as
 * different ones were ever wanted. 0: no memory, or fewer than two or more than KHOPS_MAX.
 */
#define KHOPS_MAX 64
uint32_t khops_intern(const struct khop *v, size_t n);
/* 0: nobody ever wanted that one. */
uint32_t khops_find(const struct khop *v, size_t n);
/* Several that nobody wanted: which they are is in kroute's .other alone. */
#define KHOPS_UNKNOWN UINT32_MAX

struct kroute {
	uint32_t table;
	struct prefix dst;
	uint32_t metric;
	struct khop hop; /* or the first of several */
	uint32_t hops;   /* not 0: several, by khops_intern() */
	uint32_t other;  /* not 0: something that ours never have */
	uint8_t tos, type, scope, protocol;
};
/* 0 or -EBADMSG: the message is cut short or makes no sense. */
int kroute_read(const struct nlmsghdr *hdr, struct kroute *ret);
/* Its ways out, at least one; 0 or -ENOMEM. */
int kroute_set_hops(struct kroute *r, const struct khop *v, size_t n);
/* All its ways out, in order; of unknown ones the first alone. None: a blackhole. */
size_t kroute_hops(const struct kroute *r, const struct khop **ret);
/* Over a gateway, not straight to a link or nowhere. */
bool kroute_has_gateway(const struct kroute *r);

/* What the kernel tells routes apart by when one is added: table, prefix, TOS and metric. */
int kroute_compare_key(const struct kroute *a, const struct kroute *b);
/* The same and everything else. */
int kroute_compare(const struct kroute *a, const struct kroute *b);
/*
 * "blackhole 10.1.0.0/26 table 119", "10.1.0.5/32 dev roost0123456789", "10.9.0.0/16 via 192.0.2.1,
 * 192.0.2.2 dev eth0"; dev is the first one's name and may be NULL.
 */
#define KROUTE_TEXT 320
const char *kroute_print(const struct kroute *r, const char *dev, char text[KROUTE_TEXT]);
