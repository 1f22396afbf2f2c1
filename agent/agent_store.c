/* SPDX-License-Identifier: Apache-2.0 */
/* The agent towards etcd, or the server of leases: who this node is, and that it is registered. */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "agent/agent_parts.h"
#include "agent/node/pin.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/daemon/program.h"
#include "lib/lease/lease_store.h"

/* --- etcd ----------------------------------------------------------------------------------- */

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
			"see to %s, or to the way there (--%s %s)",
			store_server(a->store), text, store_server(a->store), a->server,
			settings_servers(a->settings));
		certificates_look(a->certificates);
	} else {
		log_error(a->server, "%s; everything is read anew", text);
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
	agent_changed(a);
}

const struct fence *agent_fence(void *arg)
{
	struct agent *a = arg;

	return a->registration ? register_fence(a->registration) : NULL;
}

void agent_fence_moved(int64_t revision, void *arg)
{
	struct agent *a = arg;

	if (a->registration)
		register_raised(a->registration, revision);
}

uint64_t agent_silence(const struct agent *a)
{
	struct store_stats stats;

	store_stats(a->store, &stats);
	return stats.heard ? clock_monotonic_us() - stats.heard : UINT64_MAX;
}

const char *agent_why_unregistered(void *arg)
{
	struct agent *a = arg;

	if (!a->connected && a->etcd_error[0])
		return a->etcd_error;
	if (a->registration)
		return register_reason(a->registration);
	return health_reason(a->health, "address") ?: "this node's address is not chosen yet";
}

uint32_t agent_promise(void *arg)
{
	struct agent *a = arg;

	return a->registration ? register_promise(a->registration) : 0;
}

int agent_set_promise(uint32_t seconds, void *arg)
{
	struct agent *a = arg;

	return register_set_promise(a->registration, seconds);
}

int agent_set_recovery(const char *id, void *arg)
{
	struct agent *a = arg;

	return a->registration ? register_set_recovery(a->registration, id) : -ENOTCONN;
}

/* --- registration --------------------------------------------------------------------------- */

static void on_registered(const struct fence *f, void *arg)
{
	struct agent *a = arg;

	report_set_fence(a->report, f->create_revision);
	ipam_registered(a->ipam);
	static_routes_registered(a->statics, f);
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
	agent_accepted(a);
}

void agent_accepted(void *arg)
{
	struct agent *a = arg;

	ipam_retry(a->ipam);
	if (a->report)
		report_retry(a->report);
	if (a->statics)
		static_routes_retry(a->statics);
}

int agent_start_registration(struct agent *a)
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
		.build = agent_report,
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

/* --- who we are ----------------------------------------------------------------------------- */

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

void agent_on_identify(void *arg)
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
	r = agent_start_registration(a);
	if (r < 0) {
		log_error("agent", "registration: %s", strerror(-r));
		sd_event_exit(a->event, r);
	}
}

int agent_identify(struct agent *a, struct err *err)
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

/* --- opening it ---------------------------------------------------------------------------- */

static bool block_in_use(const char *network, const struct prefix *block, void *arg)
{
	const struct agent *a = arg;

	return a->ipam && ipam_uses(a->ipam, network, block);
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
	return store_open(a->event, &a->settings->etcd, a->identity.name, &a->store, warning, err);
}

int agent_open_store(struct agent *a, struct err *err)
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
