/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster that starts: many nodes claim their first block of a pool at once.
 *
 *   claim-storm --etcd URL [--nodes N] [--networks N] [--at-once N]     prints one JSON object
 *
 * Each simulated node is what an agent is to etcd: a node record of its own and claims
 * of its own with that record as their fence. Nodes know nothing of each other's
 * claims; that a pool has been cut they learn as agents do, from a watch of extent/
 * (one stands for all of theirs: it would say the same to each). "At once" is as fast
 * as etcd answers with so many transactions under way.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/queue.h>

#include "ipam/claims.h"
#include "lib/base/clock.h"
#include "lib/etcd/store_etcd.h"
#include "lib/json/json.h"
#include "lib/model/keys.h"
#include "lib/store/store_sync.h"

#define CIDR       "10.64.0.0/12"
#define BLOCK_SIZE 26
#define POOL       "storm"
/* Node records by transaction; below etcd's limit of operations. */
#define PUTS 100

struct storm;

struct member {
	struct storm *storm;
	char name[32];
	int64_t fence;
	struct claims *claims;
};

/* What the watch has told about a network's extent. */
struct network {
	char name[32];
	int64_t extent_revision;
};

/* One claim of one node in one network, until it is done. */
struct job {
	TAILQ_ENTRY(job) entry;
	struct member *member;
	struct network *network;
	int64_t extents_seen; /* what its claim went by */
	double start, ms;
};

struct storm {
	sd_event *event;
	struct store *store;
	struct store_watch *watch;
	size_t n_members, n_networks, at_once;
	struct member *members;
	struct network *networks;
	struct job *jobs;
	size_t n_jobs, next, under_way, done, failed, stale;
	TAILQ_HEAD(job_list, job)
	looking; /* lost the race for the extent; the watch will say who won */
	bool in_sync;
	int64_t seen;
	struct prefix cidr;
	double seconds;
};

