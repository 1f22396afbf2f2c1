/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold, judged from outside the programs.
 *
 * An address has a holder from the reply to its ADD until its DEL is sent, its machine reboots or
 * is switched off. It never has two. One exception: a machine whose status has been missing from
 * etcd for as long as its own record promised, and that the operator removed, a rival replaced, or
 * an exchanged etcd forgot, has forfeited the addresses that it gave before; not those it gives
 * after.
 *
 * A machine over leases forfeits the addresses of a block that it gave before its lease ran out,
 * once the lease is gone, and not while it is there. Where it has no lease it need not serve. After
 * an exchange of etcd it forfeits them when no server has confirmed its lease for as long as it may
 * count on that (docs/LEASES.md).
 */
#include <string.h>
#include <time.h>

#include "integration-tests/simulation/simulation.h"

bool machine_is(const struct machine *m, const char *node)
{
	return strcmp(m->over_leases ? m->holder : m->name, node) == 0;
}

/* --- what was forfeited --------------------------------------------------------------------- */

static bool is_silent_for_long(const struct machine *m)
{
	return !m->alive && sim.now - m->last_alive >= (int64_t)m->promise * SEC;
}

static void judge_life(struct machine *m)
{
	char key[KEY_FULL_TEXT], boot[48];
	const struct memory_kv *kv;
	const char *found;
	bool alive;

	snprintf(key, sizeof(key), SIM_PREFIX "node/%s", m->name);
	snprintf(boot, sizeof(boot), "\"%s\"", m->boot);
	kv = memory_find(&sim.etcd, key);
	alive = kv && strstr(kv->kv.value, boot);
	/* An agent whose record promises nothing counts on config. */
	if (alive && !strstr(kv->kv.value, "\"reclaimAfter\":"))
		kv = memory_find(&sim.etcd, SIM_PREFIX "config");
	found = alive && kv ? strstr(kv->kv.value, "\"reclaimAfter\":") : NULL;
	snprintf(key, sizeof(key), SIM_PREFIX "status/node/%s", m->name);
	alive = alive && memory_find(&sim.etcd, key);
	if (alive && m->condemned && is_silent_for_long(m))
		m->forfeit = sim.now;
	if (alive || m->alive)
		m->last_alive = sim.now;
	m->alive = alive;
	if (found && !strstr(found, "4h"))
		m->promise = (uint32_t)strtoul(found + strlen("\"reclaimAfter\":"), NULL, 10);
}

static int64_t expires_at(const struct block *block)
{
	struct tm t = { 0 };

	if (!block->lease.expires[0])
		return SIM_NEVER;
	if (!strptime(block->lease.expires, "%Y-%m-%dT%H:%M:%S", &t))
		abort();
	return ((int64_t)timegm(&t) - SIM_EPOCH) * SEC;
}

static size_t find_held(const struct machine *m, struct held_lease *ret)
{
	struct memory_kvs found;
	size_t n = 0;

	memory_range(&sim.etcd, SIM_PREFIX "block/", SIM_PREFIX "block0", &found);
	for (size_t i = 0; i < found.n && n < SIM_LEASES; i++) {
		const struct store_kv *kv = &found.v[i]->kv;
		AUTO_DONE(block_done) struct block block = { 0 };

		if (block_decode(kv->key + strlen(SIM_PREFIX), kv->value, kv->value_len, &block,
				 NULL) == 0 &&
		    machine_is(m, block.node))
			ret[n++] = (struct held_lease){ block.block, expires_at(&block) };
	}
	memory_kvs_done(&found);
	return n;
}

/* The lease is gone: those who had an address by it lose it, if it had run out. */
static void judge_lost(const struct machine *m, const struct held_lease *lost)
{
	char text[PREFIX_TEXT];

	world_say("%s (%s) has lost its lease of %s%s", m->run_dir, m->name,
		  prefix_print(&lost->block, text),
		  sim.now >= lost->expires ? ", which had run out" : "");
	for (size_t i = 0; i < sim.n_pods; i++) {
		struct pod *p = &sim.pods[i];

		if (p->live && p->machine == m && sim.now >= lost->expires &&
		    p->since < lost->expires && prefix_contains(&lost->block, &p->address))
			p->forfeited = true;
	}
}

static void judge_leases(struct machine *m)
{
	struct held_lease now[SIM_LEASES];
	size_t n = find_held(m, now);

	for (size_t i = 0; i < m->n_held; i++) {
		size_t j = 0;

		while (j < n && prefix_compare(&now[j].block, &m->held[i].block) != 0)
			j++;
		if (j == n)
			judge_lost(m, &m->held[i]);
	}
	memcpy(m->held, now, n * sizeof(*now));
	m->n_held = n;
}

void judge_confirmed(struct machine *m, int64_t sent)
{
	if (m->condemned && is_silent_for_long(m))
		m->forfeit = sim.now;
	if (sent > sim.exchanged)
		m->condemned = false;
	if (sent > m->last_alive)
		m->last_alive = sent;
}

void judge_changed(void)
{
	for (size_t i = 0; i < sim.n_machines; i++)
		if (sim.machines[i].over_leases)
			judge_leases(&sim.machines[i]);
		else
			judge_life(&sim.machines[i]);
}

static bool has_forfeited(const struct pod *p)
{
	const struct machine *m = p->machine;

	return p->since < m->forfeit || (m->condemned && is_silent_for_long(m));
}

/* --- two holders ---------------------------------------------------------------------------- */

