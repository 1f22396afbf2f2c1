/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/routing_compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* BGP sessions are the only ones whose names are many; all of ours begin so. */
#define SESSION_STEM "n_"

/* A protocol by its name: one that runs, one that was meant, or both. */
struct named {
	const char *name;
	const struct bird_protocol *runs;
	const struct bird_intent *meant;
};

/* There may be thousands, and BIRD 3 lists in another order than the file's. */
static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static size_t pair(const struct bird_plan *plan, const struct bird_protocols *runs, struct named *v)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < runs->n; i++)
		v[n++] = (struct named){ runs->v[i].name, &runs->v[i], NULL };
	for (size_t i = 0; i < plan->n_protocols; i++)
		v[n++] = (struct named){ plan->protocols[i].name, NULL, &plan->protocols[i] };
	qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 0; i < n; i++) {
		if (kept && strcmp(v[kept - 1].name, v[i].name) == 0) {
			v[kept - 1].runs = v[kept - 1].runs ?: v[i].runs;
			v[kept - 1].meant = v[kept - 1].meant ?: v[i].meant;
		} else {
			v[kept++] = v[i];
		}
	}
	return kept;
}

static void count(size_t *number, struct routing_difference *d, const char *name)
{
	(*number)++;
	if (!d->first[0])
		strncpy(d->first, name, sizeof(d->first) - 1);
}

static void judge(const struct named *p, struct routing_difference *d)
{
	if (!p->meant) {
		if (strncmp(p->name, SESSION_STEM, strlen(SESSION_STEM)) == 0)
			count(&d->surplus, d, p->name);
		return;
	}
	d->sessions += p->meant->session != NULL;
	if (!p->runs || strcmp(p->runs->proto, p->meant->kind) != 0) {
		count(&d->missing, d, p->name);
		return;
	}
	d->established += p->meant->session && strcmp(p->runs->bgp_state, "Established") == 0;
	/* Down by itself, a session would say why. */
	if (strcmp(p->runs->state, "down") == 0 && !p->runs->info[0])
		count(&d->disabled, d, p->name);
}

int routing_compare(const struct bird_plan *plan, const struct bird_protocols *runs,
		    struct routing_difference *ret)
{
	AUTO(free) struct named *v = calloc(plan->n_protocols + runs->n + 1, sizeof(*v));
	struct routing_difference d = { 0 };
	size_t n;

	if (!v)
		return -ENOMEM;
	n = pair(plan, runs, v);
	for (size_t i = 0; i < n; i++)
		judge(&v[i], &d);
	*ret = d;
	return 0;
}
