/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the lease server: asks, and follows the leases of one network.
 *
 *   servers -> HTTP -> [lease_client] -> lease_reply -> lease_store
 *
 * Stays with one server while it answers, goes to the next at once when it does not,
 * and waits (0.1 s growing to 5 s, jittered, or as long as the server asks for) after a
 * full round. Following: the network's configuration, all leases, then long polls from
 * the cursor. A poll that nothing happens to ends after five minutes; the configuration is
 * then asked for again, which also shows that the server still lives (a machine that is gone
 * is found sooner, by TCP's keep-alive). When every server
 * has failed, that is trouble, and after it all leases are read anew before anybody is
 * told that it is over.
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/http/http.h"
#include "lib/lease/lease_reply.h"
#include "lib/store/store_stats.h"

struct lease_client;
struct lease_ask;

/* From the loop. None may free the client. */
struct lease_client_handlers {
	void (*network)(const struct lease_network *network, void *arg);
	void (*changes)(const struct lease_changes *changes, void *arg);
	/* Everything is known; after trouble: again. */
	void (*watching)(const char *text, void *arg);
	void (*trouble)(const char *text, void *arg);
};

struct lease_client_options {
	sd_event *event;
	const char *servers; /* as lib/base/endpoint.h has them */
	const char *network; /* "_", or a name */
	const char *name;    /* who we are: decides which server is tried first */
	struct http_tls tls;
	uint32_t poll_ms; /* how long nothing may happen; 0: five minutes */
	const struct lease_client_handlers *handlers;
	void *arg;
};

/* Begins to follow at once. 0, or a negative errno with the reason. */
int lease_client_new(const struct lease_client_options *options, struct lease_client **ret,
		     struct err *err);
void lease_client_free(struct lease_client *c);
AUTO_DEFINE(struct lease_client *, lease_client_free)

/* A doubt: all leases are read again, without trouble. */
void lease_client_look(struct lease_client *c);
void lease_client_stats(const struct lease_client *c, struct store_stats *ret);

/* What a server said in the end: not that it is busy, and not that it is away. */
struct lease_answer {
	long status;
	const char *body; /* NUL-terminated */
	size_t len;
	int64_t sent; /* CLOCK_BOOTTIME, ns: when the attempt that this answers was sent */
};
typedef void lease_answer_fn(const struct lease_answer *answer, void *arg);
/*
 * path: behind /v1/{network}, "/leases". body NULL: none. Asks until there is an answer; what was
 * asked may have been done more than once. No callback after lease_ask_cancel().
 */
int lease_client_ask(struct lease_client *c, const char *method, const char *path, const char *body,
		     lease_answer_fn *fn, void *arg, struct lease_ask **ret);
void lease_ask_cancel(struct lease_ask *ask);
