/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics, /healthz and /readyz over TCP, for those who cannot reach the unix socket.
 *
 *   --metrics ADDRESS:PORT -> [monitor] -> the daemon's handlers that change nothing
 *
 * Never the API: whoever reaches this port can read what is shown and nothing else. A port that
 * cannot be bound is told in health and tried again; nothing else depends on it.
 */
#pragma once

#include "lib/base/timers.h"
#include "lib/daemon/health.h"
#include "lib/daemon/serve.h"

struct monitor;

struct monitor_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	const char *flag;    /* that named the address, and part of health; NULL: "metrics" */
	const char *address; /* as listen_address_parse() takes it */
	const struct serve_route *routes;
	size_t n_routes;
	void *arg; /* the handlers' */
};
/* What the options point to is borrowed. */
int monitor_new(const struct monitor_options *options, struct monitor **ret);
void monitor_free(struct monitor *m);
