/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "controller/decide/decide_leases.h"
#include "lib/base/clock.h"
#include "lib/model/lease_holder.h"
#include "lib/model/model.h"

/* Pools, static routes and Kubernetes' Nodes are looked at so often in a minute at most: a look
 * goes over all of them. */
#define POOL_LOOKS    30
#define RECLAIM_AFTER 3600U

struct keeper {
	struct keeper_options o;
	char *end; /* of the prefix */
	struct work *work;
	struct store_watch *watch;
	struct mirror mirror;
	bool in_sync, started;
	int failed;                     /* the mirror lacks something: -ENOMEM */
	uint32_t usual;                 /* the last good one of usual_promise() */
	struct memory_of_blocks memory; /* of the last leadership */
	bool went_back;                 /* and no recovery since then is known */
	uint32_t before;                /* the highest number of one that was seen */
	uint64_t seen;                  /* since when, by this leadership; 0: not yet */
	struct removals removals;
	struct repairs repairs;
	struct pools pools;
	struct routes routes;
	struct plans mending; /* those of the last comparison that are still to be sent */
	size_t mended;
	struct timer compare, look, wake;
	bool compare_due, look_due;
	uint64_t since; /* when everything had been read */
	int64_t looked; /* at which revision; another one is worth a look */
	struct keeper_stats stats;
};

/* --- the mirror ----------------------------------------------------------------------------- */

static void note_revision(struct keeper *k, int64_t revision)
{
	/* While keys come in the order of a list, no revision is known as a whole. */
	if (k->in_sync && revision > k->mirror.revision)
		k->mirror.revision = revision;
}

static void on_put(const struct store_kv *kv, void *arg)
{
	struct keeper *k = arg;
	int r = mirror_put(&k->mirror, kv->key + strlen(k->o.prefix), kv);

	if (r < 0)
		k->failed = r;
	note_revision(k, kv->mod_revision);
	k->o.changed(k->o.arg);
}

/* A lease that was freed, not one that its holder gave back. */
static void count_freed(struct keeper *k, const char *key)
{
	const struct mirrored *e = mirror_find(&k->mirror, key);
	char subject[KEY_TEXT];

	if (e && e->kind == KEY_BLOCK && e->note && lease_holder_is(e->note) &&
	    work_busy(k->work, lease_subject(e->note, subject)))
		k->stats.leases_freed++;
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	struct keeper *k = arg;

	count_freed(k, key + strlen(k->o.prefix));
	mirror_delete(&k->mirror, key + strlen(k->o.prefix));
	note_revision(k, revision);
	k->o.changed(k->o.arg);
}

static void on_listing(void *arg)
{
	struct keeper *k = arg;

	k->in_sync = false;
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct keeper *k = arg;

	if (!k->since)
		k->since = timers_now(k->o.timers);
	k->in_sync = true;
	/* Also a lower one, after a restore. */
	k->mirror.revision = revision;
	log_info("keeper", "read all %zu keys, up to revision %lld", k->mirror.n,
		 (long long)revision);
	k->o.changed(k->o.arg);
}

/* --- what is decided ------------------------------------------------------------------------ */

/*
 * reclaimAfter for a node whose record does not say what it counts on: an older agent, or none.
 * Never less than the default, and a config that cannot be read changes nothing.
 */
static uint32_t usual_promise(struct keeper *k)
{
	AUTO_DONE(cluster_config_done) struct cluster_config config = { 0 };
	const struct mirrored *e = mirror_find(&k->mirror, "config");
	struct err err = { "" };
	int r = e ? cluster_config_decode("config", e->kv.value, e->kv.value_len, &config, &err)
		  : 0;

	if (e && r == 0 && config.reclaim_after > RECLAIM_AFTER)
		k->usual = config.reclaim_after;
	else if (r == 0)
		k->usual = RECLAIM_AFTER;
	if (r < 0)
		health_set(k->o.health, "config", LOG_LEVEL_WARNING,
			   "%s; until config is valid, blocks of a removed node are freed after "
			   "the reclaimAfter of its record, or %u s",
			   err.text, k->usual);
	else
		health_clear(k->o.health, "config");
	return k->usual;
}

static bool busy(const char *subject, void *arg)
{
	const struct keeper *k = arg;

	return work_busy(k->work, subject);
}

