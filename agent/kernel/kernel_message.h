/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One netlink message of the kernel to a plain value.
 *
 *   dump, event ─> [kernel_message] ─> kernel_view
 *
 * Pure; by hand and not with libnl, so that it links without I/O. A message that is
 * cut short or makes no sense is -EBADMSG and tells nothing. Lengths come from the
 * header: the caller has seen that so many bytes are there.
 */
#pragma once

#include <linux/netlink.h>

#include "agent/kernel/kernel_objects.h"

int message_link(const struct nlmsghdr *hdr, struct klink *ret);

int message_route(const struct nlmsghdr *hdr, struct kroute *ret);

struct message_neighbour {
	struct kneighbour neighbour;
	bool permanent;
};
int message_neighbour(const struct nlmsghdr *hdr, struct message_neighbour *ret);

struct message_address {
	uint32_t link;
	struct address local;
	struct prefix subnet; /* of the peer, if it is point to point */
	bool tentative;       /* or refused by duplicate detection */
};
int message_address(const struct nlmsghdr *hdr, struct message_address *ret);

/* Settings that were changed; link is MESSAGE_CONF_ALL for those of the whole host. */
#define MESSAGE_CONF_ALL UINT32_MAX
struct message_conf {
	uint32_t link;
	sa_family_t family;
	uint16_t known;
	int32_t conf[N_DEVCONF];
};
int message_netconf(const struct nlmsghdr *hdr, struct message_conf *ret);
/* One link's part of the ARP table's settings; -ENOENT: another table, or the default. */
int message_neightbl(const struct nlmsghdr *hdr, struct message_conf *ret);
