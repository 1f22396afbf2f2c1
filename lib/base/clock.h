/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, each for its purpose. Pure code is given the time instead. */
#pragma once

#include <stdint.h>

#include "lib/base/names.h"

uint64_t clock_monotonic_us(void); /* delays and deadlines */
uint64_t clock_boottime_ns(void);  /* order of events on this boot, across processes */
/* Now, as records have it: "2026-11-16T02:45:55Z"; text holds TIME_TEXT bytes. Returns text. */
const char *clock_utc_text(char *text);
/* The same of another moment, by CLOCK_BOOTTIME in nanoseconds: as the clock is set now. */
const char *clock_utc_of_boottime(uint64_t ns, char *text);
/* Of seconds since 1970. */
const char *clock_utc_of(int64_t seconds, char *text);
/* The same with nanoseconds: tells apart what happens within a second. */
const char *clock_utc_exact(char *text);
