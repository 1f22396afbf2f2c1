/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/behind.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_fake.h"

#define NODE "/n"
#define KEYS "/k/"

/* A mirror of /k/ that follows its own watch, as the agent's does. */
struct bench {
	struct store *store;
	struct store_watch *watch;
	struct behind *behind;
	int64_t fence;
	int refusals;
};

static int64_t fence(void *arg)
{
	return ((struct bench *)arg)->fence;
}

static void refused(const struct store_reply *reply, void *arg)
{
	((struct bench *)arg)->refusals++;
}

static void on_put(const struct store_kv *kv, void *arg)
{
	struct bench *b = arg;

	assert_int_equal(
		behind_seen(b->behind, kv->key, kv->value, kv->value_len, kv->mod_revision), 0);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	behind_gone(((struct bench *)arg)->behind, key, revision);
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct bench *b = arg;

	behind_in_sync(b->behind, true);
	behind_kick(b->behind);
}

static int setup(void **state)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	struct bench *b = calloc(1, sizeof(*b));
	struct behind_config config = {
		.fence_key = NODE, .fence = fence, .refused = refused, .arg = b
	};

	b->store = store_fake_new();
	b->fence = store_fake_put(b->store, NODE, "us");
	config.store = b->store;
	assert_int_equal(behind_new(&config, &b->behind), 0);
	assert_int_equal(store_watch(b->store, KEYS, "/k0", &handlers, b, &b->watch), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	store_unwatch(b->watch);
	behind_free(b->behind);
	store_free(b->store);
	free(b);
	return 0;
}

static void run(struct bench *b)
{
	/* As eagerly as can be: after every single step. */
	do
		behind_kick(b->behind);
	while (store_fake_step(b->store));
}

static void want(struct bench *b, const char *key, const char *value)
{
	assert_int_equal(behind_want(b->behind, key, value), 0);
}

static void expect(struct bench *b, const char *text)
{
	AUTO(free) char *dump = NULL;

	run(b);
	dump = store_fake_dump(b->store, KEYS, "/k0");
	assert_string_equal(dump, text);
	assert_int_equal(behind_pending(b->behind), 0);
}

static void etcd_follows_what_is_wanted(void **state)
{
	struct bench *b = *state;

	want(b, "/k/1", "one");
	want(b, "/k/2", "two");
	expect(b, "/k/1=one\n/k/2=two\n");
	behind_drop(b->behind, "/k/1");
	want(b, "/k/2", "new");
	expect(b, "/k/2=new\n");
	behind_drop(b->behind, "/k/2");
	behind_drop(b->behind, "/k/never");
	expect(b, "");
}

static void nothing_is_sent_before_it_is_known_what_is_there(void **state)
{
	struct bench *b = *state;

	store_fake_put(b->store, "/k/old", "of an earlier boot");
	want(b, "/k/1", "one");
	behind_kick(b->behind);
	assert_int_equal(store_fake_stats(b->store).calls, 0);
	expect(b, "/k/1=one\n");
}

static void what_others_do_is_undone(void **state)
{
	struct bench *b = *state;

	want(b, "/k/1", "one");
	expect(b, "/k/1=one\n");
	store_fake_put(b->store, "/k/1", "by hand");
	store_fake_put(b->store, "/k/9", "by hand");
	expect(b, "/k/1=one\n");
	store_fake_delete(b->store, "/k/1", NULL);
	expect(b, "/k/1=one\n");
}

static void a_thousand_keys_go_in_batches_that_etcd_takes(void **state)
{
	struct bench *b = *state;
	unsigned before = store_fake_stats(b->store).txns;
	char key[16];

	run(b);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "/k/%d", i);
		want(b, key, "x");
	}
	run(b);
	assert_int_equal(behind_pending(b->behind), 0);
	assert_int_equal(store_fake_stats(b->store).txns - before, 8);
}

static void a_quick_put_and_drop_leaves_nothing_whatever_the_watch_says_late(void **state)
{
	struct bench *b = *state;

	run(b);
	store_fake_follow(b->store, false);
	want(b, "/k/1", "one");
	run(b);
	behind_drop(b->behind, "/k/1");
	run(b);
	store_fake_follow(b->store, true);
	expect(b, "");
	/* And no further write was needed for it. */
	assert_int_equal(store_fake_stats(b->store).txns, 2);
}

static void a_late_write_is_repaired(void **state)
{
	struct bench *b = *state;

	run(b);
	want(b, "/k/1", "one");
	store_fake_next(b->store, STORE_FAKE_WRITE, NULL, 1, STORE_FAKE_LATE);
	run(b);
	want(b, "/k/1", "two");
	expect(b, "/k/1=two\n");
	store_fake_wake(b->store);
	expect(b, "/k/1=two\n");
}

static void another_registration_stops_the_writing(void **state)
{
	struct bench *b = *state;

	run(b);
	store_fake_put(b->store, NODE, "another agent");
	want(b, "/k/1", "one");
	behind_kick(b->behind);
	store_fake_run(b->store);
	assert_null(store_fake_get(b->store, "/k/1"));
	assert_int_equal(b->refusals, 1);
	b->fence = 0;
	run(b);
	assert_null(store_fake_get(b->store, "/k/1"));
	b->fence = store_fake_get(b->store, NODE)->mod_revision;
	expect(b, "/k/1=one\n");
}

static void an_outage_is_caught_up(void **state)
{
	struct bench *b = *state;

	want(b, "/k/1", "one");
	want(b, "/k/2", "two");
	run(b);
	store_fake_connect(b->store, false);
	behind_drop(b->behind, "/k/1");
	want(b, "/k/3", "three");
	run(b);
	store_fake_connect(b->store, true);
	expect(b, "/k/2=two\n/k/3=three\n");
}

static void a_wiped_etcd_is_filled_again(void **state)
{
	struct bench *b = *state;

	want(b, "/k/1", "one");
	expect(b, "/k/1=one\n");
	store_fake_wipe(b->store);
	behind_restart(b->behind);
	b->fence = store_fake_put(b->store, NODE, "us");
	expect(b, "/k/1=one\n");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(etcd_follows_what_is_wanted),
		CASE(nothing_is_sent_before_it_is_known_what_is_there),
		CASE(what_others_do_is_undone),
		CASE(a_thousand_keys_go_in_batches_that_etcd_takes),
		CASE(a_quick_put_and_drop_leaves_nothing_whatever_the_watch_says_late),
		CASE(a_late_write_is_repaired),
		CASE(another_registration_stops_the_writing),
		CASE(an_outage_is_caught_up),
		CASE(a_wiped_etcd_is_filled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
