/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/audit/audit.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ipam/audit/audit_state.h"

/* todo and left: where they are the same for all of a kind. */
static const struct {
	const char *name, *todo, *left;
} kinds[FINDING_KINDS] = {
	[FINDING_UNDECODABLE] = { "undecodable-record", "put the field right, or delete the key",
				  "its correct content is unknown" },
	[FINDING_BLOCK_WITHOUT_INDEX] = { "block-without-index", NULL, NULL },
	[FINDING_INDEX_WITHOUT_BLOCK] = { "index-without-block", NULL, NULL },
	[FINDING_FOREIGN_INDEX] = { "foreign-index", "deletes the index", NULL },
	[FINDING_TWO_INDEXES] = { "two-indexes", "deletes the index", NULL },
	[FINDING_ADDRESS_OUTSIDE] = { "address-outside-blocks", NULL, NULL },
	[FINDING_BLOCK_OUTSIDE] = { "block-outside-extents",
				    "delete the pods that use it; its node then gives it back",
				    NULL },
	[FINDING_EXTENT_MISSING] = { "extent-missing", NULL, NULL },
	[FINDING_OVERLAPPING_BLOCKS] = { "overlapping-blocks",
					 "delete the pods in one of the two; its node then gives "
					 "it back, or delete its keys",
					 "both may be in use" },
	[FINDING_OVERLAPPING_EXTENTS] = { "overlapping-extents",
					  "disable one of the two pools, wait until its blocks "
					  "are given back, then delete it and its extent",
					  "blocks may have been cut from both" },
	[FINDING_UNUSED_EXTENT] = { "unused-extent", "deletes the extent", NULL },
	[FINDING_DELETED_POOL] = { "block-of-deleted-pool",
				   "its agent gives it back by itself when its last pod is gone",
				   NULL },
	[FINDING_NO_NODE] = { "no-node-record", NULL, NULL },
	[FINDING_STATUS_WITHOUT_NODE] = { "status-without-node", NULL, NULL },
	[FINDING_LEAK] = { "leak",
			   "the agent releases it by itself when it has seen so twice, 120 s apart",
			   "one look is not enough: the address counts as in use" },
	[FINDING_STRAY_LINK] = { "stray-link", NULL, NULL },
	[FINDING_STRAY_ROUTE] = { "stray-route",
				  "the agent removes it by itself, after 90 s at the latest",
				  "the agent alone changes these routes" },
	[FINDING_ATTACHMENT_WITHOUT_KEY] = { "attachment-without-key",
					     "the agent writes it within a second; if not, see "
					     "roostctl status",
					     "the agent alone writes these keys" },
	[FINDING_KEY_WITHOUT_ATTACHMENT] = { "key-without-attachment",
					     "the agent deletes the key within a second; if not, "
					     "see roostctl status",
					     "the agent alone writes these keys" },
	[FINDING_LOST_BLOCK] = { "lost-block",
				 "delete these pods: see roostctl address list; new ones get "
				 "other addresses",
				 "no running pod loses its address" },
	[FINDING_BLOCK_WITHOUT_FILE] = { "block-without-file",
					 "the agent writes it by itself, after a claim or when "
					 "files vanish; if not, see roostctl status",
					 "the agent alone writes these files" },
	[FINDING_FILE_WITHOUT_BLOCK] = { "file-without-block",
					 "the agent looks again within a minute, and claims it "
					 "again or drops it",
					 "the agent alone knows whether pods use it" },
};

const char *finding_kind_name(enum finding_kind kind)
{
	return kinds[kind].name;
}

int finding_kind_parse(const char *name, enum finding_kind *ret)
{
	for (size_t i = 0; i < FINDING_KINDS; i++) {
		if (strcmp(kinds[i].name, name) != 0)
			continue;
		*ret = (enum finding_kind)i;
		return 0;
	}
	return -EINVAL;
}

bool finding_is_local(enum finding_kind kind)
{
	return kind >= FINDING_LEAK;
}

const char *finding_severity_name(enum finding_severity severity)
{
	static const char *const names[] = { "note", "warning", "error" };

	return names[severity];
}

/* --- one finding ---------------------------------------------------------------------------- */

static void finding_done(struct finding *f)
{
	free(f->thing);
	free(f->sentence);
	free(f->todo);
	free(f->left);
	txn_done(&f->txn);
	*f = (struct finding){ 0 };
}

void findings_done(struct findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		finding_done(&f->v[i]);
	array_done(f);
}

