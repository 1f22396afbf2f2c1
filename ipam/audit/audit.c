/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/audit/audit.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ipam/audit/audit_parts.h"

static const char *const kinds[FINDING_KINDS] = {
	[FINDING_UNDECODABLE] = "undecodable-record",
	[FINDING_BLOCK_WITHOUT_INDEX] = "block-without-index",
	[FINDING_INDEX_WITHOUT_BLOCK] = "index-without-block",
	[FINDING_FOREIGN_INDEX] = "foreign-index",
	[FINDING_TWO_INDEXES] = "two-indexes",
	[FINDING_ADDRESS_OUTSIDE] = "address-outside-blocks",
	[FINDING_BLOCK_OUTSIDE] = "block-outside-extents",
	[FINDING_EXTENT_MISSING] = "extent-missing",
	[FINDING_OVERLAPPING_BLOCKS] = "overlapping-blocks",
	[FINDING_OVERLAPPING_EXTENTS] = "overlapping-extents",
	[FINDING_UNUSED_EXTENT] = "unused-extent",
	[FINDING_DELETED_POOL] = "block-of-deleted-pool",
	[FINDING_NO_NODE] = "no-node-record",
	[FINDING_STATUS_WITHOUT_NODE] = "status-without-node",
	[FINDING_LEAK] = "leak",
	[FINDING_STRAY_LINK] = "stray-link",
	[FINDING_STRAY_ROUTE] = "stray-route",
	[FINDING_ATTACHMENT_WITHOUT_KEY] = "attachment-without-key",
	[FINDING_KEY_WITHOUT_ATTACHMENT] = "key-without-attachment",
	[FINDING_LOST_BLOCK] = "lost-block",
	[FINDING_BLOCK_WITHOUT_FILE] = "block-without-file",
	[FINDING_FILE_WITHOUT_BLOCK] = "file-without-block",
};

const char *finding_kind_name(enum finding_kind kind)
{
	return kinds[kind];
}

int finding_kind_parse(const char *name, enum finding_kind *ret)
{
	for (size_t i = 0; i < FINDING_KINDS; i++) {
		if (strcmp(kinds[i], name) != 0)
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

/* A thing that cannot be kept makes the whole audit fail, so what it is written to may be lost. */
struct finding *finding_new(struct audit *a, enum finding_kind kind, enum finding_severity severity,
			    const char *thing)
{
	static struct finding nobody;
	struct finding *new = array_add(&a->findings);

	if (!new) {
		a->failed = true;
		finding_done(&nobody);
		return &nobody;
	}
	*new = (struct finding){
		.kind = kind,
		.severity = severity,
		.thing = strdup(thing),
		.sentence = strdup(""),
		.todo = strdup(""),
		.left = strdup(""),
	};
	return new;
}

static PRINTF_LIKE(3, 0) void set_text(struct audit *a, char **text, const char *fmt, va_list args)
{
	free(*text);
	if (vasprintf(text, fmt, args) < 0) {
		*text = NULL;
		a->failed = true;
	}
}

void finding_says(struct audit *a, struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(a, &f->sentence, fmt, args);
	va_end(args);
}

void finding_todo(struct audit *a, struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(a, &f->todo, fmt, args);
	va_end(args);
}

void finding_left(struct audit *a, struct finding *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(a, &f->left, fmt, args);
	va_end(args);
}

void because(struct finding *f, const struct store_kv *kv)
{
	txn_if(&f->txn, if_unchanged(kv->key, kv->mod_revision));
}

void because_absent(struct finding *f, const char *key)
{
	txn_if(&f->txn, if_absent(key));
}

void because_no_newer(struct audit *a, struct finding *f, const char *beginning)
{
	txn_if_prefix(&f->txn, beginning, if_none_made_after(NULL, NULL, a->in->revision));
}

void repair_delete(struct finding *f, const char *key)
{
	f->repair = REPAIR_TXN;
	txn_then(&f->txn, op_delete(key));
}

void repair_put(struct finding *f, const char *key, char *value)
{
	f->repair = REPAIR_TXN;
	txn_then(&f->txn, op_put(key, value));
	free(value);
}

void audit_undecodable(struct audit *a, const struct store_kv *kv, const char *why)
{
	struct finding *f = finding_new(a, FINDING_UNDECODABLE, SEVERITY_WARNING, kv->key);

	because(f, kv);
	finding_says(a, f, "%s", why);
	finding_todo(a, f, "put the field right, or delete the key");
	finding_left(a, f, "nobody knows what it should say");
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

static void drop_news(struct audit *a)
{
	struct findings *f = &a->findings;
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++) {
		a->failed = a->failed || !f->v[i].thing || !f->v[i].sentence || !f->v[i].todo ||
			    !f->v[i].left || f->v[i].txn.failed;
		if (is_news(a, &f->v[i]))
			finding_done(&f->v[i]);
		else
			f->v[kept++] = f->v[i];
	}
	f->n = kept;
}

int audit(const struct audit_input *in, struct findings *ret)
{
	struct audit a = { .in = in };

	if (audit_read(&a) < 0)
		a.failed = true;
	if (!a.failed) {
		audit_blocks(&a);
		audit_indexes_all(&a);
		audit_cuts(&a);
		audit_nodes(&a);
		audit_addresses(&a);
		if (in->local)
			audit_node_itself(&a);
	}
	drop_news(&a);
	audit_forget(&a);
	if (a.failed) {
		findings_done(&a.findings);
		return -ENOMEM;
	}
	if (a.findings.n)
		qsort(a.findings.v, a.findings.n, sizeof(*a.findings.v), compare_findings);
	*ret = a.findings;
	return 0;
}
