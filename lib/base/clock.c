/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t clock_monotonic_us(void)
{
	return read_ns(CLOCK_MONOTONIC) / 1000;
}

uint64_t clock_boottime_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

const char *clock_utc_of(int64_t seconds, char *text)
{
	time_t then = seconds;
	struct tm tm;

	gmtime_r(&then, &tm);
	strftime(text, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return text;
}

const char *clock_utc_text(char *text)
{
	return clock_utc_of(time(NULL), text);
}

const char *clock_utc_of_boottime(uint64_t ns, char *text)
{
	int64_t age = (int64_t)(clock_boottime_ns() - ns);

	return clock_utc_of(((int64_t)read_ns(CLOCK_REALTIME) - age) / 1000000000, text);
}

const char *clock_utc_exact(char *text)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, TIME_TEXT - n, ".%09ldZ", now.tv_nsec);
	return text;
}
