/* SPDX-License-Identifier: Apache-2.0 */
/* The local API's table of routes: docs/LOCAL-API.md. The handlers' argument is the agent. */
#pragma once

#include "agent/ipam.h"
#include "agent/plug.h"
#include "lib/serve.h"

const struct serve_route *api_routes(void);
size_t api_n_routes(void);

/* Provided by agent.c. */
struct ipam *api_ipam(void *agent);
struct plug *api_plug(void *agent);
serve_handler_fn api_status, api_node;
