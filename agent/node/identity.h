/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who this node is: name, machine, boot, addresses, router id.
 *
 *   settings, host name, /etc/machine-id, boot_id ─┐
 *   addresses, default routes, source towards etcd ┴> [identity] -> register, status
 *                                    <run-dir>/node <─┘ pinned once per boot
 *
 * Chosen once per boot: pods carry routes via the address, peers know the
 * router id. Whatever differs later is told as a sentence and not followed.
 * The choice itself is pure (identity_choose()); the gatherer asks the kernel.
 *
 * Order at the start: identity_ids(), then pin_read(). With a pin of this boot
 * nothing else is needed. Without one there is no local copy of this boot
 * either, so nothing can be served before etcd answers anyway: the choice
 * waits for the pools, whose addresses no node may take for its own.
 */
#pragma once

#include "lib/base/array.h"
#include "lib/base/err.h"
#include "lib/base/names.h"
#include "lib/base/prefix.h"
#include "lib/json/values.h"

#define REASON_TEXT 256
/* As many network cards as are worth telling machines apart by. */
#define HARDWARE_MAX  9
#define HARDWARE_TEXT 40

struct identity {
	char name[NODE_NAME_TEXT];
	char machine[ID_TEXT], boot[ID_TEXT];
	/* Of the machine itself, which a copied image does not carry along: "mac:...", "dmi:..." */
	char hardware[HARDWARE_MAX][HARDWARE_TEXT];
	size_t n_hardware;
	struct prefix ipv4, ipv6; /* with host bits; family 0: none. At least one once chosen */
	struct address router_id; /* ipv4, or made from the name; never 0.0.0.0 */
	char reason[REASON_TEXT]; /* "10.0.0.1: source address towards etcd 10.0.0.9" */
};

/* --- names and ids -------------------------------------------------------------------------- */

/* Pure: --node, or the host name as it is. The sentence offers the lower-case form. */
int identity_name(const char *flag, const char *host_name, char *ret, struct err *err);
/* name, machine and boot; "" for what is to be read from the machine. Leaves addresses alone. */
int identity_ids(const char *node, const char *machine_id, const char *boot_id,
		 struct identity *ret, struct err *err);

/* Permanent MACs, and the board's id as a hash, where there are any. Never fails: less is known. */
void identity_hardware(struct identity *ret);

/* --- the choice, pure ----------------------------------------------------------------------- */

/* An address of an interface of ours. */
struct identity_local {
	struct prefix address;
	unsigned link;
	char link_name[IF_NAME_TEXT];
	bool second_rate; /* secondary, temporary or deprecated: only if nothing else is there */
	bool tentative;   /* still being checked for duplicates: for a second or two after boot */
};
struct identity_default {
	sa_family_t family;
	unsigned link;
	uint32_t metric;
	struct address source; /* the route's own preference, or family 0 */
};
/* What the kernel would use towards one member of etcd. */
struct identity_source {
	struct address address;
	char endpoint[REASON_TEXT / 4]; /* "10.0.0.9" */
};

struct identity_candidates {
	const char *server;          /* what the sources lead to; NULL: "etcd" */
	struct prefix configured[2]; /* length 0xff: not said */
	size_t n_configured;
	ARRAY(struct identity_source) sources;
	ARRAY(struct identity_local) locals;
	ARRAY(struct identity_default) defaults;
};
void identity_candidates_done(struct identity_candidates *c);

/*
 * Sets addresses, router id and reason of *ret, whose name is already set. For each family:
 * configured; else the first source towards etcd that fits; else the best address of the
 * default route's interface; else, once the other family has one, an address of the interface
 * that holds it, because many networks have IPv6 without a default route. What is configured
 * for one family rules out the others: an operator who says "this address" means this one.
 * -EADDRNOTAVAIL with a sentence that says what was there and why it does not fit. pools: no
 * address of theirs is a node's own.
 */
int identity_choose(const struct identity_candidates *c, const struct prefix *pools, size_t n_pools,
		    struct identity *ret, struct err *err);
/* "10.0.0.5", "10.0.0.5/24" or one of each family with ',' between, into c->configured. */
int identity_configured(const char *text, struct identity_candidates *c, struct err *err);
/* What would be chosen now, against what is pinned: a sentence and true, or false. */
bool identity_differs(const struct identity *pinned, const struct identity *now, struct err *ret);

/* --- the gatherer: asks the kernel ---------------------------------------------------------- */

/*
 * Addresses, default routes and the source towards each endpoint of "http://a:2379,..." (unix
 * sockets are skipped; what cannot be resolved or reached is no candidate). Host names are
 * looked up, which may take as long as the resolver does: not for the running loop.
 */
int identity_gather(const char *endpoints, struct identity_candidates *c, struct err *err);
/* Those endpoints that are given as addresses, as prefixes of full length; free() ret->v. */
int identity_endpoints(const char *endpoints, struct prefixes *ret);
