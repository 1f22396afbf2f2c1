/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nftables itself tells by netlink: which generation of the rules there is, and who touched
 * our table.
 *
 *   netlink -> [firewall_netlink] -> firewall, firewall_child
 *
 * Each transaction of anybody makes a new generation; its events end with the number and with
 * the process that did it. So a change is known to be older or newer than a listing.
 */
#pragma once

#include "agent/firewall/desired_firewall.h"
#include "lib/netlink/netlink.h"

/* All that is known of changes to our table; zero at first. */
struct firewall_news {
	bool touching;       /* the transaction whose events are being read does */
	bool touched;        /* one did */
	uint32_t generation; /* the last that did */
	char by[48];         /* "nft (process 4711)"; "": not known */
};

/* One event. */
int firewall_news_take(const struct nlmsghdr *hdr, void *news);
/* Whether a touch is newer than what was listed in that generation; the numbers wrap. */
bool firewall_news_since(const struct firewall_news *news, uint32_t generation);

/* NFNLGRP_NFTABLES. */
int firewall_events_open(struct netlink **ret);
int firewall_generation(struct netlink *nl, uint32_t *ret, struct err *err);

/* Packets that were dropped, by why; since the table was set last. */
struct firewall_drops {
	uint64_t packets[FIREWALL_DROPS];
};
/* Zeros if there is no table. */
int firewall_read_drops(struct netlink *nl, struct firewall_drops *ret, struct err *err);
/* 1: our table is there, 0: it is not, or the kernel has no nftables; -errno. */
int firewall_table_there(struct netlink *nl, struct err *err);