/* Once each; health says it again only when it changes. */
static void tell_removals(struct keeper *k)
{
	memset(k->stats.removals, 0, sizeof(k->stats.removals));
	for (size_t i = 0; i < k->removals.n; i++) {
		const struct removal *e = &k->removals.v[i];
		char part[HEALTH_PART];

		k->stats.removals[e->state]++;
		if (e->state != REMOVAL_ALIVE)
			continue;
		snprintf(part, sizeof(part), "removed/%s", e->node);
		health_set(k->o.health, part, LOG_LEVEL_WARNING,
			   "node %s was removed, but its agent is alive: its blocks are not freed; "
			   "stop the agent, or delete removed/%s to keep the node",
			   e->node, e->node);
	}
	health_sweep(k->o.health, "removed/");
}

static int decide_removals(struct keeper *k, struct plans *plans)
{
	uint64_t now = timers_now(k->o.timers), next;
	int r = removals_update(&k->removals, &k->mirror, now, usual_promise(k), k->o.minute);

	if (r < 0)
		return r;
	tell_removals(k);
	removals_plan(&k->removals, &k->mirror, busy, k, plans);
	next = removals_next(&k->removals);
	if (next == UINT64_MAX)
		timer_clear(k->o.timers, &k->wake);
	else
		timer_set(k->o.timers, &k->wake, next > now ? next - now : 0, 500);
	return 0;
}

/* A line for each kind of which there is more than before. */
static void tell_findings(const struct keeper *k, const size_t *before)
{
	for (unsigned kind = 0; kind < FINDING_KINDS; kind++) {
		const struct finding *first = NULL;

		for (size_t i = 0; i < k->repairs.last.n && !first; i++)
			if (k->repairs.last.v[i].kind == kind)
				first = &k->repairs.last.v[i];
		if (!first || k->repairs.found[kind] <= before[kind])
			continue;
		log_at(first->severity == SEVERITY_NOTE ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
		       "audit", "%s: %zu found, for example: %s; %s%s", finding_kind_name(kind),
		       k->repairs.found[kind], first->sentence,
		       first->repair == REPAIR_TXN ? "repaired if the next comparison confirms it: "
						   : "",
		       first->todo);
	}
}

static int compare(struct keeper *k)
{
	AUTO(free) struct store_kv *kvs = NULL;
	struct findings found = { 0 };
	uint64_t before = clock_monotonic_us();
	size_t counts[FINDING_KINDS];
	char utc[TIME_TEXT], kept[TIME_TEXT];
	struct audit_input in = { .n = k->mirror.n, .revision = k->mirror.revision };
	int r = mirror_kvs(&k->mirror, &kvs);

	in.kvs = kvs;
	in.now = clock_utc_text(utc);
	in.kept = clock_utc_of(time(NULL) + LEASE_PROMISE_MAX, kept);
	r = r ?: audit(&in, &found);
	if (r < 0)
		return r;
	memcpy(counts, k->repairs.found, sizeof(counts));
	plans_done(&k->mending);
	k->mended = 0;
	repairs_decide(&k->repairs, &found, &k->mending);
	tell_findings(k, counts);
	if (k->mending.failed) {
		plans_done(&k->mending);
		return -ENOMEM;
	}
	k->compare_due = false;
	k->look_due = true;
	k->stats.comparisons++;
	k->stats.comparison_us = clock_monotonic_us() - before;
	log_debug("audit", "%zu keys compared in %llu us, %zu findings", k->mirror.n,
		  (unsigned long long)k->stats.comparison_us, k->repairs.last.n);
	timer_set(k->o.timers, &k->compare, k->o.minute, k->o.minute / 4);
	return 0;
}

static void look_at_kubernetes(struct keeper *k, const char *utc, struct plans *plans)
{
	struct err alarm = { "" };

	if (!k->o.kube)
		return;
	kube_decide(k->o.kube, &k->mirror, timers_now(k->o.timers), k->o.minute, utc, plans,
		    &alarm);
	if (alarm.text[0])
		health_set(k->o.health, "kubernetes-nodes", LOG_LEVEL_ERROR, "%s", alarm.text);
	else
		health_clear(k->o.health, "kubernetes-nodes");
	kube_expected(k->o.kube, &k->mirror, k->o.expect, k->o.arg);
}

