/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases that nobody renews: the leader frees their blocks.
 *
 *   mirror, time -> [decide_leases] -> plans
 *
 * Pure. A lease is freed when its expiration lies further back than the grace, and this leader has
 * led for as long: after an outage of all lease servers their clients first come to renew. The
 * transaction compares the block, so one that is renewed meanwhile stays. With its last block the
 * holder's record goes. Reservations never expire; blocks of nodes with agents are none of this.
 */
#pragma once

#include "controller/state/mirror.h"
#include "controller/state/plan.h"
#include "lib/model/model.h"

/* Minutes after its expiration. */
#define LEASE_GRACE 5

/* Deletes a lease: the block as it is in the mirror, its index, and the holder with its last one.
 */
void lease_plan_free(const struct mirror *m, const struct mirrored *e, const struct block *block,
		     struct plan *plan, struct plans *ret);

/* "lease/<holder>": the subject of such a plan; text holds KEY_TEXT bytes. Returns text. */
const char *lease_subject(const char *holder, char *text);

/* expired: the time before which an expiration is long enough ago. */
void leases_decide(const struct mirror *m, const char *expired, struct plans *ret);
