/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/txn.h"

static void free_text(const char *text)
{
	free((char *)(uintptr_t)text);
}

void txn_done(struct txn *t)
{
	for (size_t i = 0; i < t->compares.n; i++) {
		free_text(t->compares.v[i].key);
		free_text(t->compares.v[i].range_end);
		free_text(t->compares.v[i].value);
	}
	for (size_t i = 0; i < t->ops.n; i++) {
		free_text(t->ops.v[i].key);
		free_text(t->ops.v[i].range_end);
		free_text(t->ops.v[i].value);
	}
	array_done(&t->compares);
	array_done(&t->ops);
	t->failed = false;
}

static const char *copy(struct txn *t, const char *prefix, const char *text)
{
	char *made = NULL;

	if (text && asprintf(&made, "%s%s", prefix, text) < 0) {
		t->failed = true;
		return NULL;
	}
	return made;
}

static const char *copy_value(struct txn *t, const char *value, size_t len)
{
	char *made = value ? malloc(len + 1) : NULL;

	t->failed = t->failed || (value && !made);
	if (made) {
		memcpy(made, value, len);
		made[len] = '\0';
	}
	return made;
}

static void add_compare(struct txn *t, const char *prefix, struct store_compare c)
{
	struct store_compare *new = array_add(&t->compares);

	if (!new) {
		t->failed = true;
		return;
	}
	*new = c;
	new->key = copy(t, prefix, c.key);
	new->range_end = copy(t, prefix, c.range_end);
	new->value = copy_value(t, c.value, c.value_len);
}

static void add_op(struct txn *t, const char *prefix, struct store_op op)
{
	struct store_op *new;

	t->failed = t->failed || (op.kind == STORE_PUT && !op.value && !op.keep_value);
	new = array_add(&t->ops);
	if (!new) {
		t->failed = true;
		return;
	}
	*new = op;
	new->key = copy(t, prefix, op.key);
	new->range_end = copy(t, prefix, op.range_end);
	new->value = copy_value(t, op.value, op.value_len);
}

void txn_if(struct txn *t, struct store_compare compare)
{
	add_compare(t, "", compare);
}

void txn_if_prefix(struct txn *t, const char *beginning, struct store_compare compare)
{
	AUTO(free) char *end = store_prefix_end(beginning);

	t->failed = t->failed || !end;
	compare.key = beginning;
	compare.range_end = end;
	txn_if(t, compare);
}

void txn_then(struct txn *t, struct store_op op)
{
	add_op(t, "", op);
}

void txn_add(struct txn *t, const char *prefix, const struct txn *other)
{
	for (size_t i = 0; i < other->compares.n; i++)
		add_compare(t, prefix, other->compares.v[i]);
	for (size_t i = 0; i < other->ops.n; i++)
		add_op(t, prefix, other->ops.v[i]);
	t->failed = t->failed || other->failed;
}

bool txn_has_room(const struct txn *t, size_t compares, size_t ops)
{
	return t->compares.n + compares <= STORE_TXN_MAX && t->ops.n + ops <= STORE_TXN_MAX;
}

struct store_txn txn_of(const struct txn *t)
{
	return (struct store_txn){ .compares = t->compares.v,
				   .n_compares = t->compares.n,
				   .success = t->ops.v,
				   .n_success = t->ops.n };
}
