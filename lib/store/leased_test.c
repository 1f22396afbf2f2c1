/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/store/fake_time.h"
#include "lib/store/leased.h"
#include "lib/store/txn.h"

#define KEY "/roost/v1/status/node/n1"
#define TTL 30

/* An owner that keeps its lease and writes down what it hears. */
struct world {
	struct store *store;
	struct fake_time time;
	struct leased leased;
	char heard[512];
};

static void on_event(enum leased_event event, const struct store_reply *reply, void *arg)
{
	static const char *const names[] = { "granted", "not-granted", "written",
					     "refused", "not-written", "keep",
					     "kept",    "not-kept",    "lost" };
	struct world *w = arg;

	assert_int_equal(!reply, event == LEASED_KEEP);
	snprintf(w->heard + strlen(w->heard), sizeof(w->heard) - strlen(w->heard), "%s%s",
		 *w->heard ? " " : "", names[event]);
	if (event == LEASED_KEEP && w->leased.lease)
		assert_int_equal(leased_keep(&w->leased), 0);
}

static void expect(struct world *w, const char *want)
{
	assert_string_equal(w->heard, want);
	*w->heard = '\0';
}

static struct world *begin(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->time = FAKE_TIME;
	w->store = store_fake_new();
	leased_init(&w->leased, &(struct leased_options){ .store = w->store,
							  .timers = &w->time.base,
							  .key = KEY,
							  .ttl = TTL,
							  .keep_ms = 10000,
							  .grant_timeout_ms = 1000,
							  .timeout_ms = 1000,
							  .event = on_event,
							  .arg = w });
	return w;
}

static struct world *begin_written(void)
{
	struct world *w = begin();

	assert_int_equal(leased_grant(&w->leased), 0);
	store_fake_run(w->store);
	expect(w, "granted");
	assert_int_equal(leased_put(&w->leased, "up", if_absent(KEY)), 0);
	store_fake_run(w->store);
	expect(w, "written");
	return w;
}

static void end(struct world *w)
{
	leased_done(&w->leased);
	store_free(w->store);
	free(w);
}

static void pass(struct world *w, unsigned seconds)
{
	fake_time_pass(&w->time, w->store, seconds);
}

static void a_key_is_written_and_kept(void **state)
{
	struct world *w = begin_written();
	uint64_t until = w->leased.until;

	assert_int_equal(until, w->time.ms + 1000 * TTL);
	pass(w, 20);
	expect(w, "keep kept keep kept");
	assert_int_equal(w->leased.until, until + 20000);
	pass(w, 100);
	assert_non_null(store_fake_get(w->store, KEY));
	assert_int_equal(store_fake_get(w->store, KEY)->lease, w->leased.lease);
	end(w);
}

static void a_condition_that_fails_is_a_refusal(void **state)
{
	struct world *w = begin_written();

	assert_int_equal(leased_put(&w->leased, "again", if_absent(KEY)), 0);
	assert_non_null(w->leased.call);
	store_fake_run(w->store);
	expect(w, "refused");
	assert_null(w->leased.call);
	assert_string_equal(store_fake_get(w->store, KEY)->value, "up");
	end(w);
}

/* The proof that the lease lives does not move with an answer that did not come. */
static void an_unanswered_keep_alive_proves_nothing(void **state)
{
	struct world *w = begin_written();
	uint64_t until = w->leased.until;

	store_fake_connect(w->store, false);
	pass(w, 10);
	expect(w, "keep not-kept");
	assert_true(w->leased.keep);
	assert_int_equal(w->leased.until, until);
	store_fake_connect(w->store, true);
	leased_keep_in(&w->leased, 5000, 0);
	pass(w, 5);
	expect(w, "keep kept");
	assert_false(w->leased.keep);
	end(w);
}

static void a_lease_that_ended_is_lost(void **state)
{
	struct world *w = begin_written();

	store_fake_connect(w->store, false);
	pass(w, TTL + 1);
	*w->heard = '\0';
	store_fake_connect(w->store, true);
	leased_keep_now(&w->leased);
	store_fake_run(w->store);
	expect(w, "keep lost");
	assert_int_equal(w->leased.lease, 0);
	assert_int_equal(leased_grant(&w->leased), 0);
	store_fake_run(w->store);
	expect(w, "granted");
	assert_int_not_equal(w->leased.lease, 0);
	end(w);
}

static void a_write_on_a_lost_lease_is_lost_too(void **state)
{
	struct world *w = begin_written();

	store_fake_fail_next(w->store, STORE_FAKE_WRITE, NULL, 1, -ENOENT);
	assert_int_equal(leased_put(&w->leased, "new", if_created(KEY, 1)), 0);
	store_fake_run(w->store);
	expect(w, "lost");
	assert_int_equal(w->leased.lease, 0);
	end(w);
}

static void what_is_dropped_goes_with_its_key(void **state)
{
	struct world *w = begin_written();

	leased_drop(&w->leased);
	assert_int_equal(w->leased.lease, 0);
	pass(w, 20);
	assert_null(store_fake_get(w->store, KEY));
	expect(w, "");
	end(w);
}

static void errors_of_each_request_have_their_own_event(void **state)
{
	struct world *w = begin();

	store_fake_fail_next(w->store, STORE_FAKE_LEASE, NULL, 1, -EACCES);
	assert_int_equal(leased_grant(&w->leased), 0);
	store_fake_run(w->store);
	expect(w, "not-granted");
	assert_int_equal(leased_grant(&w->leased), 0);
	store_fake_run(w->store);
	store_fake_fail_next(w->store, STORE_FAKE_WRITE, NULL, 1, -EACCES);
	assert_int_equal(leased_put(&w->leased, "up", if_absent(KEY)), 0);
	store_fake_run(w->store);
	expect(w, "granted not-written");
	assert_int_not_equal(w->leased.lease, 0);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_written_and_kept),
		cmocka_unit_test(a_condition_that_fails_is_a_refusal),
		cmocka_unit_test(an_unanswered_keep_alive_proves_nothing),
		cmocka_unit_test(a_lease_that_ended_is_lost),
		cmocka_unit_test(a_write_on_a_lost_lease_is_lost_too),
		cmocka_unit_test(what_is_dropped_goes_with_its_key),
		cmocka_unit_test(errors_of_each_request_have_their_own_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
