/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of several contestants, and what a benchmark says of them.
 *
 *   plugin_run, ... -> times in ms -> [figures] -> one JSON object -> bench/run
 *
 * The first series is ours. What is measured in turn is put in in the same order, so that the
 * n-th times of two series were taken one right after the other and are a pair: the
 * ratio of a run is the median of the pairs' ratios, which a load that comes and goes moves
 * less than the ratio of two medians.
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

#include "lib/base/auto.h"

#define FIGURES_SERIES_MAX 4

/* Prints "PROGRAM: what: errno's text" and ends the program: a benchmark has nobody to tell. */
_Noreturn void die(const char *what);
double now_ms(void);
/* Zeroed; die() where there is none. free() it. */
void *zeroed(size_t n, size_t size);

struct figures {
	size_t n_series;
	struct series {
		double *v;
		size_t n, room;
	} series[FIGURES_SERIES_MAX];
};

/* n_series is at most FIGURES_SERIES_MAX. */
struct figures *figures_new(size_t n_series);
void figures_free(struct figures *f);
AUTO_DEFINE(struct figures *, figures_free)
void figures_push(struct figures *f, size_t series, double ms);
/* Sorts the series, which parts the pairs. */
double figures_percentile(struct figures *f, size_t series, double p);

/* WHAT_NAME_p50 and _p99 of each, WHAT_NAME_ratio of our pairs with each other's. */
void figures_tell(struct figures *f, const char *what, const char *const *names,
		  struct json_object *result);
void figures_tell_one(struct json_object *result, const char *what, const char *name,
		      const char *which, double value);