void judge_granted(struct machine *m, const char *container, const struct address *address)
{
	char text[ADDRESS_TEXT];
	struct pod *mine = NULL;

	for (size_t i = 0; i < sim.n_pods; i++) {
		struct pod *p = &sim.pods[i];

		if (!p->live || address_compare(&p->address, address) != 0)
			continue;
		if (p->machine == m && strcmp(p->container, container) == 0)
			mine = p;
		else if (p->machine != m && (p->forfeited || has_forfeited(p)))
			p->forfeited = true;
		else
			world_wrong("%s has two holders: %s on %s (%s) since %lld s, %s on %s (%s)",
				    address_print(address, text), p->container, p->machine->run_dir,
				    p->machine->name, (long long)(p->since / SEC), container,
				    m->run_dir, m->name);
	}
	world_say("%s (%s) gives %s to %s", m->run_dir, m->name, address_print(address, text),
		  container);
	if (mine)
		return;
	for (size_t i = 0; i < sim.n_pods && !mine; i++)
		if (!sim.pods[i].live)
			mine = &sim.pods[i];
	if (!mine && sim.n_pods < SIM_PODS)
		mine = &sim.pods[sim.n_pods++];
	if (!mine) {
		world_wrong("more than %u pods", SIM_PODS);
		return;
	}
	*mine = (struct pod){ .machine = m, .address = *address, .since = sim.now, .live = true };
	snprintf(mine->container, sizeof(mine->container), "%s", container);
}

/* --- at the end ----------------------------------------------------------------------------- */

static bool pod_lives(const struct machine *m, const char *container)
{
	for (size_t i = 0; i < sim.n_pods; i++)
		if (sim.pods[i].live && sim.pods[i].machine == m &&
		    strcmp(sim.pods[i].container, container) == 0)
			return true;
	return false;
}

static void judge_agent(struct machine *m)
{
	const struct attachments *all = allocator_attachments(m->agent->ipam->allocator);
	struct process *before;
	struct err why = { "" };

	process_enter(m->agent, &before);
	/* Without a lease: every one may be taken. */
	if (!ipam_ready(m->agent->ipam, &why) && (!m->over_leases || m->n_held))
		world_wrong("%s still gives no address: %s", m->agent->label, why.text);
	process_leave(before);
	for (size_t i = 0; i < all->n; i++)
		if (!pod_lives(m, all->v[i]->container))
			world_wrong("%s holds an address for %s, which is gone", m->agent->label,
				    all->v[i]->container);
	for (size_t i = 0; i < sim.n_pods; i++) {
		const struct pod *p = &sim.pods[i];
		const struct attachment_key key = { "pods", p->container, "eth0" };

		if (p->live && p->machine == m && !allocator_find(m->agent->ipam->allocator, &key))
			world_wrong("%s has forgotten %s", m->agent->label, p->container);
	}
}

static const struct machine *machine_of(const char *name)
{
	for (size_t i = 0; i < sim.n_machines; i++)
		if (!sim.machines[i].off && machine_is(&sim.machines[i], name))
			return &sim.machines[i];
	return NULL;
}

static void judge_blocks(void)
{
	struct memory_kvs found;

	memory_range(&sim.etcd, SIM_PREFIX "block/", SIM_PREFIX "block0", &found);
	for (size_t i = 0; i < found.n; i++) {
		const struct store_kv *kv = &found.v[i]->kv;
		AUTO_DONE(block_done) struct block block = { 0 };
		const char *relative = kv->key + strlen(SIM_PREFIX);
		const struct machine *m;

		if (block_decode(relative, kv->value, kv->value_len, &block, NULL) < 0) {
			world_wrong("%s cannot be read: %s", relative, kv->value);
			continue;
		}
		m = machine_of(block.node);
		if (!m)
			world_wrong("%s belongs to %s, which is gone", relative, block.node);
		else if (m->agent && !ipam_owned_find(m->agent->ipam, block.network, &block.block))
			world_wrong("%s belongs to %s, which does not know it", relative,
				    block.node);
	}
	memory_kvs_done(&found);
}

static void judge_addresses(void)
{
	struct memory_kvs found;

	memory_range(&sim.etcd, SIM_PREFIX "host/", SIM_PREFIX "host0", &found);
	for (size_t i = 0; i < found.n; i++) {
		const struct store_kv *kv = &found.v[i]->kv;
		AUTO_DONE(address_record_done) struct address_record record = { 0 };
		const char *relative = kv->key + strlen(SIM_PREFIX);
		const struct machine *m;
		char node[NODE_NAME_TEXT];

		if (!strstr(relative, "/address/"))
			continue;
		snprintf(node, sizeof(node), "%.*s", (int)strcspn(relative + 5, "/"), relative + 5);
		m = machine_of(node);
		if (address_record_decode(relative, kv->value, kv->value_len, &record, NULL) < 0)
			world_wrong("%s cannot be read: %s", relative, kv->value);
		else if (!m)
			world_wrong("%s stays, but its node is gone", relative);
		else if (!pod_lives(m, record.container))
			world_wrong("%s stays for %s, which is gone", relative, record.container);
	}
	memory_kvs_done(&found);
}

static bool any_agent(void)
{
	for (size_t i = 0; i < sim.n_machines; i++)
		if (sim.machines[i].agent)
			return true;
	return false;
}

void judge_end(void)
{
	const struct memory_kv *recovery = memory_find(&sim.etcd, SIM_PREFIX "recovery");

	/* Nobody is there to end it: the next node that joins does. */
	if (recovery && any_agent() && !strstr(recovery->kv.value, "\"done\":true"))
		world_wrong("the recovery does not end: %s", recovery->kv.value);
	for (size_t i = 0; i < sim.n_machines; i++)
		if (sim.machines[i].agent)
			judge_agent(&sim.machines[i]);
	judge_blocks();
	judge_addresses();
}
