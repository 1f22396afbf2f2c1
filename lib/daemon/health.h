/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not well at the moment: one sentence per part, since when.
 *
 *   any module -> [health] -> log, status record, local API, metrics
 *
 * A part is a short name for what the sentence speaks of: "etcd",
 * "registration", "pool/web". Setting it logs once, and again only if the
 * sentence changes; clearing it logs that it is over. A part stays in trouble
 * since its first sentence, however it was reworded. Never fails: out of
 * memory it still logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/log.h"
#include "lib/base/names.h"

#define HEALTH_PART 128

struct health_entry {
	char part[HEALTH_PART];
	char *reason;
	char since[TIME_TEXT];
	enum log_level level;
	bool fresh; /* set since the last sweep */
};

struct health;

/* changed: called after every difference; may be NULL. */
typedef void health_changed_fn(void *arg);
int health_new(health_changed_fn *changed, void *arg, struct health **ret);
void health_free(struct health *h);
AUTO_DEFINE(struct health *, health_free)

/* level is that of the line in the log: an error stops something, a warning does not. */
void health_set(struct health *h, const char *part, enum log_level level, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void health_clear(struct health *h, const char *part);
/* Clears every part below "pool/", or "config" itself, if it was not set since the last call. */
void health_sweep(struct health *h, const char *parts);
/* The reason, or NULL if the part is well. */
const char *health_reason(const struct health *h, const char *part);
/* Sorted: errors first, then by part. Valid until the next change. */
const struct health_entry *health_list(const struct health *h, size_t *ret_n);