static PRINTF_LIKE(3, 0) void set_text(struct audit *a, char **text, const char *fmt, va_list args)
{
	free(*text);
	if (vasprintf(text, fmt, args) < 0) {
		*text = NULL;
		a->failed = true;
	}
}

/* The one that was made last; one that nobody sees where there was no memory for it. */
static struct finding *last(const struct audit *a)
{
	static struct finding nobody;

	if (a->failed)
		finding_done(&nobody);
	return a->failed ? &nobody : &a->findings.v[a->findings.n - 1];
}

void finding_new(struct audit *a, enum finding_kind kind, enum finding_severity severity,
		 const char *thing, const char *fmt, ...)
{
	struct finding *f = array_add(&a->findings);
	va_list args;

	a->failed = a->failed || !f;
	if (!f)
		return;
	*f = (struct finding){
		.kind = kind,
		.severity = severity,
		.thing = strdup(thing),
		.todo = strdup(kinds[kind].todo ?: ""),
		.left = strdup(kinds[kind].left ?: ""),
	};
	va_start(args, fmt);
	set_text(a, &f->sentence, fmt, args);
	va_end(args);
}

void finding_todo(struct audit *a, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(a, &last(a)->todo, fmt, args);
	va_end(args);
}

void finding_left(struct audit *a, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(a, &last(a)->left, fmt, args);
	va_end(args);
}

void finding_from(struct audit *a, const struct store_kv *kv)
{
	if (kv)
		txn_if(&last(a)->txn, if_unchanged(kv->key, kv->mod_revision));
}

void finding_from_absent(struct audit *a, const char *key)
{
	txn_if(&last(a)->txn, if_absent(key));
}

void finding_from_no_newer(struct audit *a, const char *beginning)
{
	txn_if_prefix(&last(a)->txn, beginning, if_none_made_after(NULL, NULL, a->in->revision));
}

void finding_deletes(struct audit *a, const char *key)
{
	last(a)->repair = REPAIR_TXN;
	txn_then(&last(a)->txn, op_delete(key));
}

void finding_puts(struct audit *a, const char *key, char *value)
{
	last(a)->repair = REPAIR_TXN;
	txn_then(&last(a)->txn, op_put(key, value));
	free(value);
}

void finding_unlinks(struct audit *a, uint32_t link)
{
	last(a)->repair = REPAIR_LINK;
	last(a)->link = link;
}

void audit_undecodable(struct audit *a, const struct store_kv *kv, const char *why)
{
	finding_new(a, FINDING_UNDECODABLE, SEVERITY_WARNING, kv->key, "%s", why);
	finding_from(a, kv);
}

/* --- all of them ---------------------------------------------------------------------------- */

static int compare_findings(const void *x, const void *y)
{
	const struct finding *a = x, *b = y;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->thing, b->thing);
}

const struct finding *findings_find(const struct findings *f, enum finding_kind kind,
				    const char *thing)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].kind == kind && strcmp(f->v[i].thing, thing) == 0)
			return &f->v[i];
	return NULL;
}

void findings_keep_lasting(struct findings *f, const struct findings *again)
{
	for (size_t i = f->n; i-- > 0;)
		if (finding_is_local(f->v[i].kind) &&
		    !findings_find(again, f->v[i].kind, f->v[i].thing)) {
			finding_done(&f->v[i]);
			array_remove(f, i);
		}
}

/* Concluded from something that the rest of the state has not heard of. */
static bool is_news(const struct audit *a, const struct finding *f)
{
	for (size_t i = 0; i < f->txn.compares.n; i++)
		if (f->txn.compares.v[i].target == STORE_MOD_REVISION &&
		    f->txn.compares.v[i].number > a->in->revision)
			return true;
	return false;
}

int audit(const struct audit_input *in, struct findings *ret)
{
	struct audit a = { .in = in };
	struct findings *all = &a.findings;
	size_t kept = 0;

	if (audit_read(&a) < 0)
		a.failed = true;
	if (!a.failed)
		audit_etcd(&a);
	if (!a.failed && in->local)
		audit_local(&a);
	audit_forget(&a);
	for (size_t i = 0; i < all->n; i++) {
		struct finding *f = &all->v[i];

		a.failed = a.failed || !f->thing || !f->sentence || !f->todo || !f->left ||
			   f->txn.failed;
		if (is_news(&a, f))
			finding_done(f);
		else
			all->v[kept++] = *f;
	}
	all->n = kept;
	if (a.failed) {
		findings_done(all);
		return -ENOMEM;
	}
	if (all->n)
		qsort(all->v, all->n, sizeof(*all->v), compare_findings);
	*ret = *all;
	return 0;
}
