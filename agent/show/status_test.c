/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/show/readiness.h"
#include "agent/show/status.h"

#define SINCE "2026-11-16T02:45:55Z"

static const struct status plain = { .version = "0.1.0",
				     .started = SINCE,
				     .etcd = { .connected = true,
					       .endpoint = "http://10.0.0.9:2379" } };

static void expect(const struct status *s, const char *want)
{
	AUTO(free) char *text = NULL;

	assert_int_equal(status_text(s, STATUS_SIZE_MAX, &text), 0);
	assert_string_equal(text, want);
}

static void a_healthy_node_says_ok(void **unused)
{
	const struct status_pool pools[] = { { "a", 1, 3, 61 }, { "b", 2, 0, UINT64_MAX } };
	struct status s = plain;

	s.pools = pools;
	s.n_pools = 2;
	s.kernel = (struct kernel_stats){ .links = 2, .routes = 3, .repairs = 1 };
	expect(&s,
	       "{\"version\":\"0.1.0\",\"started\":\"" SINCE "\",\"etcd\":{\"connected\":true,"
	       "\"endpoint\":\"http://10.0.0.9:2379\"},"
	       "\"kernel\":{\"links\":2,\"routes\":3,\"repairs\":1,\"conflicts\":0,\"failures\":0},"
	       "\"attachments\":0,\"total\":{\"blocks\":3,\"used\":3,\"free\":9223372036854775807},"
	       "\"health\":\"ok\",\"pools\":{\"a\":{\"blocks\":1,\"used\":3,\"free\":61},"
	       "\"b\":{\"blocks\":2,\"used\":0,\"free\":9223372036854775807}}}");
}

static void the_firewall_is_shown_where_it_is_wanted_and_as_it_stands(void **unused)
{
	struct status s = plain;
	char *text = NULL;

	s.firewall = (struct firewall_stats){ .wanted = FIREWALL_NAT, .repairs = 2 };
	assert_int_equal(status_text(&s, 0, &text), 0);
	assert_non_null(strstr(text,
			       "\"firewall\":{\"natOutgoing\":\"missing\","
			       "\"sourceCheck\":\"off\",\"protection\":\"off\",\"repairs\":2},"));
	free(text);
	s.firewall.held = s.firewall.wanted = FIREWALL_NAT | FIREWALL_ALWAYS;
	assert_int_equal(status_text(&s, 0, &text), 0);
	assert_non_null(strstr(text,
			       "\"firewall\":{\"natOutgoing\":\"set\","
			       "\"sourceCheck\":\"set\",\"protection\":\"set\",\"repairs\":2},"));
	free(text);
}

static void what_is_not_ready_is_named(void **unused)
{
	struct readiness ready = { 0 };
	struct status s = plain;
	AUTO(json_put) struct json_object *o = NULL;

	s.ready = &ready;
	s.attachments = 3;
	s.drained = true;
	readiness_add(&ready, "kernel", true, NULL);
	readiness_add(&ready, "watch/pool", false, "not yet");
	expect(&s,
	       "{\"version\":\"0.1.0\",\"started\":\"" SINCE "\",\"etcd\":{\"connected\":true,"
	       "\"endpoint\":\"http://10.0.0.9:2379\"},"
	       "\"kernel\":{\"links\":0,\"routes\":0,\"repairs\":0,\"conflicts\":0,\"failures\":0},"
	       "\"attachments\":3,\"drained\":true,\"total\":{\"blocks\":0,\"used\":0,\"free\":0},"
	       "\"notReady\":[\"watch/pool\"],\"health\":\"ok\",\"pools\":{}}");
	assert_int_equal(status_json(&s, 0, &o), 0);
	assert_int_equal(json_object_array_length(json_object_object_get(o, "inputs")), 2);
}

static void troubles_are_listed_with_their_since(void **unused)
{
	char reason[] = "gone";
	const struct health_entry health = { .part = "etcd", .reason = reason, .since = SINCE };
	struct status s = { .node = "n1",
			    .version = "0.1.0",
			    .started = SINCE,
			    .address_reason = "10.0.0.1: configured",
			    .etcd = { .error = "no route" },
			    .health = &health,
			    .n_health = 1 };

	expect(&s,
	       "{\"node\":\"n1\",\"version\":\"0.1.0\",\"started\":\"" SINCE "\","
	       "\"address\":\"10.0.0.1: configured\","
	       "\"etcd\":{\"connected\":false,\"error\":\"no route\"},"
	       "\"kernel\":{\"links\":0,\"routes\":0,\"repairs\":0,\"conflicts\":0,\"failures\":0},"
	       "\"attachments\":0,\"total\":{\"blocks\":0,\"used\":0,\"free\":0},"
	       "\"health\":[{\"part\":\"etcd\",\"reason\":\"gone\",\"level\":\"error\",\"since\":"
	       "\"" SINCE "\"}],"
	       "\"pools\":{}}");
}

