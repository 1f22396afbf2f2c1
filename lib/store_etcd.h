/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store over a real etcd, 3.4 or later, through its JSON gateway.
 *
 * Stays with one endpoint while it answers; goes to the next at once when it
 * does not, and waits (0.1 s growing to 5 s, jittered) after a full round. One
 * HTTP stream carries all watches. A stream that has gone silent is probed
 * after 15 s and given up within 35 s. Every ten minutes each watched range is
 * re-checked by count and newest revision, because etcd itself has lost
 * events after compactions (before 3.4.31).
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/err.h"
#include "lib/http.h"
#include "lib/metrics.h"
#include "lib/store.h"

struct store_etcd_options {
	const char *endpoints; /* "http://10.0.0.1:2379,https://b:2379,unix:///run/etcd.sock" */
	struct http_tls tls;
	const char *user, *password; /* NULL: no login */
	const char *name;            /* decides which endpoint is tried first; NULL: the first */
};

/* -EINVAL with the reason, or -ENOMEM. Connects only when the first request is made. */
int store_etcd_new(sd_event *event, const struct store_etcd_options *options, struct store **ret,
		   struct err *err);

/* What became of one request to one member. */
enum etcd_outcome {
	ETCD_DONE,
	ETCD_REFUSED, /* it answered with an error */
	ETCD_LATE,
	ETCD_UNREACHABLE, /* not connected, or cut off */
	ETCD_OUTCOMES
};
const char *etcd_outcome_name(enum etcd_outcome o); /* "ok", "refused", ... */

/* For status, metrics and tests. */
struct store_etcd_stats {
	uint64_t requests, failed_attempts, logins, streams, events, lists, settled;
	uint64_t reconnects; /* of the watch stream, after it was lost */
	uint64_t outcomes[ETCD_OUTCOMES];
	struct histogram duration; /* of requests that were answered or given up */
	const char *endpoint;      /* the one in use */
	uint64_t cluster_id;
	const struct certificate *server; /* of the member last spoken to by TLS; NULL: none */
	int64_t revision;                 /* the newest seen */
	uint64_t heard; /* CLOCK_MONOTONIC in µs of the last reply; 0: none yet */
};
void store_etcd_stats(const struct store *s, struct store_etcd_stats *ret);
