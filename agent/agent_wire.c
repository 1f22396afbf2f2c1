/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's parts, opened in order, and what each tells the others. */
#include <string.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "agent/clean.h"
#include "lib/base/files.h"
#include "lib/base/log.h"

/* --- addresses and links -------------------------------------------------------------------- */

static void routes_changed(bool blocks, void *arg)
{
	struct agent *a = arg;

	/* A block came or went: neighbours wait for the way to it. */
	if (a->kernel)
		(blocks ? kernel_soon : kernel_mark)(a->kernel);
	if (blocks && a->overlay)
		overlay_mark(a->overlay);
	if (blocks && a->firewall)
		firewall_mark(a->firewall);
	if (blocks && a->routing)
		routing_changed(a->routing);
	if (blocks && a->statics)
		static_routes_pools_changed(a->statics);
}

static int own_blocks(struct prefixes *ret, void *arg)
{
	struct agent *a = arg;

	return ipam_routed_blocks(a->ipam, ret);
}

/* BIRD's part is there before the overlay's. */
static bool is_silent(const char *pool, void *arg)
{
	const struct agent *a = arg;

	return a->overlay && overlay_pool_is_silent(a->overlay, pool);
}

static void addresses_known(void *arg)
{
	struct agent *a = arg;

	a->addresses_known = true;
	overlay_mark(a->overlay);
	agent_open_when_known(a);
	firewall_open(a->firewall);
	if (a->routing)
		routing_inputs_known(a->routing);
	static_routes_pools_known(a->statics);
}

/* --- the kernel ----------------------------------------------------------------------------- */

static int desire(struct kernel_wants *ret, void *arg)
{
	struct agent *a = arg;
	int r = ipam_desire(a->ipam, ret);

	r = r ?: agent_desire_overlay(ret, a);
	return r ?: (a->statics ? static_routes_desire(a->statics, ret) : 0);
}

static void link_gone(const char *name, void *arg)
{
	const struct agent *a = arg;

	if (a->ipam)
		ipam_link_gone(a->ipam, name);
}

static void restored(const struct kroute *r, void *arg)
{
	const struct agent *a = arg;

	if (a->statics)
		static_routes_restored(a->statics, r);
}

static void passed(void *arg)
{
	const struct agent *a = arg;

	if (a->statics)
		static_routes_passed(a->statics);
}

static void bird_lost(const struct prefix *dst, uint32_t port, void *arg)
{
	const struct agent *a = arg;

	if (a->routing)
		routing_route_lost(a->routing, dst, port);
}

/* For the removal of roost, which leaves the node as it was. */
static void forwards(sa_family_t family, void *arg)
{
	const struct agent *a = arg;
	AUTO(close) int run = dir_open(a->settings->run_dir);

	if (run < 0 || file_publish(run, family == AF_INET ? CLEAN_FORWARDING4 : CLEAN_FORWARDING6,
				    0600, "", 0) < 0)
		log_warning("agent", "%s: that forwarding was off cannot be noted",
			    a->settings->run_dir);
}

static int pools(struct prefix **ret, size_t *ret_n, void *arg)
{
	const struct agent *a = arg;

	return ipam_extent_prefixes(a->ipam, ret, ret_n);
}

uint32_t agent_mtu(struct agent *a)
{
	const struct address *ipv4 = &a->identity.ipv4.address;

	return kernel_uplink_mtu(a->kernel, ipv4->family ? ipv4 : &a->identity.ipv6.address);
}

/* Without an uplink that is known the plugin's own choice stands. */
static uint32_t pod_mtu(bool encapsulated, void *arg)
{
	struct agent *a = arg;
	uint32_t least = encapsulated ? overlay_pod_mtu(a->overlay) : 0;

	return least ?: agent_mtu(a);
}

/* --- opening -----------------------------------------------------------------------------------
 */

static int protect(struct prefixes *ret, void *arg)
{
	struct agent *a = arg;

	return identity_endpoints(settings_servers(a->settings), ret);
}

static int open_kernel(struct agent *a, struct err *err)
{
	struct kernel_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.minute = a->settings->minute,
		.desire = desire,
		.protect = protect,
		.link_gone = link_gone,
		.changed = agent_changed,
		.restored = restored,
		.passed = passed,
		.bird_lost = bird_lost,
		.forwards = forwards,
		.arg = a,
	};
	int r = reaper_start(a->reaper, a->event, a->timers, a->health);

	return r ?: kernel_new(&o, &a->kernel, err);
}

