/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attachments: which interface of which container holds which addresses.
 *
 * Pure. Found by key (CNI network, container, interface), by address, and in
 * order. Here "network" alone is the CNI network's name, a held address carries
 * the roost network of its pool beside it.
 *
 * What is known to be in use without a file of its own (a kernel route of ours, a
 * key of this boot in etcd) is an attachment too, a *mark*: its CNI network is "".
 * Its container and interface are those of the etcd key, or the address as text
 * and "" where nobody knows. An address whose roost network is "" counts for
 * every network: in doubt in use. The table itself accepts several holders of one
 * address (damaged files, other IPAM plugins); it is free when the last is gone.
 */
#pragma once

#include "lib/base/array.h"
#include "lib/model/model.h"

enum attachment_state { ATTACHMENT_ASSIGNED, ATTACHMENT_ATTACHED, ATTACHMENT_RELEASING };
/* "assigned", "attached", "releasing" */
const char *attachment_state_name(enum attachment_state state);

struct attachment_key {
	const char *network, *container, *interface;
};

struct held_address {
	struct address address;
	uint32_t length; /* in the CNI result */
	const char *pool, *network;
	struct address gateway; /* or family 0 */
	int64_t was;            /* memory only: before it was taken, for undo */
};
struct held_addresses {
	struct held_address *v;
	size_t n;
};

/* Texts are never NULL and owned. */
struct attachment {
	const char *network, *container, *interface;
	const char *namespace, *pod, *uid;
	const char *netns;
	uint64_t netns_inode; /* 0: unknown */
	const char *link;
	struct mac mac;      /* of the pod's end, once attached */
	bool route_localnet; /* the pod may reach the host's loopback: the operator wanted it */
	bool reserved;       /* no pod's but the node's own: neither a boot nor a DEL frees it */
	const char *ipam;    /* the plugin that gave the addresses */
	uint64_t assigned;   /* CLOCK_BOOTTIME, ns */
	enum attachment_state state;
	struct held_addresses addresses;
	int64_t suspected_since; /* memory only: for leaks.h; 0: not */
};

struct attachment_key attachment_key(const struct attachment *a);
bool attachment_is_mark(const struct attachment *a);
void attachment_free(struct attachment *a);
AUTO_DEFINE(struct attachment *, attachment_free)
/* Of one made by hand too: a text that is NULL becomes "". NULL: out of memory. */
struct attachment *attachment_copy(const struct attachment *a);

/* One line per held address, sorted by address and then network: what etcd should hold. */
struct holding {
	struct attachment *attachment;
	size_t index; /* in its addresses */
};

struct attachments {
	struct attachment **v; /* sorted by key */
	size_t n, room;
	ARRAY(struct holding) held;
};

void attachments_done(struct attachments *t);
/* Takes the attachment; 0, -EEXIST (the key is there), -ENOMEM: then it is still the caller's. */
int attachments_add(struct attachments *t, struct attachment *a);
/* Out of the table and back to the caller. */
void attachments_remove(struct attachments *t, struct attachment *a);
struct attachment *attachments_find(const struct attachments *t, const struct attachment_key *key);

/* Whether two roost networks may mean the same one. */
bool networks_meet(const char *a, const char *b);
/* The first that holds the address in a network that meets; NULL: nobody. */
const struct holding *attachments_holder(const struct attachments *t, const char *network,
					 const struct address *address);
/* Position of the first held address that is not below this one. */
size_t attachments_from(const struct attachments *t, const struct address *address);
