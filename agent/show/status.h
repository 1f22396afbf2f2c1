/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record status/node/<node>: what is, as JSON that fits.
 *
 *   health, store, allocator -> [status] -> report -> etcd; the local API shows the same
 *
 * Pure. At most max bytes: version, etcd and the numbers first, then the worst
 * troubles, sessions that are not up, pools by name, further troubles and
 * sessions. What had to be left out is counted in "omitted", so nobody takes a
 * part for the whole.
 */
#pragma once

#include <stdint.h>

#include "agent/firewall/firewall.h"
#include "agent/kernel/kernel.h"
#include "agent/static/static_entries.h"
#include "lib/daemon/health.h"
#include "lib/json/json.h"

#define STATUS_SIZE_MAX 8192U
/* Of these for the time of the writing (agent/node/report). */
#define REPORT_DATED 48

struct status_etcd {
	bool connected;
	const char *endpoint; /* "" or NULL: none */
	const char *error;    /* why not; "" or NULL: none */
	const char *server;   /* what is there instead of etcd; "" or NULL: nothing */
};

struct status_pool {
	const char *name;
	uint64_t blocks, used, free;
};

struct readiness;

/* Texts are borrowed. */
struct status_session {
	const char *name, *peer, *state, *since, *error;
	uint32_t asn;
	uint64_t imported, exported;
	bool up;
	const char *record; /* that it follows from: "peer/tor", "node/n2"; NULL: none of ours */
};

struct status_bird {
	bool managed; /* else nothing of it is shown */
	bool connected;
	char version[32];
	const char *protocol;                     /* that config wants; NULL: not known yet */
	const char *configuration, *when, *error; /* what became of the last one */
	const struct status_session *sessions;
	size_t n_sessions;
};

struct status_overlay {
	bool wanted; /* else nothing of it is shown */
	uint32_t vni, port, mtu;
	struct address addresses[2]; /* of the tunnel's end */
	size_t n_addresses;
	uint64_t remotes, unreachable;
	uint64_t blocks[KERNEL_WAYS];
};

struct status {
	const char *node, *version, *started;
	const char *address_reason; /* why this address; "" or NULL: not told */
	uint64_t attachments;       /* pods */
	bool drained;
	const struct readiness *ready; /* NULL: not told */
	struct status_etcd etcd;
	const struct health_entry *health; /* worst first */
	size_t n_health;
	const struct status_pool *pools; /* by name */
	size_t n_pools;
	struct kernel_stats kernel;
	struct firewall_stats firewall;
	struct static_counts statics; /* shown where any record means this node */
	struct status_bird bird;
	struct status_overlay overlay;
};

/* 0 or -ENOMEM. max 0: as long as it gets. */
int status_json(const struct status *s, size_t max, struct json_object **ret);
/* The same as text, to be freed. */
int status_text(const struct status *s, size_t max, char **ret);
