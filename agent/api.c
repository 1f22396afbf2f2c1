/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api.h"

static void assign(struct serve_request *request, void *arg)
{
	ipam_assign(api_ipam(arg), request);
}

static void release(struct serve_request *request, void *arg)
{
	ipam_release(api_ipam(arg), request);
}

static void check(struct serve_request *request, void *arg)
{
	ipam_check(api_ipam(arg), request);
}

static void gc(struct serve_request *request, void *arg)
{
	ipam_gc(api_ipam(arg), request);
}

static void list(struct serve_request *request, void *arg)
{
	ipam_list(api_ipam(arg), request);
}

static void ipam_state(struct serve_request *request, void *arg)
{
	ipam_status(api_ipam(arg), request);
}

static void attach(struct serve_request *request, void *arg)
{
	ipam_attach(api_ipam(arg), request);
}

static void detach(struct serve_request *request, void *arg)
{
	ipam_detach(api_ipam(arg), request);
}

static void check_link(struct serve_request *request, void *arg)
{
	ipam_check_link(api_ipam(arg), request);
}

static void ready(struct serve_request *request, void *arg)
{
	ipam_link_status(api_ipam(arg), request);
}

#define MONITOR_ROUTES                                                                             \
	{ "GET", "/metrics", api_metrics }, { "GET", "/healthz", api_healthz },                    \
	{                                                                                          \
		"GET", "/readyz", api_readyz                                                       \
	}

static const struct serve_route monitor_routes[] = { MONITOR_ROUTES };

static const struct serve_route routes[] = {
	{ "POST", "/v1/attach", attach },
	{ "POST", "/v1/detach", detach },
	{ "POST", "/v1/check", check_link },
	/* The same for both plugins: what goes takes its link along. */
	{ "POST", "/v1/gc", gc },
	{ "GET", "/v1/node", api_node },
	{ "GET", "/v1/ready", ready },
	{ "POST", "/v1/ipam/assign", assign },
	{ "POST", "/v1/ipam/release", release },
	{ "POST", "/v1/ipam/check", check },
	{ "POST", "/v1/ipam/gc", gc },
	{ "GET", "/v1/ipam/list", list },
	{ "GET", "/v1/ipam/status", ipam_state },
	{ "GET", "/v1/status", api_status },
	{ "GET", "/v1/bird/config", api_bird_config },
	{ "GET", "/v1/overlay", api_overlay },
	MONITOR_ROUTES,
};

const struct serve_route *api_routes(void)
{
	return routes;
}

size_t api_n_routes(void)
{
	return ARRAY_SIZE(routes);
}

const struct serve_route *api_monitor_routes(void)
{
	return monitor_routes;
}

size_t api_n_monitor_routes(void)
{
	return ARRAY_SIZE(monitor_routes);
}
