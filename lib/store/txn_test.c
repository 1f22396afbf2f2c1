/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "lib/store/txn.h"

static void print_compare(FILE *out, const struct store_compare *c)
{
	static const char *const targets[] = { [STORE_VALUE] = "value",
					       [STORE_CREATE_REVISION] = "created",
					       [STORE_MOD_REVISION] = "written" };

	fprintf(out, "if %s%s%s %s %s %d\n", c->key, c->range_end ? " to " : "", c->range_end ?: "",
		targets[c->target], c->relation == STORE_LESS ? "<" : "=", (int)c->number);
}

static void print_op(FILE *out, const struct store_op *op)
{
	static const char *const kinds[] = { "get", "put", "delete" };

	fprintf(out, "%s %s%s%.*s%s\n", kinds[op->kind], op->key, op->value ? " " : "",
		(int)op->value_len, op->value ?: "", op->keys_only ? " keys only" : "");
}

static void expect(const struct store_txn *txn, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; i < txn->n_compares; i++)
		print_compare(out, &txn->compares[i]);
	for (size_t i = 0; i < txn->n_success; i++)
		print_op(out, &txn->success[i]);
	for (size_t i = 0; i < txn->n_failure; i++) {
		fprintf(out, "else ");
		print_op(out, &txn->failure[i]);
	}
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void a_transaction_is_written_by_name(void **state)
{
	expect(&(struct store_txn){ TXN_IF(if_unchanged("a", 5), if_created("b", 6), if_absent("c"),
					   if_none_made_after("d/", "d0", 7),
					   if_none_written_after("e/", "e0", 0)),
				    TXN_THEN(op_put("c", "text"), op_delete("b")),
				    TXN_ELSE(op_get("a"), op_get_key("b")) },
	       "if a written = 5\n"
	       "if b created = 6\n"
	       "if c created = 0\n"
	       "if d/ to d0 created < 8\n"
	       "if e/ to e0 written < 1\n"
	       "put c text\n"
	       "delete b\n"
	       "else get a\n"
	       "else get b keys only\n");
	assert_int_equal(op_put_leased("a", "b", 9).lease, 9);
}

static void a_builder_owns_its_texts(void **state)
{
	AUTO_DONE(txn_done) struct txn t = { 0 };
	char key[] = "key", value[] = "value";
	struct store_txn txn;

	txn_if(&t, if_unchanged(key, 1));
	txn_if_prefix(&t, key, if_none_made_after(NULL, NULL, 2));
	txn_then(&t, op_put(key, value));
	memset(key, 'x', 3);
	memset(value, 'x', 5);
	txn = txn_of(&t);
	assert_false(t.failed);
	expect(&txn, "if key written = 1\n"
		     "if key to kez created < 3\n"
		     "put key value\n");
}

static void another_is_added_with_a_prefix(void **state)
{
	AUTO_DONE(txn_done) struct txn t = { 0 }, other = { 0 };
	struct store_op touch = { .kind = STORE_PUT, .key = "c", .keep_value = true };
	struct store_txn txn;

	txn_if_prefix(&other, "a/", if_none_written_after(NULL, NULL, 1));
	txn_then(&other, op_delete("b"));
	txn_then(&other, touch);
	txn_then(&t, op_get("first"));
	txn_add(&t, "/roost/", &other);
	txn = txn_of(&t);
	assert_false(t.failed);
	expect(&txn, "if /roost/a/ to /roost/a0 written < 2\n"
		     "get first\n"
		     "delete /roost/b\n"
		     "put /roost/c\n");
}

static void a_value_that_could_not_be_made_fails_the_whole(void **state)
{
	AUTO_DONE(txn_done) struct txn t = { 0 }, whole = { 0 };

	txn_then(&t, op_put("key", NULL));
	assert_true(t.failed);
	txn_add(&whole, "", &t);
	assert_true(whole.failed);
}

static void room_is_what_etcd_takes(void **state)
{
	AUTO_DONE(txn_done) struct txn t = { 0 };

	for (int i = 0; i < STORE_TXN_MAX - 1; i++)
		txn_if(&t, if_absent("key"));
	assert_true(txn_has_room(&t, 1, STORE_TXN_MAX));
	assert_false(txn_has_room(&t, 2, 0));
	assert_false(txn_has_room(&t, 0, STORE_TXN_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transaction_is_written_by_name),
		cmocka_unit_test(a_builder_owns_its_texts),
		cmocka_unit_test(another_is_added_with_a_prefix),
		cmocka_unit_test(a_value_that_could_not_be_made_fails_the_whole),
		cmocka_unit_test(room_is_what_etcd_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
