/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease server's words, as a client reads and writes them.
 *
 *   HTTP body -> [lease_reply] -> lease_mirror;  own address and MAC -> [lease_reply] -> body
 *
 * Pure. Strict where something would be done with the value, lenient where it is
 * shown to others only: the attributes of a lease that are of another backend, or
 * damaged, leave the lease itself standing, with a holder or a MAC that is unknown.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/json/values.h"

/* Whole replies: 20,000 leases have about 4 MB. */
#define LEASE_REPLY_MAX (32UL * 1024UL * 1024UL)
#define LEASE_CURSOR    32

/* GET /v1/{network}/config */
struct lease_network {
	struct prefix cidr;
	uint8_t subnet_len;
	uint32_t vni, port;
	bool direct; /* plain routes to holders on the same link */
};

struct lease {
	struct prefix subnet;
	struct address holder; /* PublicIP; family 0: not known */
	struct mac mac;        /* all zero: not known */
	int64_t expires;       /* seconds since 1970; 0: never, a reservation */
};

struct lease_change {
	struct lease lease;
	bool removed;
};

struct lease_changes {
	bool reset; /* all leases that there are; what is not among them is gone */
	struct lease_change *v;
	size_t n;
	char cursor[LEASE_CURSOR];
};

/* 0, -ENOMEM, or -EINVAL with a sentence. len bytes, as they came. */
int lease_network_read(const char *text, size_t len, struct lease_network *ret, struct err *err);
int lease_read(const char *text, size_t len, struct lease *ret, struct err *err);
int lease_changes_read(const char *text, size_t len, struct lease_changes *ret, struct err *err);
void lease_changes_done(struct lease_changes *c);

/* The body of POST /leases; free() it. */
int lease_attrs_print(const struct lease *lease, uint32_t vni, char **ret);
/*
 * The body of PUT /leases/{subnet}. Until when the holder may count on it matters to a server whose
 * etcd went back; which time it gives is its own affair.
 */
int lease_print(const struct lease *lease, uint32_t vni, char **ret);
