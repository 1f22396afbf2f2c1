/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/kept.h"

struct world {
	struct kept kept;
	struct key_tree *tree;
	bool listing;
};

static void put(struct world *w, const char *key, const char *value)
{
	size_t len = strlen(value);

	assert_int_equal(kept_put(&w->kept, w->tree, w->listing, key, value, len), 0);
	assert_int_equal(key_tree_put(w->tree, key, value, len), 0);
}

static void gone(struct world *w, const char *key)
{
	assert_int_equal(kept_deleted(&w->kept, w->tree, w->listing, key), 0);
	key_tree_remove(w->tree, key);
}

/* Two keys, then etcd goes back: what follows is its listing. */
static struct world went_back(void)
{
	struct world w = { 0 };

	assert_int_equal(key_tree_new(&w.tree), 0);
	put(&w, "/a", "1");
	put(&w, "/b", "{\"x\":1}");
	assert_int_equal(kept_count(&w.kept), 0);
	w.listing = true;
	return w;
}

static void end(struct world *w, size_t lost)
{
	assert_int_equal(kept_count(&w->kept), lost);
	kept_done(&w->kept);
	key_tree_free(w->tree);
}

static void what_is_the_same_was_not_lost(void **unused)
{
	struct world w = went_back();

	put(&w, "/a", "1");
	put(&w, "/b", "{ \"x\": 1 }");
	put(&w, "/new", "1");
	end(&w, 0);
}

static void what_a_listing_lacks_is_lost_until_it_is_written(void **unused)
{
	struct world w = went_back();

	gone(&w, "/a");
	gone(&w, "/b");
	w.listing = false;
	assert_int_equal(kept_count(&w.kept), 2);
	assert_non_null(key_tree_any(w.kept.lost));
	put(&w, "/other", "1");
	put(&w, "/a", "9");
	assert_int_equal(kept_count(&w.kept), 1);
	put(&w, "/b", "1");
	assert_null(key_tree_any(w.kept.lost));
	end(&w, 0);
}

static void an_older_value_is_lost_until_the_key_is_written_or_deleted(void **unused)
{
	struct world w = went_back();

	put(&w, "/a", "0");
	put(&w, "/b", "0");
	w.listing = false;
	assert_int_equal(kept_count(&w.kept), 2);
	put(&w, "/a", "0");
	assert_int_equal(kept_count(&w.kept), 1);
	gone(&w, "/b");
	end(&w, 0);
}

/* Another etcd answered for a while. */
static void a_second_listing_with_the_former_values_ends_it(void **unused)
{
	struct world w = went_back();

	gone(&w, "/a");
	put(&w, "/b", "0");
	put(&w, "/a", "5");
	assert_int_equal(kept_count(&w.kept), 2);
	put(&w, "/a", "1");
	put(&w, "/b", "{\"x\":1}");
	end(&w, 0);
}

static void a_deletion_that_somebody_asked_for_loses_nothing(void **unused)
{
	struct world w = went_back();

	w.listing = false;
	gone(&w, "/a");
	put(&w, "/b", "2");
	end(&w, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_the_same_was_not_lost),
		cmocka_unit_test(what_a_listing_lacks_is_lost_until_it_is_written),
		cmocka_unit_test(an_older_value_is_lost_until_the_key_is_written_or_deleted),
		cmocka_unit_test(a_second_listing_with_the_former_values_ends_it),
		cmocka_unit_test(a_deletion_that_somebody_asked_for_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
