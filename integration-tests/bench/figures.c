/* SPDX-License-Identifier: Apache-2.0 */
#include "integration-tests/bench/figures.h"

#include <errno.h>
#include <time.h>

void die(const char *what)
{
	fprintf(stderr, "%s: %s: %m\n", program_invocation_short_name, what);
	exit(1);
}

void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("memory");
	return p;
}

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct figures *figures_new(size_t n_series)
{
	struct figures *f = zeroed(1, sizeof(*f));

	f->n_series = n_series;
	return f;
}

void figures_free(struct figures *f)
{
	for (size_t i = 0; i < f->n_series; i++)
		free(f->series[i].v);
	free(f);
}

void figures_push(struct figures *f, size_t series, double ms)
{
	struct series *s = &f->series[series];

	if (s->n == s->room) {
		s->room = s->room * 2 ?: 256;
		s->v = reallocarray(s->v, s->room, sizeof(*s->v));
		if (!s->v)
			die("figures");
	}
	s->v[s->n++] = ms;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double figures_percentile(struct figures *f, size_t series, double p)
{
	struct series *s = &f->series[series];

	if (s->n == 0)
		return 0;
	qsort(s->v, s->n, sizeof(*s->v), by_value);
	return s->v[(size_t)((double)(s->n - 1) * p)];
}

static double ratio_of_pairs(const struct series *ours, const struct series *theirs)
{
	AUTO(figures_free) struct figures *ratios = figures_new(1);

	for (size_t i = 0; i < ours->n && i < theirs->n; i++)
		figures_push(ratios, 0, ours->v[i] / theirs->v[i]);
	return figures_percentile(ratios, 0, 0.5);
}

void figures_tell_one(struct json_object *result, const char *what, const char *name,
		      const char *which, double value)
{
	char key[128];

	snprintf(key, sizeof(key), "%s%s%s_%s", what, *name ? "_" : "", name, which);
	json_object_object_add(result, key, json_object_new_double(value));
}

void figures_tell(struct figures *f, const char *what, const char *const *names,
		  struct json_object *result)
{
	for (size_t i = 1; i < f->n_series; i++)
		figures_tell_one(result, what, names[i], "ratio",
				 ratio_of_pairs(&f->series[0], &f->series[i]));
	for (size_t i = 0; i < f->n_series; i++) {
		figures_tell_one(result, what, names[i], "p50", figures_percentile(f, i, 0.5));
		figures_tell_one(result, what, names[i], "p99", figures_percentile(f, i, 0.99));
	}
}
