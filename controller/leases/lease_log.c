/* SPDX-License-Identifier: Apache-2.0 */
/* One network's leases as they were told, and its last changes. */
#include <errno.h>
#include <string.h>

#include "controller/leases/lease_view_parts.h"

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

static struct lease_change *nth(const struct lease_network *n, size_t i)
{
	return n->changes[(n->first + i) % LEASE_CHANGES_MAX];
}

void lease_network_forget(struct lease_network *n, int64_t revision)
{
	for (size_t i = 0; i < n->n_changes; i++)
		change_free(nth(n, i), n->done);
	change_free(TAKE(n->open), n->done);
	n->first = n->n_changes = 0;
	n->floor = revision;
	drop_answer(n);
}

int lease_network_new(const char *name, int64_t floor, void (*done)(void *),
		      struct lease_network **ret)
{
	AUTO(lease_network_free) struct lease_network *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->floor = floor;
	n->done = done;
	n->changes = calloc(LEASE_CHANGES_MAX, sizeof(struct lease_change *));
	if (!n->changes)
		return -ENOMEM;
	*ret = TAKE(n);
	return 0;
}

void lease_network_free(struct lease_network *n)
{
	if (!n)
		return;
	lease_network_forget(n, 0);
	for (size_t i = 0; i < n->n_shown; i++)
		shown_done(&n->shown[i]);
	free(n->shown);
	free(n->changes);
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

static int print_removed(const struct prefix *block, char **ret)
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

	if (!e.holder || print_removed(&s->block, &e.text) < 0) {
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
		for (size_t k = 0; k < n->n_shown && r == 0; k++)
			if (strcmp(n->shown[k].holder, holder) == 0)
				r = tell_added(n, &n->shown[k], false, true);
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
	if (n->n_changes == LEASE_CHANGES_MAX) {
		struct lease_change *oldest = nth(n, 0);

		n->floor = oldest->revision;
		change_free(oldest, n->done);
		n->first = (n->first + 1) % LEASE_CHANGES_MAX;
		n->n_changes--;
	}
	n->open->revision = revision;
	n->changes[(n->first + n->n_changes++) % LEASE_CHANGES_MAX] = TAKE(n->open);
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
	size_t low = 0, high = n->n_changes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (nth(n, middle)->revision <= cursor)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n->n_changes; low++)
		if (concerns(nth(n, low), one))
			return nth(n, low);
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

static size_t position(const struct lease_network *n, const struct prefix *block)
{
	size_t low = 0, high = n->n_shown;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (prefix_compare(&n->shown[middle].block, block) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int make_room(struct lease_network *n)
{
	size_t room = n->shown_room ? n->shown_room * 2 : 64;
	struct shown *more;

	if (n->n_shown < n->shown_room)
		return 0;
	more = reallocarray(n->shown, room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	n->shown = more;
	n->shown_room = room;
	return 0;
}

static int hide(struct lease_network *n, size_t i)
{
	int r = tell_removed(n, &n->shown[i]);

	shown_done(&n->shown[i]);
	n->n_shown--;
	memmove(&n->shown[i], &n->shown[i + 1], (n->n_shown - i) * sizeof(*n->shown));
	return r;
}

static int show(struct lease_network *n, size_t i, const struct shown *old, const struct shown *now)
{
	/* Who watches its own must learn that it is another's. */
	bool moved = old && strcmp(old->holder, now->holder) != 0;
	int r = moved ? tell_removed(n, old) : 0;

	r = r ?: tell_added(n, now, old && !moved && strcmp(old->attrs, now->attrs) == 0, false);
	r = r ?: make_room(n);
	if (r < 0)
		return r;
	if (old) {
		shown_done(&n->shown[i]);
	} else {
		memmove(&n->shown[i + 1], &n->shown[i], (n->n_shown - i) * sizeof(*n->shown));
		n->n_shown++;
	}
	n->shown[i] = *now;
	return 0;
}

static const struct shown *find(const struct lease_network *n, const struct prefix *block)
{
	size_t i = position(n, block);

	return i < n->n_shown && prefix_compare(&n->shown[i].block, block) == 0 ? &n->shown[i]
										: NULL;
}

int lease_network_show(struct lease_network *n, struct shown *lease)
{
	const struct shown *old = find(n, &lease->block);
	int r = 0;

	if (old && !lease->text)
		r = hide(n, (size_t)(old - n->shown));
	else if (old && strcmp(old->text, lease->text) == 0 &&
		 strcmp(old->holder, lease->holder) == 0)
		n->shown[old - n->shown].created = lease->created;
	else if (lease->text && (r = show(n, position(n, &lease->block), old, lease)) == 0)
		return 0;
	shown_done(lease);
	return r;
}

static void print_snapshot(const struct lease_view *v, const struct lease_network *n,
			   const struct prefix *one, FILE *out)
{
	const char *comma = "";

	fputs("{\"events\":[],\"snapshot\":[", out);
	if (one) {
		fputs(find(n, one)->text, out);
	} else if (!n->name[0]) {
		const struct lease_network *other;

		for (size_t i = 0; (other = lease_view_nth(v, i)); i++) {
			if (!other->pool)
				continue;
			fprintf(out, "%s\"%s\"", comma, other->name);
			comma = ",";
		}
	} else {
		for (size_t i = 0; i < n->n_shown; i++)
			fprintf(out, "%s%s", i ? "," : "", n->shown[i].text);
	}
	fprintf(out, "],\"cursor\":\"%lld\"}", (long long)lease_view_revision(v));
}

static int render_removed(const struct lease_view *v, const struct prefix *one, char **ret)
{
	AUTO(free) char *event = NULL;

	if (print_removed(one, &event) < 0 ||
	    asprintf(ret, "{\"events\":[%s],\"snapshot\":[],\"cursor\":\"%lld\"}", event,
		     (long long)lease_view_revision(v)) < 0)
		return -ENOMEM;
	return 0;
}

int lease_view_snapshot(const struct lease_view *v, const struct lease_network *n,
			const struct prefix *one, char **ret)
{
	AUTO(free) char *text = NULL;
	size_t size = 0;
	FILE *out;

	if (one && !find(n, one))
		return render_removed(v, one, ret);
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	print_snapshot(v, n, one, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	*ret = TAKE(text);
	return 0;
}

int lease_view_since(const struct lease_view *v, const struct lease_network *n,
		     const struct prefix *one, int64_t cursor, char **ret)
{
	const struct shown *s = one ? find(n, one) : NULL;

	if (s && (s->created > cursor || cursor < lease_view_began(v)))
		return render_removed(v, one, ret);
	return lease_view_snapshot(v, n, one, ret);
}

void **lease_network_answer(struct lease_network *n)
{
	return &n->answer;
}

const char *lease_network_name(const struct lease_network *n)
{
	return n->name;
}

size_t lease_network_leases(const struct lease_network *n)
{
	return n->n_shown;
}
