/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/clean.h"
#include "agent/kernel/reaper.h"
#include "agent/node/pin.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/log.h"
#include "lib/cni/cni_away.h"
#include "lib/daemon/program.h"
#include "lib/lease/lease_store.h"

#define SOCKET_NAME "agent.sock"

/* --- what follows from what ------------------------------------------------------------------
 *
 * Each room has a pass of its own, which a mark brings about when the loop is quiet:
 *
 *   records ─┬─> addresses ─┬─> overlay ─┬─> kernel ─> static routes' statuses
 *            │              └────────────┼─> firewall
 *            └─> routing <───────────────┘
 *
 * records mark the rooms that want them; the functions of this section carry the rest. BIRD learns
 * blocks from the kernel, so routing has the kernel's pass made first.
 */

/* Something that status shows is different. */
static void changed(void *arg)
{
	struct agent *a = arg;

	if (a->ipam)
		log_set_level(ipam_log_level(a->ipam, a->settings->log_level));
	status_watch_changed(&a->status_watch);
	if (a->report)
		report_changed(a->report);
}

/* Pods here are different, or with them this node's blocks and pools. */
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

/* What is surplus may go only when all is known that anything is made from. */
static void open_when_known(struct agent *a)
{
	if (a->opened || !a->addresses_known || !overlay_in_sync(a->overlay))
		return;
	a->opened = true;
	kernel_open(a->kernel);
	firewall_open(a->firewall);
}

/* Once: all inputs of the addresses were read, and every block of ours is certain. */
static void addresses_known(void *arg)
{
	struct agent *a = arg;

	a->addresses_known = true;
	overlay_mark(a->overlay);
	open_when_known(a);
	if (a->routing)
		routing_inputs_known(a->routing);
	static_routes_pools_known(a->statics);
}

static void overlay_changed(void *arg)
{
	struct agent *a = arg;

	open_when_known(a);
	kernel_mark(a->kernel);
	firewall_mark(a->firewall);
	changed(a);
}

static void tunnel_changed(void *arg)
{
	struct agent *a = arg;

	if (a->overlay)
		overlay_mark(a->overlay);
}

/* What the kernel is to have, for its pass. */
static int desire(struct kernel_wants *ret, void *arg)
{
	struct agent *a = arg;
	int r = ipam_desire(a->ipam, ret);

	if (r == 0 && a->overlay)
		r = overlay_desire(a->overlay, ret);
	if (r == 0 && a->statics)
		r = static_routes_desire(a->statics, ret);
	return r;
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

/* --- what they ask each other ---------------------------------------------------------------- */

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

static int protect(struct prefixes *ret, void *arg)
{
	struct agent *a = arg;

	return identity_endpoints(settings_servers(a->settings), ret);
}

static int desire_firewall(struct firewall_wants *ret, void *arg)
{
	struct agent *a = arg;

	const struct cluster_config *c = records_find(a->records, KEY_CONFIG, "");
	int r = ipam_desire_firewall(a->ipam, ret);

	ret->ipv6_sources = a->settings->ipv6_source_check == SETTING_ON;
	ret->pod_loopback = a->settings->pod_loopback == SETTING_ALLOW;
	ret->pod_routing = a->settings->pod_routing == SETTING_ALLOW;
	ret->vxlan_port = overlay_port(a->overlay);
	ret->bgp_port = c ? (uint16_t)c->bgp.listen_port : 179;
	r = r ?: overlay_nodes(a->overlay, &ret->nodes);
	ret->tunnel = r > 0;
	return r < 0 ? r : 0;
}

static const char *refuses(bool route_localnet, void *arg)
{
	struct agent *a = arg;
	const char *lacks = firewall_lacks(a->firewall);

	if (route_localnet && a->settings->pod_loopback != SETTING_ALLOW)
		return "the network configuration has routeLocalnet, which this node's agent does "
		       "not allow: remove it, or start roostd with --pod-loopback allow";
	if (!lacks || a->settings->require_firewall != SETTING_ON)
		return NULL;
	err_set(&a->unprotected, 0,
		"pods are not protected on this node, and its agent has --require-firewall on: the "
		"table inet " FIREWALL_TABLE " of nftables: %s",
		lacks);
	return a->unprotected.text;
}

static bool marked(void *arg)
{
	const struct agent *a = arg;
	char path[512];

	snprintf(path, sizeof(path), "%s/" DRAIN_MARK, a->settings->run_dir);
	return access(path, F_OK) == 0;
}

static bool block_in_use(const char *network, const struct prefix *block, void *arg)
{
	const struct agent *a = arg;

	return a->ipam && ipam_uses(a->ipam, network, block);
}

/* --- etcd, and our registration with it -------------------------------------------------------- */

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	struct agent *a = arg;

	if (notice == STORE_WATCHING) {
		a->connected = true;
		a->etcd_error[0] = '\0';
		/* Reading lists took memory that is not needed again. */
		malloc_trim(0);
		health_clear(a->health, a->server);
		certificates_look(a->certificates);
		log_info(a->server, "%s", text);
	} else if (notice == STORE_TROUBLE) {
		a->connected = false;
		snprintf(a->etcd_error, sizeof(a->etcd_error), "%s", text);
		health_set(
			a->health, a->server, LOG_LEVEL_WARNING,
			"%s is out of reach: %s; pods go on, and new ones get addresses of this "
			"node's own blocks for as long as config's reclaimAfter less ten minutes: "
			"check %s and the network path to it (--%s %s)",
			store_server(a->store), text, store_server(a->store), a->server,
			settings_servers(a->settings));
		certificates_look(a->certificates);
	} else {
		log_error(a->server, "%s; everything is read again", text);
	}
	records_notice(a->records, notice);
	if (a->registration)
		register_notice(a->registration, notice, text);
	ipam_notice(a->ipam, notice);
	if (a->statics)
		static_routes_notice(a->statics, notice);
	if (a->report && notice == STORE_WATCHING)
		report_kick(a->report);
	/* Now the pools are known, and the node's address can be chosen among the others. */
	if (notice == STORE_WATCHING && !a->compared)
		timer_set(a->timers, &a->identify, 0, 0);
	changed(a);
}

