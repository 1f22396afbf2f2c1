/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links, routes and neighbours as the kernel knows them, as plain values.
 *
 * Pure. What kernel_view, desired_kernel, delta_kernel and apply_kernel hand on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/names.h"
#include "lib/base/route_protocol.h"
#include "lib/cni/pod_link.h"
#include "lib/json/values.h"

/*
 * IPv6 has no metric 0: the kernel turns it into 1024, worse than the 32 of a route that BIRD
 * learns for the same prefix from a stale owner. The lowest that can be asked for is ours.
 */
#define ROUTE_METRIC6 1

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

/* The host end's link-local address, which the pod's IPv6 default route leads to. */
enum gateway6 { GATEWAY6_NONE, GATEWAY6_TENTATIVE, GATEWAY6_READY };

/* What a vxlan device is made of; VNI and port are for its life. */
struct kvxlan {
	uint32_t vni;
	uint16_t port;
	uint8_t ttl; /* 0: the host's own */
	bool learning;
	bool other;           /* it has something that ours never have */
	struct address local; /* AF_UNSPEC: whatever the route says */
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

/*
 * Who is behind a link: the MAC of an address, told apart by the address. Or, in the table of a
 * vxlan device (fdb), where the frames for a MAC go, told apart by the MAC.
 */
struct kneighbour {
	uint32_t link;
	struct address address;
	struct mac mac;
	bool fdb;
	bool ours;  /* made with our protocol number; the fdb knows no such thing */
	bool other; /* fdb: has a port, VNI or link of its own, as ours never have */
};
int kneighbour_compare_key(const struct kneighbour *a, const struct kneighbour *b);
/* Whether they say the same, whoever made them. */
bool kneighbour_same(const struct kneighbour *a, const struct kneighbour *b);
/* "neighbour 10.1.0.5 dev roost0123456789", "FDB entry 02:..:01 dst 192.0.2.8 dev roost.vxlan" */
#define KNEIGHBOUR_TEXT 128
const char *kneighbour_print(const struct kneighbour *n, const char *dev,
			     char text[KNEIGHBOUR_TEXT]);

/*
 * The overlay's devices, by the family of the underlay. A vxlan device of such a name is ours, with
 * all that is on it.
 */
#define TUNNEL_DEVICE  "roost.vxlan"
#define TUNNEL_DEVICE6 "roost.vxlan6"
struct ktunnel {
	struct kvxlan vxlan;
	struct mac mac;
	uint32_t mtu; /* 0: the kernel's choice */
	bool offload; /* of checksums */
	struct address addresses[2];
	size_t n_addresses;
};
bool ktunnel_same(const struct ktunnel *a, const struct ktunnel *b);
/* Which of the overlay's devices has this name: 0, 1 for the IPv6 underlay, or -1. */
int tunnel_of_name(const char *name);
const char *tunnel_name(int tunnel);
