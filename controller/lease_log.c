/* SPDX-License-Identifier: Apache-2.0 */
/* One network's leases as they were told, and its last changes. */
#include <errno.h>
#include <string.h>

#include "controller/lease_view_parts.h"

static void change_free(struct lease_change *c, void (*done)(void *))
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].text);
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
	for (size_t i = 0; i < n->n_shown; i++) {
		free(n->shown[i].text);
		free(n->shown[i].attrs);
	}
	free(n->shown);
	free(n->changes);
	free(n);
}

/* --- changes -------------------------------------------------------------------------------- */

int lease_network_tell(struct lease_network *n, const struct prefix *subnet, bool removed,
		       bool renewal, char *text)
{
	struct lease_event *more;
	struct lease_change *c;

	if (text && !n->open)
		n->open = calloc(1, sizeof(*n->open));
	c = n->open;
	more = text && c ? reallocarray(c->v, c->n + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(text);
		return -ENOMEM;
	}
	c->v = more;
	more[c->n++] = (struct lease_event){ .removed = removed, .renewal = renewal, .text = text };
	if (subnet)
		more[c->n - 1].subnet = *subnet;
	c->renewals_only = (c->n == 1 || c->renewals_only) && renewal;
	return 0;
}

int lease_network_close(struct lease_network *n, int64_t revision)
{
	if (!n->open)
		return 0;
	drop_answer(n);
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

static bool concerns(const struct lease_change *c, const struct prefix *one)
{
	if (!one)
		return !c->renewals_only;
	for (size_t i = 0; i < c->n; i++)
		if (prefix_compare(&c->v[i].subnet, one) == 0)
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

		if (one ? prefix_compare(&e->subnet, one) != 0 : e->renewal)
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

static int tell_added(struct lease_network *n, const struct prefix *block, const char *lease,
		      bool renewal)
{
	char *text = NULL;

	if (asprintf(&text, "{\"type\":\"added\",\"lease\":%s}", lease) < 0)
		return -ENOMEM;
	return lease_network_tell(n, block, false, renewal, text);
}

static int tell_removed(struct lease_network *n, const struct prefix *block)
{
	char subnet[PREFIX_TEXT], *text = NULL;

	if (asprintf(&text, "{\"type\":\"removed\",\"lease\":{\"Subnet\":\"%s\"}}",
		     prefix_print(block, subnet)) < 0)
		return -ENOMEM;
	return lease_network_tell(n, block, true, false, text);
}

static int hide(struct lease_network *n, size_t i)
{
	int r = tell_removed(n, &n->shown[i].block);

	free(n->shown[i].text);
	free(n->shown[i].attrs);
	n->n_shown--;
	memmove(&n->shown[i], &n->shown[i + 1], (n->n_shown - i) * sizeof(*n->shown));
	return r;
}

int lease_network_show(struct lease_network *n, const struct prefix *block, char *text, char *attrs)
{
	AUTO(free) char *own_text = text, *own_attrs = attrs;
	size_t i = position(n, block);
	bool known = i < n->n_shown && prefix_compare(&n->shown[i].block, block) == 0;
	int r;

	if (!text)
		return known ? hide(n, i) : 0;
	if (known && strcmp(n->shown[i].text, text) == 0)
		return 0;
	r = make_room(n);
	r = r ?: tell_added(n, block, text, known && strcmp(n->shown[i].attrs, attrs) == 0);
	if (r < 0)
		return r;
	if (known) {
		free(n->shown[i].text);
		free(n->shown[i].attrs);
	} else {
		memmove(&n->shown[i + 1], &n->shown[i], (n->n_shown - i) * sizeof(*n->shown));
		n->n_shown++;
	}
	n->shown[i] = (struct shown){ *block, TAKE(own_text), TAKE(own_attrs) };
	return 0;
}

static int print_one(const struct lease_network *n, const struct prefix *one, FILE *out)
{
	size_t i = position(n, one);

	if (i == n->n_shown || prefix_compare(&n->shown[i].block, one) != 0)
		return -ENOENT;
	fputs(n->shown[i].text, out);
	return 0;
}

static int print_snapshot(const struct lease_view *v, const struct lease_network *n,
			  const struct prefix *one, FILE *out)
{
	const char *comma = "";
	int r = 0;

	fputs("{\"events\":[],\"snapshot\":[", out);
	if (one) {
		r = print_one(n, one, out);
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
	return r;
}

int lease_view_snapshot(const struct lease_view *v, const struct lease_network *n,
			const struct prefix *one, char **ret)
{
	AUTO(free) char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	r = print_snapshot(v, n, one, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	if (r == 0)
		*ret = TAKE(text);
	return r;
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