static const struct fence *fence(void *arg)
{
	struct agent *a = arg;

	return a->registration ? register_fence(a->registration) : NULL;
}

static void fence_moved(int64_t revision, void *arg)
{
	struct agent *a = arg;

	if (a->registration)
		register_raised(a->registration, revision);
}

static const char *why_unregistered(void *arg)
{
	struct agent *a = arg;

	if (!a->connected && a->etcd_error[0])
		return a->etcd_error;
	if (a->registration)
		return register_reason(a->registration);
	return health_reason(a->health, "address") ?: "this node's address is not chosen yet";
}

static uint32_t promise(void *arg)
{
	struct agent *a = arg;

	return a->registration ? register_promise(a->registration) : 0;
}

static int set_promise(uint32_t seconds, void *arg)
{
	struct agent *a = arg;

	return register_set_promise(a->registration, seconds);
}

static int set_recovery(const char *id, void *arg)
{
	struct agent *a = arg;

	return a->registration ? register_set_recovery(a->registration, id) : -ENOTCONN;
}

/* One kind of write goes well again after a refusal: whatever else was refused is tried now. */
static void accepted(void *arg)
{
	struct agent *a = arg;

	ipam_retry(a->ipam);
	if (a->report)
		report_retry(a->report);
	if (a->statics)
		static_routes_retry(a->statics);
}

static void on_registered(const struct fence *f, void *arg)
{
	struct agent *a = arg;

	report_set_fence(a->report, f->create_revision);
	ipam_registered(a->ipam);
	static_routes_registered(a->statics, a->registration);
	lifecycle_status(a->lifecycle, "registered as %s", a->identity.name);
}

static void on_unregistered(const char *why, void *arg)
{
	struct agent *a = arg;

	report_set_fence(a->report, 0);
	lifecycle_status(a->lifecycle, "not registered: %s", why);
}

static void on_lost(const char *why, void *arg)
{
	struct agent *a = arg;

	ipam_lost(a->ipam);
}

static bool holds(void *arg)
{
	const struct agent *a = arg;

	return ipam_holds(a->ipam);
}

static void on_status_stands(void *arg)
{
	struct agent *a = arg;

	ipam_look_at_blocks(a->ipam);
}

static void on_removed(const struct node_removed *removed, void *arg)
{
	struct agent *a = arg;

	ipam_removed(a->ipam, removed != NULL);
}

