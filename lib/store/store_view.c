/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store_view.h"

#include <errno.h>
#include <search.h>
#include <string.h>

struct known {
	int64_t mod_revision;
	uint32_t list; /* number of the list that last had it */
	char key[];
};

struct store_view {
	void *tree; /* tsearch, by key */
	size_t count;
	uint32_t list;
	bool anew;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->key, ((const struct known *)b)->key);
}

/* Look-ups compare a bare key: a struct known whose key lies elsewhere cannot be made. */
static int key_first(const void *a, const void *b)
{
	return strcmp(a, ((const struct known *)b)->key);
}

int store_view_new(struct store_view **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void store_view_free(struct store_view *v)
{
	if (!v)
		return;
	tdestroy(v->tree, free);
	free(v);
}

size_t store_view_count(const struct store_view *v)
{
	return v->count;
}

static struct known *find(const struct store_view *v, const char *key)
{
	struct known *const *node = tfind(key, &v->tree, key_first);

	return node ? *node : NULL;
}

bool store_view_knows(const struct store_view *v, const char *key, int64_t mod_revision)
{
	const struct known *k = find(v, key);

	return k && k->mod_revision == mod_revision;
}

static struct known *add(struct store_view *v, const char *key)
{
	size_t len = strlen(key) + 1;
	struct known *k = malloc(sizeof(*k) + len);

	if (!k)
		return NULL;
	*k = (struct known){ .mod_revision = 0, .list = v->list };
	memcpy(k->key, key, len);
	if (!tsearch(k, &v->tree, by_key)) {
		free(k);
		return NULL;
	}
	v->count++;
	return k;
}

static void forget(struct store_view *v, struct known *k)
{
	tdelete(k, &v->tree, by_key);
	v->count--;
	free(k);
}

void store_view_list_begin(struct store_view *v, bool anew)
{
	v->list++;
	v->anew = v->anew || anew;
}

int store_view_listed(struct store_view *v, const char *key, int64_t mod_revision)
{
	struct known *k = find(v, key);

	if (k && k->mod_revision == mod_revision && (!v->anew || k->list == v->list)) {
		k->list = v->list;
		return 0;
	}
	if (k && k->mod_revision > mod_revision && !v->anew)
		return -ESTALE;
	if (!k)
		k = add(v, key);
	if (!k)
		return -ENOMEM;
	k->mod_revision = mod_revision;
	k->list = v->list;
	return 1;
}

struct sweep {
	struct known **gone;
	size_t n;
	uint32_t list;
};

static void collect_unlisted(const void *node, VISIT visit, void *arg)
{
	struct sweep *s = arg;
	struct known *k = *(struct known *const *)node;

	if ((visit == postorder || visit == leaf) && k->list != s->list)
		s->gone[s->n++] = k;
}

int store_view_list_end(struct store_view *v, int64_t revision,
			void (*gone)(const char *key, int64_t revision, void *arg), void *arg)
{
	/* Collected first: the tree must not change under the walk, nor under the callbacks. */
	AUTO(free) struct known **unlisted = calloc(v->count ?: 1, sizeof(struct known *));
	struct sweep s = { unlisted, 0, v->list };

	if (!unlisted)
		return -ENOMEM;
	twalk_r(v->tree, collect_unlisted, &s);
	v->anew = false;
	for (size_t i = 0; i < s.n; i++) {
		gone(s.gone[i]->key, revision, arg);
		forget(v, s.gone[i]);
	}
	return 0;
}

int store_view_put(struct store_view *v, const char *key, int64_t mod_revision)
{
	struct known *k = find(v, key);

	if (k && k->mod_revision >= mod_revision)
		return 0;
	if (!k)
		k = add(v, key);
	if (!k)
		return -ENOMEM;
	k->mod_revision = mod_revision;
	return 1;
}

int store_view_deleted(struct store_view *v, const char *key, int64_t mod_revision)
{
	struct known *k = find(v, key);

	if (!k || k->mod_revision >= mod_revision)
		return 0;
	forget(v, k);
	return 1;
}