/* Many of both; what fits is kept within the limit and the rest is counted. */
static void filled(size_t n_health, size_t n_pools, size_t reason_len, size_t max,
		   struct json_object **ret)
{
	AUTO(free) struct health_entry *health = calloc(n_health + 1, sizeof(*health));
	AUTO(free) struct status_pool *pools = calloc(n_pools + 1, sizeof(*pools));
	AUTO(free) char *names = calloc(n_pools + 1, 16), *text = NULL;
	AUTO(free) char *reason = malloc(reason_len + 1);
	struct status s = plain;

	memset(reason, '"', reason_len);
	reason[reason_len] = '\0';
	for (size_t i = 0; i < n_health; i++) {
		snprintf(health[i].part, HEALTH_PART, "part/%zu", i);
		strcpy(health[i].since, SINCE);
		health[i].reason = reason;
	}
	for (size_t i = 0; i < n_pools; i++) {
		sprintf(names + 16 * i, "pool-%zu", i);
		pools[i] = (struct status_pool){ names + 16 * i, 1, 2, 3 };
	}
	s.health = health;
	s.n_health = n_health;
	s.pools = pools;
	s.n_pools = n_pools;
	assert_int_equal(status_text(&s, max, &text), 0);
	if (max)
		assert_in_range(strlen(text), 1, max);
	assert_int_equal(json_parse(text, strlen(text), ret, NULL), 0);
}

static size_t length(struct json_object *root, const char *name)
{
	struct json_object *o = json_object_object_get(root, name);

	return json_object_is_type(o, json_type_array) ? json_object_array_length(o)
						       : (size_t)json_object_object_length(o);
}

static int64_t omitted(struct json_object *root, const char *name)
{
	struct json_object *o = json_object_object_get(root, "omitted");

	return json_object_get_int64(json_object_object_get(o, name));
}

static void what_does_not_fit_is_counted(void **unused)
{
	AUTO(json_put) struct json_object *root = NULL;
	struct json_object *total;

	filled(500, 500, 100, STATUS_SIZE_MAX, &root);
	assert_in_range(length(root, "health"), 5, 100);
	assert_in_range(length(root, "pools"), 50, 499);
	assert_int_equal(length(root, "health") + (size_t)omitted(root, "health"), 500);
	assert_int_equal(length(root, "pools") + (size_t)omitted(root, "pools"), 500);
	total = json_object_object_get(root, "total");
	assert_int_equal(json_object_get_int64(json_object_object_get(total, "used")), 1000);
}

static void pools_leave_room_to_the_first_troubles_and_take_what_they_leave(void **unused)
{
	AUTO(json_put) struct json_object *many = NULL, *few = NULL;

	filled(500, 3, 100, STATUS_SIZE_MAX, &many);
	assert_int_equal(length(many, "pools"), 3);
	assert_int_equal(omitted(many, "pools"), 0);
	filled(1, 500, 100, STATUS_SIZE_MAX, &few);
	assert_int_equal(length(few, "health"), 1);
	assert_in_range(length(few, "pools"), 100, 499);
}

static void a_long_sentence_is_cut_between_characters(void **unused)
{
	AUTO(json_put) struct json_object *root = NULL;
	char reason[1024] = "";
	struct health_entry health = { .part = "x", .reason = reason, .since = SINCE };
	struct status s = plain;
	AUTO(free) char *text = NULL;

	strcpy(reason, "x");
	for (int i = 0; i < 300; i++)
		strcat(reason, "ü");
	s.health = &health;
	s.n_health = 1;
	assert_int_equal(status_text(&s, STATUS_SIZE_MAX, &text), 0);
	assert_int_equal(json_parse(text, strlen(text), &root, NULL), 0);
	assert_non_null(strstr(text, "üü...\""));
}

static void without_a_limit_everything_is_there(void **unused)
{
	AUTO(json_put) struct json_object *root = NULL;

	filled(200, 500, 1000, 0, &root);
	assert_int_equal(length(root, "health"), 200);
	assert_int_equal(length(root, "pools"), 500);
	assert_null(json_object_object_get(root, "omitted"));
}

static void every_size_keeps_the_limit(void **unused)
{
	for (size_t n = 0; n < 150; n++) {
		AUTO(json_put) struct json_object *root = NULL;

		filled(n, n, n, STATUS_SIZE_MAX, &root);
		json_object_put(TAKE(root));
		filled(n, 150 - n, 3 * n, 2048, &root);
	}
}

/* --- BIRD ----------------------------------------------------------------------------------- */

