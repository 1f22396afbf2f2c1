/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store_fake.h"

#include <errno.h>
#include <string.h>

#define ENDLESS_STEPS 10000000
#define CUT           "watches are cut"

struct fake_fault;
TAILQ_HEAD(fake_faults, fake_fault);

struct fake {
	struct memory memory;
	struct fake_faults faults;
	struct memory_request **late;
	size_t n_late;
	/* The client has not noticed yet: */
	struct memory_task news;
	bool cluster_changed, went_back;
	store_fake_txn_fn *before_txn;
	void *before_txn_arg;
};

static inline struct fake *fake_of(struct store *s)
{
	return (struct fake *)s;
}

bool store_fake_step(struct store *s)
{
	return memory_step(&fake_of(s)->memory);
}

unsigned store_fake_run(struct store *s)
{
	unsigned steps = 0;

	while (store_fake_step(s)) {
		if (++steps == ENDLESS_STEPS) {
			fprintf(stderr, "store_fake: this never ends\n");
			abort();
		}
	}
	return steps;
}

/* --- the script of faults ------------------------------------------------------------------- */

struct fake_fault {
	TAILQ_ENTRY(fake_fault) entry;
	unsigned kinds, left;
	char *prefix;
	struct memory_verdict verdict;
};

static void add_fault(struct store *s, unsigned kinds, const char *prefix, unsigned n,
		      struct memory_verdict verdict)
{
	struct fake_fault *fault = memory_must(calloc(1, sizeof(*fault)));

	fault->kinds = kinds;
	fault->left = n;
	fault->prefix = prefix ? memory_must(strdup(prefix)) : NULL;
	fault->verdict = verdict;
	TAILQ_INSERT_TAIL(&((struct fake *)s)->faults, fault, entry);
}

void store_fake_next(struct store *s, unsigned kinds, const char *prefix, unsigned n,
		     enum store_fake_fate fate)
{
	add_fault(s, kinds, prefix, n, (struct memory_verdict){ .fate = (enum memory_fate)fate });
}

void store_fake_fail_next(struct store *s, unsigned kinds, const char *prefix, unsigned n, int err)
{
	add_fault(s, kinds, prefix, n,
		  (struct memory_verdict){ .err = err, .text = "the test wants this error" });
}

static bool starts_with(const char *key, const char *prefix)
{
	return key && strncmp(key, prefix, strlen(prefix)) == 0;
}

