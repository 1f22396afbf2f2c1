/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: whose turn it is, how time passes, and the faults of the plan. At each step one
 * program that has something to do is chosen by chance and does one thing. When none has, time
 * goes to the next deadline.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "integration-tests/simulation/simulation.h"
#include "lib/base/clock.h"
#include "lib/model/lease_holder.h"

struct simulation sim;

#define HORIZON (8 * 60 * MIN)
/* At the end: longer than every promise, and than what follows from its end. */
#define CALM        (5 * 60 * MIN)
#define MAX_STEPS   4000000
#define MOST_DEPTH  2
#define PODS_WANTED 10
/* Which of the values of FAULT_CONFIG. */
#define CONFIG_LONGEST 3
/* A deaf controller's connections are given up. */
#define SILENT 1
/* Chance of its own, so that a seed's other faults are the same with and without leases. */
#define LEASE_STREAM UINT64_C(0x6c656173ef)
/* And of its own again, so that only some seeds have other faults by it. */
#define CONFIG_STREAM UINT64_C(0x636f6e66ef)

/* --- chance --------------------------------------------------------------------------------- */

uint64_t chance_next(struct chance *c)
{
	uint64_t z = c->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint64_t chance_below(struct chance *c, uint64_t n)
{
	return n ? chance_next(c) % n : 0;
}

bool chance_once_in(struct chance *c, uint64_t n)
{
	return chance_below(c, n) == 0;
}

static uint64_t below(uint64_t n)
{
	return chance_below(&sim.chance, n);
}

static int64_t between(struct chance *c, int64_t low, int64_t high)
{
	return low + (int64_t)chance_below(c, (uint64_t)(high - low + 1));
}

/* --- the story ------------------------------------------------------------------------------ */

static FILE *story;
static char *story_text;
static size_t story_size;

void world_say(const char *fmt, ...)
{
	int64_t s = sim.now / SEC;
	va_list args;

	if (!story)
		return;
	fprintf(story, "%02lld:%02lld:%02lld.%03lld  ", (long long)(s / 3600),
		(long long)(s / 60 % 60), (long long)(s % 60), (long long)(sim.now / MS % 1000));
	va_start(args, fmt);
	vfprintf(story, fmt, args);
	va_end(args);
	fputc('\n', story);
}

void world_wrong(const char *fmt, ...)
{
	va_list args;

	if (sim.wrong)
		return;
	va_start(args, fmt);
	if (vasprintf(&sim.wrong, fmt, args) < 0)
		abort();
	va_end(args);
	world_say("WRONG: %s", sim.wrong);
}

char *world_story(void)
{
	return memory_must(strdup(story_text ?: ""));
}

static void log_to_story(const struct log_record *record)
{
	if (sim.verbose)
		world_say("  %s: %s %s: %s", sim.current ? sim.current->label : "-",
			  log_level_name(record->level), record->part, record->text);
}

/* --- the plan ------------------------------------------------------------------------------- */

static const struct {
	const char *word, *sentence;
} fault_names[FAULT_KINDS] = {
	[FAULT_CUT] = { "cut", "is cut off" },
	[FAULT_QUIET_CUT] = { "quiet-cut", "is cut off, unnoticed at first" },
	[FAULT_DEAF] = { "deaf", "hears nothing of etcd, which hears it" },
	[FAULT_STOP] = { "stop", "is stopped" },
	[FAULT_SLEEP] = { "sleep", "sleeps" },
	[FAULT_KILL] = { "kill", "is killed" },
	[FAULT_REBOOT] = { "reboot", "reboots" },
	[FAULT_REPLACE] = { "replace", "gets a rival: another machine of the same name" },
	[FAULT_CLONE] = { "clone", "gets a rival: a copy of its disk" },
	[FAULT_RENAME] = { "rename", "reboots with another name" },
	[FAULT_OFF] = { "off", "is switched off for good" },
	[FAULT_REMOVE] = { "remove", "is removed by the operator" },
	[FAULT_TAKE_BACK] = { "take-back", "is taken back by the operator" },
	[FAULT_SNAPSHOT] = { "snapshot", "a snapshot of etcd is taken" },
	[FAULT_RESTORE] = { "restore", "etcd is restored" },
	[FAULT_WIPE] = { "wipe", "etcd is emptied" },
	[FAULT_CONFIG] = { "config", "reclaimAfter is set" },
	[FAULT_BROKEN_CONFIG] = { "broken-config", "config is broken" },
	[FAULT_POOL] = { "pool", "the pool is edited" },
	[FAULT_LATE] = { "late", "the next writes stay in a stopped member of etcd" },
	[FAULT_WAKE] = { "wake", "the stopped member wakes" },
	[FAULT_LOSE] = { "lose", "the next replies of etcd are lost" },
	[FAULT_CONTROLLER_KILL] = { "controller-kill", "the controller is killed" },
	[FAULT_CONTROLLER_CUT] = { "controller-cut", "the controller is cut off" },
	[FAULT_CONTROLLER_STOP] = { "controller-stop", "the controller is stopped" },
	[FAULT_BURST] = { "burst", "has many ADDs at once" },
	[FAULT_INTERRUPT] = { "interrupt", "is stopped in the middle of its next ADD" },
	[FAULT_COMPACT] = { "compact", "etcd's history is compacted" },
};

static uint64_t allowed = UINT64_MAX;
static bool with_leases_wanted;

void world_with_leases(void)
{
	with_leases_wanted = true;
}

bool world_allow(const char *words)
{
	AUTO(free) char *copy = memory_must(strdup(words));
	char *rest = copy, *word;

	allowed = 0;
	while ((word = strsep(&rest, ","))) {
		unsigned kind = 0;

		while (kind < FAULT_KINDS && strcmp(fault_names[kind].word, word) != 0)
			kind++;
		if (kind == FAULT_KINDS) {
			fprintf(stderr, "there is no fault \"%s\"; there are:", word);
			for (kind = 0; kind < FAULT_KINDS; kind++)
				fprintf(stderr, " %s", fault_names[kind].word);
			fputc('\n', stderr);
			return false;
		}
		allowed |= UINT64_C(1) << kind;
	}
	return true;
}

static bool is_allowed(enum fault_kind kind)
{
	return allowed & (UINT64_C(1) << kind);
}

static void plan_add(struct chance *c, enum fault_kind kind, int64_t at, int64_t lasts,
		     unsigned who)
{
	struct fault *f = &sim.faults[sim.n_faults];

	if (sim.n_faults == SIM_FAULTS || !is_allowed(kind))
		return;
	sim.n_faults++;
	*f = (struct fault){
		.kind = kind, .at = at, .lasts = lasts, .who = who, .number = chance_next(c)
	};
}

static int64_t some_time(struct chance *c)
{
	switch (chance_below(c, 4)) {
	case 0:
		return between(c, SEC, 20 * SEC);
	case 1:
		return between(c, 20 * SEC, 3 * MIN);
	case 2:
		return between(c, 2 * MIN, 25 * MIN);
	default:
		return between(c, 15 * MIN, 170 * MIN);
	}
}

/* What belongs together, as it does in life: a fault, and what makes it dangerous. */
static void plan_one(struct chance *c)
{
	static const enum fault_kind away[] = { FAULT_CUT,   FAULT_QUIET_CUT, FAULT_STOP,
						FAULT_SLEEP, FAULT_INTERRUPT, FAULT_DEAF };
	enum fault_kind kind;
	int64_t at = between(c, 4 * MIN, HORIZON - 170 * MIN), lasts = some_time(c);
	unsigned who = (unsigned)chance_below(c, 64);

	do
		kind = chance_below(c, FAULT_KINDS);
	while (!is_allowed(kind));
	switch (kind) {
	case FAULT_REMOVE:
	case FAULT_REPLACE:
	case FAULT_CLONE:
	case FAULT_CONFIG:
		/* While it cannot know of it. */
		if (!chance_once_in(c, 4)) {
			plan_add(c, away[chance_below(c, ARRAY_SIZE(away))],
				 at - between(c, 0, 90 * SEC), between(c, 10 * MIN, 170 * MIN),
				 who);
			plan_add(c, FAULT_BURST, at + some_time(c), 0, who);
			plan_add(c, FAULT_BURST, at + some_time(c), 0, who + 1);
		}
		if (kind == FAULT_CONFIG && chance_once_in(c, 2))
			plan_add(c, FAULT_REMOVE, at + some_time(c) / 2, 0, who);
		break;
	case FAULT_RESTORE:
		plan_add(c, FAULT_SNAPSHOT, at - some_time(c), 0, 0);
		/* fall through */
	case FAULT_WIPE:
		plan_add(c, FAULT_BURST, at - between(c, 0, 3 * SEC), 0, who);
		plan_add(c, FAULT_BURST, at + between(c, 0, 20 * SEC), 0, who + 1);
		break;
	case FAULT_LATE:
		plan_add(c, FAULT_WAKE, at + some_time(c), 0, 0);
		break;
	case FAULT_INTERRUPT:
		plan_add(c, FAULT_BURST, at + SEC, 0, who);
		break;
	default:
		break;
	}
	plan_add(c, kind, at, lasts, who);
}

static int by_time(const void *a, const void *b)
{
	const struct fault *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* A machine is away until its lease has run out and others had the time to take the block; when it
 * comes back, there are pods that wait. */
static void plan_loss(struct chance *c, unsigned who)
{
	static const enum fault_kind away[] = { FAULT_STOP,      FAULT_SLEEP, FAULT_CUT,
						FAULT_QUIET_CUT, FAULT_DEAF,  FAULT_INTERRUPT };
	int64_t lasts = (sim.lease_ttl + 300) * SEC + between(c, 0, 40 * MIN);
	int64_t at = between(c, 4 * MIN, HORIZON - lasts - 10 * MIN);
	enum fault_kind kind = away[chance_below(c, ARRAY_SIZE(away))];

	plan_add(c, kind, at, lasts, who);
	if (kind == FAULT_INTERRUPT)
		plan_add(c, FAULT_BURST, at + SEC, 0, who);
	for (unsigned i = 1; i < sim.n_first; i++)
		plan_add(c, FAULT_BURST, at + lasts - between(c, 0, 30 * MIN), 0, who + i);
	plan_add(c, FAULT_BURST, at + lasts - between(c, 0, 30 * SEC), 0, who);
	/* Nor does it hear of that at once. */
	if (chance_once_in(c, 2))
		plan_add(c, FAULT_QUIET_CUT, at + lasts - between(c, 0, 5 * SEC), 2 * MIN, who);
}

/* A long promise, then a config that is shorter or cannot be read; meanwhile a machine that counts
 * on the promise is away and removed, and others have a use for its blocks. */
static void plan_promise(uint64_t seed)
{
	static const enum fault_kind away[] = { FAULT_CUT, FAULT_QUIET_CUT, FAULT_DEAF,
						FAULT_STOP };
	struct chance c = { seed ^ CONFIG_STREAM };
	int64_t at = between(&c, 30 * MIN, HORIZON - 170 * MIN);
	unsigned who = (unsigned)chance_below(&c, sim.n_first);
	bool broken = chance_once_in(&c, 2);
	size_t before = sim.n_faults;

	if (!chance_once_in(&c, 16))
		return;
	plan_add(&c, FAULT_CONFIG, at - between(&c, 5 * MIN, 20 * MIN), 0, 0);
	/* Unless there was no room for it, or it is not wanted. */
	if (sim.n_faults > before)
		sim.faults[before].number = CONFIG_LONGEST;
	plan_add(&c, away[chance_below(&c, ARRAY_SIZE(away))], at,
		 between(&c, 100 * MIN, 110 * MIN), who);
	plan_add(&c, broken ? FAULT_BROKEN_CONFIG : FAULT_CONFIG, at + between(&c, 0, 3 * MIN), 0,
		 0);
	plan_add(&c, FAULT_REMOVE, at + between(&c, 0, 3 * MIN), 0, who);
	for (unsigned i = 0; i < 3 * sim.n_first; i++)
		plan_add(&c, FAULT_BURST, at + between(&c, 66 * MIN, 100 * MIN), 0, who + i);
}

/* Which of the first machines are over leases, where they are wanted. */
static void plan_leases(uint64_t seed, bool *ret)
{
	static const uint32_t ttls[] = { 1800, 3600, 5400, 10800 };
	struct chance c = { seed ^ LEASE_STREAM };

	if (!with_leases_wanted)
		return;
	sim.lease_ttl = ttls[chance_below(&c, ARRAY_SIZE(ttls))];
	for (uint64_t n = 1 + chance_below(&c, 2); n > 0; n--) {
		unsigned who = (unsigned)chance_below(&c, sim.n_first);

		ret[who] = true;
		if (chance_once_in(&c, 2))
			plan_loss(&c, who);
	}
}

static void make_plan(uint64_t seed, const bool *left_out, bool *ret_over_leases)
{
	struct chance c = { seed * 2654435761 + 1 };
	unsigned n = 1 + (unsigned)chance_below(&c, 14);

	sim.n_first = 2 + chance_below(&c, 4);
	for (unsigned i = 0; i < n; i++)
		plan_one(&c);
	plan_promise(seed);
	plan_leases(seed, ret_over_leases);
	qsort(sim.faults, sim.n_faults, sizeof(*sim.faults), by_time);
	for (size_t i = 0; left_out && i < sim.n_faults; i++)
		sim.faults[i].left_out = left_out[i];
}

/* --- etcd's own ----------------------------------------------------------------------------- */

static void operator_op(const struct store_op *op)
{
	const struct store_txn txn = { .success = op, .n_success = 1 };
	struct memory_answer answer;

	memory_txn(&sim.etcd, &txn, &answer);
	memory_answer_done(&answer);
}

static void operator_put(const char *relative, const char *value)
{
	char key[KEY_FULL_TEXT];

	snprintf(key, sizeof(key), SIM_PREFIX "%s", relative);
	operator_op(&(struct store_op){
		.kind = STORE_PUT, .key = key, .value = value, .value_len = strlen(value) });
}

static void operator_delete(const char *relative)
{
	char key[KEY_FULL_TEXT];

	snprintf(key, sizeof(key), SIM_PREFIX "%s", relative);
	operator_op(&(struct store_op){ .kind = STORE_DELETE, .key = key });
}

#define OVERLAY(cidr, size)                                                                        \
	"{\"cidr\":\"" cidr "\",\"blockSize\":" size                                               \
	",\"cooldownSeconds\":0,\"encapsulation\":\"vxlan\"}"

static void put_pool(uint64_t number)
{
	static const char *const pools[] = {
		"{\"cidr\":\"10.1.0.0/26\",\"blockSize\":29,\"cooldownSeconds\":5}",
		"{\"cidr\":\"10.1.0.0/26\",\"blockSize\":30,\"cooldownSeconds\":0}",
		"{\"cidr\":\"10.1.0.0/27\",\"blockSize\":30,\"cooldownSeconds\":0}",
		"{\"cidr\":\"10.1.0.0/25\",\"blockSize\":29,\"cooldownSeconds\":30}",
	};
	/* Leases are of overlays; with fewer blocks, so that one which is lost has takers. */
	static const char *const overlays[] = {
		OVERLAY("10.1.0.0/26", "29"),
		OVERLAY("10.1.0.0/27", "29"),
		OVERLAY("10.1.0.0/27", "30"),
		OVERLAY("10.1.0.0/28", "30"),
	};

	operator_put("pool/web", (sim.lease_ttl ? overlays : pools)[number % ARRAY_SIZE(pools)]);
}

static void each_store(void (*fn)(struct sim_store *s))
{
	for (size_t i = 0; i < sim.n_machines; i++)
		if (sim.machines[i].agent && sim.machines[i].agent->store)
			fn(sim.machines[i].agent->store);
	for (size_t i = 0; i < SIM_CONTROLLERS; i++)
		if (sim.controllers[i].process)
			fn(sim.controllers[i].process->store);
}

static void say_keys(const char *when)
{
	for (size_t i = 0; sim.verbose && i < sim.etcd.keys.n; i++)
		world_say("  %s: %s at %lld: %s", when, sim.etcd.keys.v[i]->kv.key,
			  (long long)sim.etcd.keys.v[i]->kv.mod_revision,
			  sim.etcd.keys.v[i]->kv.value);
}

static void exchange_etcd(const struct memory_etcd *by)
{
	int64_t now = sim.etcd.now;

	say_keys("before");
	memory_etcd_done(&sim.etcd);
	if (by)
		memory_etcd_copy(&sim.etcd, by);
	else
		memory_etcd_init(&sim.etcd);
	sim.etcd.now = now;
	/* Restored leases get their whole time again. */
	for (size_t i = 0; i < sim.etcd.n_leases; i++)
		sim.etcd.leases[i].expires = now + sim.etcd.leases[i].ttl;
	sim.era++;
	sim.exchanged = sim.now;
	say_keys("after");
	sim_members_wake(false);
	for (size_t i = 0; i < sim.n_machines; i++)
		sim.machines[i].condemned = true;
	each_store(sim_store_break);
}

static void changed(struct sim_store *s)
{
	if (s->memory.online && s->memory.following)
		memory_changed(&s->memory);
}

/* Watches hear of what others wrote; history that all have seen is forgotten. */
static void spread(void)
{
	if (sim.etcd.revision == sim.spread && sim.era == sim.spread_era)
		return;
	sim.spread = sim.etcd.revision;
	sim.spread_era = sim.era;
	each_store(changed);
	judge_changed();
}

/* --- machines ------------------------------------------------------------------------------- */

static void name_boot(struct machine *m)
{
	snprintf(m->boot, sizeof(m->boot), "boot-%u-%u", m->index, m->boots);
}

static struct machine *machine_add(const char *name, const char *id, bool mac)
{
	struct machine *m = &sim.machines[sim.n_machines];

	if (sim.n_machines == SIM_MACHINES)
		return NULL;
	*m = (struct machine){ .index = (unsigned)sim.n_machines, .promise = 3600 };
	sim.n_machines++;
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->run_dir, sizeof(m->run_dir), "m%u", m->index);
	if (id)
		snprintf(m->id, sizeof(m->id), "%s", id);
	else
		snprintf(m->id, sizeof(m->id), "machine-%u", m->index);
	if (mac)
		snprintf(m->mac, sizeof(m->mac), "mac:02:00:00:00:00:%02x", m->index);
	name_boot(m);
	TAILQ_INIT(&m->socket);
	m->booted = sim.now - (int64_t)below(600) * SEC;
	m->restart = sim.now + (int64_t)below(3000) * MS;
	m->client_due = sim.now + (int64_t)below(60) * SEC;
	m->target = (unsigned)below(PODS_WANTED);
	m->last_alive = sim.now;
	return m;
}

/* Its agent has no credentials for etcd. */
static void over_leases(struct machine *m)
{
	struct address address;
	char text[ADDRESS_TEXT];

	snprintf(text, sizeof(text), "192.0.2.%u", m->index + 1);
	if (address_parse(text, &address) < 0)
		abort();
	m->over_leases = true;
	lease_holder_name(&address, m->holder);
}

static void forget_files(struct machine *m)
{
	while (m->n_attachments)
		attachment_free(m->attachments[--m->n_attachments]);
	m->n_blocks = m->n_released = m->n_spool = 0;
	free(TAKE(m->records));
}

static void agent_kill(struct machine *m, int64_t again)
{
	if (m->agent)
		process_kill(TAKE(m->agent));
	/* Not before it is up. */
	m->restart = again > m->booted ? again : m->booted;
}

static void pods_die(const struct machine *m)
{
	for (size_t i = 0; i < sim.n_pods; i++)
		if (sim.pods[i].machine == m)
			sim.pods[i].live = false;
}

static void reboot(struct machine *m, int64_t takes)
{
	agent_kill(m, sim.now + takes);
	pods_die(m);
	forget_files(m);
	m->boots++;
	name_boot(m);
	m->booted = sim.now + takes;
	m->slept = 0;
	m->sleeps = m->pinned = false;
	m->client_due = sim.now + takes;
}

static void start_agents(void)
{
	for (size_t i = 0; i < sim.n_machines; i++) {
		struct machine *m = &sim.machines[i];

		if (m->agent || m->off || m->restart > sim.now)
			continue;
		m->agent = process_agent(m);
		if (m->net != NET_WHOLE && m->agent->store)
			sim_store_connect(m->agent->store, m->net);
	}
	for (unsigned i = 0; i < SIM_CONTROLLERS; i++) {
		struct controller_place *c = &sim.controllers[i];

		if (c->process || c->restart > sim.now)
			continue;
		c->process = process_controller(i);
		if (c->net != NET_WHOLE)
			sim_store_connect(c->process->store, c->net);
	}
}

static bool is_busy(const struct machine *m)
{
	return m->agent && m->agent->busy;
}

/* --- clients -------------------------------------------------------------------------------- */

static void request(struct machine *m, bool release, const char *container)
{
	struct serve_request *q;

	if (!m->agent) {
		if (release)
			machine_spool(m, container);
		return;
	}
	q = memory_must(calloc(1, sizeof(*q)));
	q->machine = m;
	q->release = release;
	snprintf(q->container, sizeof(q->container), "%s", container);
	snprintf(q->body, sizeof(q->body),
		 "{\"network\":\"pods\",\"container\":\"%s\",\"interface\":\"eth0\"}", container);
	TAILQ_INSERT_TAIL(&m->socket, q, entry);
}

static void add_pod(struct machine *m)
{
	char container[24];

	snprintf(container, sizeof(container), "c%u", ++sim.containers);
	request(m, false, container);
}

static unsigned count_pods(const struct machine *m, struct pod **ret_one)
{
	unsigned n = 0;

	for (size_t i = 0; i < sim.n_pods; i++)
		if (sim.pods[i].machine == m && sim.pods[i].live && ++n && below(n) == 0)
			*ret_one = &sim.pods[i];
	return n;
}

static void client(struct machine *m)
{
	struct pod *one = NULL;
	unsigned n = count_pods(m, &one);

	m->client_due = sim.now +
			(int64_t)below(chance_once_in(&sim.chance, 3) ? 5 * MIN : 20 * SEC);
	if (below(20) == 0)
		m->target = (unsigned)below(PODS_WANTED);
	if (n < m->target && !sim.quiescent) {
		add_pod(m);
	} else if (n > m->target) {
		one->live = false;
		request(m, true, one->container);
	}
}

/* --- faults --------------------------------------------------------------------------------- */

static void ends_later(const struct fault *f, int64_t at)
{
	if (sim.n_ends == ARRAY_SIZE(sim.ends))
		return;
	sim.ends[sim.n_ends] = *f;
	sim.ends[sim.n_ends++].at = at;
}

static void set_net(struct machine *m, enum net net)
{
	m->net = net;
	if (m->agent && m->agent->store)
		sim_store_connect(m->agent->store, net);
	else if (m->agent && net == NET_CUT)
		wire_cut(m->agent);
}

static struct machine *living(unsigned who)
{
	for (size_t i = 0; i < sim.n_machines; i++) {
		struct machine *m = &sim.machines[(who + i) % sim.n_machines];

		if (!m->off)
			return m;
	}
	return &sim.machines[0];
}

static bool name_lives(const char *name)
{
	for (size_t i = 0; i < sim.n_machines; i++)
		if (!sim.machines[i].off && machine_is(&sim.machines[i], name))
			return true;
	return false;
}

static void operator_removes(const char *name)
{
	bool now = !name_lives(name);
	char key[KEY_TEXT];

	snprintf(key, sizeof(key), "removed/%s", name);
	operator_put(key, now ? "{\"by\":\"op\",\"now\":true}" : "{\"by\":\"op\"}");
	for (size_t i = 0; i < sim.n_machines; i++)
		if (machine_is(&sim.machines[i], name) && !sim.machines[i].over_leases)
			sim.machines[i].condemned = true;
}

static void rival(struct machine *m, bool clone)
{
	struct machine *other = machine_add(m->name, clone ? m->id : NULL, m->mac[0]);

	if (other && m->over_leases)
		over_leases(other);
	for (size_t i = 0; other && i < sim.n_machines && !m->over_leases; i++)
		if (machine_is(&sim.machines[i], m->name))
			sim.machines[i].condemned = true;
}

static void rename_machine(struct machine *m, uint64_t number)
{
	const struct machine *other = &sim.machines[number / 3 % sim.n_machines];

	reboot(m, 20 * SEC);
	if (number % 3 == 0 && other != m)
		snprintf(m->name, sizeof(m->name), "%s", other->name);
	else
		snprintf(m->name, sizeof(m->name), "x%u", (unsigned)(number % 97));
	for (size_t i = 0; i < sim.n_machines; i++)
		if (&sim.machines[i] != m && !m->over_leases &&
		    machine_is(&sim.machines[i], m->name))
			sim.machines[i].condemned = m->condemned = true;
}

static void etcd_fault(const struct fault *f)
{
	size_t at = f->number % ARRAY_SIZE(sim.snapshots);

	switch (f->kind) {
	case FAULT_SNAPSHOT:
		if (sim.has_snapshot[at])
			memory_etcd_done(&sim.snapshots[at]);
		memory_etcd_copy(&sim.snapshots[at], &sim.etcd);
		sim.has_snapshot[at] = true;
		break;
	case FAULT_RESTORE:
		for (size_t i = 0; i < ARRAY_SIZE(sim.snapshots); i++) {
			const size_t j = (at + i) % ARRAY_SIZE(sim.snapshots);

			if (!sim.has_snapshot[j])
				continue;
			exchange_etcd(&sim.snapshots[j]);
			break;
		}
		break;
	case FAULT_WIPE:
		exchange_etcd(NULL);
		ends_later(f, sim.now + f->lasts);
		break;
	case FAULT_CONFIG: {
		static const char *const values[] = {
			"{\"reclaimAfter\":900}", "{\"reclaimAfter\":1800}",
			"{\"reclaimAfter\":3600}", [CONFIG_LONGEST] = "{\"reclaimAfter\":7200}"
		};

		operator_put("config", values[f->number % ARRAY_SIZE(values)]);
		world_say("  %s", values[f->number % ARRAY_SIZE(values)]);
		break;
	}
	case FAULT_BROKEN_CONFIG:
		operator_put("config", "{\"reclaimAfter\":\"4h\"}");
		break;
	case FAULT_POOL:
		if (f->number % 5 == 0)
			operator_delete("pool/web");
		else
			put_pool(f->number);
		ends_later(f, sim.now + f->lasts);
		break;
	case FAULT_LATE:
		sim.late = 1 + f->number % 3;
		break;
	case FAULT_WAKE:
		sim_members_wake(true);
		break;
	case FAULT_LOSE:
		sim.lose = 1 + f->number % 4;
		break;
	case FAULT_COMPACT:
		sim.etcd.compacted = sim.etcd.revision;
		break;
	default:
		break;
	}
}

static void controller_fault(const struct fault *f)
{
	struct controller_place *c = &sim.controllers[f->who % SIM_CONTROLLERS];

	if (!c->process || c->process->busy)
		return;
	if (f->kind == FAULT_CONTROLLER_KILL) {
		process_kill(TAKE(c->process));
		c->restart = sim.now + f->lasts;
		return;
	}
	if (f->kind == FAULT_CONTROLLER_STOP) {
		c->process->stopped = true;
	} else {
		c->net = f->number % 3 ? NET_CUT : NET_DEAF;
		sim_store_connect(c->process->store, c->net);
		/* Who asks for leases is not given what it has not heard the end of. */
		if (sim.lease_ttl && c->net == NET_DEAF && f->lasts > 26 * SEC)
			ends_later(&(struct fault){ .kind = FAULT_CONTROLLER_CUT,
						    .who = f->who,
						    .number = SILENT },
				   sim.now + between(&sim.chance, SEC, 26 * SEC));
	}
	ends_later(&(struct fault){ .kind = f->kind, .who = f->who }, sim.now + f->lasts);
}

static void machine_fault(const struct fault *f)
{
	struct machine *m = living(f->who);

	world_say("%s (%s) %s", m->run_dir, m->name, fault_names[f->kind].sentence);
	switch (f->kind) {
	case FAULT_CUT:
		set_net(m, NET_CUT);
		break;
	case FAULT_QUIET_CUT:
		set_net(m, NET_QUIET);
		break;
	case FAULT_DEAF:
		set_net(m, NET_DEAF);
		break;
	case FAULT_SLEEP:
		m->sleeps = true;
		/* fall through */
	case FAULT_STOP:
		if (!m->agent || m->agent->stopped)
			return;
		m->agent->stopped = true;
		break;
	case FAULT_KILL:
		if (!is_busy(m))
			agent_kill(m, sim.now + f->lasts);
		return;
	case FAULT_REBOOT:
		if (!is_busy(m))
			reboot(m, 10 * SEC + f->lasts / 4);
		return;
	case FAULT_REPLACE:
	case FAULT_CLONE:
		rival(m, f->kind == FAULT_CLONE);
		return;
	case FAULT_RENAME:
		if (!is_busy(m))
			rename_machine(m, f->number);
		return;
	case FAULT_OFF:
		if (is_busy(m))
			return;
		agent_kill(m, SIM_NEVER);
		pods_die(m);
		forget_files(m);
		m->off = true;
		return;
	case FAULT_REMOVE:
		/* Also of one that is off. */
		operator_removes(sim.machines[f->who % sim.n_machines].name);
		return;
	case FAULT_TAKE_BACK: {
		char key[KEY_TEXT];

		snprintf(key, sizeof(key), "removed/%s", m->name);
		operator_delete(key);
		return;
	}
	case FAULT_BURST:
		for (unsigned i = 4 + f->number % 9; i > 0; i--)
			add_pod(m);
		return;
	case FAULT_INTERRUPT:
		sim.interrupt = true;
		return;
	default:
		return;
	}
	ends_later(&(struct fault){ .kind = f->kind, .who = m->index }, sim.now + f->lasts);
	/* A silent connection is given up after 26 s at most. */
	if (f->kind == FAULT_QUIET_CUT && f->lasts > 26 * SEC)
		ends_later(&(struct fault){ .kind = FAULT_QUIET_CUT, .who = m->index, .number = 1 },
			   sim.now + between(&sim.chance, SEC, 26 * SEC));
}

static void fault_do(const struct fault *f)
{
	switch (f->kind) {
	case FAULT_SNAPSHOT:
	case FAULT_RESTORE:
	case FAULT_WIPE:
	case FAULT_CONFIG:
	case FAULT_BROKEN_CONFIG:
	case FAULT_POOL:
	case FAULT_LATE:
	case FAULT_WAKE:
	case FAULT_LOSE:
	case FAULT_COMPACT:
		world_say("%s", fault_names[f->kind].sentence);
		etcd_fault(f);
		break;
	case FAULT_CONTROLLER_KILL:
	case FAULT_CONTROLLER_CUT:
	case FAULT_CONTROLLER_STOP:
		world_say("%s (%u)", fault_names[f->kind].sentence, f->who % SIM_CONTROLLERS);
		controller_fault(f);
		break;
	default:
		machine_fault(f);
	}
}

static void go_on(struct machine *m)
{
	world_say("%s (%s) goes on", m->run_dir, m->name);
	if (m->agent && !m->agent->busy)
		m->agent->stopped = false;
	m->sleeps = false;
}

static void fault_end(const struct fault *f)
{
	struct controller_place *c = &sim.controllers[f->who % SIM_CONTROLLERS];
	struct machine *m = &sim.machines[f->who % SIM_MACHINES];

	switch (f->kind) {
	case FAULT_QUIET_CUT:
		if (f->number) {
			if (m->net == NET_QUIET)
				set_net(m, NET_CUT);
			return;
		}
		/* fall through */
	case FAULT_CUT:
	case FAULT_DEAF:
		world_say("%s (%s) reaches etcd again", m->run_dir, m->name);
		set_net(m, NET_WHOLE);
		break;
	case FAULT_STOP:
	case FAULT_SLEEP:
		go_on(m);
		break;
	case FAULT_WIPE:
	case FAULT_POOL:
		put_pool(f->number);
		break;
	case FAULT_CONTROLLER_CUT:
		if (f->number == SILENT && c->net != NET_DEAF)
			return;
		c->net = f->number == SILENT ? NET_CUT : NET_WHOLE;
		if (c->process)
			sim_store_connect(c->process->store, c->net);
		break;
	case FAULT_CONTROLLER_STOP:
		if (c->process)
			c->process->stopped = false;
		break;
	default:
		break;
	}
}

static void do_faults(void)
{
	while (sim.next_fault < sim.n_faults && sim.faults[sim.next_fault].at <= sim.now) {
		const struct fault *f = &sim.faults[sim.next_fault++];

		if (!f->left_out && !sim.quiescent)
			fault_do(f);
	}
	for (size_t i = 0; i < sim.n_ends;) {
		struct fault f = sim.ends[i];

		if (f.at > sim.now) {
			i++;
			continue;
		}
		sim.ends[i] = sim.ends[--sim.n_ends];
		fault_end(&f);
		i = 0;
	}
}

/* --- one step ------------------------------------------------------------------------------- */

enum chore {
	WORK_STORE,
	WORK_PASS,
	WORK_TIMERS,
	WORK_REQUEST,
	WORK_LATE,
	WORK_LOOP,
	WORK_WIRE,
	WORKS
};

struct turn {
	struct process *process;
	enum chore work;
};

/* World time of a deadline by the program's own clock. */
static int64_t world_time(const struct process *p, uint64_t ms)
{
	if (ms == UINT64_MAX)
		return SIM_NEVER;
	return (int64_t)ms * MS - SEC + (p->machine ? p->machine->booted : 0);
}

static int64_t next_deadline(const struct process *p)
{
	const struct serve_request *q;
	int64_t next = SIM_NEVER;

	TAILQ_FOREACH(q, &p->waiting, entry)
		if (q->deadline < next)
			next = q->deadline;
	return next;
}

static void look_for_work(struct process *p, struct turn *turns, size_t *n, int64_t *next)
{
	int64_t wake, late, loop, wire;

	if (!p || p->stopped || p->busy)
		return;
	wake = world_time(p, timers_wake(&p->timers));
	late = next_deadline(p);
	loop = loop_due(p);
	wire = wire_due(p);
	if (p->store && sim_store_has_work(p->store))
		turns[(*n)++] = (struct turn){ p, WORK_STORE };
	if (p->pass->open && p->pass->dirty && p->pass->not_before <= sim.now)
		turns[(*n)++] = (struct turn){ p, WORK_PASS };
	if (world_time(p, timers_due(&p->timers)) <= sim.now)
		turns[(*n)++] = (struct turn){ p, WORK_TIMERS };
	if (p->machine && !TAILQ_EMPTY(&p->machine->socket))
		turns[(*n)++] = (struct turn){ p, WORK_REQUEST };
	if (late <= sim.now)
		turns[(*n)++] = (struct turn){ p, WORK_LATE };
	if (loop <= sim.now)
		turns[(*n)++] = (struct turn){ p, WORK_LOOP };
	if (wire <= sim.now)
		turns[(*n)++] = (struct turn){ p, WORK_WIRE };
	if (wake < *next)
		*next = wake;
	if (late < *next)
		*next = late;
	if (p->pass->dirty && p->pass->not_before < *next)
		*next = p->pass->not_before;
	if (loop < *next)
		*next = loop;
	if (wire < *next)
		*next = wire;
	if (p->store && p->store->resumes < *next)
		*next = p->store->resumes;
}

static void end_late(struct process *p)
{
	struct serve_request *q, *next;

	for (q = TAILQ_FIRST(&p->waiting); q; q = next) {
		next = TAILQ_NEXT(q, entry);
		if (q->deadline > sim.now)
			continue;
		/* The answer frees it. */
		if (q->wire)
			wire_late(q);
		else
			q->on_end(q, SERVE_LATE, q->arg);
		return;
	}
}

static void run_pass(struct process *p)
{
	p->pass->dirty = false;
	if (p->pass->fn(p->pass->arg) < 0) {
		p->pass->dirty = true;
		p->pass->not_before = sim.now + SEC;
	}
}

static void take_turn(const struct turn *t)
{
	struct process *p = t->process, *before;

	p->turns[t->work]++;
	process_enter(p, &before);
	p->busy = true;
	switch (t->work) {
	case WORK_STORE:
		sim_store_step(p->store);
		break;
	case WORK_PASS:
		run_pass(p);
		break;
	case WORK_TIMERS:
		timers_run(&p->timers);
		break;
	case WORK_REQUEST:
		process_take_request(p);
		break;
	case WORK_LATE:
		end_late(p);
		break;
	case WORK_LOOP:
		loop_step(p);
		break;
	case WORK_WIRE:
		wire_step(p);
		break;
	case WORKS:
		break;
	}
	p->busy = false;
	process_leave(before);
}

static void pass_time(int64_t to)
{
	int64_t seconds;

	if (to <= sim.now)
		return;
	for (size_t i = 0; i < sim.n_machines; i++)
		if (sim.machines[i].sleeps)
			sim.machines[i].slept += to - sim.now;
	sim.now = to;
	seconds = sim.now / SEC - sim.etcd.now;
	if (seconds > 0)
		memory_advance(&sim.etcd, seconds);
}

static int64_t next_change(void)
{
	int64_t next = SIM_NEVER;

	if (sim.next_fault < sim.n_faults)
		next = sim.faults[sim.next_fault].at;
	for (size_t i = 0; i < sim.n_ends; i++)
		if (sim.ends[i].at < next)
			next = sim.ends[i].at;
	for (size_t i = 0; i < sim.n_machines; i++) {
		const struct machine *m = &sim.machines[i];

		if (!m->agent && !m->off && m->restart < next)
			next = m->restart;
		if (!m->off && m->client_due < next)
			next = m->client_due;
	}
	for (size_t i = 0; i < SIM_CONTROLLERS; i++)
		if (!sim.controllers[i].process && sim.controllers[i].restart < next)
			next = sim.controllers[i].restart;
	for (size_t i = 0; i < sim.etcd.n_leases; i++)
		if (sim.etcd.leases[i].expires * SEC < next)
			next = sim.etcd.leases[i].expires * SEC;
	return next;
}

static void step(void)
{
	struct turn turns[(SIM_MACHINES + SIM_CONTROLLERS) * WORKS];
	int64_t next;
	size_t n = 0;

	do_faults();
	start_agents();
	for (size_t i = 0; i < sim.n_machines; i++)
		if (!sim.machines[i].off && sim.machines[i].client_due <= sim.now)
			client(&sim.machines[i]);
	spread();
	next = next_change();
	for (size_t i = 0; i < sim.n_machines; i++)
		look_for_work(sim.machines[i].agent, turns, &n, &next);
	for (size_t i = 0; i < SIM_CONTROLLERS; i++)
		look_for_work(sim.controllers[i].process, turns, &n, &next);
	sim.steps++;
	if (n) {
		take_turn(&turns[below(n)]);
		/* Now and then something takes its time. */
		pass_time(sim.now + (int64_t)(chance_once_in(&sim.chance, 100) ? below(400 * MS)
									       : below(2 * MS)));
	} else {
		pass_time(next > sim.now ? next : sim.now + MS);
	}
	spread();
}

void world_interrupt(void)
{
	struct process *p = sim.current;
	int64_t until = sim.now + (int64_t)below(170 * MIN);

	sim.interrupt = false;
	if (sim.depth == MOST_DEPTH || sim.quiescent)
		return;
	world_say("%s is stopped in the middle of writing a file", p->label);
	sim.depth++;
	while (sim.now < until && !sim.wrong && sim.steps < MAX_STEPS)
		step();
	sim.depth--;
	sim.current = p;
	world_say("%s goes on", p->label);
}

static void say_turns(void)
{
	for (size_t i = 0; i < sim.n_machines + SIM_CONTROLLERS; i++) {
		const struct process *p = i < sim.n_machines
						  ? sim.machines[i].agent
						  : sim.controllers[i - sim.n_machines].process;

		if (p)
			world_say("%s: %u steps of its store, %u passes, %u timers, %u requests",
				  p->label, p->turns[WORK_STORE], p->turns[WORK_PASS],
				  p->turns[WORK_TIMERS], p->turns[WORK_REQUEST]);
	}
}

/* --- a whole run ---------------------------------------------------------------------------- */

/* Everything is mended: cuts, stops, rivals; who is gone is removed, and who is there taken back.
 */
static void calm(void)
{
	sim.quiescent = true;
	sim.late = sim.lose = 0;
	sim.interrupt = false;
	world_say("from here on nothing fails any more");
	sim_members_wake(true);
	sim.n_ends = 0;
	for (size_t i = 0; i < sim.n_machines; i++) {
		struct machine *m = &sim.machines[i];

		for (size_t j = 0; j < i && !m->off; j++)
			if (!sim.machines[j].off && strcmp(sim.machines[j].name, m->name) == 0) {
				agent_kill(m, SIM_NEVER);
				pods_die(m);
				forget_files(m);
				m->off = true;
			}
		if (m->off)
			continue;
		if (m->agent)
			m->agent->stopped = false;
		m->sleeps = false;
		m->restart = sim.now > m->booted ? sim.now : m->booted;
		if (m->net != NET_WHOLE)
			set_net(m, NET_WHOLE);
	}
	for (size_t i = 0; i < SIM_CONTROLLERS; i++) {
		struct controller_place *c = &sim.controllers[i];

		c->restart = sim.now;
		if (c->process)
			c->process->stopped = false;
		if (c->process && c->net != NET_WHOLE)
			sim_store_connect(c->process->store, NET_WHOLE);
		c->net = NET_WHOLE;
	}
	operator_put("config", "{\"reclaimAfter\":900}");
	put_pool(0);
}

static void tidy(void)
{
	struct memory_kvs found;

	memory_range(&sim.etcd, SIM_PREFIX "removed/", SIM_PREFIX "removed0", &found);
	for (size_t i = 0; i < found.n; i++) {
		const char *relative = found.v[i]->kv.key + strlen(SIM_PREFIX);

		if (name_lives(relative + strlen("removed/")))
			operator_delete(relative);
	}
	memory_kvs_done(&found);
	memory_range(&sim.etcd, SIM_PREFIX "block/", SIM_PREFIX "block0", &found);
	for (size_t i = 0; i < found.n; i++) {
		const struct store_kv *kv = &found.v[i]->kv;
		AUTO_DONE(block_done) struct block block = { 0 };

		/* A lease ends by itself. */
		if (block_decode(kv->key + strlen(SIM_PREFIX), kv->value, kv->value_len, &block,
				 NULL) == 0 &&
		    !lease_holder_is(block.node) && !name_lives(block.node))
			operator_removes(block.node);
	}
	memory_kvs_done(&found);
	memory_range(&sim.etcd, SIM_PREFIX "node/", SIM_PREFIX "node0", &found);
	for (size_t i = 0; i < found.n; i++) {
		const char *name = found.v[i]->kv.key + strlen(SIM_PREFIX "node/");

		if (!lease_holder_is(name) && !name_lives(name))
			operator_removes(name);
	}
	memory_kvs_done(&found);
}

static void begin(uint64_t seed, const bool *left_out, bool verbose)
{
	static const struct memory_hooks no_hooks = { 0 };
	bool with_leases[SIM_MACHINES] = { false };

	memset(&sim, 0, sizeof(sim));
	sim.verbose = verbose;
	sim.seed = seed;
	sim.chance.state = seed;
	sim.era = 1;
	memory_etcd_init(&sim.etcd);
	memory_init(&sim.members, NULL, &no_hooks);
	sim.members.etcd = &sim.etcd;
	make_plan(seed, left_out, with_leases);
	put_pool(below(4));
	if (below(2))
		operator_put("config",
			     below(2) ? "{\"reclaimAfter\":900}" : "{\"reclaimAfter\":7200}");
	for (unsigned i = 0; i < sim.n_first; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", i + 1);
		machine_add(name, NULL, below(2));
		if (with_leases[i])
			over_leases(&sim.machines[i]);
	}
	/* Some live without a controller. */
	for (size_t i = 0; i < SIM_CONTROLLERS; i++)
		sim.controllers[i].restart = below(5) ? (int64_t)below(5) * SEC : HORIZON;
}

static void end(void)
{
	for (size_t i = 0; i < sim.n_machines; i++) {
		agent_kill(&sim.machines[i], SIM_NEVER);
		forget_files(&sim.machines[i]);
	}
	for (size_t i = 0; i < SIM_CONTROLLERS; i++)
		if (sim.controllers[i].process)
			process_kill(TAKE(sim.controllers[i].process));
	sim_members_wake(false);
	for (size_t i = 0; i < ARRAY_SIZE(sim.snapshots); i++)
		if (sim.has_snapshot[i])
			memory_etcd_done(&sim.snapshots[i]);
	memory_etcd_done(&sim.etcd);
	memory_done(&sim.members);
}

bool world_run(uint64_t seed, const bool *left_out, bool tell, bool verbose, uint64_t *ret_steps)
{
	bool good;
	int64_t tidied;

	if (tell)
		story = memory_must(open_memstream(&story_text, &story_size));
	log_set_sink(log_to_story);
	log_set_level(verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	begin(seed, left_out, verbose);
	while (sim.now < HORIZON && sim.steps < MAX_STEPS && !sim.wrong)
		step();
	if (!sim.wrong && sim.steps < MAX_STEPS) {
		calm();
		tidied = sim.now + 2 * 60 * MIN;
		while (sim.now < HORIZON + CALM && sim.steps < MAX_STEPS && !sim.wrong) {
			step();
			if (sim.now >= tidied && tidied != SIM_NEVER) {
				tidy();
				tidied = SIM_NEVER;
			}
		}
		if (!sim.wrong && sim.steps < MAX_STEPS)
			judge_end();
	}
	if (sim.steps >= MAX_STEPS)
		say_turns();
	if (sim.steps >= MAX_STEPS)
		world_wrong("%u steps and no end: a program is busy for ever", MAX_STEPS);
	good = !sim.wrong;
	*ret_steps = sim.steps;
	free(sim.wrong);
	sim.wrong = NULL;
	end();
	if (story) {
		fclose(story);
		story = NULL;
	}
	return good;
}