static void report_trouble(const char *text, void *arg)
{
	struct agent *a = arg;

	if (text[0]) {
		health_set(a->health, "status", LOG_LEVEL_WARNING, "%s", text);
		return;
	}
	health_clear(a->health, "status");
	accepted(a);
}

static int start_registration(struct agent *a)
{
	static const struct register_handlers handlers = { on_registered, on_unregistered, on_lost,
							   holds, on_removed };
	struct node node = {
		.name = a->identity.name,
		.ipv4 = a->identity.ipv4,
		.ipv6 = a->identity.ipv6,
		.machine = a->identity.machine,
		.boot = a->identity.boot,
		.agent = { .version = ROOST_VERSION },
	};
	const char *hardware[HARDWARE_MAX];
	struct register_options registration = {
		.store = a->store,
		.records = a->records,
		.timers = a->timers,
		.health = a->health,
		.prefix = a->settings->etcd.prefix,
		.minute = a->settings->minute,
		.node = &node,
		.handlers = &handlers,
		.arg = a,
	};
	struct report_options report = {
		.store = a->store,
		.timers = a->timers,
		.key = a->status_key,
		.node_key = a->node_key,
		.build = api_report,
		.trouble = report_trouble,
		.stands = on_status_stands,
		.arg = a,
	};
	int r;

	identity_hardware(&a->identity);
	for (size_t i = 0; i < a->identity.n_hardware; i++)
		hardware[i] = a->identity.hardware[i];
	node.hardware = (struct texts){ hardware, a->identity.n_hardware };
	memcpy(node.agent.started, a->started, sizeof(a->started));
	if (a->routing)
		routing_set_self(a->routing, &a->identity);
	ipam_set_self(a->ipam, a->identity.ipv4.address.family, a->identity.ipv6.address.family);
	r = report_new(&report, &a->report);
	r = r ?: register_new(&registration, &a->registration);
	overlay_set_self(a->overlay, &a->identity, a->registration);
	return r;
}

/* --- who we are ------------------------------------------------------------------------------ */

static int choose(struct agent *a, struct identity *ret, struct err *err)
{
	AUTO_DONE(identity_candidates_done) struct identity_candidates candidates = { 0 };
	AUTO(free) struct prefix *pools = NULL;
	size_t n = 0;
	int r = 0;

	if (a->settings->address[0])
		r = identity_configured(a->settings->address, &candidates, err);
	candidates.server = store_server(a->store);
	r = r ?: identity_gather(settings_servers(a->settings), &candidates, err);
	r = r ?: ipam_pool_prefixes(a->ipam, &pools, &n);
	return r ?: identity_choose(&candidates, pools, n, ret, err);
}

static void report_difference(struct agent *a)
{
	struct identity now = a->identity;
	struct err text = { "" };

	memcpy(now.name, a->asked_name, sizeof(now.name));
	if (choose(a, &now, &text) == 0 && identity_differs(&a->identity, &now, &text))
		health_set(a->health, "address", LOG_LEVEL_WARNING, "%s", text.text);
}

static void on_identify(void *arg)
{
	struct agent *a = arg;
	struct identity chosen = a->identity;
	struct err err = { "" };
	int r;

	if (!a->connected)
		return;
	a->compared = true;
	if (a->identified) {
		report_difference(a);
		return;
	}
	r = choose(a, &chosen, &err);
	if (r < 0) {
		health_set(a->health, "address", LOG_LEVEL_ERROR, "no address for this node: %s",
			   err.text);
		a->compared = false;
		timer_set(a->timers, &a->identify, 5000, 1000);
		return;
	}
	health_clear(a->health, "address");
	a->identity = chosen;
	a->identified = true;
	log_info("agent", "node %s, %s", a->identity.name, a->identity.reason);
	r = pin_write(a->settings->run_dir, &a->identity, &err);
	if (r < 0)
		log_error("agent", "%s", err.text);
	r = start_registration(a);
	if (r < 0) {
		log_error("agent", "registration: %s", strerror(-r));
		sd_event_exit(a->event, r);
	}
}