static void look_at_leases(struct keeper *k, struct plans *plans)
{
	uint64_t grace = (uint64_t)LEASE_GRACE * k->o.minute;
	char expired[TIME_TEXT];

	if (timers_now(k->o.timers) - k->since < grace)
		return;
	clock_utc_of((int64_t)time(NULL) - (int64_t)(grace / 1000), expired);
	leases_decide(&k->mirror, expired, plans);
}

static void look(struct keeper *k, struct plans *plans)
{
	char utc[TIME_TEXT];

	k->look_due = false;
	k->looked = k->mirror.revision;
	clock_utc_text(utc);
	pools_decide(&k->pools, &k->mirror, timers_now(k->o.timers), utc, k->o.minute, plans);
	routes_decide(&k->routes, &k->mirror, plans);
	look_at_kubernetes(k, utc, plans);
	look_at_leases(k, plans);
}

/* --- a recovery ----------------------------------------------------------------------------- */

void keeper_went_back(struct keeper *k)
{
	uint32_t number = 0, longest;

	k->went_back = true;
	if (k->started && recovery_numbers(&k->mirror, &number, &longest) && number > k->before)
		k->before = number;
}

/* True: one is open, and nothing else is decided. */
static bool recover(struct keeper *k, struct plans *plans)
{
	const struct mirrored *e = mirror_find(&k->mirror, "recovery");
	struct err why = { "" };
	enum recovery_state state;
	uint64_t now = timers_now(k->o.timers);
	uint32_t number = 0, longest = 0;
	bool readable = recovery_numbers(&k->mirror, &number, &longest);

	/* A transaction of another time, or of before the recovery, is refused. */
	work_set_recovery(k->work, e ? e->kv.mod_revision : 0);
	/* A restore brought it along, or there is none. */
	if (k->went_back && number <= k->before) {
		char id[RECOVERY_TEXT], text[TIME_TEXT];
		uint64_t random;

		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
			return true;
		snprintf(id, sizeof(id), "%016" PRIx64, random);
		recovery_begin(&k->memory, &k->mirror, id, k->before + 1, usual_promise(k),
			       clock_utc_text(text), plans);
		return true;
	}
	k->went_back = false;
	if (number != k->before || !k->seen)
		k->seen = now;
	k->before = number;
	state = recovery_plan(&k->memory, &k->mirror,
			      readable && now - k->seen >= (uint64_t)longest * k->o.minute / 60,
			      plans, &why);
	if (state == RECOVERY_STATE_NONE) {
		health_clear(k->o.health, "recovery");
		memory_of_blocks_done(&k->memory);
		return false;
	}
	health_set(k->o.health, "recovery", LOG_LEVEL_WARNING, "%s", why.text);
	/* Silence counts from its end: nobody can be blamed for what etcd has forgotten. */
	removals_done(&k->removals);
	return true;
}

/* --- the pass ------------------------------------------------------------------------------- */

bool keeper_in_sync(const struct keeper *k)
{
	return k->started && k->in_sync && !k->failed;
}

int keeper_pass(struct keeper *k)
{
	AUTO_DONE(plans_done) struct plans plans = { 0 };
	int r = 0;

	if (k->failed)
		return k->failed;
	if (!keeper_in_sync(k) || !elect_token(k->o.elect))
		return 0;
	work_seen(k->work, k->mirror.revision);
	if (recover(k, &plans)) {
		if (plans_failed(&plans))
			return -ENOMEM;
		work_do(k->work, plans.v, plans.n);
		return 0;
	}
	r = decide_removals(k, &plans);
	if (r == 0 && k->compare_due)
		r = compare(k);
	if (k->look_due)
		look(k, &plans);
	else if (k->looked != k->mirror.revision)
		keeper_look(k);
	if (plans_failed(&plans))
		return -ENOMEM;
	work_do(k->work, plans.v, plans.n);
	k->mended = k->mending.n -
		    work_do(k->work, k->mending.v + k->mended, k->mending.n - k->mended);
	return r;
}

static void on_compare(void *arg)
{
	struct keeper *k = arg;

	k->compare_due = true;
	k->o.changed(k->o.arg);
}

