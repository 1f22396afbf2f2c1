/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: timers whose time is moved by hand, together with the fake store's. */
#pragma once

#include "lib/base/timers.h"
#include "lib/store/store_fake.h"

struct fake_time {
	struct timers base;
	uint64_t ms;
};

static inline uint64_t fake_time_now(const struct timers *t)
{
	return ((const struct fake_time *)t)->ms;
}

/* Not 0: a time of nothing must not look like one of long ago. */
#define FAKE_TIME ((struct fake_time){ .base = { .now = fake_time_now }, .ms = 1000000 })

/* Second by second; in each the timers come first, then whatever the store has to do. */
static inline void fake_time_pass(struct fake_time *t, struct store *s, unsigned seconds)
{
	store_fake_run(s);
	for (unsigned i = 0; i < seconds; i++) {
		t->ms += 1000;
		store_fake_advance(s, 1);
		if (timers_wake(&t->base) <= t->ms)
			timers_run(&t->base);
		store_fake_run(s);
	}
}
