/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/kube/kube_view.h"

static const struct hash one = { 1, 0 }, two = { 2, 0 };

static int on_missing(const char *name, const char *uid, void *arg)
{
	char *text = arg;

	sprintf(text + strlen(text), "%s/%s ", name, uid);
	return 0;
}

static void expect_missing(struct kube_view *v, const char *want)
{
	char text[256] = "";

	assert_int_equal(kube_view_list_end(v, on_missing, text), 0);
	assert_string_equal(text, want);
}

static void only_news_is_news(void **unused)
{
	AUTO(kube_view_free) struct kube_view *v = NULL;

	assert_int_equal(kube_view_new(&v), 0);
	assert_int_equal(kube_view_take(v, "a", "u1", one), KUBE_NEWS);
	assert_int_equal(kube_view_take(v, "a", "u1", one), KUBE_NO_NEWS);
	assert_int_equal(kube_view_take(v, "a", "u1", two), KUBE_NEWS);
	assert_int_equal(kube_view_take(v, "a", "u2", one), KUBE_OTHER_UID);
	assert_string_equal(kube_view_uid(v, "a"), "u1");
	kube_view_forget(v, "a", "u2");
	assert_int_equal(kube_view_count(v), 1);
	kube_view_forget(v, "a", "u1");
	assert_null(kube_view_uid(v, "a"));
	assert_int_equal(kube_view_take(v, "a", "u2", one), KUBE_NEWS);
}

static void a_list_names_what_it_does_not_have(void **unused)
{
	AUTO(kube_view_free) struct kube_view *v = NULL;

	assert_int_equal(kube_view_new(&v), 0);
	kube_view_list_begin(v);
	kube_view_take(v, "a", "u1", one);
	kube_view_take(v, "b", "u2", one);
	kube_view_take(v, "c", "u3", one);
	expect_missing(v, "");
	kube_view_list_begin(v);
	kube_view_take(v, "c", "u9", one); /* in doubt already */
	kube_view_seen(v, "b");
	expect_missing(v, "a/u1 ");
	/* A list that broke off proves nothing: the next begins anew. */
	kube_view_list_begin(v);
	kube_view_take(v, "a", "u1", one);
	kube_view_list_begin(v);
	kube_view_take(v, "b", "u2", one);
	expect_missing(v, "a/u1 c/u3 ");
}

static void expected_ones_are_missed(void **unused)
{
	AUTO(kube_view_free) struct kube_view *v = NULL;

	assert_int_equal(kube_view_new(&v), 0);
	assert_int_equal(kube_view_expect(v, "a", "u1"), KUBE_NEWS);
	assert_int_equal(kube_view_expect(v, "b", "u2"), KUBE_NEWS);
	kube_view_list_begin(v);
	assert_int_equal(kube_view_expect(v, "c", "u3"), KUBE_NEWS);
	assert_int_equal(kube_view_take(v, "b", "u2", one), KUBE_NEWS);
	assert_int_equal(kube_view_expect(v, "b", "u2"), KUBE_NO_NEWS);
	assert_int_equal(kube_view_expect(v, "b", "u0"), KUBE_OTHER_UID);
	expect_missing(v, "a/u1 c/u3 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_news_is_news),
		cmocka_unit_test(a_list_names_what_it_does_not_have),
		cmocka_unit_test(expected_ones_are_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
