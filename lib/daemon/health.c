/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/health.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/clock.h"

struct health {
	struct health_entry *v;
	bool *fresh; /* set since the last sweep; beside v */
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
	free(h->fresh);
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

static void move(struct health *h, size_t to, size_t from, size_t n)
{
	memmove(&h->v[to], &h->v[from], n * sizeof(*h->v));
	memmove(&h->fresh[to], &h->fresh[from], n * sizeof(*h->fresh));
}

/* Takes e to where it belongs; there is room. */
static void insert(struct health *h, struct health_entry e)
{
	size_t i = 0;

	while (i < h->n && order(&h->v[i], &e) < 0)
		i++;
	move(h, i + 1, i, h->n - i);
	h->v[i] = e;
	h->fresh[i] = true;
	h->n++;
}

static struct health_entry take_out(struct health *h, size_t i)
{
	struct health_entry e = h->v[i];

	h->n--;
	move(h, i, i + 1, h->n - i);
	return e;
}

static int grow(struct health *h)
{
	size_t room = h->room ? 2 * h->room : 8;
	void *v;

	if (h->n < h->room)
		return 0;
	v = reallocarray(h->v, room, sizeof(*h->v));
	if (!v)
		return -ENOMEM;
	h->v = v;
	v = reallocarray(h->fresh, room, sizeof(*h->fresh));
	if (!v)
		return -ENOMEM;
	h->fresh = v;
	h->room = room;
	return 0;
}

/* An entry with that part and since, new or taken out; -ENOMEM. */
static int entry_for(struct health *h, const char *part, struct health_entry *ret)
{
	size_t i = find(h, part);

	if (i < h->n) {
		*ret = take_out(h, i);
		return 0;
	}
	if (grow(h) < 0)
		return -ENOMEM;
	*ret = (struct health_entry){ 0 };
	snprintf(ret->part, sizeof(ret->part), "%s", part);
	clock_utc_text(ret->since);
	return 0;
}

void health_set(struct health *h, const char *part, enum log_level level, const char *fmt, ...)
{
	char reason[1024];
	struct health_entry e;
	size_t i = find(h, part);
	char *copy;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);

	if (i < h->n)
		h->fresh[i] = true;
	if (i < h->n && h->v[i].level == level && strcmp(h->v[i].reason, reason) == 0)
		return;
	log_line(level, part, "%s", reason);

	copy = strdup(reason);
	if (!copy || entry_for(h, part, &e) < 0) {
		free(copy);
		return;
	}
	free(e.reason);
	e.reason = copy;
	e.level = level;
	insert(h, e);
	changed(h);
}

static void clear_at(struct health *h, size_t i)
{
	struct health_entry e = take_out(h, i);

	log_info(e.part, "is well again, after: %s", e.reason);
	free(e.reason);
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
		if (!h->fresh[i]) {
			clear_at(h, i);
			any = true;
		} else {
			h->fresh[i] = false;
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
