/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink messages to the kernel, each for one change or question.
 *
 *   klink, kaddress, kneighbour, kroute ─> [request, ask] ─> netlink_request, netlink_dump
 *
 * NULL: no memory. netlink_request(), netlink_get() and netlink_dump() take that, and free the message.
 */
#pragma once

#include "lib/netlink/link.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/netlink.h"
#include "lib/netlink/route.h"

/* A message with the family's header, for what has no function here. */
struct nl_msg *request_new(int type, unsigned flags, const void *body, size_t length);
/* 0, or negative if it does not fit. */
int request_put_address(struct nl_msg *m, int attribute, const struct address *a);
/* The message; NULL, and it is freed, if err says that something did not fit: never half of one. */
struct nl_msg *request_whole(struct nl_msg *m, int err);

/* With NLM_F_EXCL: another route with the same key stays. mtu, advmss 0: none. */
struct nl_msg *request_route_add(const struct kroute *r);
struct nl_msg *request_route_add_metrics(const struct kroute *r, uint32_t mtu, uint32_t advmss);
/* Replaces, in one step, the one that has its key: for when that one is ours. -ENOENT: none has. */
struct nl_msg *request_route_replace(const struct kroute *r);
/* Exactly this one: a foreign route to the same prefix does not match. */
struct nl_msg *request_route_delete(const struct kroute *r);

struct nl_msg *request_neighbour_set(const struct kneighbour *n);
struct nl_msg *request_neighbour_delete(const struct kneighbour *n);

/* Without duplicate address detection. */
struct nl_msg *request_address_add(const struct kaddress *a);
struct nl_msg *request_address_delete(const struct kaddress *a);

/* By index, or by name where that is 0. */
struct nl_msg *request_link_up(uint32_t index, const char *name);
struct nl_msg *request_link_delete(uint32_t index, const char *name);
struct nl_msg *request_link_group(uint32_t index, uint32_t group);
struct nl_msg *request_group_delete(uint32_t group);
/* IPv4's settings in set, and up; with an empty set the kernel just sends the link's event again. */
struct nl_msg *request_link_conf(const struct klink *l, uint16_t set, bool up);
/* The ARP table's for this link: 0. */
struct nl_msg *request_proxy_delay(uint32_t link);

/* What is in set, of enum vxlan_setting. With index 0 the device is made, and up. */
struct nl_msg *request_vxlan(const struct klink *l, unsigned set);

/* Questions. Index 0 and name NULL: all. */
struct nl_msg *ask_link(uint32_t index, const char *name);
/* Protocol, table and link 0: any. */
struct nl_msg *ask_routes(sa_family_t family, uint8_t protocol, uint32_t table, uint32_t link);
/* The route that leads to an address, as it stands in its table. */
struct nl_msg *ask_way(const struct address *to);
struct nl_msg *ask_neighbours(uint32_t link);
struct nl_msg *ask_neighbour(uint32_t link, const struct address *a);
struct nl_msg *ask_fdb(uint32_t link);
/* With a link of one family; link 0: any. */
struct nl_msg *ask_addresses(sa_family_t family, uint32_t link);
struct nl_msg *ask_neighbour_tables(void);
struct nl_msg *ask_host_conf(sa_family_t family);