static void bird_and_its_sessions_are_shown_those_that_fail_first(void **unused)
{
	const struct status_session sessions[] = {
		{ "n_1", "10.0.0.1", "Established", "10:00:00", "", 64512, 5, 1, true, NULL },
		{ "n_2", "10.0.0.2", "Active", "10:00:01", "Connection refused", 64513, 0, 0, false,
		  "peer/tor" },
	};
	struct status s = plain;

	s.bird = (struct status_bird){ .managed = true,
				       .connected = true,
				       .version = "2.0.12",
				       .protocol = "bgp",
				       .configuration = "refused",
				       .when = SINCE,
				       .error = "line 3",
				       .sessions = sessions,
				       .n_sessions = 2 };
	expect(&s,
	       "{\"version\":\"0.1.0\",\"started\":\"" SINCE "\",\"etcd\":{\"connected\":true,"
	       "\"endpoint\":\"http://10.0.0.9:2379\"},"
	       "\"kernel\":{\"links\":0,\"routes\":0,\"repairs\":0,\"conflicts\":0,\"failures\":0},"
	       "\"bird\":{\"connected\":true,\"version\":\"2.0.12\",\"protocol\":\"bgp\","
	       "\"configuration\":\"refused\","
	       "\"when\":\"" SINCE "\",\"error\":\"line 3\",\"sessions\":2,\"established\":1},"
	       "\"attachments\":0,\"total\":{\"blocks\":0,\"used\":0,\"free\":0},\"health\":\"ok\","
	       "\"pools\":{},"
	       "\"sessions\":[{\"name\":\"n_2\",\"peer\":\"10.0.0.2\",\"record\":\"peer/"
	       "tor\",\"asn\":64513,"
	       "\"state\":\"Active\",\"since\":\"10:00:01\",\"imported\":0,\"exported\":0,"
	       "\"error\":\"Connection refused\"},{\"name\":\"n_1\",\"peer\":\"10.0.0.1\","
	       "\"asn\":64512,\"state\":\"Established\",\"since\":\"10:00:00\",\"imported\":5,"
	       "\"exported\":1}]}");
}

/* n sessions of which every tenth fails, an error of that length, and that many troubles. */
static void with_sessions(size_t n, size_t error_len, size_t n_health, struct json_object **ret)
{
	AUTO(free) struct status_session *sessions = calloc(n + 1, sizeof(*sessions));
	AUTO(free) struct health_entry *health = calloc(n_health + 1, sizeof(*health));
	AUTO(free) char *error = calloc(1, error_len + 1), *text = NULL;
	struct status s = plain;

	memset(error, 'e', error_len);
	for (size_t i = 0; i < n; i++)
		sessions[i] = (struct status_session){
			"n_10_250_0_77", "10.250.0.77", "x", "10:00:00.000", error, 64512, 1, 2,
			i % 10 != 0,     NULL,
		};
	for (size_t i = 0; i < n_health; i++) {
		snprintf(health[i].part, HEALTH_PART, "part/%zu", i);
		health[i].reason = error;
	}
	s.bird = (struct status_bird){ .managed = true,
				       .configuration = "published",
				       .error = error,
				       .sessions = sessions,
				       .n_sessions = n };
	s.health = health;
	s.n_health = n_health;
	assert_int_equal(status_text(&s, STATUS_SIZE_MAX, &text), 0);
	assert_in_range(strlen(text), 1, STATUS_SIZE_MAX);
	assert_int_equal(json_parse(text, strlen(text), ret, NULL), 0);
}

static void of_many_sessions_all_are_counted_and_some_shown(void **unused)
{
	AUTO(json_put) struct json_object *root = NULL;
	struct json_object *bird;

	with_sessions(5000, 20, 0, &root);
	bird = json_object_object_get(root, "bird");
	assert_int_equal(json_object_get_int64(json_object_object_get(bird, "sessions")), 5000);
	assert_int_equal(json_object_get_int64(json_object_object_get(bird, "established")), 4500);
	assert_in_range(length(root, "sessions"), 20, 100);
	assert_int_equal(length(root, "sessions") + (size_t)omitted(root, "sessions"), 5000);
}

static void sessions_of_any_number_keep_the_limit(void **unused)
{
	for (size_t n = 0; n < 120; n++) {
		AUTO(json_put) struct json_object *root = NULL;

		with_sessions(n, n, n, &root);
		json_object_put(TAKE(root));
		with_sessions(n, 255, 120 - n, &root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_healthy_node_says_ok),
		cmocka_unit_test(the_firewall_is_shown_where_it_is_wanted_and_as_it_stands),
		cmocka_unit_test(what_is_not_ready_is_named),
		cmocka_unit_test(troubles_are_listed_with_their_since),
		cmocka_unit_test(what_does_not_fit_is_counted),
		cmocka_unit_test(pools_leave_room_to_the_first_troubles_and_take_what_they_leave),
		cmocka_unit_test(a_long_sentence_is_cut_between_characters),
		cmocka_unit_test(without_a_limit_everything_is_there),
		cmocka_unit_test(every_size_keeps_the_limit),
		cmocka_unit_test(bird_and_its_sessions_are_shown_those_that_fail_first),
		cmocka_unit_test(of_many_sessions_all_are_counted_and_some_shown),
		cmocka_unit_test(sessions_of_any_number_keep_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
