/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a received netlink message, as a table by their numbers.
 *
 *   dump, event ─> [attributes] ─> link, route, neighbour: plain values
 *
 * Pure: what reads messages links without libnl, whose attribute readers come with its sockets.
 * An attribute that is absent is NULL, and every reader takes NULL. What is cut short counts as
 * absent.
 */
#pragma once

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mac.h"
#include "lib/base/prefix.h"

static inline const void *attribute_data(const struct nlattr *a)
{
	return (const uint8_t *)a + NLA_HDRLEN;
}

/* 0 also if it is absent. */
static inline size_t attribute_length(const struct nlattr *a)
{
	return a ? a->nla_len - (size_t)NLA_HDRLEN : 0;
}

/* The first of each number up to max, from a list of attributes; table has max + 1 places. */
static inline void attributes_table(const void *list, size_t left, const struct nlattr **table,
				    unsigned max)
{
	memset(table, 0, (max + 1) * sizeof(*table));
	for (const uint8_t *p = list; left >= NLA_HDRLEN;) {
		const struct nlattr *a = (const struct nlattr *)p;
		unsigned type = a->nla_type & NLA_TYPE_MASK;
		size_t step = NLA_ALIGN((size_t)a->nla_len);

		if (a->nla_len < NLA_HDRLEN || a->nla_len > left)
			return;
		if (type <= max && !table[type])
			table[type] = a;
		if (step >= left)
			return;
		p += step;
		left -= step;
	}
}

/*
 * Copies the family's header and fills the table from what follows it. The caller has seen that
 * nlmsg_len bytes are there. -EBADMSG: the message is cut short.
 */
static inline int attributes_read(const struct nlmsghdr *hdr, void *body, size_t size,
				  const struct nlattr **table, unsigned max)
{
	const uint8_t *p = (const uint8_t *)hdr;
	size_t start = NLMSG_HDRLEN + NLMSG_ALIGN(size);

	if (hdr->nlmsg_len < NLMSG_HDRLEN + size)
		return -EBADMSG;
	memcpy(body, p + NLMSG_HDRLEN, size);
	attributes_table(p + start, hdr->nlmsg_len > start ? hdr->nlmsg_len - start : 0, table,
			 max);
	return 0;
}

static inline void attributes_nested(const struct nlattr *a, const struct nlattr **table,
				     unsigned max)
{
	attributes_table(a ? attribute_data(a) : NULL, attribute_length(a), table, max);
}

/* 0 if it is absent. */
static inline uint32_t attribute_u32(const struct nlattr *a)
{
	uint32_t v = 0;

	if (attribute_length(a) >= sizeof(v))
		memcpy(&v, attribute_data(a), sizeof(v));
	return v;
}

static inline uint8_t attribute_u8(const struct nlattr *a)
{
	return attribute_length(a) ? *(const uint8_t *)attribute_data(a) : 0;
}

static inline bool attribute_address(const struct nlattr *a, sa_family_t family,
				     struct address *ret)
{
	size_t size = family == AF_INET ? 4 : 16;

	if (attribute_length(a) != size)
		return false;
	*ret = (struct address){ .family = family };
	memcpy(ret->bytes, attribute_data(a), size);
	return true;
}

static inline bool attribute_mac(const struct nlattr *a, struct mac *ret)
{
	if (attribute_length(a) != sizeof(ret->bytes))
		return false;
	memcpy(ret->bytes, attribute_data(a), sizeof(ret->bytes));
	return true;
}
