/* SPDX-License-Identifier: Apache-2.0 */
/* What the test does: faults, etcd's misfortunes, and another writer's hands. */
#include <string.h>

#include "lib/store_fake_parts.h"

/* --- the script of faults ------------------------------------------------------------------- */

struct fake_fault {
	TAILQ_ENTRY(fake_fault) entry;
	unsigned kinds, left;
	char *prefix;
	struct fake_verdict verdict;
};

static void add_fault(struct store *s, unsigned kinds, const char *prefix, unsigned n,
		      struct fake_verdict verdict)
{
	struct fake_fault *fault = fake_must(calloc(1, sizeof(*fault)));

	fault->kinds = kinds;
	fault->left = n;
	fault->prefix = prefix ? fake_must(strdup(prefix)) : NULL;
	fault->verdict = verdict;
	TAILQ_INSERT_TAIL(&((struct fake *)s)->faults, fault, entry);
}

void store_fake_next(struct store *s, unsigned kinds, const char *prefix, unsigned n,
		     enum store_fake_fate fate)
{
	add_fault(s, kinds, prefix, n, (struct fake_verdict){ .fate = fate });
}

void store_fake_fail_next(struct store *s, unsigned kinds, const char *prefix, unsigned n, int err)
{
	add_fault(s, kinds, prefix, n, (struct fake_verdict){ .err = err });
}

static bool starts_with(const char *key, const char *prefix)
{
	return key && strncmp(key, prefix, strlen(prefix)) == 0;
}

static bool concerns(const struct fake_fault *fault, enum store_fake_kind kind,
		     const struct store_txn *txn, const char *key)
{
	if (!(fault->kinds & kind) || !fault->left)
		return false;
	if (!fault->prefix)
		return true;
	for (size_t i = 0; txn && i < txn->n_success; i++)
		if (starts_with(txn->success[i].key, fault->prefix))
			return true;
	return starts_with(key, fault->prefix);
}

static struct fake_fault *first_concerned(struct fake *f, enum store_fake_kind kind,
					  const struct store_txn *txn, const char *key)
{
	struct fake_fault *fault;

	TAILQ_FOREACH(fault, &f->faults, entry)
		if (concerns(fault, kind, txn, key))
			return fault;
	return NULL;
}

struct fake_verdict fake_next_verdict(struct fake *f, enum store_fake_kind kind,
				      const struct store_txn *txn, const char *key)
{
	struct fake_fault *fault = first_concerned(f, kind, txn, key);

	if (!fault)
		return (struct fake_verdict){ .fate = STORE_FAKE_PASS };
	fault->left--;
	return fault->verdict;
}

unsigned store_fake_faults_left(const struct store *s)
{
	const struct fake_fault *fault;
	unsigned n = 0;

	TAILQ_FOREACH(fault, &((const struct fake *)s)->faults, entry)
		if (fault->verdict.err || fault->verdict.fate != STORE_FAKE_PASS)
			n += fault->left;
	return n;
}

void fake_faults_done(struct fake *f)
{
	struct fake_fault *fault;

	while ((fault = TAILQ_FIRST(&f->faults))) {
		TAILQ_REMOVE(&f->faults, fault, entry);
		free(fault->prefix);
		free(fault);
	}
}

void store_fake_forget_faults(struct store *s)
{
	fake_faults_done((struct fake *)s);
}

/* --- late requests -------------------------------------------------------------------------- */

void fake_keep_late(struct fake *f, struct fake_request *q)
{
	f->late = fake_must(realloc(f->late, (f->n_late + 1) * sizeof(struct fake_request *)));
	f->late[f->n_late++] = fake_request_ref(q);
}

void fake_drop_late(struct fake *f)
{
	for (size_t i = 0; i < f->n_late; i++)
		fake_request_unref(f->late[i]);
	free(f->late);
	f->late = NULL;
	f->n_late = 0;
}

size_t store_fake_wake(struct store *s)
{
	struct fake *f = (struct fake *)s;
	size_t n = f->n_late;

	for (size_t i = 0; i < n; i++) {
		struct fake_answer answer;

		fake_request_apply(f, f->late[i], &answer);
		fake_answer_done(&answer);
	}
	fake_drop_late(f);
	fake_changed(f);
	return n;
}

/* --- connection ----------------------------------------------------------------------------- */

void store_fake_connect(struct store *s, bool on)
{
	struct fake *f = (struct fake *)s;

	f->online = on;
	if (f->cluster_changed || f->went_back)
		fake_queue(f, &f->news);
	fake_calls_go_on(f);
	fake_watches_look(f);
}

void store_fake_follow(struct store *s, bool on)
{
	struct fake *f = (struct fake *)s;

	f->following = on;
	fake_watches_look(f);
}

/* --- etcd's own life ------------------------------------------------------------------------ */

void store_fake_compact(struct store *s)
{
	struct fake_etcd *e = &((struct fake *)s)->etcd;

	e->compacted = e->revision;
}

void store_fake_relist(struct store *s)
{
	fake_watches_list((struct fake *)s, false);
}

