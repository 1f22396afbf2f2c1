/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipam check: the audit's findings shown, and mended if asked to.
 *
 *   this node, etcd at one revision -> audit -> findings -> people
 *                                                  └─> --repair: told, asked, done, looked again
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ctl/frame/note.h"
#include "ctl/frame/verbs.h"
#include "ctl/ipam/ipam_local.h"
#include "ipam/audit/audit.h"
#include "lib/base/clock.h"
#include "lib/json/json.h"
#include "lib/json/tree.h"
#include "lib/model/keys.h"
#include "lib/model/lease_holder.h"
#include "lib/store/store_sync.h"

#define EXIT_FOUND 1
/* What the agent is about to mend by itself is mended by then. */
#define LASTING_US 1000000U
/* No ADD takes longer, by its deadline: a link that is unknown until then belongs to nobody. */
#define STRAY_SECONDS 12U

struct look {
	struct findings findings;
	int64_t revision;
	bool local;
	struct err left_out; /* what was not looked at, and why; "": nothing */
};

static void look_done(struct look *l)
{
	findings_done(&l->findings);
}

/* --- looking -------------------------------------------------------------------------------- */

static int audit_kvs(const struct ctl_kvs *kvs, const struct audit_local *local,
		     struct findings *ret)
{
	AUTO(free) struct store_kv *v = calloc(kvs->n + 1, sizeof(*v));
	struct audit_input in = { v, kvs->n, kvs->revision, NULL, NULL, local };
	char now[TIME_TEXT], kept[TIME_TEXT];

	if (!v)
		return -ENOMEM;
	in.now = clock_utc_text(now);
	in.kept = clock_utc_of(time(NULL) + LEASE_PROMISE_MAX, kept);
	for (size_t i = 0; i < kvs->n; i++)
		v[i] = (struct store_kv){ .key = kvs->v[i].key,
					  .value = kvs->v[i].value,
					  .value_len = kvs->v[i].value_len,
					  .create_revision = kvs->v[i].create_revision,
					  .mod_revision = kvs->v[i].mod_revision,
					  .lease = kvs->v[i].lease };
	return audit(&in, ret);
}

static int look_once(struct ctl *ctl, struct look *ret, struct err *err)
{
	AUTO(ipam_local_free) struct ipam_local *local = NULL;
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	int r = ipam_local_read(ctl, &local, &ret->left_out, err);

	r = r < 0 ? r : ctl_read(ctl, "", &kvs, err);
	if (r < 0)
		return r;
	ret->revision = kvs.revision;
	ret->local = local;
	r = audit_kvs(&kvs, ipam_local_audit(local), &ret->findings);
	return r;
}

static bool has_local(const struct findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (finding_is_local(f->v[i].kind))
			return true;
	return false;
}

/* What an agent holds and what etcd, files and kernel show are never read at the same moment. */
static int look(struct ctl *ctl, struct look *ret, struct err *err)
{
	AUTO_DONE(look_done) struct look first = { 0 };
	int r = look_once(ctl, &first, err);

	if (r < 0)
		return r;
	if (!has_local(&first.findings)) {
		*ret = first;
		first = (struct look){ 0 };
		return 0;
	}
	usleep(LASTING_US);
	r = look_once(ctl, ret, err);
	if (r == 0)
		findings_keep_lasting(&ret->findings, &first.findings);
	return r;
}

/* --- telling -------------------------------------------------------------------------------- */

static void add_findings(const struct findings *f, struct tree *t)
{
	tree_open(t, "findings", '[');
	for (const struct finding *x = f->v; x < f->v + f->n; x++) {
		tree_open(t, NULL, '{');
		tree_text(t, "severity", finding_severity_name(x->severity));
		tree_text(t, "kind", finding_kind_name(x->kind));
		tree_text(t, "thing", x->thing);
		tree_text(t, "sentence", x->sentence);
		tree_text(t, "todo", x->todo);
		tree_bool(t, "repairable", x->repair != REPAIR_NONE);
		tree_some_text(t, "leftAlone", x->left);
		tree_close(t);
	}
	tree_close(t);
}

