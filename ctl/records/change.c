/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/records/change.h"

#include <errno.h>
#include <string.h>

#include "ctl/frame/note.h"
#include "lib/base/array.h"
#include "lib/model/model.h"
#include "lib/store/store_sync.h"
#include "lib/store/txn.h"

void change_list_done(struct change_list *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		free(changes->v[i].value);
	array_done(changes);
}

int change_list_add(struct change_list *changes, const struct kind *kind, const char *key,
		    char *value, int64_t mod_revision)
{
	struct change *new = array_add(changes);

	if (!new) {
		free(value);
		return -ENOMEM;
	}
	*new = (struct change){ .kind = kind, .value = value, .mod_revision = mod_revision };
	snprintf(new->key, KEY_TEXT, "%s", key);
	return 0;
}

void world_done(struct world *world)
{
	ctl_kvs_done(&world->pools);
	ctl_kvs_done(&world->extents);
	ctl_kvs_done(&world->peers);
	ctl_kvs_done(&world->filters);
}

int world_read(struct ctl *ctl, struct world *ret, struct err *err)
{
	int r = ctl_read(ctl, KEYS_POOL, &ret->pools, err);

	/* The oldest reading counts: whatever came later is found by the transaction. */
	ret->revision = ret->pools.revision;
	r = r < 0 ? r : ctl_read(ctl, KEYS_EXTENT, &ret->extents, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_PEER, &ret->peers, err);
	return r < 0 ? r : ctl_read(ctl, KEYS_FILTER, &ret->filters, err);
}

/* --- checking ------------------------------------------------------------------------------- */

static bool is_changed(const struct change_walk *w, const char *key)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->changes[i].key, key) == 0)
			return true;
	return false;
}

const char *change_next(struct change_walk *w, const char **ret_value)
{
	while (w->i < w->old->n) {
		const struct ctl_kv *kv = &w->old->v[w->i++];

		*ret_value = kv->value;
		if (!is_changed(w, kv->key))
			return kv->key;
	}
	while (w->j < w->n) {
		const struct change *c = &w->changes[w->j++];

		*ret_value = c->value;
		if (c->value && c->kind->key == w->kind)
			return c->key;
	}
	return NULL;
}

static int check_pool(const struct change *c, struct change_walk pools,
		      const struct ctl_kvs *extents, struct err *err)
{
	AUTO_DONE(pool_done) struct pool pool = { 0 };
	const char *key, *value;
	int r = pool_decode(c->key, c->value, strlen(c->value), &pool, err);

	while (r == 0 && (key = change_next(&pools, &value))) {
		AUTO_DONE(pool_done) struct pool other = { 0 };

		/* One that is invalid counts as absent. */
		if (pool_decode(key, value, strlen(value), &other, NULL) == 0)
			r = pool_conflicts_pool(&pool, &other, err);
	}
	for (size_t i = 0; r == 0 && i < extents->n; i++) {
		AUTO_DONE(extent_done) struct extent extent = { 0 };
		const struct ctl_kv *kv = &extents->v[i];

		if (extent_decode(KV_ARGS(kv), &extent, NULL) == 0)
			r = pool_conflicts_extent(&pool, &extent, err);
	}
	return r;
}

struct filters {
	struct filter *v;
	const struct filter **list;
	size_t n;
};

static void filters_done(struct filters *f)
{
	for (size_t i = 0; i < f->n; i++)
		filter_done(&f->v[i]);
	free(f->v);
	free(f->list);
}

/* Those that are valid. */
static int read_filters(struct change_walk walk, struct filters *ret)
{
	size_t room = walk.old->n + walk.n + 1;
	const char *key, *value;

	ret->v = calloc(room, sizeof(*ret->v));
	ret->list = calloc(room, sizeof(*ret->list));
	if (!ret->v || !ret->list)
		return -ENOMEM;
	while ((key = change_next(&walk, &value))) {
		int r = filter_decode(key, value, strlen(value), &ret->v[ret->n], NULL);

		if (r == -ENOMEM)
			return r;
		if (r == 0) {
			ret->list[ret->n] = &ret->v[ret->n];
			ret->n++;
		}
	}
	return 0;
}

/* Both directions of every peer that will be there; only those are refused that changes concern. */
static int check_peers(struct change_walk peers, struct change_walk filters, struct err *err)
{
	AUTO_DONE(filters_done) struct filters have = { 0 };
	const char *key, *value;
	int r = read_filters(filters, &have);

	if (r < 0)
		return r;
	while (r == 0 && (key = change_next(&peers, &value))) {
		AUTO_DONE(peer_done) struct peer peer = { 0 };
		const struct filter *ignored;
		struct err why;

		if (peer_decode(key, value, strlen(value), &peer, &why) < 0)
			continue;
		for (int import = 0; r == 0 && import < 2; import++) {
			const char *name = import ? peer.import_filter : peer.export_filter;
			char filter[KEY_TEXT];

			r = peer_filter(&peer, import, have.list, have.n, &ignored, err);
			if (r == 0)
				continue;
			r = err_wrap(err, -EINVAL, "%s", key);
			if (!is_changed(&peers, key) &&
			    (key_filter(filter, name) < 0 || !is_changed(&peers, filter)))
				r = 0; /* it was so before */
		}
	}
	return r;
}