static double now_ms(void)
{
	return (double)clock_monotonic_us() / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* --- claims --------------------------------------------------------------------------------- */

static void start_more(struct storm *s);
static void look_again(struct storm *s);

static int64_t fence(void *arg)
{
	return ((struct member *)arg)->fence;
}

static void fence_moved(int64_t revision, void *arg)
{
	((struct member *)arg)->fence = revision;
}

static void job_ended(struct job *j, bool well)
{
	struct storm *s = j->member->storm;

	j->ms = now_ms() - j->start;
	s->under_way--;
	s->done++;
	s->failed += !well;
	start_more(s);
}

static void on_claimed(const struct claim_result *r, void *arg)
{
	struct job *j = arg;
	struct storm *s = j->member->storm;

	if (r->outcome == CLAIM_STALE) {
		s->stale++;
		TAILQ_INSERT_TAIL(&s->looking, j, entry);
		look_again(s);
		return;
	}
	if (r->outcome != CLAIM_DONE)
		fprintf(stderr, "claim-storm: %s: %s\n", j->member->name, r->text);
	job_ended(j, r->outcome == CLAIM_DONE);
}

static int claim(struct job *j)
{
	AUTO_DONE(spans_done) struct spans usable = { 0 };
	struct storm *s = j->member->storm;
	struct block_need need = {
		.pool = POOL, .cidr = s->cidr, .block_size = BLOCK_SIZE, .whole = true
	};
	struct claim c = { .need = &need,
			   .extent_revision = j->network->extent_revision,
			   .extents_seen = s->seen };
	int r = spans_add(&usable, (struct span){ 0, (1U << (BLOCK_SIZE - s->cidr.length)) - 1 });

	j->extents_seen = s->seen;
	memcpy(need.network, j->network->name, sizeof(j->network->name));
	need.usable = usable;
	return r ?: claims_claim(j->member->claims, &c, on_claimed, j, NULL);
}

static void start_more(struct storm *s)
{
	while (s->under_way < s->at_once && s->next < s->n_jobs) {
		struct job *j = &s->jobs[s->next++];

		s->under_way++;
		j->start = now_ms();
		if (claim(j) < 0)
			job_ended(j, false);
	}
}

/* --- the watch of extents ------------------------------------------------------------------- */

static struct network *find_network(const struct storm *s, const char *name)
{
	for (size_t i = 0; i < s->n_networks; i++)
		if (strcmp(s->networks[i].name, name) == 0)
			return &s->networks[i];
	return NULL;
}

static void look_again(struct storm *s)
{
	struct job_list again = TAILQ_HEAD_INITIALIZER(again);
	struct job *j;

	TAILQ_CONCAT(&again, &s->looking, entry);
	while ((j = TAILQ_FIRST(&again))) {
		TAILQ_REMOVE(&again, j, entry);
		/* The watch may be ahead of the refusal, or behind it. */
		if (j->extents_seen == s->seen)
			TAILQ_INSERT_TAIL(&s->looking, j, entry);
		else if (claim(j) < 0)
			job_ended(j, false);
	}
}

static void on_put(const struct store_kv *kv, void *arg)
{
	struct storm *s = arg;
	struct network *n;
	struct key key;

	s->seen = kv->mod_revision;
	if (key_parse_full(KEY_PREFIX, kv->key, &key) < 0)
		return;
	n = find_network(s, key.network);
	if (n)
		n->extent_revision = kv->create_revision;
	look_again(s);
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct storm *s = arg;

	s->in_sync = true;
	s->seen = revision;
}

static int watch_extents(struct storm *s)
{
	static const struct store_watch_handlers handlers = { .put = on_put,
							      .in_sync = on_in_sync };
	int r = store_watch(s->store, KEY_PREFIX "extent/", KEY_PREFIX "extent0", &handlers, s,
			    &s->watch);

	while (r >= 0 && !s->in_sync)
		r = sd_event_run(s->event, UINT64_MAX);
	return r;
}

/* --- the cluster ---------------------------------------------------------------------------- */

static int node_text(const struct member *m, char **ret)
{
	struct node node = { .name = m->name, .machine = m->name, .boot = m->name };

	prefix_parse("192.0.2.1/32", &node.ipv4);
	node.agent.version = ROOST_VERSION;
	clock_utc_text(node.agent.started);
	return node_encode(&node, ret);
}

static void on_registered(const struct store_reply *reply, void *arg)
{
	*(int64_t *)arg = reply->revision;
}

/* Some members' records in one transaction: its revision is the fence of each. */
static int register_some(struct member *m, size_t n, struct err *err)
{
	struct store_op puts[PUTS] = { 0 };
	struct store_txn txn = { .success = puts, .n_success = n, .repeatable = true };
	char keys[PUTS][KEY_FULL_TEXT], relative[KEY_TEXT];
	char *texts[PUTS] = { NULL };
	int64_t revision = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = node_text(&m[i], &texts[i]);
		r = r ?: key_node(relative, m[i].name);
		r = r ?: key_full(KEY_PREFIX, relative, keys[i]);
		if (r == 0)
			puts[i] = (struct store_op){ .kind = STORE_PUT,
						     .key = keys[i],
						     .value = texts[i],
						     .value_len = strlen(texts[i]) };
	}
	r = r ?: store_sync_txn(m->storm->store, &txn, 0, on_registered, &revision, err);
	for (size_t i = 0; i < n; i++) {
		m[i].fence = revision;
		free(texts[i]);
	}
	return r;
}

static int make_members(struct storm *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_members; i++) {
		struct member *m = &s->members[i];
		struct claims_config config = {
			s->store, KEY_PREFIX, m->name, fence, fence_moved, m
		};

		m->storm = s;
		snprintf(m->name, sizeof(m->name), "worker-%zu", i);
		r = claims_new(&config, &m->claims);
	}
	for (size_t i = 0; r == 0 && i < s->n_members; i += PUTS)
		r = register_some(&s->members[i], s->n_members - i < PUTS ? s->n_members - i : PUTS,
				  err);
	return r;
}

/* All networks of a node one after the other, as its pods come. */
static void make_jobs(struct storm *s)
{
	for (size_t i = 0; i < s->n_networks; i++)
		snprintf(s->networks[i].name, sizeof(s->networks[i].name), "net-%zu", i);
	for (size_t i = 0; s->n_networks && i < s->n_jobs; i++)
		s->jobs[i] = (struct job){ .member = &s->members[i / s->n_networks],
					   .network = &s->networks[i % s->n_networks] };
}