/* repaired: what --repair did, or NULL without it; takes it. */
static int tell_json(struct ctl *ctl, const struct look *l, struct json_object *repaired)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct tree t = tree_new();
	int r;

	tree_number(&t, "revision", l->revision);
	tree_bool(&t, "local", l->local);
	tree_some_text(&t, "leftOut", l->left_out.text);
	if (repaired)
		tree_add(&t, "repaired", repaired);
	add_findings(&l->findings, &t);
	r = tree_end(&t, &object);
	return r ?: out_json(&ctl->out, object);
}

static size_t count_repairable(const struct findings *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->v[i].repair != REPAIR_NONE;
	return n;
}

static const char *colour_of(enum finding_severity severity)
{
	return severity == SEVERITY_ERROR     ? "\033[31m"
	       : severity == SEVERITY_WARNING ? "\033[33m"
					      : "";
}

static void tell_finding(const struct out *out, const struct finding *f)
{
	const char *colour = out->colour ? colour_of(f->severity) : "";

	/* Names and values of etcd were checked on their way into these texts. */
	fprintf(out->to, "%s%s%s %s %s\n  %s\n", colour, finding_severity_name(f->severity),
		*colour ? "\033[0m" : "", finding_kind_name(f->kind), f->thing, f->sentence);
	if (f->repair == REPAIR_NONE)
		fprintf(out->to, "  left alone: %s\n  to do: %s\n", f->left, f->todo);
	else
		fprintf(out->to, "  --repair %s\n", f->todo);
}

static void tell_people(struct ctl *ctl, const struct look *l)
{
	const struct findings *f = &l->findings;
	size_t n = count_repairable(f);

	for (size_t i = 0; i < f->n; i++)
		tell_finding(&ctl->out, &f->v[i]);
	if (!l->local)
		out_say(&ctl->out, "Only etcd was checked, not this node: %s", l->left_out.text);
	else if (l->left_out.text[0])
		out_say(&ctl->out, "Not checked: %s", l->left_out.text);
	if (!f->n)
		out_say(&ctl->out, "Nothing found, at revision %" PRId64 " of etcd", l->revision);
	else
		out_say(&ctl->out, "%zu found, of which --repair can repair %zu", f->n, n);
}

/* --- mending -------------------------------------------------------------------------------- */

struct mended {
	bool succeeded, unknown;
};

static void on_mended(const struct store_reply *reply, void *arg)
{
	struct mended *m = arg;

	m->succeeded = reply->succeeded;
	m->unknown = reply->unknown;
}

/* 0, or -ESTALE: what it follows from has changed, and nothing was done. */
static int mend_by_txn(struct ctl *ctl, const struct finding *f, struct err *err)
{
	AUTO_DONE(txn_done) struct txn whole = { 0 };
	AUTO_DONE(txn_done) struct txn noted = { 0 };
	struct mended mended = { 0 };
	struct store *store = NULL;
	struct store_txn txn;
	int r = ctl_store(ctl, &store, err);

	if (r < 0)
		return r;
	txn_add(&noted, "", &f->txn);
	r = note_command(ctl, &noted, err);
	if (r < 0)
		return r;
	txn_add(&whole, ctl->settings->etcd.prefix, &noted);
	if (whole.failed)
		return -ENOMEM;
	txn = txn_of(&whole);
	r = store_sync_txn(store, &txn, ctl->timeout_ms, on_mended, &mended, err);
	if (r < 0 && mended.unknown)
		return err_wrap(err, r, "it is not known whether this was done");
	if (r < 0)
		return ctl_etcd_failed(r, err);
	return mended.succeeded ? 0 : err_set(err, -ESTALE, "not done: it has changed meanwhile");
}

