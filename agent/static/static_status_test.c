/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_world.h"

#define A "{\"subnet\":\"10.9.0.0/16\"}"

static void decide(struct world *w)
{
	assert_int_equal(static_decide(&w->entries, &w->in), 0);
	static_watch(&w->entries, &w->view, NOW);
}

static size_t wanted(struct world *w, struct kroute *strays, size_t *n_strays)
{
	AUTO(free) struct kroute *v = NULL;
	size_t n, none = 0;

	assert_int_equal(
		static_routes_wanted(&w->entries, &w->view, strays, n_strays ?: &none, &v, &n), 0);
	return n;
}

static void applied_is_what_the_kernel_holds(void **state)
{
	struct world *w = *state;

	record(w, "a", A);
	decide(w);
	tell(w);
	assert_non_null(strstr(status_of(w, "a"), "not in the kernel yet"));
	apply(w);
	decide(w);
	tell(w);
	assert_string_equal(status_of(w, "a"),
			    "{\"subnet\":\"10.9.0.0/16\",\"gateways\":[\"192.0.2.1\"],"
			    "\"table\":254,\"since\":\"" NOW "\",\"revision\":11}");
	assert_int_equal(static_count(&w->entries).applied, 1);
	/* The same words at another revision: it is so since then. */
	record(w, "a", A);
	decide(w);
	assert_int_equal(static_status(&w->entries, &w->view, "n1", "2026-11-17T13:00:00Z"), 0);
	assert_string_equal(status_of(w, "a"),
			    "{\"subnet\":\"10.9.0.0/16\",\"gateways\":[\"192.0.2.1\"],"
			    "\"table\":254,\"since\":\"" NOW "\",\"revision\":12}");
}

static void what_was_restored_is_counted(void **state)
{
	struct world *w = *state;

	record(w, "a", A);
	decide(w);
	apply(w);
	tell(w);
	remove_by_hand(w, "a");
	decide(w);
	assert_int_equal(wanted(w, NULL, NULL), 1);
	apply(w);
	static_restored(&w->entries, &w->entries.v[0]->route, "2026-11-17T13:00:00Z");
	tell(w);
	assert_non_null(strstr(status_of(w, "a"), "\"since\":\"" NOW "\""));
	assert_non_null(strstr(status_of(w, "a"),
			       "\"tampered\":{\"count\":1,\"last\":\"2026-11-17T13:00:00Z\"}"));
	assert_int_equal(static_count(&w->entries).tampered, 1);
}

static void what_is_only_reported_stays_away_until_another_word(void **state)
{
	static const char record_text[] = "{\"subnet\":\"10.9.0.0/16\",\"onTamper\":\"report\"}";
	struct world *w = *state;

	record(w, "a", record_text);
	decide(w);
	apply(w);
	decide(w);
	tell(w);
	remove_by_hand(w, "a");
	decide(w);
	decide(w);
	assert_int_equal(wanted(w, NULL, NULL), 0);
	tell(w);
	assert_non_null(strstr(status_of(w, "a"), "onTamper is report"));
	assert_non_null(strstr(status_of(w, "a"), "\"count\":1"));
	assert_null(strstr(status_of(w, "a"), "subnet"));
	record(w, "a", record_text);
	kernel_view_drop_route(&w->view, &w->entries.v[0]->route);
	look_up(w);
	decide(w);
	assert_int_equal(wanted(w, NULL, NULL), 1);
}

static void a_stranger_in_its_place_is_named(void **state)
{
	struct world *w = *state;
	struct kroute theirs = { .table = RT_TABLE_MAIN,
				 .dst = prefix("10.9.0.0/16"),
				 .type = RTN_BLACKHOLE,
				 .protocol = RTPROT_BIRD };

	record(w, "a", A);
	decide(w);
	assert_int_equal(kernel_view_conflict(&w->view, &w->entries.v[0]->route, &theirs), 0);
	look_up(w);
	decide(w);
	tell(w);
	assert_non_null(strstr(status_of(w, "a"),
			       "\"error\":\"foreign route blackhole 10.9.0.0/16 of protocol "
			       "bird has the same destination; left unchanged\""));
	assert_int_equal(static_count(&w->entries).errors, 1);
}

static void its_status_goes_after_the_route(void **state)
{
	struct world *w = *state;

	record(w, "a", A);
	decide(w);
	apply(w);
	tell(w);
	record(w, "a", "{\"subnet\":\"10.9.0.0/16\",\"deleting\":\"" NOW "\"}");
	decide(w);
	assert_int_equal(wanted(w, NULL, NULL), 0);
	tell(w);
	assert_string_not_equal(status_of(w, "a"), "");
	kernel_view_drop_route(&w->view, &w->entries.v[0]->applied_route);
	tell(w);
	assert_string_equal(status_of(w, "a"), "");
}

/* An agent without memory finds a record that makes no sense, and its own former word. */
static void a_former_life_tells_what_to_keep(void **state)
{
	static const char key[] = "status/static-route/a/n1";
	static const char text[] =
		"{\"subnet\":\"10.9.0.0/16\",\"gateways\":[\"192.0.2.1\"],"
		"\"table\":254,\"since\":\"2026-11-16T12:00:00Z\",\"revision\":7,"
		"\"tampered\":{\"count\":3,\"last\":\"2026-11-16T13:00:00Z\"}}";
	struct world *w = *state;
	struct static_entry *e = record(w, "b", A);

	decide(w);
	apply(w);
	static_drop(&w->entries, e);
	e = record(w, "a", "{\"subnet\":7}");
	static_remember(e, key, text, strlen(text));
	look_up(w);
	decide(w);
	assert_int_equal(wanted(w, NULL, NULL), 1);
	tell(w);
	assert_non_null(strstr(status_of(w, "a"), "{\"subnet\":\"10.9.0.0/16\""));
	assert_non_null(strstr(status_of(w, "a"), "what it was before stays in force"));
	assert_non_null(strstr(status_of(w, "a"), "\"count\":3"));
	/* What still is as it was is so since then. */
	record(w, "a", A);
	static_remember(e, key, text, strlen(text));
	free(TAKE(e->state));
	static_remember(e, key, text, strlen(text));
	decide(w);
	tell(w);
	assert_non_null(strstr(status_of(w, "a"), "\"since\":\"2026-11-16T12:00:00Z\""));
}

static void strays_stay_until_somebody_removes_them_or_a_record_comes(void **state)
{
	struct world *w = *state;
	struct static_entry *e = record(w, "b", A);
	AUTO(free) struct kroute *strays = NULL;
	size_t n = 0;

	record(w, "c", "{\"subnet\":\"10.8.0.0/16\"}");
	decide(w);
	apply(w);
	static_drop(&w->entries, e);
	static_drop(&w->entries, static_find(&w->entries, "c"));
	assert_int_equal(static_held(&w->view, &strays, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(wanted(w, strays, &n), 2);
	record(w, "d", A);
	look_up(w);
	decide(w);
	assert_int_equal(wanted(w, strays, &n), 2);
	assert_int_equal(n, 1);
	kernel_view_drop_route(&w->view, &strays[0]);
	assert_int_equal(wanted(w, strays, &n), 1);
	assert_int_equal(n, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(applied_is_what_the_kernel_holds),
		CASE(what_was_restored_is_counted),
		CASE(what_is_only_reported_stays_away_until_another_word),
		CASE(a_stranger_in_its_place_is_named),
		CASE(its_status_goes_after_the_route),
		CASE(a_former_life_tells_what_to_keep),
		CASE(strays_stay_until_somebody_removes_them_or_a_record_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
