/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/array.h"
#include "lib/base/auto.h"

struct word {
	const char *text;
	int value;
};

struct words {
	struct word *v;
	size_t n, room;
	bool other;
};

static struct word *find(const struct words *w, const char *text)
{
	return array_find(w->v, w->n, x, strcmp(x->text, text));
}

static void insert_sorted(struct words *w, const char *text, int value)
{
	struct word *new = array_insert(w, array_place(w->v, w->n, x, strcmp(x->text, text)));

	assert_non_null(new);
	assert_null(new->text);
	assert_int_equal(new->value, 0);
	*new = (struct word){ text, value };
}

static void what_was_inserted_is_sorted_and_found(void **state)
{
	static const char *const texts[] = { "d", "a", "f", "c", "b", "h", "e", "g" };
	struct words w = { .other = true };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		insert_sorted(&w, texts[i], (int)i);
		assert_true(w.room >= w.n);
		for (size_t j = 0; j < ARRAY_SIZE(texts); j++) {
			const struct word *found = find(&w, texts[j]);

			assert_int_equal(!!found, j <= i);
			assert_true(!found || found->value == (int)j);
		}
	}
	for (size_t i = 1; i < w.n; i++)
		assert_true(strcmp(w.v[i - 1].text, w.v[i].text) < 0);
	assert_true(w.other);
	array_done(&w);
	assert_null(w.v);
	assert_int_equal(w.n + w.room, 0);
}

static void a_search_gives_the_first_of_equal_ones(void **state)
{
	const int v[] = { 1, 3, 3, 3, 7 };

	assert_ptr_equal(array_find(v, ARRAY_SIZE(v), x, *x - 3), &v[1]);
	assert_int_equal(array_place(v, ARRAY_SIZE(v), x, *x - 4), 4);
	assert_int_equal(array_place(v, ARRAY_SIZE(v), x, *x - 8), 5);
	assert_null(array_find(v, ARRAY_SIZE(v), x, *x - 8));
	assert_null(array_find(v, ARRAY_SIZE(v), x, *x - 0));
}

static void an_empty_array_has_nothing(void **state)
{
	const struct words none = { 0 };

	assert_null(find(&none, "a"));
	assert_int_equal(array_place(none.v, none.n, x, strcmp(x->text, "a")), 0);
}

static void removal_closes_the_gap(void **state)
{
	ARRAY(int) a = { 0 };

	for (int i = 0; i < 6; i++)
		assert_int_equal(array_append(&a, i), 0);
	array_remove(&a, 5);
	array_remove(&a, 0);
	array_remove(&a, 1);
	assert_int_equal(a.n, 3);
	assert_memory_equal(a.v, ((const int[]){ 1, 3, 4 }), 3 * sizeof(int));
	array_done(&a);
}

static void an_array_allocated_to_fit_grows(void **state)
{
	ARRAY(int) a = { .v = malloc(3 * sizeof(int)), .n = 3 };

	assert_non_null(a.v);
	memcpy(a.v, (const int[]){ 1, 2, 3 }, 3 * sizeof(int));
	assert_int_equal(array_append(&a, 4), 0);
	assert_int_equal(a.v[0], 1);
	assert_int_equal(a.v[3], 4);
	assert_true(a.room >= 4);
	array_done(&a);
}

/* So adding cannot fail, and does not move what is there. */
static void reserved_room_is_there(void **state)
{
	ARRAY(int) a = { 0 };
	const int *v;

	assert_int_equal(array_append(&a, 1), 0);
	assert_int_equal(array_reserve(&a, 100), 0);
	v = a.v;
	for (int i = 0; i < 100; i++)
		assert_int_equal(array_append(&a, i), 0);
	assert_ptr_equal(a.v, v);
	array_done(&a);
}

static void without_memory_nothing_changes(void **state)
{
	ARRAY(char[1024]) a = { 0 };
	const void *v;

	assert_non_null(array_add(&a));
	v = a.v;
	assert_int_equal(array_reserve(&a, SIZE_MAX), -ENOMEM);
	assert_ptr_equal(a.v, v);
	assert_int_equal(a.n, 1);
	array_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_inserted_is_sorted_and_found),
		cmocka_unit_test(a_search_gives_the_first_of_equal_ones),
		cmocka_unit_test(an_empty_array_has_nothing),
		cmocka_unit_test(removal_closes_the_gap),
		cmocka_unit_test(an_array_allocated_to_fit_grows),
		cmocka_unit_test(reserved_room_is_there),
		cmocka_unit_test(without_memory_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
