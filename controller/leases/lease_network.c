/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_network.h"

#include <errno.h>
#include <string.h>

void shown_done(struct shown *s)
{
	free(s->text);
	free(s->attrs);
	free(s->holder);
}

static void change_free(struct lease_change *c, void (*done)(void *))
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].text);
		free(c->v[i].holder);
	}
	if (c->answer && done)
		done(c->answer);
	free(c->v);
	free(c);
}

static void drop_answer(struct lease_network *n)
{
	if (n->answer && n->done)
		n->done(n->answer);
	n->answer = NULL;
}

void lease_network_forget(struct lease_network *n, int64_t revision)
{
	for (size_t i = 0; i < n->changes.n; i++)
		change_free(n->changes.v[i], n->done);
	n->changes.n = 0;
	change_free(TAKE(n->open), n->done);
	n->floor = revision;
	drop_answer(n);
}

int lease_network_new(const char *name, int64_t floor, void (*done)(void *),
		      struct lease_network **ret)
{
	struct lease_network *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->floor = floor;
	n->done = done;
	*ret = n;
	return 0;
}

void lease_network_free(struct lease_network *n)
{
	if (!n)
		return;
	lease_network_forget(n, 0);
	for (size_t i = 0; i < n->shown.n; i++)
		shown_done(&n->shown.v[i]);
	array_done(&n->shown);
	array_done(&n->changes);
	free(n);
}

/* --- changes -------------------------------------------------------------------------------- */

int lease_network_tell(struct lease_network *n, const struct lease_event *event)
{
	struct lease_event *more;
	struct lease_change *c;

	if (event->text && !n->open)
		n->open = calloc(1, sizeof(*n->open));
	c = n->open;
	more = event->text && c ? reallocarray(c->v, c->n + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(event->text);
		free(event->holder);
		return -ENOMEM;
	}
	c->v = more;
	more[c->n++] = *event;
	c->renewals_only = (c->n == 1 || c->renewals_only) && event->renewal;
	return 0;
}

static int tell_added(struct lease_network *n, const struct shown *s, bool renewal, bool again)
{
	struct lease_event e = { .subnet = s->block, .renewal = renewal, .again = again };

	if (asprintf(&e.text, "{\"type\":\"added\",\"lease\":%s}", s->text) < 0)
		return -ENOMEM;
	return lease_network_tell(n, &e);
}

int lease_removed_render(const struct prefix *block, char **ret)
{
	char subnet[PREFIX_TEXT];

	return asprintf(ret, "{\"type\":\"removed\",\"lease\":{\"Subnet\":\"%s\"}}",
			prefix_print(block, subnet)) < 0
		       ? -ENOMEM
		       : 0;
}

static int tell_removed(struct lease_network *n, const struct shown *s)
{
	struct lease_event e = { .subnet = s->block, .removed = true, .holder = strdup(s->holder) };

	if (!e.holder || lease_removed_render(&s->block, &e.text) < 0) {
		free(e.holder);
		return -ENOMEM;
	}
	return lease_network_tell(n, &e);
}

static bool told_before(const struct lease_change *c, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (c->v[k].holder && strcmp(c->v[k].holder, c->v[i].holder) == 0)
			return true;
	return false;
}

/* Behind the removals: what their holders still have. */
static int tell_remaining(struct lease_network *n)
{
	size_t told = n->open->n;
	int r = 0;

	for (size_t i = 0; i < told; i++) {
		const char *holder = n->open->v[i].holder;

		if (!holder || told_before(n->open, i))
			continue;
		for (size_t k = 0; k < n->shown.n && r == 0; k++)
			if (strcmp(n->shown.v[k].holder, holder) == 0)
				r = tell_added(n, &n->shown.v[k], false, true);
	}
	return r;
}

int lease_network_close(struct lease_network *n, int64_t revision)
{
	if (!n->open)
		return 0;
	drop_answer(n);
	if (tell_remaining(n) < 0)
		return -ENOMEM;
	if (n->changes.n == LEASE_CHANGES_MAX) {
		n->floor = n->changes.v[0]->revision;
		change_free(n->changes.v[0], n->done);
		array_remove(&n->changes, 0);
	}
	n->open->revision = revision;
	if (array_append(&n->changes, n->open) < 0)
		return -ENOMEM;
	n->open = NULL;
	return 1;
}

bool lease_network_remembers(const struct lease_network *n, int64_t cursor)
{
	return cursor >= n->floor;
}

static bool is_about(const struct lease_event *e, const struct prefix *one)
{
	return one ? !e->again && prefix_compare(&e->subnet, one) == 0 : !e->renewal;
}

static bool concerns(const struct lease_change *c, const struct prefix *one)
{
	if (!one)
		return !c->renewals_only;
	for (size_t i = 0; i < c->n; i++)
		if (is_about(&c->v[i], one))
			return true;
	return false;
}

struct lease_change *lease_network_after(const struct lease_network *n, int64_t cursor,
					 const struct prefix *one)
{
	for (size_t i =
		     array_place(n->changes.v, n->changes.n, c, (*c)->revision <= cursor ? -1 : 1);
	     i < n->changes.n; i++)
		if (concerns(n->changes.v[i], one))
			return n->changes.v[i];
	return NULL;
}

int lease_change_render(const struct lease_change *c, const struct prefix *one, char **ret)
{
	AUTO(free) char *text = NULL;
	const char *comma = "";
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	fputs("{\"events\":[", out);
	for (size_t i = 0; i < c->n; i++) {
		const struct lease_event *e = &c->v[i];

		if (!is_about(e, one))
			continue;
		fprintf(out, "%s%s", comma, e->text);
		comma = ",";
	}
	fprintf(out, "],\"snapshot\":[],\"cursor\":\"%lld\"}", (long long)c->revision);
	if (fclose(out) != 0)
		return -ENOMEM;
	*ret = TAKE(text);
	return 0;
}

/* --- leases --------------------------------------------------------------------------------- */

static int hide(struct lease_network *n, size_t i)
{
	int r = tell_removed(n, &n->shown.v[i]);

	shown_done(&n->shown.v[i]);
	array_remove(&n->shown, i);
	return r;
}

static int show(struct lease_network *n, size_t i, const struct shown *old, const struct shown *now)
{
	/* Who watches its own must learn that it is another's. */
	bool moved = old && strcmp(old->holder, now->holder) != 0;
	int r = moved ? tell_removed(n, old) : 0;

	r = r ?: tell_added(n, now, old && !moved && strcmp(old->attrs, now->attrs) == 0, false);
	if (r < 0)
		return r;
	if (old)
		shown_done(&n->shown.v[i]);
	else if (!array_insert(&n->shown, i))
		return -ENOMEM;
	n->shown.v[i] = *now;
	return 0;
}

const struct shown *lease_network_find(const struct lease_network *n, const struct prefix *block)
{
	return array_find(n->shown.v, n->shown.n, s, prefix_compare(&s->block, block));
}

int lease_network_show(struct lease_network *n, struct shown *lease)
{
	size_t i = array_place(n->shown.v, n->shown.n, s, prefix_compare(&s->block, &lease->block));
	struct shown *old = i < n->shown.n &&
					    prefix_compare(&n->shown.v[i].block, &lease->block) == 0
				    ? &n->shown.v[i]
				    : NULL;
	int r = 0;

	if (old && !lease->text)
		r = hide(n, i);
	else if (old && strcmp(old->text, lease->text) == 0 &&
		 strcmp(old->holder, lease->holder) == 0)
		old->created = lease->created;
	else if (lease->text && (r = show(n, i, old, lease)) == 0)
		return 0;
	shown_done(lease);
	return r;
}
