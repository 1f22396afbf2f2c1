/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates between the agent and etcd: both ends' are watched, before they expire.
 *
 *   --etcd-cert, the last handshake -> [certificates] -> health, metrics
 *
 * Looked at every hour, and when etcd is lost. A new file is taken with the next connection.
 */
#pragma once

#include "lib/base/metrics.h"
#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/store/store.h"

struct certificates;

/* path: --etcd-cert, or "": none. All borrowed. */
int certificates_new(struct timers *timers, struct health *health, const struct store *store,
		     const char *path, struct certificates **ret);
void certificates_free(struct certificates *c);

void certificates_look(struct certificates *c);
void certificates_metrics(const struct certificates *c, struct metrics *m);
