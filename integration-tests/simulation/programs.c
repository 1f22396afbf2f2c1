/* SPDX-License-Identifier: Apache-2.0 */
/* The programs, wired as agent/agent_store.c and controller/controller.c wire them. */
#include <string.h>

#include "integration-tests/simulation/simulation.h"
#include "lib/base/clock.h"
#include "lib/model/lease_holder.h"

static uint64_t now_ms(const struct timers *t)
{
	return clock_boottime_ns() / 1000000;
}

void process_enter(struct process *p, struct process **ret_before)
{
	*ret_before = sim.current;
	sim.current = p;
}

void process_leave(struct process *before)
{
	sim.current = before;
}

/* --- an agent ------------------------------------------------------------------------------- */

static void on_agent_notice(enum store_notice notice, const char *text, void *arg)
{
	struct process *p = arg;

	records_notice(p->records, notice);
	if (p->registration)
		register_notice(p->registration, notice, text);
	ipam_notice(p->ipam, notice);
	if (p->report && notice == STORE_WATCHING)
		report_kick(p->report);
}

static void on_registered(const struct fence *f, void *arg)
{
	struct process *p = arg;

	report_set_fence(p->report, f->create_revision);
	ipam_registered(p->ipam);
}

static void on_unregistered(const char *why, void *arg)
{
	struct process *p = arg;

	report_set_fence(p->report, 0);
}

static void on_lost(const char *why, void *arg)
{
	struct process *p = arg;

	ipam_lost(p->ipam);
}

static bool holds(void *arg)
{
	const struct process *p = arg;

	return ipam_holds(p->ipam);
}

static void on_removed(const struct node_removed *removed, void *arg)
{
	struct process *p = arg;

	ipam_removed(p->ipam, removed != NULL);
}

static int build_status(char **ret, void *arg)
{
	*ret = memory_must(strdup("{}"));
	return 0;
}

static void on_status_stands(void *arg)
{
	struct process *p = arg;

	ipam_look_at_blocks(p->ipam);
}

static void accepted(void *arg)
{
	struct process *p = arg;

	report_retry(p->report);
	ipam_retry(p->ipam);
}

static const struct fence *fence(void *arg)
{
	struct process *p = arg;

	return p->registration ? register_fence(p->registration) : NULL;
}

static void fence_moved(int64_t revision, void *arg)
{
	struct process *p = arg;

	register_raised(p->registration, revision);
}

static const char *reason(void *arg)
{
	struct process *p = arg;

	return p->registration ? register_reason(p->registration) : "";
}

static uint32_t promise(void *arg)
{
	struct process *p = arg;

	return p->registration ? register_promise(p->registration) : 0;
}

static int set_promise(uint32_t seconds, void *arg)
{
	struct process *p = arg;

	return register_set_promise(p->registration, seconds);
}

static int set_recovery(const char *id, void *arg)
{
	struct process *p = arg;

	return register_set_recovery(p->registration, id);
}

static void nothing(void *arg)
{
}

static void no_routes(bool blocks, void *arg)
{
}

static uint32_t no_mtu(bool encapsulated, void *arg)
{
	return 1500;
}

static struct process *process_new(struct machine *m, struct process **ret_before)
{
	struct process *p = memory_must(calloc(1, sizeof(*p)));

	p->machine = m;
	p->timers.now = now_ms;
	LIST_INIT(&p->timers.list);
	TAILQ_INIT(&p->waiting);
	TAILQ_INIT(&p->inbox);
	LIST_INIT(&p->sources);
	LIST_INIT(&p->calls);
	process_enter(p, ret_before);
	if (!m || !m->over_leases)
		p->store = sim_store_new(p);
	if (health_new(NULL, NULL, &p->health) < 0)
		abort();
	return p;
}

static bool block_in_use(const char *network, const struct prefix *block, void *arg)
{
	const struct process *p = arg;

	return p->ipam && ipam_uses(p->ipam, network, block);
}

