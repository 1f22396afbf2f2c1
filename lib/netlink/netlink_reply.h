/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one received netlink message means to the request that waits for it.
 *
 * Pure, so that the rare answers (a dump interrupted only in its last
 * message, an error inside NLMSG_DONE) are tested with bytes of our own.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum netlink_reply_kind {
	NETLINK_REPLY_STALE, /* of an earlier request, or of no meaning */
	NETLINK_REPLY_DATA,
	NETLINK_REPLY_END, /* the ack, or the end of a dump */
};

struct netlink_reply {
	enum netlink_reply_kind kind;
	bool interrupted; /* the dump this belongs to is torn */
	int error;        /* of an END: 0 or the kernel's negative errno */
	char extack[120]; /* of an END: the kernel's sentence or "" */
};

/* available: bytes from hdr to the end of what was received, at least a header. */
void netlink_reply_read(const struct nlmsghdr *hdr, size_t available, uint32_t seq,
			struct netlink_reply *ret);
