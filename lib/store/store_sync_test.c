/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"
#include "lib/store/store_sync.h"

/* "rev 3 n=2 first=a more" of every reply. */
static void note(const struct store_reply *reply, void *arg)
{
	char *text = arg;
	size_t n = strlen(text);

	if (reply->err)
		snprintf(text + n, 256 - n, "err %d;", reply->err);
	else
		snprintf(text + n, 256 - n, "rev %lld n=%zu first=%s%s;",
			 (long long)reply->revision, reply->ops[0].n,
			 reply->ops[0].n ? reply->ops[0].kvs[0].key : "-",
			 reply->more ? " more" : "");
}

static void a_value_put_is_read_and_deleted(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	char text[256] = "";
	struct err err = { "" };

	assert_int_equal(store_sync_put(s, "a", "1", 0, 0, &err), 0);
	assert_string_equal(store_fake_get(s, "a")->value, "1");
	assert_int_equal(store_sync_get(s, "a", 0, note, text, &err), 0);
	assert_string_equal(text, "rev 2 n=1 first=a;");
	assert_int_equal(store_sync_delete(s, "a", NULL, 0, &err), 0);
	assert_null(store_fake_get(s, "a"));
	assert_string_equal(err.text, "");
}

static void a_txn_waits_for_its_reply(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	const struct store_compare absent = { .key = "a", .target = STORE_VERSION };
	const struct store_op ops[] = {
		{ .kind = STORE_GET, .key = "a" },
		{ .kind = STORE_PUT, .key = "a", .value = "1", .value_len = 1 },
	};
	const struct store_txn txn = {
		.compares = &absent, .n_compares = 1, .success = ops, .n_success = 2
	};
	char text[256] = "";

	assert_int_equal(store_sync_txn(s, &txn, 0, note, text, NULL), 0);
	assert_string_equal(text, "rev 2 n=0 first=-;");
}

static void a_list_waits_for_all_its_pages(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	char text[256] = "";

	store_fake_set_page(s, 2);
	for (const char *k = "abcde"; *k; k++)
		store_fake_put(s, (char[]){ *k, '\0' }, "x");
	assert_int_equal(store_sync_list(s, "a", "z", 0, note, text, NULL), 0);
	assert_string_equal(text, "rev 6 n=2 first=a more;rev 6 n=2 first=c more;"
				  "rev 6 n=1 first=e;");
}

static void an_error_comes_with_its_text(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	struct err err = { "" };
	char text[256] = "";

	store_fake_connect(s, false);
	assert_int_equal(store_sync_put(s, "a", "1", 0, 0, &err), -ENOTCONN);
	assert_string_equal(err.text, "no endpoint could be reached");
	assert_int_equal(store_sync_get(s, "a", 0, note, text, NULL), -ENOTCONN);
	assert_int_equal(store_sync_delete(s, "a", NULL, 0, NULL), -ENOTCONN);
	assert_int_equal(store_sync_list(s, "a", NULL, 0, NULL, NULL, &err), -ENOTCONN);
	assert_string_equal(text, "err -107;");
}

static void a_list_that_breaks_between_pages_is_an_error(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	char text[256] = "";

	store_fake_set_page(s, 1);
	store_fake_put(s, "a", "1");
	store_fake_put(s, "b", "1");
	store_fake_next(s, STORE_FAKE_LIST, NULL, 1, STORE_FAKE_PASS);
	store_fake_fail_next(s, STORE_FAKE_LIST, NULL, 1, -EACCES);
	assert_int_equal(store_sync_list(s, "a", "z", 0, note, text, NULL), -EACCES);
	assert_string_equal(text, "rev 3 n=1 first=a more;err -13;");
}

static void what_cannot_be_sent_fails_at_once(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	const struct store_txn txn = { .n_success = STORE_TXN_MAX + 1 };
	struct err err = { "" };

	assert_int_equal(store_sync_txn(s, &txn, 0, NULL, NULL, &err), -EINVAL);
	assert_string_equal(err.text, "the request could not be sent");
}

static void a_loop_that_fails_ends_the_waiting_and_the_call(void **unused)
{
	AUTO(store_free) struct store *s = store_fake_new();
	struct err err = { "" };

	store_fake_next(s, STORE_FAKE_ANY, NULL, 1, STORE_FAKE_HOLD);
	assert_int_equal(store_sync_put(s, "a", "1", 0, 0, &err), -EDEADLK);
	assert_string_equal(err.text, "the event loop failed");
	assert_int_equal(store_fake_stats(s).calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_put_is_read_and_deleted),
		cmocka_unit_test(a_txn_waits_for_its_reply),
		cmocka_unit_test(a_list_waits_for_all_its_pages),
		cmocka_unit_test(an_error_comes_with_its_text),
		cmocka_unit_test(a_list_that_breaks_between_pages_is_an_error),
		cmocka_unit_test(what_cannot_be_sent_fails_at_once),
		cmocka_unit_test(a_loop_that_fails_ends_the_waiting_and_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