static int decode_one(const struct change *c, struct err *err)
{
	const struct record *type = record_of(c->kind->key);
	AUTO(free) void *record = calloc(1, type->size);
	int r;

	if (!record)
		return -ENOMEM;
	r = record_decode(type, c->key, c->value, strlen(c->value), record, err);
	if (r == 0)
		record_done(type, record);
	return r;
}

int change_check(const struct change *changes, size_t n, const struct world *world, struct err *err)
{
	struct change_walk pools = { &world->pools, changes, n, 0, 0, KEY_POOL },
			   peers = { &world->peers, changes, n, 0, 0, KEY_PEER },
			   filters = { &world->filters, changes, n, 0, 0, KEY_FILTER };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct change *c = &changes[i];

		if (!c->value)
			continue;
		r = decode_one(c, err);
		if (r == 0 && c->kind->key == KEY_POOL)
			r = check_pool(c, pools, &world->extents, err);
	}
	return r < 0 ? r : check_peers(peers, filters, err);
}

/* --- writing -------------------------------------------------------------------------------- */

struct outcome {
	bool succeeded, unknown;
};

static void on_reply(const struct store_reply *reply, void *arg)
{
	struct outcome *o = arg;

	o->succeeded = reply->succeeded;
	o->unknown = reply->unknown;
}

#define CHANGES_MAX 100 /* in one transaction, beside the ranges */

/* What holds for every key that begins so. */
static void add_range(struct txn *t, const struct ctl *ctl, const char *beginning,
		      struct store_compare compare)
{
	AUTO(free) char *key = NULL;

	if (asprintf(&key, "%s%s", ctl->settings->etcd.prefix, beginning) < 0)
		t->failed = true;
	else
		txn_if_prefix(t, key, compare);
}

static int make_request(struct txn *t, struct ctl *ctl, const struct change *changes, size_t n,
			const struct world *world, struct err *err)
{
	static const char *const ranges[] = { KEYS_POOL, KEYS_EXTENT, KEYS_PEER, KEYS_FILTER };
	AUTO_DONE(txn_done) struct txn relative = { 0 };
	int r;

	for (const struct change *c = changes; c < changes + n; c++) {
		txn_if(&relative, if_unchanged(c->key, c->mod_revision));
		txn_then(&relative, c->value ? op_put(c->key, c->value) : op_delete(c->key));
	}
	r = note_command(ctl, &relative, err);
	if (r < 0)
		return r;
	txn_add(t, ctl->settings->etcd.prefix, &relative);
	for (size_t i = 0; i < n; i++)
		if (changes[i].unless)
			add_range(t, ctl, changes[i].unless, if_none_made_after(NULL, NULL, 0));
	/* Nothing was written since the world was read. */
	for (size_t i = 0; world && i < ARRAY_SIZE(ranges); i++)
		add_range(t, ctl, ranges[i], if_none_written_after(NULL, NULL, world->revision));
	return t->failed ? -ENOMEM : 0;
}

/* What --dry-run prints, for people on stderr. */
static void print_change(const struct change *c)
{
	if (c->value)
		fprintf(stderr, "would write %s: %s\n", c->key, c->value);
	else
		fprintf(stderr, "would delete %s\n", c->key);
}

int change_write(struct ctl *ctl, const struct change *changes, size_t n, const struct world *world,
		 struct err *err)
{
	AUTO_DONE(txn_done) struct txn request = { 0 };
	struct store_txn txn;
	struct outcome outcome = { 0 };
	struct store *store = NULL;
	int r = ctl_store(ctl, &store, err);

	if (r < 0)
		return r;
	if (n > CHANGES_MAX)
		return err_set(err, -E2BIG,
			       "%zu records are too many for one transaction, which can change %d: "
			       "apply them in parts",
			       n, CHANGES_MAX);
	for (size_t i = 0; ctl->settings->dry_run && i < n; i++)
		print_change(&changes[i]);
	if (ctl->settings->dry_run)
		return 0;
	r = make_request(&request, ctl, changes, n, world, err);
	if (r < 0)
		return r;
	txn = txn_of(&request);
	r = store_sync_txn(store, &txn, ctl->timeout_ms, on_reply, &outcome, err);
	if (r < 0 && outcome.unknown)
		return err_wrap(err, r,
				"it is unknown whether this was done: check before you try again");
	if (r < 0)
		return ctl_etcd_failed(r, err);
	if (!outcome.succeeded)
		return err_set(err, -EBUSY, "these records have changed meanwhile: try again");
	return 0;
}
