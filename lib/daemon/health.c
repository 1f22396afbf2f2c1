/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/health.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/clock.h"

struct health {
	struct health_entry *v;
	size_t n, room;
	health_changed_fn *changed;
	void *arg;
};

int health_new(health_changed_fn *changed, void *arg, struct health **ret)
{
	struct health *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->changed = changed;
	h->arg = arg;
	*ret = h;
	return 0;
}

void health_free(struct health *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		free(h->v[i].reason);
	free(h->v);
	free(h);
}

static void changed(struct health *h)
{
	if (h->changed)
		h->changed(h->arg);
}

/* Where it stands, or h->n. */
static size_t find(const struct health *h, const char *part)
{
	size_t i = 0;

	while (i < h->n && strncmp(h->v[i].part, part, HEALTH_PART - 1) != 0)
		i++;
	return i;
}

static int order(const struct health_entry *a, const struct health_entry *b)
{
	return a->level != b->level ? (a->level < b->level ? -1 : 1) : strcmp(a->part, b->part);
}

void health_set(struct health *h, const char *part, enum log_level level, const char *fmt, ...)
{
	struct health_entry e = { .level = level, .fresh = true };
	char reason[1024];
	size_t i = find(h, part);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);

	if (i < h->n)
		h->v[i].fresh = true;
	if (i < h->n && h->v[i].level == level && strcmp(h->v[i].reason, reason) == 0)
		return;
	log_line(level, part, "%s", reason);

	e.reason = strdup(reason);
	if (!e.reason || array_reserve(h, 1) < 0) {
		free(e.reason);
		return;
	}
	snprintf(e.part, sizeof(e.part), "%s", part);
	if (i < h->n) {
		memcpy(e.since, h->v[i].since, sizeof(e.since));
		free(h->v[i].reason);
		array_remove(h, i);
	} else {
		clock_utc_text(e.since);
	}
	*array_insert(h, array_place(h->v, h->n, x, order(x, &e))) = e;
	changed(h);
}

static void clear_at(struct health *h, size_t i)
{
	log_info(h->v[i].part, "recovered from: %s", h->v[i].reason);
	free(h->v[i].reason);
	array_remove(h, i);
}

void health_clear(struct health *h, const char *part)
{
	size_t i = find(h, part);

	if (i == h->n)
		return;
	clear_at(h, i);
	changed(h);
}

/* Whether the part is meant by what a sweep was given: "pool/" for all below, or itself. */
static bool is_swept(const char *part, const char *parts)
{
	size_t n = strlen(parts);

	return n && parts[n - 1] == '/' ? strncmp(part, parts, n) == 0
					: strncmp(part, parts, HEALTH_PART - 1) == 0;
}

void health_sweep(struct health *h, const char *parts)
{
	bool any = false;

	for (size_t i = h->n; i-- > 0;) {
		if (!is_swept(h->v[i].part, parts))
			continue;
		if (!h->v[i].fresh) {
			clear_at(h, i);
			any = true;
		} else {
			h->v[i].fresh = false;
		}
	}
	if (any)
		changed(h);
}

const char *health_reason(const struct health *h, const char *part)
{
	size_t i = find(h, part);

	return i < h->n ? h->v[i].reason : NULL;
}

const struct health_entry *health_list(const struct health *h, size_t *ret_n)
{
	*ret_n = h->n;
	return h->v;
}
