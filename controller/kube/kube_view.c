/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube_view.h"

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <string.h>

struct known {
	struct hash digest; /* all zero: expected, never told */
	unsigned list;      /* the last one that had it */
	const char *uid;
	char name[];
};

struct kube_view {
	void *tree; /* tsearch, by name */
	size_t count;
	unsigned list;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->name, ((const struct known *)b)->name);
}

/* Look-ups compare a bare name. */
static int name_first(const void *a, const void *b)
{
	return strcmp(a, ((const struct known *)b)->name);
}

int kube_view_new(struct kube_view **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void kube_view_free(struct kube_view *v)
{
	if (!v)
		return;
	tdestroy(v->tree, free);
	free(v);
}

size_t kube_view_count(const struct kube_view *v)
{
	return v->count;
}

static struct known *find(const struct kube_view *v, const char *name)
{
	struct known *const *node = tfind(name, &v->tree, name_first);

	return node ? *node : NULL;
}

static int add(struct kube_view *v, const char *name, const char *uid, struct hash digest)
{
	size_t n = strlen(name) + 1;
	struct known *k = calloc(1, sizeof(*k) + n + strlen(uid) + 1);

	if (!k)
		return -ENOMEM;
	memcpy(k->name, name, n);
	k->uid = strcpy(k->name + n, uid);
	k->digest = digest;
	k->list = v->list;
	if (!tsearch(k, &v->tree, by_name)) {
		free(k);
		return -ENOMEM;
	}
	v->count++;
	return KUBE_NEWS;
}

int kube_view_take(struct kube_view *v, const char *name, const char *uid, struct hash digest)
{
	struct known *k = find(v, name);

	if (!k)
		return add(v, name, uid, digest);
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
	int r;

	if (k)
		return strcmp(k->uid, uid) == 0 ? KUBE_NO_NEWS : KUBE_OTHER_UID;
	r = add(v, name, uid, (struct hash){ 0 });
	/* No list had it so far, not even the one under way. */
	if (r == KUBE_NEWS)
		find(v, name)->list = v->list - 1;
	return r;
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
	tdelete(k, &v->tree, by_name);
	free(k);
	v->count--;
}

/* --- lists ---------------------------------------------------------------------------------- */

void kube_view_list_begin(struct kube_view *v)
{
	v->list++;
}

struct walk {
	unsigned list;
	kube_missing_fn *fn;
	void *arg;
	int r;
};

static void look(const void *node, VISIT visit, void *arg)
{
	const struct known *k = *(struct known *const *)node;
	struct walk *w = arg;

	if ((visit == postorder || visit == leaf) && w->r >= 0 && k->list != w->list)
		w->r = w->fn(k->name, k->uid, w->arg);
}

int kube_view_list_end(struct kube_view *v, kube_missing_fn *fn, void *arg)
{
	struct walk w = { .list = v->list, .fn = fn, .arg = arg };

	twalk_r(v->tree, look, &w);
	return w.r < 0 ? w.r : 0;
}