static int identify(struct agent *a, struct err *err)
{
	const struct settings *s = a->settings;
	int r = identity_ids(s->node, s->machine_id, s->boot_id, &a->identity, err);

	if (r < 0)
		return r;
	memcpy(a->asked_name, a->identity.name, sizeof(a->asked_name));
	r = pin_read(s->run_dir, &a->identity, err);
	if (r == -EINVAL)
		log_warning("agent", "%s; the node's address is chosen again", err->text);
	else if (r < 0)
		return r;
	a->identified = r > 0;
	if (a->identified)
		log_info("agent", "node %s, %s (pinned on this boot)", a->identity.name,
			 a->identity.reason);
	return 0;
}

/* --- signals, reload, the socket --------------------------------------------------------------- */

static void stopped(void *arg)
{
	struct agent *a = arg;

	lifecycle_stopped(a->lifecycle);
}

static void on_stop(const char *why, void *arg)
{
	struct agent *a = arg;

	log_info("agent", "stopping: %s; pods, routes and addresses stay as they are", why);
	health_set(a->health, "agent", LOG_LEVEL_INFO, "stopped: %s", why);
	if (a->report)
		report_farewell(a->report, stopped, a);
	else
		stopped(a);
}

static void told(const char *sentence, bool taken, void *arg)
{
	if (taken)
		log_info("agent", "%s", sentence);
	else
		log_warning("agent", "%s", sentence);
}

static void on_reload(void *arg)
{
	AUTO_DONE(settings_done) struct settings fresh = { 0 };
	struct agent *a = arg;
	enum options_verb verb;
	struct err err = { "" };

	if (settings_load(a->argc, a->argv, environ, &fresh, &verb, &err) < 0) {
		log_error("agent", "reload: %s; everything stays as it was", err.text);
		return;
	}
	settings_take_over(a->settings, &fresh, told, a);
	changed(a);
	if (a->routing)
		routing_changed(a->routing);
}

static void answered(const char *path, unsigned status, uint64_t us, void *arg)
{
	struct agent *a = arg;

	request_stats_add(&a->requests, path, status, us);
}

static void refused(int error, void *arg)
{
	struct agent *a = arg;

	if (error)
		health_set(a->health, "socket", LOG_LEVEL_ERROR,
			   "no connection can be accepted: %s; plugins wait until it can",
			   strerror(error));
	else
		health_clear(a->health, "socket");
}

