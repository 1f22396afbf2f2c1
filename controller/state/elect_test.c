/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/state/elect.h"
#include "lib/store/fake_time.h"

#define KEY "/roost/v1/leader/controller"
#define TTL 15

/* One controller: what it was told. */
struct one {
	struct elect *elect;
	int64_t token;
	unsigned elected, deposed;
	char why[128];
	bool done;
};

struct world {
	struct store *store;
	struct fake_time time;
	struct one a, b;
};

static void elected(int64_t token, void *arg)
{
	struct one *one = arg;

	one->token = token;
	one->elected++;
}

static void deposed(const char *why, void *arg)
{
	struct one *one = arg;

	one->token = 0;
	one->deposed++;
	snprintf(one->why, sizeof(one->why), "%s", why);
}

static void done(void *arg)
{
	((struct one *)arg)->done = true;
}

static void join(struct world *w, struct one *one, const char *id)
{
	static const struct elect_handlers handlers = { elected, deposed, NULL, NULL };
	const struct elect_options options = {
		w->store, &w->time.base, "/roost/v1/", id, "", TTL, &handlers, one,
	};

	assert_int_equal(elect_new(&options, &one->elect), 0);
	store_fake_run(w->store);
}

static struct world *begin(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->time = FAKE_TIME;
	w->store = store_fake_new();
	join(w, &w->a, "a");
	join(w, &w->b, "b");
	return w;
}

static void end(struct world *w)
{
	elect_free(w->a.elect);
	elect_free(w->b.elect);
	store_free(w->store);
	free(w);
}

static void pass(struct world *w, unsigned seconds)
{
	fake_time_pass(&w->time, w->store, seconds);
}

static void expect_leader(const struct world *w, const char *id)
{
	const struct store_kv *kv = store_fake_get(w->store, KEY);
	char start[32];

	assert_non_null(kv);
	snprintf(start, sizeof(start), "{\"id\":\"%s\"", id);
	assert_memory_equal(kv->value, start, strlen(start));
}

static void the_first_leads_and_goes_on_leading(void **unused)
{
	struct world *w = begin();
	const struct store_kv *kv;

	pass(w, 300);
	assert_int_equal(w->a.elected, 1);
	assert_int_equal(w->a.deposed, 0);
	assert_int_equal(w->b.elected, 0);
	kv = store_fake_get(w->store, KEY);
	assert_int_equal(elect_token(w->a.elect), kv->create_revision);
	assert_int_equal(elect_token(w->b.elect), 0);
	expect_leader(w, "a");
	end(w);
}

static void who_resigns_is_followed_at_once(void **unused)
{
	struct world *w = begin();

	elect_resign(w->a.elect, done, &w->a);
	assert_int_equal(elect_token(w->a.elect), 0);
	store_fake_run(w->store);
	assert_true(w->a.done);
	assert_int_equal(w->a.deposed, 1);
	assert_int_equal(w->b.elected, 1);
	expect_leader(w, "b");
	end(w);
}

/* etcd hears nothing, and the leader hears nothing: it must stop while its key still stands. */
static void cut_off_it_stops_before_its_key_goes(void **unused)
{
	struct world *w = begin();
	unsigned stopped = 0;

	store_fake_connect(w->store, false);
	for (unsigned s = 1; s <= TTL; s++) {
		pass(w, 1);
		if (!elect_token(w->a.elect) && !stopped)
			stopped = s;
		assert_true(stopped || store_fake_get(w->store, KEY));
	}
	assert_in_range(stopped, TTL / 2, TTL - 2);
	assert_int_equal(w->a.deposed, 1);
	store_fake_connect(w->store, true);
	pass(w, 2 * TTL);
	assert_int_equal(w->a.elected + w->b.elected, 2);
	end(w);
}

/* The process slept: no timer has run, but the clock has. */
static void after_a_sleep_it_does_not_act(void **unused)
{
	struct world *w = begin();

	w->time.ms += (TTL - 2) * 1000;
	assert_int_equal(w->a.deposed, 0);
	assert_int_equal(elect_token(w->a.elect), 0);
	pass(w, 1);
	assert_int_equal(w->a.deposed, 1);
	end(w);
}

static void a_reply_that_took_long_does_not_prolong(void **unused)
{
	struct world *w = begin();

	/* Sent at 5 s; answered when 13 s have passed. */
	store_fake_next(w->store, STORE_FAKE_LEASE, NULL, 1, STORE_FAKE_HOLD);
	pass(w, 11);
	assert_int_not_equal(elect_token(w->a.elect), 0);
	store_fake_release(w->store);
	store_fake_run(w->store);
	/* It counts from 5 s or 6 s: 12 s more. */
	w->time.ms += 7500;
	assert_int_equal(elect_token(w->a.elect), 0);
	end(w);
}

static void a_key_that_somebody_deletes_ends_it(void **unused)
{
	struct world *w = begin();
	int64_t token = elect_token(w->a.elect);

	store_fake_delete(w->store, KEY, NULL);
	pass(w, 5);
	assert_int_equal(w->a.deposed, 1);
	assert_int_equal(w->a.elected + w->b.elected, 2);
	assert_true(elect_token(w->a.elect) + elect_token(w->b.elect) > token);
	end(w);
}

/* The put was applied, its reply lost: the next try finds its own key and leads with its token. */
static void a_lost_reply_is_found_out(void **unused)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->time = FAKE_TIME;
	w->store = store_fake_new();
	store_fake_next(w->store, STORE_FAKE_WRITE, KEY, 1, STORE_FAKE_LOSE_REPLY);
	join(w, &w->a, "a");
	pass(w, 5);
	assert_int_equal(w->a.elected, 1);
	assert_int_equal(elect_token(w->a.elect), store_fake_get(w->store, KEY)->create_revision);
	end(w);
}

static void another_cluster_starts_anew(void **unused)
{
	struct world *w = begin();

	store_fake_wipe(w->store);
	elect_notice(w->a.elect, STORE_CLUSTER_CHANGED, "another cluster");
	elect_notice(w->b.elect, STORE_CLUSTER_CHANGED, "another cluster");
	assert_int_equal(w->a.deposed, 1);
	pass(w, 5);
	assert_int_equal(w->a.elected + w->b.elected, 2);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_leads_and_goes_on_leading),
		cmocka_unit_test(who_resigns_is_followed_at_once),
		cmocka_unit_test(cut_off_it_stops_before_its_key_goes),
		cmocka_unit_test(after_a_sleep_it_does_not_act),
		cmocka_unit_test(a_reply_that_took_long_does_not_prolong),
		cmocka_unit_test(a_key_that_somebody_deletes_ends_it),
		cmocka_unit_test(a_lost_reply_is_found_out),
		cmocka_unit_test(another_cluster_starts_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
