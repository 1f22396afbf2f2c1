/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the etcd store: endpoints, unary calls and the watch stream share this. */
#pragma once

#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "lib/base/clock.h"
#include "lib/base/endpoint.h"
#include "lib/etcd/etcd_wire.h"
#include "lib/etcd/store_etcd.h"
#include "lib/http/http.h"
#include "lib/json/json_stream.h"
#include "lib/store/store_ops.h"
#include "lib/store/store_stats.h"

struct etcd_call;
struct etcd_watch;
TAILQ_HEAD(etcd_calls, etcd_call);
TAILQ_HEAD(etcd_watches, etcd_watch);

struct etcd_endpoint {
	struct endpoint at;
	/* NULL: log in first; "": etcd asks for none, its authentication is disabled. Etcd's simple
	 * tokens hold on one member only. */
	char *token;
	bool logging_in;
	uint64_t heard; /* CLOCK_MONOTONIC, µs: it answered something */
	/* The member that last answered there, and the highest raft term that it reported. */
	uint64_t member_id, term;
};

/* What was known of etcd when a request was sent. */
struct etcd_known {
	unsigned era;
	int64_t revision;
	uint64_t member_id, term;
};

/* The one stream that carries all watches. */
struct etcd_stream {
	struct http_call *http;
	struct curl_slist *headers;
	struct json_stream *splitter;
	struct err reason; /* why the splitter gave up */
	size_t endpoint;
	sd_event_source *work;  /* deferred: look what is to be done */
	sd_event_source *retry; /* armed: do not open before */
	sd_event_source *created;
	sd_event_source *silence;
	sd_event_source *recheck;
	struct store_call *probe;
	struct store_call *verify;
	unsigned failures, probes_lost;
	uint64_t confirmed; /* CLOCK_MONOTONIC, µs: all its watches were; 0: not yet */
	bool wanted;        /* the stream does not carry what it should */
	bool told_trouble, told_watching;
	unsigned dispatching; /* callbacks on the stack: watches are not freed */
	int64_t next_id;
};

struct etcd {
	struct store base;
	sd_event *event;
	struct http *http;
	struct etcd_endpoint *endpoints;
	size_t n_endpoints, current;
	char *user, *password;
	struct etcd_calls calls;
	struct etcd_watches watches;
	struct etcd_stream stream;
	/* What was seen last; "era" counts how often that became void. */
	uint64_t cluster_id;
	int64_t revision;
	unsigned era;
	uint32_t patience_ms; /* what an attempt needs at least, by how long answers took */
	bool closing;
	struct store_stats stats;
};

/* Back-off after the n-th failure in a row, n >= 1: 0.1 s doubling to 5 s, from half to full. */
uint64_t etcd_backoff_usec(unsigned failures);

/* --- store_etcd.c: endpoints, and whether it is still the same etcd ---------------------------- */

/* timeout_ms 0: none. NULL without memory. */
struct curl_slist *etcd_headers(const struct etcd_endpoint *ep, uint32_t timeout_ms);
void etcd_endpoint_failed(struct etcd *e, size_t endpoint);

struct etcd_known etcd_known(const struct etcd *e, size_t endpoint);
/*
 * Compares what a reply's header says with what was known when the request was sent.
 * Reply to a request that is not linearizable: only the era is compared, all else is 0, because
 * a member may lag.
 */
void etcd_check_header(struct etcd *e, size_t endpoint, const struct etcd_header *header,
		       const struct etcd_known *known);
/* A list showed this key at an older revision than an earlier list or event. */
void etcd_key_went_back(struct etcd *e, const char *key);

/* --- etcd_call.c: requests --------------------------------------------------------------------- */

int etcd_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms, store_reply_fn *fn,
	     void *arg, struct store_call **ret_call);
int etcd_list(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
	      store_reply_fn *fn, void *arg, struct store_call **ret_call);
int etcd_lease(struct store *s, enum store_lease_verb verb, int64_t id, int64_t ttl,
	       uint32_t timeout_ms, store_reply_fn *fn, void *arg, struct store_call **ret_call);
/* Does this very endpoint answer? Read-only, from the member's own copy. */
int etcd_probe(struct etcd *e, size_t endpoint, const char *key, uint32_t timeout_ms,
	       store_reply_fn *fn, void *arg, struct store_call **ret_call);
void etcd_calls_done(struct etcd *e);

/* --- etcd_watch.c: watches and their stream ---------------------------------------------------- */

int etcd_stream_init(struct etcd *e);
void etcd_stream_done(struct etcd *e);
int etcd_watch(struct store *s, const char *key, const char *range_end,
	       const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret);
/* It has answered, whatever: a sign of life. */
void etcd_heard(struct etcd *e, size_t endpoint);
/* Something else failed on this endpoint: probe now rather than in 15 s. */
void etcd_stream_suspect(struct etcd *e, size_t endpoint);
/* No endpoint does what this call wants: if it is a watch's list, people are told at once. */
void etcd_watch_stuck(struct etcd *e, const struct store_call *call, const char *text);
/* Revisions have become void: list everything anew. */
void etcd_stream_restart(struct etcd *e);