static int open_socket(struct agent *a, struct err *err)
{
	struct serve_config config = {
		.arg = a,
		.answered = answered,
		.refused = refused,
		/* Garbage collection lists every attachment of a node. */
		.max_body = 1024UL * 1024UL,
	};
	char path[512];
	int r;

	config.routes = api_routes(&config.n_routes);
	snprintf(path, sizeof(path), "%s/" SOCKET_NAME, a->settings->run_dir);
	r = serve_listen_unix(path, 0600, &config.fd);
	if (r == 0) {
		r = serve_new(a->event, &config, &a->serve);
		if (r < 0)
			close(config.fd);
	}
	if (r == 0)
		cni_away_over(path);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

/*
 * The mark of a drain came or went. Or another program has cleaned up /run/roost: without the
 * socket no pod could start.
 */
static int on_run_dir(sd_event_source *source, const struct inotify_event *e, void *arg)
{
	struct agent *a = arg;
	struct err err = { "" };

	if (e->len && strcmp(e->name, DRAIN_MARK) == 0)
		ipam_mark_changed(a->ipam);
	if (!e->len || strcmp(e->name, SOCKET_NAME) != 0 ||
	    !(e->mask & (IN_DELETE | IN_MOVED_FROM)))
		return 0;
	log_warning("agent", "%s/" SOCKET_NAME " was removed by another program; created again",
		    a->settings->run_dir);
	serve_free(TAKE(a->serve));
	if (open_socket(a, &err) < 0) {
		log_error("agent", "%s", err.text);
		return sd_event_exit(a->event, -EIO);
	}
	return 0;
}

static int watch_socket(struct agent *a)
{
	int r = sd_event_add_inotify(a->event, &a->socket_watch, a->settings->run_dir,
				     IN_DELETE | IN_MOVED_FROM | IN_CREATE | IN_MOVED_TO,
				     on_run_dir, a);

	return r < 0 ? r : 0;
}

/* --- the start, in its order -------------------------------------------------------------------- */

static int make_keys(struct agent *a)
{
	char relative[KEY_TEXT];
	int r = key_node(relative, a->identity.name);

	r = r ?: key_full(a->settings->etcd.prefix, relative, a->node_key);
	r = r ?: key_status_node(relative, a->identity.name);
	return r ?: key_full(a->settings->etcd.prefix, relative, a->status_key);
}

static int open_leases(struct agent *a, struct err *err)
{
	const struct settings *s = a->settings;
	const struct prefix *own = a->identity.ipv4.address.family ? &a->identity.ipv4
								   : &a->identity.ipv6;
	struct lease_store_options o = {
		.servers = s->lease.servers,
		.network = s->lease.network,
		.prefix = s->etcd.prefix,
		.node = a->identity.name,
		.address = own->address,
		.tls = { .cacert = s->lease.cacert, .cert = s->lease.cert, .key = s->lease.key },
		.minute_ms = s->minute,
		.in_use = block_in_use,
		.arg = a,
	};

	a->server = "lease-server";
	return lease_store_new(a->event, &o, &a->store, err);
}

static int open_etcd(struct agent *a, struct err *warning, struct err *err)
{
	a->server = "etcd";
	store_check_transport(&a->settings->etcd, a->health);
	return store_open(a->event, &a->settings->etcd, a->identity.name, &a->store, warning, err);
}

static int open_store(struct agent *a, struct err *err)
{
	struct err warning = { "" };
	int r = a->settings->lease.servers[0] ? open_leases(a, err) : open_etcd(a, &warning, err);

	if (r < 0)
		return r;
	if (warning.text[0])
		log_warning("agent", "%s", warning.text);
	store_on_notice(a->store, on_notice, a);
	return 0;
}
static int open_kernel(struct agent *a, struct err *err)
{
	const struct kernel_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.minute = a->settings->minute,
		.desire = desire,
		.protect = protect,
		.link_gone = link_gone,
		.changed = changed,
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

static int open_firewall(struct agent *a)
{
	const struct settings *s = a->settings;
	struct firewall_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.library = s->nftables_library,
		.minute = s->minute,
		.desire = desire_firewall,
		.changed = changed,
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
		.bird_socket = s->bird_socket,
		.bird_config = s->bird_config,
		.bird_program = s->bird_program,
		.template_dir = s->template_dir,
		.secret_dirs = s->secret_dirs,
		.blocks = own_blocks,
		.silent = is_silent,
		.kernel = a->kernel,
		.changed = changed,
		.refreshed = api_answer_live,
		.arg = a,
	};

	return settings_bird(s) ? routing_new(&o, &a->routing, err) : 0;
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
		.fence = fence,
		.fence_moved = fence_moved,
		.reason = why_unregistered,
		.promise = promise,
		.set_promise = set_promise,
		.set_recovery = set_recovery,
		.changed = changed,
		.routes_changed = routes_changed,
		.known = addresses_known,
		.mtu = pod_mtu,
		.tunnel_changed = tunnel_changed,
		.accepted = accepted,
		.refuses = refuses,
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
		.pools = pools,
		.changed = changed,
		.arg = a,
	};
	int r = identity_endpoints(settings_servers(a->settings), &o.endpoints);

	r = r ?: static_routes_new(&o, &a->statics, err);
	free(o.endpoints.v);
	return r;
}

static int open_overlay(struct agent *a, struct err *err)
{
	const struct overlay_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.records = a->records,
		.ipam = a->ipam,
		.kernel = a->kernel,
		.run_dir = a->settings->run_dir,
		.changed = overlay_changed,
		.arg = a,
	};

	return overlay_new(&o, &a->overlay, err);
}

static int open_checks(struct agent *a)
{
	const struct checks_options o = {
		.timers = a->timers,
		.health = a->health,
		.records = a->records,
		.kernel = a->kernel,
		.ipam = a->ipam,
		.identity = &a->identity,
		.configured = *a->settings->address,
	};

	return checks_new(&o, &a->checks);
}

static int open_monitor(struct agent *a)
{
	struct monitor_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.address = a->settings->metrics,
		.arg = a,
	};

	o.routes = api_monitor_routes(&o.n_routes);
	return *a->settings->metrics ? monitor_new(&o, &a->monitor) : 0;
}

