/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_parts.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/lock.h"
#include "agent/pin.h"
#include "agent/reaper.h"
#include "lib/clock.h"
#include "lib/files.h"
#include "lib/log.h"
#include "lib/store_open.h"

#define SOCKET_NAME "agent.sock"

/* --- status --------------------------------------------------------------------------------- */

static void choose_log_level(const struct agent *a)
{
	log_set_level(ipam_log_level(a->ipam, a->settings->log_level));
}

void agent_changed(void *arg)
{
	struct agent *a = arg;

	if (a->ipam)
		choose_log_level(a);
	if (a->report)
		report_changed(a->report);
}

/* --- etcd ----------------------------------------------------------------------------------- */

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	struct agent *a = arg;

	if (notice == STORE_WATCHING) {
		a->connected = true;
		a->etcd_error[0] = '\0';
		/* Reading lists took memory that is not needed again. */
		malloc_trim(0);
		health_clear(a->health, "etcd");
		certificates_look(a->certificates);
		log_info("etcd", "%s", text);
	} else if (notice == STORE_TROUBLE) {
		a->connected = false;
		snprintf(a->etcd_error, sizeof(a->etcd_error), "%s", text);
		health_set(
			a->health, "etcd", LOG_LEVEL_WARNING,
			"etcd is out of reach: %s; pods go on, and new ones get addresses of this "
			"node's own blocks for as long as config's reclaimAfter less ten minutes: "
			"see to etcd, or to the way there (--etcd %s)",
			text, a->settings->etcd.endpoints);
		certificates_look(a->certificates);
	} else {
		log_error("etcd", "%s; everything is read anew", text);
	}
	if (a->registration)
		register_notice(a->registration, notice, text);
	ipam_notice(a->ipam, notice);
	route_records_notice(a->records, notice);
	if (a->report && notice == STORE_WATCHING)
		report_kick(a->report);
	/* Now the pools are known, and the node's address can be chosen among the others. */
	if (notice == STORE_WATCHING && !a->compared)
		timer_set(a->timers, &a->identify, 0, 0);
	agent_changed(a);
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

uint64_t agent_silence(const struct agent *a)
{
	struct store_etcd_stats stats;

	store_etcd_stats(a->store, &stats);
	return stats.heard ? clock_monotonic_us() - stats.heard : UINT64_MAX;
}

static uint64_t silence(void *arg)
{
	return agent_silence(arg);
}

/* --- registration --------------------------------------------------------------------------- */

static void on_registered(const struct fence *f, void *arg)
{
	struct agent *a = arg;

	report_set_fence(a->report, f->create_revision);
	ipam_registered(a->ipam);
	lifecycle_status(a->lifecycle, "registered as %s", a->identity.name);
}

static void on_unregistered(const char *why, void *arg)
{
	struct agent *a = arg;

	report_set_fence(a->report, 0);
	lifecycle_status(a->lifecycle, "not registered: %s", why);
}

static void on_removed(const struct node_removed *removed, void *arg)
{
	struct agent *a = arg;

	ipam_removed(a->ipam, removed != NULL);
}

static void report_trouble(const char *text, void *arg)
{
	struct agent *a = arg;

	if (text[0])
		health_set(a->health, "status", LOG_LEVEL_WARNING, "%s", text);
	else
		health_clear(a->health, "status");
}

static int start_registration(struct agent *a)
{
	static const struct register_handlers handlers = { on_registered, on_unregistered,
							   on_removed };
	struct node node = {
		.name = a->identity.name,
		.ipv4 = a->identity.ipv4,
		.ipv6 = a->identity.ipv6,
		.machine = a->identity.machine,
		.boot = a->identity.boot,
		.agent = { .version = ROOST_VERSION },
	};
	struct register_options registration = {
		a->store, a->timers, a->health, a->settings->etcd.prefix, &node, &handlers, a,
	};
	struct report_options report = {
		a->store, a->timers, a->status_key, a->node_key, agent_report, report_trouble, a,
	};
	int r;

	memcpy(node.agent.started, a->started, sizeof(a->started));
	if (a->routing)
		routing_set_self(a->routing, &a->identity);
	overlay_set_self(a->overlay, &a->identity);
	r = report_new(&report, &a->report);
	return r ?: register_new(&registration, &a->registration);
}

/* --- who we are ----------------------------------------------------------------------------- */

static int choose(struct agent *a, struct identity *ret, struct err *err)
{
	AUTO(identity_candidates_done) struct identity_candidates candidates = { 0 };
	AUTO(free) struct prefix *pools = NULL;
	size_t n = 0;
	int r = 0;

	if (a->settings->address[0])
		r = identity_configured(a->settings->address, &candidates, err);
	r = r ?: identity_gather(a->settings->etcd.endpoints, &candidates, err);
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
		health_set(a->health, "address", LOG_LEVEL_ERROR,
			   "no address for this node: %s; give one with --address", err.text);
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
		log_warning("agent", "%s; the node's address is chosen anew", err->text);
	else if (r < 0)
		return r;
	a->identified = r > 0;
	if (a->identified)
		log_info("agent", "node %s, %s (pinned on this boot)", a->identity.name,
			 a->identity.reason);
	return 0;
}

