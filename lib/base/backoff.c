/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/backoff.h"

#include <sys/random.h>

uint64_t backoff_usec(unsigned failures, uint64_t first, uint64_t max)
{
	uint64_t full = first;
	uint32_t random = 0;

	while (failures-- > 1 && full < max)
		full *= 2;
	if (full > max)
		full = max;
	/* Without randomness the delay is just not spread. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return full / 2 + full / 2 * (random % 1024) / 1024;
}

uint64_t backoff_refused_ms(unsigned *failures)
{
	return backoff_usec(++*failures, 100000, 30000000) / 1000;
}
