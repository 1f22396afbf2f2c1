/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store over a lease server: for a node that has no credentials for etcd.
 *
 *   store.h -> [lease_store] -> store_memory: the records, made of leases (lease_mirror.h)
 *                            -> lease_client: the server
 *
 * Everything above sees etcd's keys, as lib/lease/lease_mirror.h makes them. Three transactions
 * ask the server first, and wait for its answer:
 *   the put of node/<self>    acquires: the node's address (IPv4, else IPv6) is the public
 *                             address, the MAC that of its record, or by its name
 *   the put of block/...      the same while no lease is held; a block that is not the one
 *                             given is refused as if its compares did not hold. One that has
 *                             vanished, but is in use here, is asked for by name
 *   the delete of block/...   gives the lease back
 * All other writes stay here and end with the process: status, addresses. A lease is renewed
 * at half its time, and each minute until that worked. One that the server gives to somebody
 * else shows as that.
 *
 * While no server answers, nothing is reached, as with etcd away; the first time everything
 * is known is the first listing of all watches. Leases of this store's own (status) run on a
 * clock that is looked at when something happens.
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/prefix.h"
#include "lib/http/http.h"
#include "lib/store/store.h"

struct lease_store_options {
	const char *servers;    /* "https://10.0.0.1:10253,https://10.0.0.2:10253" */
	const char *network;    /* "_": the default one */
	const char *prefix;     /* of all keys */
	const char *node;       /* our name */
	struct address address; /* ours, if it is known already; else by the registration */
	struct http_tls tls;
	uint32_t minute_ms; /* shorter in tests; 0: 60000 */
	/* Whether somebody here uses addresses of it; NULL: nobody does. */
	bool (*in_use)(const char *network, const struct prefix *block, void *arg);
	void *arg;
};

/* -EINVAL with the reason, or -ENOMEM. Asks the server at once. */
int lease_store_new(sd_event *event, const struct lease_store_options *options, struct store **ret,
		    struct err *err);
