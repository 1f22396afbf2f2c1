/* SPDX-License-Identifier: Apache-2.0 */
/* The local API's table of routes: docs/API.md. The handlers' argument is the agent. */
#pragma once

#include "agent/addresses/ipam.h"
#include "lib/daemon/serve.h"

const struct serve_route *api_routes(void);
size_t api_n_routes(void);
/* Those that anybody may ask: over TCP too. */
const struct serve_route *api_monitor_routes(void);
size_t api_n_monitor_routes(void);

/* Provided by agent_show.c. */
struct ipam *api_ipam(void *agent);
serve_handler_fn api_status, api_node, api_bird_config;
serve_handler_fn api_overlay;
serve_handler_fn api_metrics, api_healthz, api_readyz;