void keeper_look(struct keeper *k)
{
	if (k->started && !k->look.set && !k->look_due)
		timer_set(k->o.timers, &k->look, k->o.minute / POOL_LOOKS,
			  k->o.minute / POOL_LOOKS);
}

static void on_look(void *arg)
{
	struct keeper *k = arg;

	k->look_due = true;
	k->o.changed(k->o.arg);
}

static void on_wake(void *arg)
{
	struct keeper *k = arg;

	k->o.changed(k->o.arg);
}

/* --- life ----------------------------------------------------------------------------------- */

int keeper_start(struct keeper *k)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	int r;

	keeper_stop(k);
	k->started = true;
	k->compare_due = k->look_due = true;
	r = store_watch(k->o.store, k->o.prefix, k->end, &handlers, k, &k->watch);
	if (r == 0)
		store_watch_on_listing(k->watch, on_listing);
	return r;
}

void keeper_stop(struct keeper *k)
{
	if (k->watch)
		store_unwatch(TAKE(k->watch));
	work_stop(k->work);
	timer_clear(k->o.timers, &k->compare);
	timer_clear(k->o.timers, &k->look);
	timer_clear(k->o.timers, &k->wake);
	/* Etcd may come back older than this. */
	if (keeper_in_sync(k) && !recovery_is_open(&k->mirror) &&
	    memory_of_blocks_take(&k->memory, &k->mirror) < 0)
		log_warning("keeper", "out of memory: if etcd goes back, the agents end the "
				      "recovery without this controller");
	mirror_done(&k->mirror);
	removals_done(&k->removals);
	repairs_done(&k->repairs);
	pools_done(&k->pools);
	plans_done(&k->mending);
	k->routes = (struct routes){ 0 };
	memset(k->stats.removals, 0, sizeof(k->stats.removals));
	k->stats.comparison_us = 0;
	k->mended = 0;
	k->failed = 0;
	k->looked = 0;
	k->since = 0;
	k->started = k->in_sync = k->look_due = false;
	k->seen = 0;
	/* What only the leader says. */
	health_clear(k->o.health, "config");
	health_clear(k->o.health, "recovery");
	health_clear(k->o.health, "kubernetes-nodes");
	health_sweep(k->o.health, "removed/");
	health_sweep(k->o.health, "removed/");
}

int keeper_new(const struct keeper_options *options, struct keeper **ret)
{
	AUTO(keeper_free) struct keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->o = *options;
	k->usual = RECLAIM_AFTER;
	k->compare = (struct timer){ .fn = on_compare, .arg = k };
	k->look = (struct timer){ .fn = on_look, .arg = k };
	k->wake = (struct timer){ .fn = on_wake, .arg = k };
	k->end = store_prefix_end(options->prefix);
	r = k->end ? 0 : -ENOMEM;
	if (r == 0)
		r = work_new(
			&(struct work_options){
				.store = options->store,
				.timers = options->timers,
				.elect = options->elect,
				.prefix = options->prefix,
				.ended = on_wake,
				.arg = k,
			},
			&k->work);
	if (r < 0)
		return r;
	*ret = TAKE(k);
	return 0;
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	if (k->work)
		keeper_stop(k);
	memory_of_blocks_done(&k->memory);
	work_free(k->work);
	free(k->end);
	free(k);
}

/* --- for metrics ---------------------------------------------------------------------------- */

struct keeper_stats keeper_stats(const struct keeper *k)
{
	struct keeper_stats s = k->stats;
	const struct mirror *m = &k->mirror;

	s.repairs = &k->repairs;
	s.pools = &k->pools;
	s.routes = &k->routes;
	s.work = work_stats(k->work);
	s.keys = m->n;
	s.nodes = mirror_count(m, KEYS_NODE);
	s.blocks = mirror_count(m, KEYS_BLOCK);
	MIRROR_EACH(m, e, KEYS_NODE) {
		char key[KEY_TEXT];

		if (lease_holder_is(mirrored_name(e))) {
			s.leases++;
			continue;
		}
		s.silent += key_status_node(key, mirrored_name(e)) == 0 && !mirror_find(m, key);
	}
	MIRROR_EACH(m, x, KEYS_HOST)
		s.addresses += x->kind == KEY_ADDRESS;
	return s;
}