static int open_records(struct agent *a)
{
	const struct records_options o = {
		.store = a->store,
		.timers = a->timers,
		.health = a->health,
		.prefix = a->settings->etcd.prefix,
		.node = a->identity.name,
		.minute = a->settings->minute,
	};

	return records_new(&o, &a->records);
}

static int desire_firewall(struct firewall_wants *ret, void *arg)
{
	struct agent *a = arg;

	return ipam_desire_firewall(a->ipam, ret);
}

static int open_firewall(struct agent *a)
{
	const struct settings *s = a->settings;
	struct firewall_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.library = s->nftables_library,
		.minute = s->minute,
		.check_sources = s->ipv6_source_check == SETTING_ON,
		.desire = desire_firewall,
		.changed = agent_changed,
		.arg = a,
	};

	return firewall_new(&o, &a->firewall);
}

static int open_routing(struct agent *a, struct err *err)
{
	const struct settings *s = a->settings;
	struct routing_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.records = a->records,
		.kernel = a->kernel,
		.bird_socket = s->bird_socket,
		.bird_config = s->bird_config,
		.bird_program = s->bird_program,
		.template_dir = s->template_dir,
		.blocks = own_blocks,
		.silent = is_silent,
		.changed = agent_changed,
		.arg = a,
	};

	return settings_bird(s) ? routing_new(&o, &a->routing, err) : 0;
}

static bool marked(void *arg)
{
	const struct agent *a = arg;
	char path[512];

	snprintf(path, sizeof(path), "%s/" DRAIN_MARK, a->settings->run_dir);
	return access(path, F_OK) == 0;
}

static int open_addresses(struct agent *a, struct err *err)
{
	struct ipam_options o = {
		.event = a->event,
		.store = a->store,
		.timers = a->timers,
		.health = a->health,
		.records = a->records,
		.kernel = a->kernel,
		.reaper = a->reaper,
		.prefix = a->settings->etcd.prefix,
		.node = a->identity.name,
		.boot = a->identity.boot,
		.run_dir = a->settings->run_dir,
		.minute = a->settings->minute,
		.fence = agent_fence,
		.fence_moved = agent_fence_moved,
		.reason = agent_why_unregistered,
		.promise = agent_promise,
		.set_promise = agent_set_promise,
		.set_recovery = agent_set_recovery,
		.changed = agent_changed,
		.routes_changed = routes_changed,
		.known = addresses_known,
		.mtu = pod_mtu,
		.tunnel_changed = agent_tunnel_changed,
		.accepted = agent_accepted,
		.marked = marked,
		.arg = a,
	};
	int r = ipam_new(&o, &a->ipam, err);

	if (r < 0)
		return r;
	ipam_unplug_again(a->ipam);
	kernel_start(a->kernel);
	return 0;
}

static int open_statics(struct agent *a, struct err *err)
{
	struct static_routes_options o = {
		.store = a->store,
		.records = a->records,
		.timers = a->timers,
		.health = a->health,
		.prefix = a->settings->etcd.prefix,
		.node = a->identity.name,
		.minute = a->settings->minute,
		.table = a->settings->static_route_table,
		.protect = a->settings->protected_subnets,
		.probes = a->settings->fallback_gateway_probe,
		.kernel = a->kernel,
		.fence = agent_fence,
		.pools = pools,
		.changed = agent_changed,
		.arg = a,
	};
	int r = identity_endpoints(settings_servers(a->settings), &o.endpoints);

	r = r ?: static_routes_new(&o, &a->statics, err);
	free(o.endpoints.v);
	return r;
}

int agent_open_parts(struct agent *a, struct err *err)
{
	int r = open_kernel(a, err);

	r = r < 0 ? r : open_records(a);
	r = r < 0 ? r : open_addresses(a, err);
	r = r < 0 ? r : open_firewall(a);
	r = r < 0 ? r : open_routing(a, err);
	r = r < 0 ? r : agent_open_overlay(a, err);
	return r < 0 ? r : open_statics(a, err);
}