static struct store *open_leases(struct process *p, const struct address *address)
{
	struct machine *m = p->machine;
	struct lease_store_options o = {
		.servers = "http://192.0.2.101:10253,http://192.0.2.102:10253",
		.network = "_",
		.prefix = SIM_PREFIX,
		.node = m->name,
		.minute_ms = 60000,
		.in_use = block_in_use,
		.arg = p,
	};
	struct err err = { "" };

	if (m->pinned)
		o.address = *address;
	m->pinned = true;
	if (lease_store_new(NULL, &o, &p->leases, &err) < 0)
		abort();
	return p->leases;
}

struct process *process_agent(struct machine *m)
{
	static const struct register_handlers handlers = { on_registered, on_unregistered, on_lost,
							   holds, on_removed };
	struct process *before, *p = process_new(m, &before);
	struct ipam_options addresses = {
		.timers = &p->timers,
		.health = p->health,
		.prefix = SIM_PREFIX,
		.node = m->name,
		.boot = m->boot,
		.run_dir = m->run_dir,
		.minute = 60000,
		.fence = fence,
		.fence_moved = fence_moved,
		.reason = reason,
		.promise = promise,
		.set_promise = set_promise,
		.set_recovery = set_recovery,
		.accepted = accepted,
		.changed = nothing,
		.routes_changed = no_routes,
		.known = nothing,
		.mtu = no_mtu,
		.tunnel_changed = nothing,
		.arg = p,
	};
	char relative[KEY_TEXT], status_key[KEY_FULL_TEXT], node_key[KEY_FULL_TEXT];
	const char *hardware[] = { m->mac };
	struct node node = {
		.name = m->name, .machine = m->id, .boot = m->boot, .agent = { .version = "0.1.0" }
	};
	struct register_options registration = {
		.timers = &p->timers,
		.health = p->health,
		.prefix = SIM_PREFIX,
		.minute = 60000,
		.node = &node,
		.handlers = &handlers,
		.arg = p,
	};
	struct report_options report = {
		.timers = &p->timers,
		.key = status_key,
		.node_key = node_key,
		.build = build_status,
		.stands = on_status_stands,
		.arg = p,
	};
	struct err err = { "" };

	snprintf(p->label, sizeof(p->label), "%s (%s)", m->run_dir, m->name);
	if (m->mac[0])
		node.hardware = (struct texts){ hardware, 1 };
	node.ipv4 = (struct prefix){ .length = 24 };
	snprintf(relative, sizeof(relative), "192.0.2.%u", m->index + 1);
	if (address_parse(relative, &node.ipv4.address) < 0)
		abort();
	addresses.store = m->over_leases ? open_leases(p, &node.ipv4.address)
					 : &p->store->memory.base;
	registration.store = report.store = addresses.store;
	if (records_new(&(struct records_options){ .store = addresses.store,
						   .timers = &p->timers,
						   .health = p->health,
						   .prefix = SIM_PREFIX,
						   .node = m->name,
						   .minute = 60000 },
			&p->records) < 0)
		abort();
	addresses.records = registration.records = p->records;
	clock_utc_exact(node.agent.started);
	if (key_node(relative, m->name) < 0 || key_full(SIM_PREFIX, relative, node_key) < 0 ||
	    key_status_node(relative, m->name) < 0 ||
	    key_full(SIM_PREFIX, relative, status_key) < 0)
		abort();
	store_on_notice(addresses.store, on_agent_notice, p);
	if (ipam_new(&addresses, &p->ipam, &err) < 0 || report_new(&report, &p->report) < 0 ||
	    register_new(&registration, &p->registration) < 0) {
		fprintf(stderr, "%s does not start: %s\n", p->label, err.text);
		abort();
	}
	process_leave(before);
	return p;
}

void process_take_request(struct process *p)
{
	struct serve_request *request = TAILQ_FIRST(&p->machine->socket);

	TAILQ_REMOVE(&p->machine->socket, request, entry);
	request->process = p;
	if (request->release)
		ipam_release(p->ipam, request);
	else
		ipam_assign(p->ipam, request);
}

