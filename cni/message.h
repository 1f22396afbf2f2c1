/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink messages in few words. All are far smaller than the page that libnl gives each. */
#pragma once

#include <errno.h>
#include <netlink/attr.h>
#include <stdint.h>

#include "lib/base/prefix.h"
#include "lib/netlink/kern.h"

/* NULL: out of memory. */
static inline struct nl_msg *message_new(int type, int flags, const void *body, size_t len)
{
	struct nl_msg *m = nlmsg_alloc_simple(type, flags);

	/* libnl takes a pointer to non-const and only copies from it. */
	if (m && nlmsg_append(m, (void *)(uintptr_t)body, len, NLMSG_ALIGNTO) < 0) {
		nlmsg_free(m);
		m = NULL;
	}
	return m;
}

static inline void message_put_address(struct nl_msg *m, int attribute, const struct address *a)
{
	nla_put(m, attribute, (int)address_bits(a) / 8, a->bytes);
}