static bool concerns(const struct fake_fault *fault, enum memory_kind kind,
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

static struct fake_fault *first_concerned(struct fake *f, enum memory_kind kind,
					  const struct store_txn *txn, const char *key)
{
	struct fake_fault *fault;

	TAILQ_FOREACH(fault, &f->faults, entry)
		if (concerns(fault, kind, txn, key))
			return fault;
	return NULL;
}

static struct memory_verdict verdict(struct memory *m, enum memory_kind kind,
				     const struct store_txn *txn, const char *key)
{
	struct fake_fault *fault = first_concerned(fake_of(&m->base), kind, txn, key);

	if (!fault)
		return (struct memory_verdict){ .fate = MEMORY_PASS };
	fault->left--;
	return fault->verdict;
}

unsigned store_fake_faults_left(const struct store *s)
{
	const struct fake_fault *fault;
	unsigned n = 0;

	TAILQ_FOREACH(fault, &((const struct fake *)s)->faults, entry)
		if (fault->verdict.err || fault->verdict.fate != MEMORY_PASS)
			n += fault->left;
	return n;
}

static void fake_faults_done(struct fake *f)
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

static void keep_late(struct memory *m, struct memory_request *q)
{
	struct fake *f = fake_of(&m->base);

	f->late = memory_must(realloc(f->late, (f->n_late + 1) * sizeof(struct memory_request *)));
	f->late[f->n_late++] = memory_request_ref(q);
}

static void fake_drop_late(struct fake *f)
{
	for (size_t i = 0; i < f->n_late; i++)
		memory_request_unref(f->late[i]);
	free(f->late);
	f->late = NULL;
	f->n_late = 0;
}

size_t store_fake_wake(struct store *s)
{
	struct fake *f = (struct fake *)s;
	size_t n = f->n_late;

	for (size_t i = 0; i < n; i++) {
		struct memory_answer answer;

		memory_request_apply(&f->memory, f->late[i], &answer);
		memory_answer_done(&answer);
	}
	fake_drop_late(f);
	memory_changed(&f->memory);
	return n;
}

/* --- connection ----------------------------------------------------------------------------- */

void store_fake_connect(struct store *s, bool on)
{
	struct fake *f = fake_of(s);

	if (f->cluster_changed || f->went_back)
		memory_queue(&f->memory, &f->news);
	memory_connect(&f->memory, on, f->memory.following, CUT);
}

void store_fake_follow(struct store *s, bool on)
{
	struct memory *m = &fake_of(s)->memory;

	memory_connect(m, m->online, on, CUT);
}

/* --- etcd's own life ------------------------------------------------------------------------ */

void store_fake_compact(struct store *s)
{
	struct memory_etcd *e = &((struct fake *)s)->memory.own;

	e->compacted = e->revision;
}

void store_fake_relist(struct store *s)
{
	memory_watches_list(&fake_of(s)->memory, false);
}

struct store_fake_snapshot {
	struct memory_etcd etcd;
};

struct store_fake_snapshot *store_fake_snapshot(const struct store *s)
{
	struct store_fake_snapshot *snapshot = memory_must(calloc(1, sizeof(*snapshot)));

	memory_etcd_copy(&snapshot->etcd, &((const struct fake *)s)->memory.own);
	return snapshot;
}

void store_fake_snapshot_free(struct store_fake_snapshot *snapshot)
{
	if (!snapshot)
		return;
	memory_etcd_done(&snapshot->etcd);
	free(snapshot);
}

static void fake_tell_news(struct memory_task *task)
{
	struct fake *f = MEMORY_OWNER(task, struct fake, news);
	bool changed = f->cluster_changed;

	if (!f->memory.online)
		return;
	f->cluster_changed = f->went_back = false;
	if (changed)
		store_notify(&f->memory.base, STORE_CLUSTER_CHANGED,
			     "another etcd cluster answers");
	else
		store_notify(&f->memory.base, STORE_REVISION_WENT_BACK,
			     "etcd went back to revision %lld", (long long)f->memory.own.revision);
}

/* Nothing that was known by revisions holds any more. */
static void new_era(struct fake *f)
{
	fake_drop_late(f);
	memory_queue(&f->memory, &f->news);
	memory_watches_list(&f->memory, true);
}

void store_fake_restore(struct store *s, const struct store_fake_snapshot *snapshot)
{
	struct fake *f = (struct fake *)s;
	int64_t now = f->memory.own.now;

	memory_etcd_done(&f->memory.own);
	memory_etcd_copy(&f->memory.own, &snapshot->etcd);
	/* The clock goes on; restored leases get their whole time again. */
	f->memory.own.now = now;
	for (size_t i = 0; i < f->memory.own.n_leases; i++)
		f->memory.own.leases[i].expires = now + f->memory.own.leases[i].ttl;
	f->went_back = true;
	new_era(f);
}

void store_fake_wipe(struct store *s)
{
	struct fake *f = (struct fake *)s;
	int64_t now = f->memory.own.now;

	memory_etcd_done(&f->memory.own);
	memory_etcd_init(&f->memory.own);
	f->memory.own.now = now;
	f->cluster_changed = true;
	new_era(f);
}

void store_fake_advance(struct store *s, int64_t seconds)
{
	struct fake *f = (struct fake *)s;

	memory_advance(&f->memory.own, seconds);
	memory_changed(&f->memory);
}

/* --- the test's own hands ------------------------------------------------------------------- */

static int64_t do_now(struct store *s, const struct store_op *op)
{
	const struct store_txn txn = { .success = op, .n_success = 1 };
	struct fake *f = (struct fake *)s;
	struct memory_answer answer;

	memory_txn(&f->memory.own, &txn, &answer);
	/* A test that writes what etcd refuses is wrong itself. */
	if (answer.err)
		abort();
	memory_answer_done(&answer);
	memory_changed(&f->memory);
	return f->memory.own.revision;
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
	const struct memory_kv *kv = memory_find(&((const struct fake *)s)->memory.own, key);

	return kv ? &kv->kv : NULL;
}

bool store_fake_ever(const struct store *s, const char *key, const char *value)
{
	const struct memory_kvs *history = &((const struct fake *)s)->memory.own.history;

	for (size_t i = 0; i < history->n; i++) {
		const struct store_kv *kv = &history->v[i]->kv;

		if (kv->version && !strcmp(kv->key, key) && !strcmp(kv->value, value))
			return true;
	}
	return false;
}

char *store_fake_dump(const struct store *s, const char *key, const char *range_end)
{
	struct memory_kvs found;
	char *text = NULL;
	size_t n = 0;
	FILE *out = memory_must(open_memstream(&text, &n));

	memory_range(&((const struct fake *)s)->memory.own, key, range_end, &found);
	for (size_t i = 0; i < found.n; i++)
		fprintf(out, "%s=%s\n", found.v[i]->kv.key, found.v[i]->kv.value);
	memory_kvs_done(&found);
	if (fclose(out))
		abort();
	return text;
}

int64_t store_fake_revision(const struct store *s)
{
	return ((const struct fake *)s)->memory.own.revision;
}

void store_fake_before_txn(struct store *s, store_fake_txn_fn *fn, void *arg)
{
	struct fake *f = (struct fake *)s;

	f->before_txn = fn;
	f->before_txn_arg = arg;
}

static void before_txn(struct memory *m, const struct store_txn *txn)
{
	struct fake *f = fake_of(&m->base);

	if (f->before_txn)
		f->before_txn(&m->base, txn, f->before_txn_arg);
}

const struct memory_hooks fake_hooks = {
	.verdict = verdict,
	.late = keep_late,
	.before_txn = before_txn,
};

/* --- the store ------------------------------------------------------------------------------ */

/* With nothing to do nothing will ever come: better an error than a test that hangs. */
static int fake_turn(struct store *s, uint32_t timeout_ms)
{
	return store_fake_step(s) ? 0 : -EDEADLK;
}

static void fake_free(struct store *s)
{
	struct fake *f = fake_of(s);

	memory_close(&f->memory);
	fake_faults_done(f);
	fake_drop_late(f);
	memory_done(&f->memory);
	free(f);
}

static const struct store_ops fake_ops = {
	.txn = memory_txn_start,
	.list = memory_list_start,
	.lease = memory_lease_start,
	.watch = memory_watch,
	.turn = fake_turn,
	.free = fake_free,
};

struct store *store_fake_new(void)
{
	struct fake *f = memory_must(calloc(1, sizeof(*f)));

	memory_init(&f->memory, &fake_ops, &fake_hooks);
	f->news.run = fake_tell_news;
	TAILQ_INIT(&f->faults);
	return &f->memory.base;
}

void store_fake_set_page(struct store *s, size_t keys)
{
	fake_of(s)->memory.page = keys;
}

void store_fake_replies_first(struct store *s, bool on)
{
	fake_of(s)->memory.replies_first = on;
}

size_t store_fake_release(struct store *s)
{
	return memory_release(&fake_of(s)->memory);
}

struct memory_stats store_fake_stats(const struct store *s)
{
	const struct fake *f = (const struct fake *)s;
	struct memory_stats stats = memory_stats(&f->memory);

	stats.late = f->n_late;
	return stats;
}