static int run(struct storm *s, struct err *err)
{
	double start;
	int r = prefix_parse(CIDR, &s->cidr);

	r = r ?: make_members(s, err);
	if (r < 0)
		return r;
	make_jobs(s);
	r = watch_extents(s);
	start = now_ms();
	start_more(s);
	while (r >= 0 && s->done < s->n_jobs)
		r = sd_event_run(s->event, UINT64_MAX);
	s->seconds = (now_ms() - start) / 1e3;
	return r < 0 ? r : 0;
}

/* --- the report ----------------------------------------------------------------------------- */

static void add_count(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_int64((int64_t)value));
}

static void add_number(struct json_object *o, const char *name, double value)
{
	json_object_object_add(o, name, json_object_new_double(value));
}

static int print_report(const struct storm *s)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	AUTO(free) double *ms = calloc(s->n_jobs, sizeof(*ms));
	struct claims_stats sum = { 0 };

	if (!o || !ms)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_jobs; i++)
		ms[i] = s->jobs[i].ms;
	qsort(ms, s->n_jobs, sizeof(*ms), by_value);
	for (size_t i = 0; i < s->n_members; i++) {
		struct claims_stats one = claims_stats(s->members[i].claims);

		sum.tried += one.tried;
		sum.claimed += one.claimed;
		sum.settled += one.settled;
		sum.listed += one.listed;
	}
	add_count(o, "nodes", s->n_members);
	add_count(o, "networks", s->n_networks);
	add_count(o, "at_once", s->at_once);
	add_count(o, "claimed", sum.claimed);
	add_count(o, "tried", sum.tried);
	add_number(o, "ratio", (double)sum.tried / (double)(sum.claimed ?: 1));
	add_count(o, "failed", s->failed);
	add_count(o, "stale", s->stale);    /* tried in vain: another was first to cut the pool */
	add_count(o, "listed", sum.listed); /* had to look which blocks are taken */
	add_count(o, "settled", sum.settled);
	add_number(o, "seconds", s->seconds);
	add_number(o, "p50_ms", ms[s->n_jobs / 2]);
	add_number(o, "p99_ms", ms[s->n_jobs * 99 / 100]);
	add_number(o, "max_ms", ms[s->n_jobs - 1]);
	puts(json_object_to_json_string(o));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "etcd", required_argument, NULL, 'e' },
						 { "nodes", required_argument, NULL, 'n' },
						 { "networks", required_argument, NULL, 'w' },
						 { "at-once", required_argument, NULL, 'a' },
						 { NULL, 0, NULL, 0 } };
	struct storm s = { .n_members = 5000, .n_networks = 1, .at_once = 64 };
	struct store_etcd_options o = { 0 };
	struct err err = { "" };
	int c, r;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'e')
			o.endpoints = optarg;
		else if (c == 'n')
			s.n_members = strtoul(optarg, NULL, 10);
		else if (c == 'w')
			s.n_networks = strtoul(optarg, NULL, 10);
		else if (c == 'a')
			s.at_once = strtoul(optarg, NULL, 10);
	}
	if (!o.endpoints || !s.n_members || !s.n_networks || !s.at_once) {
		fputs("usage: claim-storm --etcd URL [--nodes N] [--networks N] [--at-once N]\n",
		      stderr);
		return 2;
	}
	TAILQ_INIT(&s.looking);
	s.n_jobs = s.n_members * s.n_networks;
	s.members = calloc(s.n_members, sizeof(*s.members));
	s.networks = calloc(s.n_networks, sizeof(*s.networks));
	s.jobs = calloc(s.n_jobs, sizeof(*s.jobs));
	r = s.members && s.networks && s.jobs ? sd_event_default(&s.event) : -ENOMEM;
	r = r < 0 ? r : store_etcd_new(s.event, &o, &s.store, &err);
	r = r < 0 ? r : run(&s, &err);
	r = r < 0 ? r : print_report(&s);
	if (r < 0)
		fprintf(stderr, "claim-storm: %s %s\n", strerror(-r), err.text);
	for (size_t i = 0; s.members && i < s.n_members; i++)
		claims_free(s.members[i].claims);
	store_free(s.store);
	free(s.members);
	free(s.networks);
	free(s.jobs);
	sd_event_unref(s.event);
	return r < 0 || s.failed;
}
