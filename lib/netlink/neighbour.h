/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Neighbours as the kernel has them, as plain values.
 *
 *   message ─> [kneighbour_read] ─> kneighbour ─> message: request.h
 *
 * Pure.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/mac.h"
#include "lib/base/prefix.h"

/*
 * Who is behind a link: the MAC of an address, told apart by the address. Or, in the table of a
 * vxlan device (fdb), where the frames for a MAC go, told apart by the MAC.
 */
struct kneighbour {
	uint32_t link;
	struct address address;
	struct mac mac;
	bool fdb;
	bool ours;      /* made with our protocol number; the fdb knows no such thing */
	bool other;     /* fdb: has a port, VNI or link of its own, as ours never have */
	bool permanent; /* as read; one that is set always is */
};
/* 0 or -EBADMSG: the message is cut short or makes no sense. */
int kneighbour_read(const struct nlmsghdr *hdr, struct kneighbour *ret);
int kneighbour_compare_key(const struct kneighbour *a, const struct kneighbour *b);
/* Whether they say the same, whoever made them. */
bool kneighbour_same(const struct kneighbour *a, const struct kneighbour *b);
/* "neighbour 10.1.0.5 dev roost0123456789", "FDB entry 02:..:01 dst 192.0.2.8 dev roost.vxlan" */
#define KNEIGHBOUR_TEXT 128
const char *kneighbour_print(const struct kneighbour *n, const char *dev,
			     char text[KNEIGHBOUR_TEXT]);