/* --- life ----------------------------------------------------------------------------------- */

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
	(void)arg;
	if (taken)
		log_info("agent", "%s", sentence);
	else
		log_warning("agent", "%s", sentence);
}

static void on_reload(void *arg)
{
	AUTO(settings_done) struct settings fresh = { 0 };
	struct agent *a = arg;
	enum options_verb verb;
	struct err err = { "" };

	if (settings_load(a->argc, a->argv, environ, &fresh, &verb, &err) < 0) {
		log_error("agent", "reload: %s; everything stays as it was", err.text);
		return;
	}
	settings_take_over(a->settings, &fresh, told, a);
	choose_log_level(a);
	if (a->routing)
		routing_reload(a->routing);
}

static int open_store(struct agent *a, struct err *err)
{
	struct err warning;
	int r = store_open(a->event, &a->settings->etcd, a->identity.name, &a->store, &warning,
			   err);

	if (r < 0)
		return r;
	if (warning.text[0])
		log_warning("agent", "%s", warning.text);
	store_on_notice(a->store, on_notice, a);
	return 0;
}

static void answered(const char *path, unsigned status, uint64_t us, void *arg)
{
	struct agent *a = arg;

	request_stats_add(&a->requests, path, status, us);
}

static int open_socket(struct agent *a, struct err *err)
{
	struct serve_config config = {
		.arg = a,
		.answered = answered,
		.routes = api_routes(),
		.n_routes = api_n_routes(),
		/* Garbage collection lists every attachment of a node. */
		.max_body = 1024UL * 1024UL,
	};
	char path[512];
	int r;

	snprintf(path, sizeof(path), "%s/" SOCKET_NAME, a->settings->run_dir);
	r = serve_listen_unix(path, 0600, &config.fd);
	if (r == 0) {
		r = serve_new(a->event, &config, &a->serve);
		if (r < 0)
			close(config.fd);
	}
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

/* Somebody has cleaned up /run/roost: without the socket no pod could start. */
static int on_socket_removed(sd_event_source *source, const struct inotify_event *e, void *arg)
{
	struct agent *a = arg;
	struct err err = { "" };

	(void)source;
	if (!e->len || strcmp(e->name, SOCKET_NAME) != 0)
		return 0;
	log_warning("agent", "%s/" SOCKET_NAME " was removed by somebody and is made again",
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
				     IN_DELETE | IN_MOVED_FROM, on_socket_removed, a);

	return r < 0 ? r : 0;
}

/* --- addresses and links -------------------------------------------------------------------- */

static void routes_changed(bool blocks, void *arg)
{
	struct agent *a = arg;

	plug_routes_changed(a->plug);
	if (blocks && a->overlay)
		overlay_mark(a->overlay);
	if (blocks && a->routing)
		routing_blocks_changed(a->routing);
}

static void take_record(const char *key, const char *value, size_t len, void *arg)
{
	struct agent *a = arg;

	route_records_take(a->records, key, value, len);
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

static void kernel_first(void *arg)
{
	struct agent *a = arg;

	plug_now(a->plug);
}

static bool unplug(const struct attachment *attachment, void *arg)
{
	struct agent *a = arg;

	return plug_unplug(a->plug, attachment);
}

static void addresses_known(void *arg)
{
	struct agent *a = arg;

	a->addresses_known = true;
	overlay_mark(a->overlay);
	agent_open_when_known(a);
	if (a->routing)
		routing_inputs_known(a->routing);
}

uint32_t agent_mtu(struct agent *a)
{
	const struct address *ipv4 = &a->identity.ipv4.address;

	return plug_mtu(a->plug, ipv4->family ? ipv4 : &a->identity.ipv6.address);
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

	return identity_endpoints(a->settings->etcd.endpoints, ret);
}

static int open_links(struct agent *a, struct err *err)
{
	struct plug_options o = {
		.event = a->event,
		.timers = a->timers,
		.health = a->health,
		.minute = a->settings->minute,
		.protect = protect,
		.overlay = agent_desire_overlay,
		.changed = agent_changed,
		.arg = a,
	};

	return plug_new(&o, TAKE(a->reaper), &a->plug, err);
}

static void record_changed(enum route_kind kind, void *arg)
{
	struct agent *a = arg;

	if (a->routing && kind != ROUTE_BLOCK)
		routing_records_changed(a->routing);
	if (a->overlay && kind != ROUTE_PEER && kind != ROUTE_FILTER && kind != ROUTE_SPEC)
		overlay_mark(a->overlay);
}

/* If somebody deleted the key of a block that we use, it is claimed again at once. */
static void record_vanished(enum route_kind kind, const void *record, void *arg)
{
	const struct block_place *place = record;
	struct agent *a = arg;

	if (kind == ROUTE_BLOCK && strcmp(place->node, a->identity.name) == 0)
		ipam_look_at_blocks(a->ipam);
}

static int open_records(struct agent *a)
{
	const struct route_records_options o = {
		.store = a->store,
		.timers = a->timers,
		.health = a->health,
		.prefix = a->settings->etcd.prefix,
		.minute = a->settings->minute,
		.changed = record_changed,
		.vanished = record_vanished,
		.arg = a,
	};

	return route_records_new(&o, &a->records);
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
		.blocks = own_blocks,
		.silent = is_silent,
		.first = kernel_first,
		.changed = agent_changed,
		.arg = a,
	};

	return strcmp(s->bird_config, "none") == 0 ? 0 : routing_new(&o, &a->routing, err);
}

static bool announced(void *arg)
{
	const struct agent *a = arg;

	return a->report && report_stands(a->report);
}

static int open_addresses(struct agent *a, struct err *err)
{
	struct ipam_options o = {
		.event = a->event,
		.store = a->store,
		.timers = a->timers,
		.health = a->health,
		.prefix = a->settings->etcd.prefix,
		.node = a->identity.name,
		.boot = a->identity.boot,
		.run_dir = a->settings->run_dir,
		.minute = a->settings->minute,
		.fence = fence,
		.fence_moved = fence_moved,
		.silence = silence,
		.announced = announced,
		.changed = agent_changed,
		.record = take_record,
		.routes_changed = routes_changed,
		.unplug = unplug,
		.known = addresses_known,
		.mtu = pod_mtu,
		.tunnel_changed = agent_tunnel_changed,
		.arg = a,
	};
	int r = ipam_new(&o, &a->ipam, err);

	if (r == 0)
		plug_set_ipam(a->plug, a->ipam);
	return r;
}

static int make_keys(struct agent *a)
{
	char relative[KEY_TEXT];
	int r = key_node(relative, a->identity.name);

	r = r ?: key_full(a->settings->etcd.prefix, relative, a->node_key);
	r = r ?: key_status_node(relative, a->identity.name);
	return r ?: key_full(a->settings->etcd.prefix, relative, a->status_key);
}

static int start(struct agent *a, struct err *err)
{
	static const struct lifecycle_handlers handlers = { on_stop, on_reload };
	int r = lock_take(NULL, &a->lock, err);
	int run;

	if (r < 0)
		return r;
	run = dir_open(a->settings->run_dir);
	if (run < 0)
		return err_set(err, run, "%s: %s", a->settings->run_dir, strerror(-run));
	close(run);
	/* Early: the child keeps what the agent holds now. */
	r = reaper_new(&a->reaper);
	r = r < 0 ? r : sd_event_default(&a->event);
	r = r < 0 ? r : lifecycle_new(a->event, &handlers, a, &a->lifecycle);
	r = r < 0 ? r : timers_loop_new(a->event, &a->timers);
	r = r < 0 ? r : health_new(agent_changed, a, &a->health);
	r = r < 0 ? r : identify(a, err);
	r = r < 0 ? r : make_keys(a);
	r = r < 0 ? r : open_store(a, err);
	r = r < 0 ? r
		  : certificates_new(a->timers, a->health, a->store, a->settings->etcd.cert,
				     &a->certificates);
	r = r < 0 ? r : open_links(a, err);
	r = r < 0 ? r : open_records(a);
	r = r < 0 ? r : open_routing(a, err);
	r = r < 0 ? r : agent_open_overlay(a, err);
	r = r < 0 ? r : open_addresses(a, err);
	r = r < 0 ? r : open_socket(a, err);
	r = r < 0 ? r : watch_socket(a);
	if (r >= 0 && a->settings->metrics[0])
		r = monitor_new(
			&(struct monitor_options){
				.event = a->event,
				.timers = a->timers,
				.health = a->health,
				.address = a->settings->metrics,
				.routes = api_monitor_routes(),
				.n_routes = api_n_monitor_routes(),
				.arg = a,
			},
			&a->monitor);
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
	a->lock = -1;
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

void agent_free(struct agent *a)
{
	if (!a)
		return;
	if (a->timers)
		timer_clear(a->timers, &a->identify);
	register_free(a->registration);
	report_free(a->report);
	ipam_free(a->ipam);
	routing_free(a->routing);
	overlay_free(a->overlay);
	route_records_free(a->records);
	plug_free(a->plug);
	reaper_free(a->reaper);
	sd_event_source_disable_unref(a->socket_watch);
	monitor_free(a->monitor);
	certificates_free(a->certificates);
	serve_free(a->serve);
	store_free(a->store);
	health_free(a->health);
	timers_loop_free(a->timers);
	lifecycle_free(a->lifecycle);
	sd_event_unref(a->event);
	if (a->lock >= 0)
		close(a->lock);
	free(a);
}
