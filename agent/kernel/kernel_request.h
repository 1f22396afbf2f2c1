/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink messages to the kernel, each for one change or question.
 *
 *   apply_kernel, kernel_read ─> [kernel_request] ─> lib/netlink/kern
 *
 * NULL: no memory.
 */
#pragma once

#include "agent/kernel/delta_kernel.h"
#include "lib/netlink/kern.h"

/* With NLM_F_EXCL: what is in the way is never taken over. */
struct nl_msg *request_route_add(const struct kroute *r);
/*
 * In the place of the one that has its key, in one step: for when that one is ours. -ENOENT if
 * there is none.
 */
struct nl_msg *request_route_replace(const struct kroute *r);
/* Exactly this one: a stranger's on the same prefix does not match. */
struct nl_msg *request_route_delete(const struct kroute *r);
struct nl_msg *request_neighbour_set(const struct kneighbour *n);
struct nl_msg *request_neighbour_delete(const struct kneighbour *n);
/* IPv4's settings in set, and up; sent with an empty set it just has the link told anew. */
struct nl_msg *request_link_conf(const struct desired_link *l, uint16_t set, bool up);
struct nl_msg *request_link_group(uint32_t link, uint32_t group);
struct nl_msg *request_proxy_delay(uint32_t link);
/* The pod's IPv6 gateway on the link, without duplicate address detection. */
struct nl_msg *request_gateway6(uint32_t link, bool add);

/* The overlay's device: made, if it is not there yet, or what differs of it changed in place. */
struct nl_msg *request_tunnel(int tunnel, const struct desired_tunnel *t, unsigned set);
struct nl_msg *request_link_delete(uint32_t link);
/* /32 or /128, without duplicate address detection. */
struct nl_msg *request_address(const struct node_address *a, bool add);

/* Questions. Index 0 and name NULL: all. */
struct nl_msg *ask_link(uint32_t index, const char *name);
/* By protocol; table and link 0: any. */
struct nl_msg *ask_routes(sa_family_t family, uint8_t protocol, uint32_t table, uint32_t link);
/* The route that leads to an address, as it stands in its table. */
struct nl_msg *ask_way(const struct address *to);
struct nl_msg *ask_neighbours(uint32_t link);
struct nl_msg *ask_fdb(uint32_t link);
struct nl_msg *ask_addresses(uint32_t link);
struct nl_msg *ask_neighbour_tables(void);
struct nl_msg *ask_host_conf(sa_family_t family);
