/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "lib/store/memory_etcd.h"

/* What etcd grants at least, with its usual election times. */
#define MIN_TTL 2

static struct memory_lease *find(const struct memory_etcd *e, int64_t id)
{
	for (size_t i = 0; i < e->n_leases; i++)
		if (e->leases[i].id == id)
			return &e->leases[i];
	return NULL;
}

bool memory_lease_exists(const struct memory_etcd *e, int64_t id)
{
	return find(e, id) != NULL;
}

void memory_lease_grant(struct memory_etcd *e, int64_t id, int64_t ttl, struct memory_answer *ret)
{
	ret->revision = e->revision;
	if (find(e, id)) {
		ret->err = -EEXIST;
		ret->text = "lease already exists";
		return;
	}
	ttl = ttl < MIN_TTL ? MIN_TTL : ttl;
	e->leases = memory_must(realloc(e->leases, (e->n_leases + 1) * sizeof(*e->leases)));
	e->leases[e->n_leases++] = (struct memory_lease){ id, ttl, e->now + ttl };
	ret->lease = id;
	ret->ttl = ttl;
}

/* A lease that is gone is no error here: etcd answers without a TTL. */
void memory_lease_keepalive(struct memory_etcd *e, int64_t id, struct memory_answer *ret)
{
	struct memory_lease *l = find(e, id);

	ret->revision = e->revision;
	ret->lease = id;
	if (!l)
		return;
	l->expires = e->now + l->ttl;
	ret->ttl = l->ttl;
}

static void end_lease(struct memory_etcd *e, struct memory_lease *l)
{
	int64_t id = l->id;
	bool changed = false;

	for (size_t i = 0; i < e->keys.n;) {
		if (e->keys.v[i]->kv.lease == id) {
			AUTO(free) char *key = memory_must(strdup(e->keys.v[i]->kv.key));

			changed |= memory_delete(e, key, NULL) > 0;
		} else {
			i++;
		}
	}
	e->revision += changed;
	*l = e->leases[--e->n_leases];
}

void memory_lease_revoke(struct memory_etcd *e, int64_t id, struct memory_answer *ret)
{
	struct memory_lease *l = find(e, id);

	if (l) {
		end_lease(e, l);
	} else {
		ret->err = -ENOENT;
		ret->text = "requested lease not found";
	}
	ret->revision = e->revision;
}

/* The one that runs out first; of several the lowest id. NULL: none has run out. */
static struct memory_lease *first_expired(const struct memory_etcd *e)
{
	struct memory_lease *first = NULL;

	for (struct memory_lease *l = e->leases; l < e->leases + e->n_leases; l++)
		if (l->expires <= e->now && (!first || l->expires < first->expires ||
					     (l->expires == first->expires && l->id < first->id)))
			first = l;
	return first;
}

void memory_advance(struct memory_etcd *e, int64_t seconds)
{
	struct memory_lease *l;

	e->now += seconds;
	while ((l = first_expired(e)))
		end_lease(e, l);
}
