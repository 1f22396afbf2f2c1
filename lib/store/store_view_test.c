/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/store_view.h"

/*
 * A state is written as text, one letter per key and its revision: "a1 c7".
 * What the view lets through is applied to a caller's own table; after each
 * list the table must be that state, whatever was before.
 */

#define KEYS 26

static int64_t told[KEYS]; /* what the caller believes; 0: absent */
static char story[1024];   /* what it was told, in order */

static void say(const char *what, const char *key, int64_t revision)
{
	size_t n = strlen(story);

	snprintf(story + n, sizeof(story) - n, "%s%s%s%lld", n ? " " : "", what, key,
		 (long long)revision);
}

static void tell_put(const char *key, int64_t revision)
{
	say("+", key, revision);
	told[key[0] - 'a'] = revision;
}

static void tell_gone(const char *key, int64_t revision, void *arg)
{
	say("-", key, revision);
	assert_true(told[key[0] - 'a'] > 0);
	told[key[0] - 'a'] = 0;
}

static void expect_story(const char *want)
{
	assert_string_equal(story, want);
	story[0] = '\0';
}

static void expect_belief(const char *state)
{
	char text[256] = "";

	for (int i = 0; i < KEYS; i++) {
		size_t n = strlen(text);

		if (told[i])
			snprintf(text + n, sizeof(text) - n, "%s%c%lld", n ? " " : "", 'a' + i,
				 (long long)told[i]);
	}
	assert_string_equal(text, state);
}

static const char *next_word(const char *state, char key[2], int64_t *revision)
{
	char *end;

	while (*state == ' ')
		state++;
	if (!*state)
		return NULL;
	key[0] = *state;
	key[1] = '\0';
	*revision = strtoll(state + 1, &end, 10);
	return end;
}

/* -ESTALE: a key was known at a higher revision. */
static int list_some(struct store_view *v, const char *state)
{
	int64_t revision;
	char key[2];
	int r = 0;

	while (r >= 0 && (state = next_word(state, key, &revision))) {
		r = store_view_listed(v, key, revision);
		if (r == 1)
			tell_put(key, revision);
	}
	return r < 0 ? r : 0;
}

/* As both users of a view do: a key that went back makes everything news. */
static void list(struct store_view *v, const char *state, int64_t revision, bool anew)
{
	store_view_list_begin(v, anew);
	if (list_some(v, state) == -ESTALE) {
		store_view_list_begin(v, true);
		assert_int_equal(list_some(v, state), 0);
	}
	assert_int_equal(store_view_list_end(v, revision, tell_gone, NULL), 0);
	expect_belief(state);
}

static struct store_view *fresh(void)
{
	struct store_view *v = NULL;

	memset(told, 0, sizeof(told));
	story[0] = '\0';
	assert_int_equal(store_view_new(&v), 0);
	return v;
}

/* --- lists ---------------------------------------------------------------------------------- */

static void the_first_list_is_all_news(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b3 c4", 4, false);
	expect_story("+a2 +b3 +c4");
	assert_int_equal(store_view_count(v), 3);
	assert_true(store_view_knows(v, "b", 3));
	assert_false(store_view_knows(v, "b", 4));
	assert_false(store_view_knows(v, "d", 4));
}

static void a_later_list_tells_just_the_difference(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b3 c4", 4, false);
	expect_story("+a2 +b3 +c4");
	list(v, "a2 b3 c4", 4, false);
	expect_story("");
	list(v, "a2 c9 d8", 11, false);
	expect_story("+c9 +d8 -b11");
}

static void keys_that_are_gone_come_in_order(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	for (int64_t i = 0; i < 5; i++) {
		const char key[] = { "ecadb"[i], '\0' };

		assert_int_equal(store_view_put(v, key, i + 2), 1);
		told[key[0] - 'a'] = i + 2;
	}
	list(v, "c3", 9, false);
	expect_story("-a9 -b9 -d9 -e9");
	list(v, "", 10, false);
	expect_story("-c10");
	assert_int_equal(store_view_count(v), 0);
}

static void an_empty_range_tells_nothing(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "", 1, false);
	list(v, "", 2, true);
	expect_story("");
}

static void any_walk_between_states_ends_in_the_last(void **unused)
{
	static const char *const states[] = {
		"",      "a2", "a2 b3 c4",     "a5 b3",    "b3 c6 d7",
		"a8 z9", "c6", "a2 b10 c4 d7", "d7 e7 f7", "a11 b3 z9"
	};
	size_t n = ARRAY_SIZE(states);

	for (size_t anew = 0; anew < 2; anew++) {
		for (size_t i = 0; i < n * n * n; i++) {
			AUTO(store_view_free) struct store_view *v = fresh();

			list(v, states[i % n], 20, false);
			list(v, states[i / n % n], 21, anew);
			story[0] = '\0';
			list(v, states[i / n / n], 22, false);
			/* Nobody hears of what has not changed. */
			if (i / n % n == i / n / n)
				expect_story("");
		}
	}
}

static void a_list_begun_again_half_way_loses_nothing(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b3 c4 d5", 5, false);
	expect_story("+a2 +b3 +c4 +d5");
	store_view_list_begin(v, false);
	list_some(v, "a2 b6");
	expect_story("+b6");
	/* Meanwhile a is deleted: listed by the first attempt, it must not count as listed. */
	list(v, "b6 d5", 9, false);
	expect_story("-a9 -c9");
}