struct store_fake_snapshot {
	struct fake_etcd etcd;
};

struct store_fake_snapshot *store_fake_snapshot(const struct store *s)
{
	struct store_fake_snapshot *snapshot = fake_must(calloc(1, sizeof(*snapshot)));

	fake_etcd_copy(&snapshot->etcd, &((const struct fake *)s)->etcd);
	return snapshot;
}

void store_fake_snapshot_free(struct store_fake_snapshot *snapshot)
{
	if (!snapshot)
		return;
	fake_etcd_done(&snapshot->etcd);
	free(snapshot);
}

void fake_tell_news(struct fake_task *task)
{
	struct fake *f = FAKE_OWNER(task, struct fake, news);
	bool changed = f->cluster_changed;

	if (!f->online)
		return;
	f->cluster_changed = f->went_back = false;
	if (changed)
		store_notify(&f->base, STORE_CLUSTER_CHANGED, "another etcd cluster answers");
	else
		store_notify(&f->base, STORE_REVISION_WENT_BACK, "etcd went back to revision %lld",
			     (long long)f->etcd.revision);
}

/* Nothing that was known by revisions holds any more. */
static void new_era(struct fake *f)
{
	fake_drop_late(f);
	fake_queue(f, &f->news);
	fake_watches_list(f, true);
}

void store_fake_restore(struct store *s, const struct store_fake_snapshot *snapshot)
{
	struct fake *f = (struct fake *)s;
	int64_t now = f->etcd.now;

	fake_etcd_done(&f->etcd);
	fake_etcd_copy(&f->etcd, &snapshot->etcd);
	/* The clock goes on; restored leases get their whole time again. */
	f->etcd.now = now;
	for (size_t i = 0; i < f->etcd.n_leases; i++)
		f->etcd.leases[i].expires = now + f->etcd.leases[i].ttl;
	f->went_back = true;
	new_era(f);
}

void store_fake_wipe(struct store *s)
{
	struct fake *f = (struct fake *)s;
	int64_t now = f->etcd.now;

	fake_etcd_done(&f->etcd);
	fake_etcd_init(&f->etcd);
	f->etcd.now = now;
	f->cluster_changed = true;
	new_era(f);
}

void store_fake_advance(struct store *s, int64_t seconds)
{
	struct fake *f = (struct fake *)s;

	fake_advance(&f->etcd, seconds);
	fake_changed(f);
}

/* --- the test's own hands ------------------------------------------------------------------- */

static int64_t do_now(struct store *s, const struct store_op *op)
{
	const struct store_txn txn = { .success = op, .n_success = 1 };
	struct fake *f = (struct fake *)s;
	struct fake_answer answer;

	fake_txn(&f->etcd, &txn, &answer);
	/* A test that writes what etcd refuses is wrong itself. */
	if (answer.err)
		abort();
	fake_answer_done(&answer);
	fake_changed(f);
	return f->etcd.revision;
}

int64_t store_fake_put_leased(struct store *s, const char *key, const char *value, int64_t lease)
{
	const struct store_op op = {
		.kind = STORE_PUT,
		.key = key,
		.value = value,
		.value_len = strlen(value),
		.lease = lease,
	};

	return do_now(s, &op);
}

int64_t store_fake_put(struct store *s, const char *key, const char *value)
{
	return store_fake_put_leased(s, key, value, 0);
}

int64_t store_fake_delete(struct store *s, const char *key, const char *range_end)
{
	return do_now(s, &(struct store_op){ STORE_DELETE, .key = key, .range_end = range_end });
}

const struct store_kv *store_fake_get(const struct store *s, const char *key)
{
	const struct fake_kv *kv = fake_find(&((const struct fake *)s)->etcd, key);

	return kv ? &kv->kv : NULL;
}

bool store_fake_ever(const struct store *s, const char *key, const char *value)
{
	const struct fake_kvs *history = &((const struct fake *)s)->etcd.history;

	for (size_t i = 0; i < history->n; i++) {
		const struct store_kv *kv = &history->v[i]->kv;

		if (kv->version && !strcmp(kv->key, key) && !strcmp(kv->value, value))
			return true;
	}
	return false;
}

char *store_fake_dump(const struct store *s, const char *key, const char *range_end)
{
	struct fake_kvs found;
	char *text = NULL;
	size_t n = 0;
	FILE *out = fake_must(open_memstream(&text, &n));

	fake_range(&((const struct fake *)s)->etcd, key, range_end, &found);
	for (size_t i = 0; i < found.n; i++)
		fprintf(out, "%s=%s\n", found.v[i]->kv.key, found.v[i]->kv.value);
	fake_kvs_done(&found);
	if (fclose(out))
		abort();
	return text;
}

int64_t store_fake_revision(const struct store *s)
{
	return ((const struct fake *)s)->etcd.revision;
}

void store_fake_before_txn(struct store *s, store_fake_txn_fn *fn, void *arg)
{
	struct fake *f = (struct fake *)s;

	f->before_txn = fn;
	f->before_txn_arg = arg;
}
