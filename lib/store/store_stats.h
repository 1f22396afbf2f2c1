/* SPDX-License-Identifier: Apache-2.0 */
/* What a store tells of its server, for status, metrics and tests. */
#pragma once

#include "lib/base/metrics.h"
#include "lib/http/certificate.h"
#include "lib/store/store.h"

/* What became of one request to one server. */
enum server_outcome {
	SERVER_DONE,
	SERVER_REFUSED, /* it answered with an error */
	SERVER_LATE,
	SERVER_UNREACHABLE, /* not connected, or cut off */
	SERVER_OUTCOMES
};
const char *server_outcome_name(enum server_outcome o); /* "ok", "refused", ... */

struct store_stats {
	const char *server; /* what kind of one, for sentences: "etcd", "the lease server" */
	uint64_t requests, failed_attempts, logins, streams, events, lists, settled;
	uint64_t reconnects; /* of the watch, after it was lost */
	uint64_t outcomes[SERVER_OUTCOMES];
	struct histogram duration; /* of requests that were answered or given up */
	const char *endpoint;      /* the one in use */
	uint64_t cluster_id;
	const struct certificate *certificate; /* of the one last spoken to by TLS; NULL: none */
	int64_t revision;                      /* the newest seen */
	uint64_t heard; /* CLOCK_MONOTONIC in µs of the last reply; 0: none yet */
};
/* "etcd" or "the lease server", for sentences. */
const char *store_server(const struct store *s);
/* All zero for a store without a server. */
void store_stats(const struct store *s, struct store_stats *ret);