static void a_list_anew_is_all_news_though_revisions_agree(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b3", 3, false);
	expect_story("+a2 +b3");
	list(v, "a2 c2", 2, true);
	expect_story("+a2 +c2 -b2");
	list(v, "a2 c2", 2, false);
	expect_story("");
}

static void a_list_anew_stays_anew_when_it_is_begun_again(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b3", 3, false);
	expect_story("+a2 +b3");
	store_view_list_begin(v, true);
	list_some(v, "a2");
	list(v, "a2 b3", 3, false);
	expect_story("+a2 +a2 +b3");
}

static void a_key_listed_at_a_lower_revision_proves_that_etcd_went_back(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b5", 5, false);
	assert_int_equal(store_view_put(v, "a", 7), 1);
	story[0] = '\0';
	store_view_list_begin(v, false);
	assert_int_equal(list_some(v, "a7 b5"), 0);
	/* b was changed at 5 and is back at 3, though the list itself is of a later revision. */
	store_view_list_begin(v, false);
	assert_int_equal(list_some(v, "a9 b3 c8"), -ESTALE);
	expect_story("+a9");
	assert_true(store_view_knows(v, "b", 5));
	list(v, "a9 b3 c8", 9, true);
	expect_story("+a9 +b3 +c8");
	store_view_list_begin(v, false);
	assert_int_equal(list_some(v, "a9 b3 c8"), 0);
	expect_story("");
}

static void a_key_on_two_pages_of_a_list_anew_is_news_once(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2", 2, false);
	store_view_list_begin(v, true);
	story[0] = '\0';
	list_some(v, "a2 a2");
	expect_story("+a2");
}

/* --- events --------------------------------------------------------------------------------- */

static void an_event_is_news_once(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2", 2, false);
	assert_int_equal(store_view_put(v, "a", 2), 0);
	assert_int_equal(store_view_put(v, "a", 3), 1);
	assert_int_equal(store_view_put(v, "a", 3), 0);
	assert_int_equal(store_view_put(v, "b", 4), 1);
	assert_int_equal(store_view_put(v, "a", 2), 0);
	assert_int_equal(store_view_count(v), 2);
}

static void a_deletion_is_news_once_and_only_of_what_was_there(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b5", 5, false);
	assert_int_equal(store_view_deleted(v, "c", 6), 0);
	assert_int_equal(store_view_deleted(v, "b", 4), 0); /* it was made again since */
	assert_int_equal(store_view_deleted(v, "a", 6), 1);
	assert_int_equal(store_view_deleted(v, "a", 6), 0);
	assert_int_equal(store_view_count(v), 1);
	assert_int_equal(store_view_put(v, "a", 7), 1);
	assert_true(store_view_knows(v, "a", 7));
}

static void a_list_after_events_tells_what_events_did_not(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "a2 b3 c4", 4, false);
	assert_int_equal(store_view_put(v, "a", 5), 1);
	told[0] = 5;
	assert_int_equal(store_view_put(v, "d", 6), 1);
	told[3] = 6;
	assert_int_equal(store_view_deleted(v, "b", 7), 1);
	told[1] = 0;
	story[0] = '\0';
	list(v, "a5 d8", 9, false);
	expect_story("+d8 -c9");
}

static void a_key_that_came_by_event_is_missed_by_a_later_list(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();

	list(v, "", 1, false);
	assert_int_equal(store_view_put(v, "a", 2), 1);
	told[0] = 2;
	list(v, "", 3, false);
	expect_story("-a3");
}

static void many_keys_are_all_found_again(void **unused)
{
	AUTO(store_view_free) struct store_view *v = fresh();
	char key[32];

	store_view_list_begin(v, false);
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "a%d", i * 7919 % 5000);
		assert_int_equal(store_view_listed(v, key, i + 1), 1);
	}
	assert_int_equal(store_view_list_end(v, 5001, tell_gone, NULL), 0);
	assert_int_equal(store_view_count(v), 5000);
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "a%d", i * 7919 % 5000);
		assert_true(store_view_knows(v, key, i + 1));
		assert_int_equal(store_view_deleted(v, key, 6000), 1);
	}
	assert_int_equal(store_view_count(v), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_list_is_all_news),
		cmocka_unit_test(a_later_list_tells_just_the_difference),
		cmocka_unit_test(keys_that_are_gone_come_in_order),
		cmocka_unit_test(an_empty_range_tells_nothing),
		cmocka_unit_test(any_walk_between_states_ends_in_the_last),
		cmocka_unit_test(a_list_begun_again_half_way_loses_nothing),
		cmocka_unit_test(a_list_anew_is_all_news_though_revisions_agree),
		cmocka_unit_test(a_list_anew_stays_anew_when_it_is_begun_again),
		cmocka_unit_test(a_key_listed_at_a_lower_revision_proves_that_etcd_went_back),
		cmocka_unit_test(a_key_on_two_pages_of_a_list_anew_is_news_once),
		cmocka_unit_test(an_event_is_news_once),
		cmocka_unit_test(a_deletion_is_news_once_and_only_of_what_was_there),
		cmocka_unit_test(a_list_after_events_tells_what_events_did_not),
		cmocka_unit_test(a_key_that_came_by_event_is_missed_by_a_later_list),
		cmocka_unit_test(many_keys_are_all_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
