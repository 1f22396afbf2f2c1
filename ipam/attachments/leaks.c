/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/attachments/leaks.h"

#include <errno.h>
#include <string.h>

/* A directory by the path of something in it: "/run/netns/x" gives 10 bytes of it. */
struct directory {
	const char *path;
	size_t len;
};

static struct directory directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return (struct directory){ path, slash ? (size_t)(slash - path) : 0 };
}

static int compare_directories(const void *x, const void *y)
{
	const struct directory *a = x, *b = y;
	int r = memcmp(a->path, b->path, a->len < b->len ? a->len : b->len);

	return r ?: (a->len > b->len) - (a->len < b->len);
}

/* Those in which we see a namespace just as it was written down. */
struct visible {
	struct directory *v;
	size_t n;
};

static int look(const struct sighting *sightings, size_t n, struct visible *ret)
{
	ret->v = calloc(n ?: 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (sightings[i].netns == SEEN_SAME)
			ret->v[ret->n++] = directory_of(sightings[i].attachment->netns);
	qsort(ret->v, ret->n, sizeof(*ret->v), compare_directories);
	return 0;
}

static bool link_gone(const struct sighting *s)
{
	/* Before it is attached there need not be a link yet. */
	return s->link == SEEN_GONE && s->attachment->link[0] &&
	       s->attachment->state == ATTACHMENT_ATTACHED;
}

static bool netns_gone(const struct sighting *s, const struct visible *visible)
{
	const char *path = s->attachment->netns;
	const struct directory where = directory_of(path);

	if (s->netns != SEEN_GONE && (s->netns != SEEN_OTHER || !s->attachment->netns_inode))
		return false;
	if (where.len == 0 || strstr(path, "/proc/"))
		return false;
	return s->others ||
	       bsearch(&where, visible->v, visible->n, sizeof(where), compare_directories);
}

static const char *evidence(const struct sighting *s, const struct visible *visible)
{
	if (s->attachment->state == ATTACHMENT_RELEASING)
		return ""; /* somebody sees to it already */
	if (link_gone(s))
		return "its link is gone";
	if (netns_gone(s, visible))
		return s->netns == SEEN_GONE ? "its network namespace is gone"
					     : "its network namespace is another one now";
	return "";
}

static struct leak judge(const struct sighting *s, const struct visible *visible, int64_t now)
{
	struct leak leak = { .reason = evidence(s, visible) };

	if (!leak.reason[0])
		return leak;
	leak.suspected_since = s->attachment->suspected_since ?: now;
	leak.verdict = now - leak.suspected_since >= LEAK_APART ? LEAK_RELEASE : LEAK_SUSPECT;
	return leak;
}

int leaks_judge(const struct sighting *sightings, size_t n, int64_t now, struct leak *leaks)
{
	struct visible visible = { 0 };

	if (look(sightings, n, &visible) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		leaks[i] = judge(&sightings[i], &visible, now);
	free(visible.v);
	return 0;
}
