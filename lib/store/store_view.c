/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store_view.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"

struct known {
	int64_t mod_revision;
	uint32_t list; /* number of the list that last had it */
	char key[];
};

struct store_view {
	ARRAY(struct known *) known; /* by key */
	uint32_t list;
	bool anew;
};

int store_view_new(struct store_view **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void store_view_free(struct store_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->known.n; i++)
		free(v->known.v[i]);
	array_done(&v->known);
	free(v);
}

size_t store_view_count(const struct store_view *v)
{
	return v->known.n;
}

static struct known *find(const struct store_view *v, const char *key)
{
	struct known *const *found = array_find(v->known.v, v->known.n, x, strcmp((*x)->key, key));

	return found ? *found : NULL;
}

bool store_view_knows(const struct store_view *v, const char *key, int64_t mod_revision)
{
	const struct known *k = find(v, key);

	return k && k->mod_revision == mod_revision;
}

static struct known *add(struct store_view *v, const char *key)
{
	size_t i = array_place(v->known.v, v->known.n, x, strcmp((*x)->key, key));
	size_t len = strlen(key) + 1;
	struct known *k = malloc(sizeof(*k) + len), **place;

	place = k ? array_insert(&v->known, i) : NULL;
	if (!place) {
		free(k);
		return NULL;
	}
	*k = (struct known){ .mod_revision = 0, .list = v->list };
	memcpy(k->key, key, len);
	*place = k;
	return k;
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

int store_view_list_end(struct store_view *v, int64_t revision,
			void (*gone)(const char *key, int64_t revision, void *arg), void *arg)
{
	/* Taken out first: the view must not change under the callbacks. */
	AUTO(free) struct known **unlisted = calloc(v->known.n ?: 1, sizeof(struct known *));
	size_t n = 0, kept = 0;

	if (!unlisted)
		return -ENOMEM;
	v->anew = false;
	for (size_t i = 0; i < v->known.n; i++)
		if (v->known.v[i]->list == v->list)
			v->known.v[kept++] = v->known.v[i];
		else
			unlisted[n++] = v->known.v[i];
	v->known.n = kept;
	for (size_t i = 0; i < n; i++) {
		gone(unlisted[i]->key, revision, arg);
		free(unlisted[i]);
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
	size_t i = array_place(v->known.v, v->known.n, x, strcmp((*x)->key, key));
	struct known *k = i < v->known.n ? v->known.v[i] : NULL;

	if (!k || strcmp(k->key, key) != 0 || k->mod_revision >= mod_revision)
		return 0;
	array_remove(&v->known, i);
	free(k);
	return 1;
}
