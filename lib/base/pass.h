/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass: events mark, one quiet pass works.
 *
 *   pass_mark() from anywhere -> [pass] -> desired -> delta -> apply -> status
 *
 * Runs at idle priority, so after everything that has already arrived; under a
 * stream that never rests, at the latest PASS_LATEST_MS after the first mark.
 * After a pass as much time is left to others as it took itself (at most that
 * limit), so that passes never take more than half of the processor. A pass that
 * fails stays dirty and comes again, 0.1 s later growing to 30 s; a new mark
 * comes before that, but not sooner than the limit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/auto.h"
#include "lib/base/metrics.h"

#define PASS_LATEST_MS    50
#define PASS_RETRY_MIN_MS 100
#define PASS_RETRY_MAX_MS 30000

/* Negative: not all was done, come again. Logs for itself. May mark. */
typedef int pass_fn(void *arg);

struct pass;

int pass_new(sd_event *event, pass_fn *fn, void *arg, struct pass **ret);
void pass_free(struct pass *p);
AUTO_DEFINE(struct pass *, pass_free)

void pass_mark(struct pass *p);
/* As pass_mark, but ahead of all else that the loop has to do: somebody waits for this one. */
void pass_soon(struct pass *p);
/* Closed (as it is at first): marks are kept, nothing runs. Open it with the first in-sync. */
void pass_open(struct pass *p, bool open);
/* Runs now if dirty, e.g. before stopping; returns what the pass returned. */
int pass_now(struct pass *p);

struct pass_stats {
	uint64_t passes, failures, marks;
	uint64_t longest_us, last_us;
	struct histogram duration;
	bool dirty;
};
struct pass_stats pass_stats(const struct pass *p);
