/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate: runs seeds, and shortens the story of one that fails.
 *
 *   simulate --seed 17               one run with its story
 *   simulate --seeds 1,2,3           each of them
 *   simulate --from 1 --seconds 60   seeds one after the other, for so long
 *   simulate --from 1 --steps 100000000
 *   simulate --faults cut,remove,burst ...   no others than these
 *   simulate --leases ...            some machines over leases
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "integration-tests/simulation/simulation.h"

struct wishes {
	uint64_t seed, from, most_steps;
	const char *seeds;
	double seconds;
	bool one, verbose;
};

/* gettimeofday() is left as it is: the clocks that programs use are the simulation's. */
static double wall(void)
{
	struct timeval t;

	gettimeofday(&t, NULL);
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Faults, what is wrong, and who was given the address that it speaks of. */
static void print_story(char *text)
{
	const char *wrong = strstr(text, "WRONG: ");
	char address[32] = " no such ", *line;

	if (wrong)
		snprintf(address, sizeof(address), " %.*s ", (int)strcspn(wrong + 7, " "),
			 wrong + 7);
	while ((line = strsep(&text, "\n")))
		if (!strstr(line, " gives ") || strstr(line, address))
			printf("  %s\n", line);
}

/* Each fault that the failure does not need is left out. */
static void shorten(uint64_t seed)
{
	bool left_out[SIM_FAULTS] = { false };
	char *text;
	uint64_t steps;
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < SIM_FAULTS; i++) {
			if (left_out[i])
				continue;
			left_out[i] = true;
			if (world_run(seed, left_out, false, false, &steps))
				left_out[i] = false;
			else if (i < sim.n_faults)
				again = true;
		}
	}
	world_run(seed, left_out, true, false, &steps);
	text = world_story();
	printf("seed %llu, shortened:\n", (unsigned long long)seed);
	print_story(text);
	free(text);
}

static bool try_one(uint64_t seed, const struct wishes *w, uint64_t *steps)
{
	uint64_t n;
	bool good = world_run(seed, NULL, w->verbose, w->verbose, &n);

	*steps += n;
	if (w->verbose) {
		char *text = world_story();

		fputs(text, stdout);
		free(text);
	}
	if (!good) {
		printf("seed %llu FAILS\n", (unsigned long long)seed);
		fflush(stdout);
		shorten(seed);
	}
	fflush(stdout);
	return good;
}

static int run(const struct wishes *w)
{
	uint64_t steps = 0, seeds = 0, failed = 0;
	double begin = wall();

	if (w->one) {
		seeds = 1;
		failed = !try_one(w->seed, w, &steps);
	} else if (w->seeds) {
		char *list = strdup(w->seeds), *rest = list, *word;

		while ((word = strsep(&rest, ", \n")))
			if (*word) {
				seeds++;
				failed += !try_one(strtoull(word, NULL, 10), w, &steps);
			}
		free(list);
	} else {
		for (uint64_t seed = w->from; steps < w->most_steps && failed < 5 &&
					      (w->seconds == 0 || wall() - begin < w->seconds);
		     seed++) {
			seeds++;
			failed += !try_one(seed, w, &steps);
		}
	}
	printf("%llu seeds, %llu steps, %.0f s: %llu failed\n", (unsigned long long)seeds,
	       (unsigned long long)steps, wall() - begin, (unsigned long long)failed);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seeds", required_argument, NULL, 'l' },
		{ "from", required_argument, NULL, 'f' },
		{ "seconds", required_argument, NULL, 't' },
		{ "steps", required_argument, NULL, 'n' },
		{ "faults", required_argument, NULL, 'k' },
		{ "leases", no_argument, NULL, 'L' },
		{ "verbose", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct wishes w = { .from = 1, .most_steps = UINT64_MAX };
	int c;

	/* json-c draws a random number once: before the first run, or that would differ from
	 * others. */
	json_object_put(json_tokener_parse("{\"a\":1}"));
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			w.seed = strtoull(optarg, NULL, 10);
			w.one = true;
			break;
		case 'l':
			w.seeds = optarg;
			break;
		case 'f':
			w.from = strtoull(optarg, NULL, 10);
			break;
		case 't':
			w.seconds = atof(optarg);
			break;
		case 'n':
			w.most_steps = strtoull(optarg, NULL, 10);
			break;
		case 'k':
			if (!world_allow(optarg))
				return 2;
			break;
		case 'L':
			world_with_leases();
			break;
		case 'v':
			w.verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (!w.one && !w.seeds && w.seconds == 0 && w.most_steps == UINT64_MAX)
		w.seconds = 60;
	return run(&w);
}