/* --- a controller --------------------------------------------------------------------------- */

static void on_elected(int64_t token, void *arg)
{
	struct process *p = arg;

	if (keeper_start(p->keeper) < 0)
		abort();
}

static void on_deposed(const char *why, void *arg)
{
	struct process *p = arg;

	keeper_stop(p->keeper);
}

static void on_controller_notice(enum store_notice notice, const char *text, void *arg)
{
	struct process *p = arg;

	if (notice == STORE_CLUSTER_CHANGED || notice == STORE_REVISION_WENT_BACK)
		keeper_went_back(p->keeper);
	elect_notice(p->elect, notice, text);
	lease_server_notice(p->lease_server, notice);
}

static void mark(void *arg)
{
	struct process *p = arg;

	pass_mark(p->pass);
}

static int keep(void *arg)
{
	struct process *p = arg;

	return keeper_pass(p->keeper);
}

struct process *process_controller(unsigned which)
{
	static const struct elect_handlers handlers = { .elected = on_elected,
							.deposed = on_deposed };
	struct process *before, *p = process_new(NULL, &before);
	struct elect_options election = {
		.store = &p->store->memory.base,
		.timers = &p->timers,
		.prefix = SIM_PREFIX,
		.id = p->id,
		.address = "",
		.ttl = 15,
		.handlers = &handlers,
		.arg = p,
	};
	struct keeper_options keeping = {
		.store = election.store,
		.timers = &p->timers,
		.health = p->health,
		.prefix = SIM_PREFIX,
		.minute = 60000,
		.changed = mark,
		.arg = p,
	};
	struct lease_server_options leases = {
		.timers = &p->timers,
		.health = p->health,
		.store = election.store,
		.prefix = SIM_PREFIX,
		.listen = which ? "192.0.2.102:10253" : "192.0.2.101:10253",
		.files = { "", "", "", "" },
		.ttl = sim.lease_ttl,
		.operators = "",
		.quota = 2,
	};
	struct err err = { "" };
	struct pass *pass;

	snprintf(p->label, sizeof(p->label), "controller %u", which);
	snprintf(p->id, sizeof(p->id), "c%u-%08llx", which,
		 (unsigned long long)(chance_next(&sim.chance) >> 32));
	if (pass_new(NULL, keep, p, &pass) < 0 || elect_new(&election, &p->elect) < 0)
		abort();
	keeping.elect = p->elect;
	if (keeper_new(&keeping, &p->keeper) < 0)
		abort();
	pass_open(pass, true);
	if (sim.lease_ttl && lease_server_new(&leases, &p->lease_server, &err) < 0)
		abort();
	store_on_notice(election.store, on_controller_notice, p);
	process_leave(before);
	return p;
}

void machine_spool(struct machine *m, const char *container)
{
	if (m->n_spool < ARRAY_SIZE(m->spool))
		snprintf(m->spool[m->n_spool++], sizeof(m->spool[0]), "%s", container);
}

/* --- the end -------------------------------------------------------------------------------- */

/* Without a farewell: what it was sending may be applied yet, files stay as they are. */
void process_kill(struct process *p)
{
	struct process *before;
	struct serve_request *request;

	process_enter(p, &before);
	p->dying = true;
	lease_server_free(p->lease_server);
	keeper_free(p->keeper);
	elect_free(p->elect);
	register_free(p->registration);
	report_free(p->report);
	if (p->machine) {
		ipam_free(p->ipam);
		records_free(p->records);
		while ((request = TAILQ_FIRST(&p->machine->socket))) {
			TAILQ_REMOVE(&p->machine->socket, request, entry);
			if (request->release)
				machine_spool(p->machine, request->container);
			free(request);
		}
	} else {
		pass_free(p->pass);
	}
	store_free(p->store ? &p->store->memory.base : p->leases);
	health_free(p->health);
	process_leave(before);
	free(p);
}