/* Looked at again after all that could be on its way has ended. */
static int mend_link(struct ctl *ctl, const struct finding *f, bool *waited, struct err *err)
{
	AUTO_DONE(look_done) struct look again = { 0 };
	const struct finding *still;
	int r = 0;

	if (!*waited) {
		out_say(&ctl->out, "waiting %u s for an ADD that may be under way ...",
			STRAY_SECONDS);
		fflush(ctl->out.to);
		sleep(STRAY_SECONDS);
	}
	*waited = true;
	r = look_once(ctl, &again, err);
	if (r < 0)
		return r;
	still = findings_find(&again.findings, f->kind, f->thing);
	if (!still || still->repair != REPAIR_LINK || still->link != f->link)
		return err_set(err, -ESTALE, "not done: it has changed meanwhile");
	return ipam_local_delete_link(f->link, err);
}

/* What is found now is what was told, and would be mended in the same way. */
static bool is_same_repair(const struct finding *a, const struct finding *b)
{
	return b && b->repair == a->repair && b->txn.ops.n == a->txn.ops.n &&
	       strcmp(a->todo, b->todo) == 0;
}

/* What refused it may be a repair of our own, just before: so it is concluded once more. */
static int mend_in_etcd(struct ctl *ctl, const struct finding *f, struct err *err)
{
	AUTO_DONE(look_done) struct look again = { 0 };
	const struct finding *now;
	struct err refused;
	int r = mend_by_txn(ctl, f, err);

	if (r != -ESTALE)
		return r;
	refused = *err;
	r = look_once(ctl, &again, err);
	if (r < 0)
		return r;
	now = findings_find(&again.findings, f->kind, f->thing);
	if (is_same_repair(f, now))
		return mend_by_txn(ctl, now, err);
	*err = refused;
	return -ESTALE;
}

static int mend(struct ctl *ctl, const struct finding *f, bool *waited,
		struct json_object *repaired)
{
	struct err why = { "" };
	struct tree t = tree_new();
	int r = f->repair == REPAIR_LINK ? mend_link(ctl, f, waited, &why)
					 : mend_in_etcd(ctl, f, &why);

	out_say(&ctl->out, "%s %s: %s", finding_kind_name(f->kind), f->thing,
		r < 0 ? why.text : "repaired");
	tree_text(&t, "kind", finding_kind_name(f->kind));
	tree_text(&t, "thing", f->thing);
	tree_text(&t, "done", f->todo);
	tree_bool(&t, "repaired", r == 0);
	if (r < 0)
		tree_text(&t, "why", why.text);
	return tree_end_in(&t, repaired);
}

/* Exactly what was told, then a new look. */
static int repair(struct ctl *ctl, struct look *l, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *repaired = json_object_new_array();
	size_t n = count_repairable(&l->findings);
	bool waited = false;
	char question[64];
	int r = repaired ? 0 : -ENOMEM;

	snprintf(question, sizeof(question), "Make the %zu repair%s shown above?", n,
		 n == 1 ? "" : "s");
	if (r == 0 && n)
		r = ctl_ask(ctl, question, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < l->findings.n; i++)
		if (l->findings.v[i].repair != REPAIR_NONE)
			r = mend(ctl, &l->findings.v[i], &waited, repaired);
	if (r == 0 && n) {
		findings_done(&l->findings);
		*l = (struct look){ 0 };
		r = look(ctl, l, err);
	}
	*ret = TAKE(repaired);
	return r;
}

int ipam_check(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(look_done) struct look l = { 0 };
	AUTO(json_put) struct json_object *repaired = NULL;
	bool json = ctl->out.format == OUT_JSON;
	size_t n;
	int r = look(ctl, &l, err);

	if (r < 0)
		return r;
	n = count_repairable(&l.findings);
	if (!json)
		tell_people(ctl, &l);
	if (ctl->settings->repair && !ctl->settings->dry_run) {
		fflush(ctl->out.to);
		r = repair(ctl, &l, &repaired, err);
		if (r < 0)
			return r;
		if (!json && n)
			tell_people(ctl, &l);
	}
	if (json && tell_json(ctl, &l, TAKE(repaired)) < 0)
		return -ENOMEM;
	return l.findings.n ? EXIT_FOUND : 0;
}
