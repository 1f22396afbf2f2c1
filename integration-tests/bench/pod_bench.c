/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole plugins as a container runtime runs them, up to three in turn in one run.
 *
 *   pod-bench [--rounds N] [--batches N] [--at-once N]
 *             [--drains N] [--drained N] [--workers N] [--pace MS] [--idle N]
 *             [--namespaces N] [--only alone|at-once|drain]
 *             NAME PLUGIN CNI_PATH CONF [NAME PLUGIN CNI_PATH CONF]...
 *
 * The first is ours. Prints one JSON object, times in ms, see figures.h:
 *
 *   add, del        one at a time, until it returns; nothing else goes on
 *   many            --at-once ADDs, until the last has returned
 *   drain           --drained DELs, --workers at a time, until the last link is gone
 *   add_idle        ADDs every --pace ms before it, add_meanwhile during it
 *
 * The network namespaces pod-0 and following must be there.
 */
#include "integration-tests/bench/pod_bench.h"

#include <getopt.h>
#include <string.h>

#include "lib/json/json.h"

size_t bench_turn(const struct bench *b, size_t i)
{
	const size_t n = b->pods.n_contestants, round = i / n, turn = i % n;

	return (round / 2 + (round % 2 ? n - 1 - turn : turn)) % n;
}

/* --- one at a time -------------------------------------------------------------------------- */

static void alone_round(struct bench *b, size_t round, struct figures *adds, struct figures *dels)
{
	const size_t n = b->pods.n_contestants;
	struct pod pods[CONTESTANTS_MAX];

	for (size_t turn = 0; turn < n; turn++) {
		size_t who = bench_turn(b, round * n + turn);

		pods[who] = pod_new(&b->pods, who, (round * n + turn) % b->namespaces);
		figures_push(adds, who, pod_call(&b->pods, &pods[who], "ADD"));
	}
	for (size_t turn = 0; turn < n; turn++) {
		size_t who = bench_turn(b, round * n + turn);

		figures_push(dels, who, pod_call(&b->pods, &pods[who], "DEL"));
		/* What a plugin leaves to others must not go on while the next one is timed. */
		pods_settle(&b->pods);
	}
}

static void bench_alone(struct bench *b)
{
	AUTO(figures_free) struct figures *adds = figures_new(b->pods.n_contestants);
	AUTO(figures_free) struct figures *dels = figures_new(b->pods.n_contestants);

	for (size_t i = 0; i < b->rounds; i++)
		alone_round(b, i, adds, dels);
	figures_tell(adds, "add", b->pods.names, b->result);
	figures_tell(dels, "del", b->pods.names, b->result);
}

/* --- many at once --------------------------------------------------------------------------- */

static double many_round(struct bench *b, size_t contestant, struct pod *pods, struct figures *each)
{
	double ms;

	for (size_t i = 0; i < b->at_once; i++)
		pods[i] = pod_new(&b->pods, contestant, i);
	ms = pods_all(&b->pods, pods, b->at_once, "ADD", b->at_once, each);
	pods_all(&b->pods, pods, b->at_once, "DEL", b->at_once, NULL);
	pods_settle(&b->pods);
	return ms;
}

static void bench_many(struct bench *b)
{
	AUTO(figures_free) struct figures *batches = figures_new(b->pods.n_contestants);
	AUTO(figures_free) struct figures *each = figures_new(b->pods.n_contestants);
	AUTO(free) struct pod *pods = zeroed(b->at_once, sizeof(*pods));

	for (size_t i = 0; i < b->batches * b->pods.n_contestants; i++) {
		size_t contestant = bench_turn(b, i);

		figures_push(batches, contestant, many_round(b, contestant, pods, each));
	}
	figures_tell(batches, "many", b->pods.names, b->result);
	figures_tell(each, "many_each", b->pods.names, b->result);
}

/* --- arguments ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*run)(struct bench *b);
} benches[] = {
	{ "alone", bench_alone },
	{ "at-once", bench_many },
	{ "drain", bench_drain },
};

static void read_contestants(struct pods *p, char **v, int n)
{
	for (; n >= 4 && p->n_contestants < CONTESTANTS_MAX; v += 4, n -= 4) {
		p->names[p->n_contestants] = v[0];
		p->plugins[p->n_contestants++] = (struct plugin){
			.path = v[1],
			.folders = v[2],
			.conf = plugin_conf_read(v[3]),
		};
	}
}

static bool fits(const struct bench *b)
{
	return b->pods.n_contestants > 0 && b->rounds && b->batches && b->at_once && b->drains &&
	       b->workers && b->pace_ms && b->at_once <= b->namespaces &&
	       b->drained + b->idle <= b->namespaces && b->namespaces >= CONTESTANTS_MAX;
}

static const char *read_options(struct bench *b, int argc, char **argv)
{
	const struct {
		const char *name;
		size_t *value;
	} numbers[] = {
		{ "rounds", &b->rounds },         { "batches", &b->batches },
		{ "at-once", &b->at_once },       { "drains", &b->drains },
		{ "drained", &b->drained },       { "workers", &b->workers },
		{ "pace", &b->pace_ms },          { "idle", &b->idle },
		{ "namespaces", &b->namespaces },
	};
	struct option options[ARRAY_SIZE(numbers) + 2] = { 0 };
	const char *only = NULL;
	int c;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		options[i] = (struct option){ numbers[i].name, required_argument, NULL, (int)i };
	options[ARRAY_SIZE(numbers)] = (struct option){ "only", required_argument, NULL, 'o' };
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'o')
			only = optarg;
		else if (c != '?')
			*numbers[c].value = strtoul(optarg, NULL, 10);
	}
	return only;
}

int main(int argc, char **argv)
{
	struct bench b = { .rounds = 200,
			   .batches = 10,
			   .at_once = 40,
			   .drains = 8,
			   .drained = 200,
			   .workers = 8,
			   .pace_ms = 40,
			   .idle = 40,
			   .namespaces = 400 };
	const char *only = read_options(&b, argc, argv);

	read_contestants(&b.pods, argv + optind, argc - optind);
	if (!fits(&b)) {
		fputs("usage: see the head of pod_bench.c\n", stderr);
		return 2;
	}
	b.result = json_object_new_object();
	pods_open(&b.pods, b.namespaces);
	for (size_t i = 0; i < ARRAY_SIZE(benches); i++)
		if (!only || strcmp(only, benches[i].name) == 0)
			benches[i].run(&b);
	puts(json_object_to_json_string(b.result));
	json_object_put(b.result);
	pods_close(&b.pods);
	for (size_t i = 0; i < b.pods.n_contestants; i++)
		free(b.pods.plugins[i].conf);
	return 0;
}
