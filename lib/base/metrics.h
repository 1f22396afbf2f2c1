/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for Prometheus: what modules count as they go, and the text that a scrape gets.
 *
 *   module: counters, struct histogram -> at a scrape: [metrics] -> exposition text
 *
 * Pure. Counting is an addition to a plain array in the module's own struct: it neither
 * allocates nor fails. Only a scrape gathers, so nobody who does not ask pays for it. The
 * writer keeps the rules of the format (version 0.0.4): HELP and TYPE once before a
 * family's values, labels escaped, buckets that add up. A mistake in a name or a missing piece of
 * memory makes the whole text void: half of it would read as counters that went back to zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/auto.h"

/* --- what modules keep ---------------------------------------------------------------------- */

/* From 0.1 ms to 10 s: from a pass of the loop to the deadline of a request. */
#define HISTOGRAM_BUCKETS 16

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS + 1]; /* each for itself; the last: slower than all */
	uint64_t sum_us;
};
void histogram_add(struct histogram *h, uint64_t us);
uint64_t histogram_count(const struct histogram *h);

/* --- the text ------------------------------------------------------------------------------- */

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_label {
	const char *name, *value;
};
/* LABELS({ "pool", name }, { "state", "used" }); NULL where a metric has none. */
#define LABELS(...) ((const struct metric_label[]){ __VA_ARGS__, { NULL, NULL } })

struct metrics {
	char *text;
	size_t len, room;
	char family[96];
	enum metric_type type;
	int err;
};

void metrics_done(struct metrics *m);

/* The values that follow are of this family; its name with "_total" for counters. */
void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help);
void metrics_count(struct metrics *m, const struct metric_label *labels, uint64_t value);
void metrics_number(struct metrics *m, const struct metric_label *labels, double value);
void metrics_histogram(struct metrics *m, const struct metric_label *labels,
		       const struct histogram *h);
/* A family with one value and no labels. */
void metrics_one(struct metrics *m, const char *name, enum metric_type type, const char *help,
		 double value);
