/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics, /healthz and /readyz over TCP, for those who cannot reach the unix socket.
 *
 *   --metrics ADDRESS:PORT -> [monitor] -> the handlers of api.c that change nothing
 *
 * Never the API: whoever reaches this port can read what is shown and nothing else. A port that
 * cannot be bound is told in health and tried again; pods do not depend on it.
 */
#pragma once

#include "agent/health.h"
#include "agent/timers.h"
#include "lib/auto.h"

struct monitor;

/* address as listen_address_parse() takes it, borrowed; agent: the handlers' argument. */
int monitor_new(sd_event *event, struct timers *timers, struct health *health, const char *address,
		void *agent, struct monitor **ret);
void monitor_free(struct monitor *m);
AUTO_DEFINE(struct monitor *, monitor_free)
