/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links as the kernel has them, with their settings and addresses, as plain values.
 *
 *   message ─> [klink_read, ...] ─> klink, kconf, kaddress ─> message: request.h
 *
 * Pure. A message that is cut short or makes no sense is -EBADMSG and changes nothing.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mac.h"
#include "lib/base/names.h"
#include "lib/base/prefix.h"

/* Settings of a link that concern us; the order is that in which they are written. */
enum devconf {
	CONF6_DISABLE,
	CONF6_ACCEPT_DAD,
	CONF6_DAD_TRANSMITS,
	CONF6_ACCEPT_RA,
	CONF6_PROXY_NDP,
	CONF6_FORWARDING,
	CONF_PROXY_ARP,
	CONF_RP_FILTER,
	CONF_FORWARDING,
	CONF_ROUTE_LOCALNET,
	CONF_PROXY_DELAY, /* of the ARP table, in ms */
	N_DEVCONF,
};
_Static_assert(N_DEVCONF <= 16, "a set of them is a uint16_t");
#define CONF_BIT(c) ((uint16_t)(1u << (c)))

struct devconf_info {
	const char *name; /* its file's name */
	sa_family_t family;
	unsigned place; /* in the kernel's array; unused for the ARP table's */
};
extern const struct devconf_info devconf_info[N_DEVCONF];

/* What a vxlan device is made of; VNI and port are for its life. */
struct kvxlan {
	uint32_t vni;
	uint16_t port;
	uint8_t ttl; /* 0: the host's own */
	bool learning;
	bool other;           /* it has something that ours never have */
	struct address local; /* AF_UNSPEC: whatever the route says */
};
/* What of a device can be changed in place; for the rest it is made again. */
enum vxlan_setting {
	VXLAN_LOCAL = 1,
	VXLAN_LEARNING = 2,
	VXLAN_TTL = 4,
	VXLAN_MTU = 8, /* 0: the kernel's choice */
	VXLAN_MAC = 16,
	VXLAN_OFFLOAD = 32, /* of checksums; by offload.h */
	VXLAN_ALL = 63,
};
bool kvxlan_same(const struct kvxlan *a, const struct kvxlan *b);

struct klink {
	uint32_t index;
	char name[IF_NAME_TEXT];
	uint32_t mtu, group, flags;
	struct mac mac;
	bool veth, vxlan;
	struct kvxlan tunnel; /* of a vxlan device */
	uint16_t known;       /* which of conf the kernel has told */
	int32_t conf[N_DEVCONF];
};
int klink_read(const struct nlmsghdr *hdr, struct klink *ret);

/* Settings that were changed; link is KCONF_ALL for those of the whole host. */
#define KCONF_ALL UINT32_MAX
struct kconf {
	uint32_t link;
	sa_family_t family;
	uint16_t known;
	int32_t conf[N_DEVCONF];
};
/* RTM_NEWNETCONF. */
int kconf_read(const struct nlmsghdr *hdr, struct kconf *ret);
/* RTM_NEWNEIGHTBL: one link's part of the ARP table's; -ENOENT: another table, or the default. */
int kconf_read_neighbour_table(const struct nlmsghdr *hdr, struct kconf *ret);

struct kaddress {
	uint32_t link;
	struct address local;
	struct prefix subnet; /* of the peer, if it is point to point */
	bool tentative;       /* or refused by duplicate detection */
};
int kaddress_read(const struct nlmsghdr *hdr, struct kaddress *ret);
/* Whether link, address and subnet are the same. */
bool kaddress_same(const struct kaddress *a, const struct kaddress *b);
