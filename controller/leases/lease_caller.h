/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks the lease server, and which leases it may change.
 *
 *   peer's address, name of its certificate -> [lease_caller] -> lease_decide: yes, or 403
 *
 * Pure. A lease belongs to the client that got it: to the name of its certificate, or without
 * certificates to its address. An operator may change all, and owns none.
 */
#pragma once

#include "lib/model/model.h"

/* "DNS:n5.example", "address:192.0.2.5": words of etcd's records. */
#define LEASE_OWNER_TEXT 254
#define LEASE_OWNER_PEER "address:"

struct lease_caller {
	struct address peer;
	char owner[LEASE_OWNER_TEXT];
	bool certified; /* else it is known by its address alone */
	bool operator_; /* named by --lease-operator */
	uint32_t quota; /* leases of one owner in a network */
};

/* certified: as serve_certified() has it. operators: names, with commas between. */
void lease_caller_set(struct lease_caller *c, const struct address *peer, const char *certified,
		      const char *operators);

/*
 * Whether it may change this lease. One without an owner was given before there were owners, or by
 * an operator: it is of the client at the address that the lease names.
 */
bool lease_caller_may(const struct lease_caller *c, const struct block_lease *lease);
/* Whose a lease is that it gets, renews or makes: this one's, unless an operator acts for it. */
const char *lease_caller_binds(const struct lease_caller *c, const char *owner);

/* As options' checks: names of operators with commas between. */
int lease_operators_check(const char *text, struct err *err);
