/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/nearest.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* How many letters to add, drop or change; the usual table, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NEAREST_TEXT];
	size_t nb = strlen(b);

	for (unsigned j = 0; j <= nb; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned change = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			row[j] = least(row[j] + 1, row[j - 1] + 1, change);
		}
	}
	return row[nb];
}

struct nearest nearest_to(const char *typed, size_t len)
{
	struct nearest near = { .best = len < 6 ? 3 : 4 }; /* further away it is a guess, no help */

	if (len < NEAREST_TEXT)
		memcpy(near.typed, typed, len);
	else
		near.best = 0;
	return near;
}

void nearest_try(struct nearest *near, const char *name)
{
	unsigned d;

	if (strlen(name) >= NEAREST_TEXT || !near->best)
		return;
	d = distance(near->typed, name);
	if (d < near->best) {
		near->best = d;
		memcpy(near->name, name, strlen(name) + 1);
	}
}
