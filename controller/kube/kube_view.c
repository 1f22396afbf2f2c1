/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube_view.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"

struct known {
	struct hash digest; /* all zero: expected, never told */
	unsigned list;      /* the last one that had it */
	char *name, *uid;
};

struct kube_view {
	struct known *v; /* by name */
	size_t n, room;
	unsigned list;
};

int kube_view_new(struct kube_view **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void known_done(struct known *k)
{
	free(k->name);
	free(k->uid);
}

void kube_view_free(struct kube_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n; i++)
		known_done(&v->v[i]);
	array_done(v);
	free(v);
}

size_t kube_view_count(const struct kube_view *v)
{
	return v->n;
}

static struct known *find(const struct kube_view *v, const char *name)
{
	return array_find(v->v, v->n, k, strcmp(k->name, name));
}

static int add(struct kube_view *v, const char *name, const char *uid, struct hash digest,
	       unsigned list)
{
	size_t at = array_place(v->v, v->n, k, strcmp(k->name, name));
	struct known new = {
		.name = strdup(name), .uid = strdup(uid), .digest = digest, .list = list
	};

	if (!new.name || !new.uid || !array_insert(v, at)) {
		known_done(&new);
		return -ENOMEM;
	}
	v->v[at] = new;
	return KUBE_NEWS;
}

int kube_view_take(struct kube_view *v, const char *name, const char *uid, struct hash digest)
{
	struct known *k = find(v, name);

	if (!k)
		return add(v, name, uid, digest, v->list);
	k->list = v->list;
	if (strcmp(k->uid, uid) != 0)
		return KUBE_OTHER_UID;
	if (k->digest.low == digest.low && k->digest.high == digest.high)
		return KUBE_NO_NEWS;
	k->digest = digest;
	return KUBE_NEWS;
}

int kube_view_expect(struct kube_view *v, const char *name, const char *uid)
{
	const struct known *k = find(v, name);

	if (k)
		return strcmp(k->uid, uid) == 0 ? KUBE_NO_NEWS : KUBE_OTHER_UID;
	/* No list had it so far, not even the one under way. */
	return add(v, name, uid, (struct hash){ 0 }, v->list - 1);
}

const char *kube_view_uid(const struct kube_view *v, const char *name)
{
	const struct known *k = find(v, name);

	return k ? k->uid : NULL;
}

void kube_view_seen(struct kube_view *v, const char *name)
{
	struct known *k = find(v, name);

	if (k)
		k->list = v->list;
}

void kube_view_forget(struct kube_view *v, const char *name, const char *uid)
{
	struct known *k = find(v, name);

	if (!k || strcmp(k->uid, uid) != 0)
		return;
	known_done(k);
	array_remove(v, (size_t)(k - v->v));
}

void kube_view_list_begin(struct kube_view *v)
{
	v->list++;
}

int kube_view_list_end(struct kube_view *v, kube_missing_fn *fn, void *arg)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < v->n; i++)
		if (v->v[i].list != v->list)
			r = fn(v->v[i].name, v->v[i].uid, arg);
	return r < 0 ? r : 0;
}
