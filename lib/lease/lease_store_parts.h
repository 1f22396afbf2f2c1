/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lease_store: renewals, and what waits for the server, share this. */
#pragma once

#include <systemd/sd-event.h>

#include "lib/lease/lease_client.h"
#include "lib/lease/lease_mirror.h"
#include "lib/lease/lease_store.h"
#include "lib/model/keys.h"
#include "lib/store/store_memory.h"

/* What the server is being asked for one transaction. */
enum asking { ASK_NOTHING, ASK_ACQUIRE, ASK_BLOCK, ASK_RELEASE };

struct lease_store {
	struct memory memory;
	sd_event *event;
	struct lease_client *client;
	struct lease_mirror mirror;
	char prefix[KEY_FULL_TEXT], network[NAME_TEXT], node[NODE_NAME_TEXT];
	char node_key[KEY_FULL_TEXT];
	char trouble[512], watched[512];
	sd_event_source *work, *renew;
	uint32_t minute_ms;
	uint64_t clock; /* CLOCK_BOOTTIME, s: up to here the leases in memory have run */
	/* What we are to the server: address and MAC. */
	struct lease attrs;
	bool acquired; /* the server knows these */
	/* The transaction's question under way, or answered and not yet looked at. */
	enum asking asking;
	struct prefix block;
	struct lease wanted;
	struct lease_ask *ask;
	bool refused; /* the answer was no, and the sentence says why */
	struct err why;
	struct prefix not_ours; /* a block that the server did not give when it was asked for */
	uint64_t not_ours_until;
	struct lease_ask *renewing;
	/* CLOCK_BOOTTIME, ns: a request was sent then whose answer showed our lease; it is what all
	 * that this store says rests on. 0: none yet. */
	int64_t confirmed;
	bool overdue; /* a renewal was refused: only another one confirms it again */
	struct lease_ask *checking;
	sd_event_source *check;
	struct lease planned; /* whose renewal the timer is for */
	bool (*in_use)(const char *network, const struct prefix *block, void *arg);
	void *arg;
};

/* lease_store_renew.c */
/* Keys may have changed, and when to renew with them. */
void lease_store_mirrored(struct lease_store *s, bool changed);
/* Just given or renewed, by the answer to a request that was sent then. */
void lease_store_granted(struct lease_store *s, const struct lease *lease, int64_t sent);
/* POST, PUT or DELETE of a lease; without a subnet: of any. */
int lease_store_ask(struct lease_store *s, const char *method, const struct lease *lease,
		    lease_answer_fn *fn, struct lease_ask **ret);
int lease_store_renew(sd_event_source *source, uint64_t usec, void *store);
/* Renews now: a server whose etcd went back does not answer before it knows what everybody holds.
 */
void lease_store_assert(struct lease_store *s);
/* Each minute: asks for our lease where the last confirmation is getting old. */
int lease_store_check(sd_event_source *source, uint64_t usec, void *store);

/* lease_store_gate.c: what becomes of a request; memory_hooks.verdict. */
struct memory_verdict lease_store_verdict(struct memory *m, enum memory_kind kind,
					  const struct store_txn *txn, const char *key);