static int start(struct agent *a, struct err *err)
{
	static const struct lifecycle_handlers handlers = { on_stop, on_reload };
	int r = lock_take(a->settings->run_dir, NULL, &a->lock, err);

	if (r < 0)
		return r;
	/* Early: the child keeps what the agent holds now. */
	r = reaper_new(&a->reaper);
	r = r < 0 ? r : sd_event_default(&a->event);
	r = r < 0 ? r : lifecycle_new(a->event, &handlers, a, &a->lifecycle);
	r = r < 0 ? r : timers_loop_new(a->event, &a->timers);
	if (r >= 0)
		status_watch_init(&a->status_watch, a->timers, api_answer_status, a);
	r = r < 0 ? r : health_new(changed, a, &a->health);
	r = r < 0 ? r : identify(a, err);
	r = r < 0 ? r : make_keys(a);
	r = r < 0 ? r : open_store(a, err);
	r = r < 0 ? r
		  : certificates_new(a->timers, a->health, a->store,
				     *a->settings->lease.servers ? a->settings->lease.cert
								 : a->settings->etcd.cert,
				     &a->certificates);
	r = r < 0 ? r
		  : network_config_new(
			    &(struct network_config_options){
				    .event = a->event,
				    .timers = a->timers,
				    .health = a->health,
				    .conf_dir = a->settings->cni_conf_dir,
				    .bin_dirs = a->settings->cni_bin_dir,
				    .minute = a->settings->minute,
			    },
			    &a->network_config);
	r = r < 0 ? r : open_kernel(a, err);
	r = r < 0 ? r : open_records(a);
	r = r < 0 ? r : open_addresses(a, err);
	r = r < 0 ? r : open_firewall(a);
	r = r < 0 ? r : open_routing(a, err);
	r = r < 0 ? r : open_overlay(a, err);
	r = r < 0 ? r : open_statics(a, err);
	r = r < 0 ? r : open_checks(a);
	r = r < 0 ? r : open_socket(a, err);
	r = r < 0 ? r : watch_socket(a);
	r = r < 0 ? r : open_monitor(a);
	if (r < 0)
		return r;
	/* From here on the socket answers, be it with the reason why there is no address yet. */
	lifecycle_ready(a->lifecycle);
	a->identify = (struct timer){ .fn = on_identify, .arg = a };
	return a->identified ? start_registration(a) : 0;
}

int agent_new(struct settings *settings, int argc, char *const *argv, struct agent **ret,
	      struct err *err)
{
	AUTO(agent_free) struct agent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->settings = settings;
	a->argc = argc;
	a->argv = argv;
	a->lock = (struct lock)LOCK_NONE;
	/* Exact: a restart within the second must not look like the same agent, whose fence stands.
	 */
	clock_utc_exact(a->started);
	r = start(a, err);
	if (r < 0)
		return err->text[0] ? r : err_set(err, r, "%s", strerror(-r));
	*ret = TAKE(a);
	return 0;
}

int agent_run(struct agent *a)
{
	return sd_event_loop(a->event);
}

/*
 * In the reverse order of their making, and each is out of the agent before it is freed: what a
 * part stands on is there until its end, and what stands on it is NULL for the callbacks, as it was
 * when the part was made.
 */
void agent_free(struct agent *a)
{
	if (!a)
		return;
	if (a->timers)
		timer_clear(a->timers, &a->identify);
	register_free(TAKE(a->registration));
	report_free(TAKE(a->report));
	monitor_free(TAKE(a->monitor));
	a->socket_watch = sd_event_source_disable_unref(a->socket_watch);
	serve_free(TAKE(a->serve));
	checks_free(TAKE(a->checks));
	static_routes_free(TAKE(a->statics));
	overlay_free(TAKE(a->overlay));
	routing_free(TAKE(a->routing));
	firewall_free(TAKE(a->firewall));
	ipam_free(TAKE(a->ipam));
	records_free(TAKE(a->records));
	kernel_free(TAKE(a->kernel));
	reaper_free(TAKE(a->reaper));
	network_config_free(TAKE(a->network_config));
	certificates_free(TAKE(a->certificates));
	store_free(TAKE(a->store));
	health_free(TAKE(a->health));
	status_watch_done(&a->status_watch);
	timers_loop_free(TAKE(a->timers));
	lifecycle_free(TAKE(a->lifecycle));
	sd_event_unref(TAKE(a->event));
	lock_drop(&a->lock);
	free(a);
}
