/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/frame/out.h"
#include "ctl/route_rows.h"
#include "lib/json/json.h"

#define ROUTE "static-route/vpn"

struct entry {
	const char *key, *value;
};

/* The record was written at revision 7, whatever is reported says so or not. */
#define NOW   "\"revision\":7,\"since\":\"2026-11-16T02:45:55Z\""
#define OLD   "\"revision\":6,\"since\":\"2026-11-16T02:45:55Z\""
#define THERE "\"subnet\":\"10.9.0.0/16\",\"gateways\":[\"192.0.2.1\"],\"table\":254,"

/* n1 to n5; n4's agent is silent, n5 is being removed, one is no node of ours. */
static const struct entry nodes[] = {
	{ "node/lease-192.0.2.5", "{\"ipv4\":\"192.0.2.5/32\",\"machine\":\"lease\"}" },
	{ "node/n1", "{\"ipv4\":\"192.0.2.11/24\"}" },
	{ "node/n2", "{\"ipv4\":\"192.0.2.12/24\"}" },
	{ "node/n3", "{\"ipv4\":\"192.0.2.13/24\"}" },
	{ "node/n4", "damaged" },
	{ "node/n5", "{\"ipv4\":\"192.0.2.15/24\"}" },
};
static const struct entry specs[] = {
	{ "spec/n1", "{\"labels\":{\"zone\":\"a\"}}" },
	{ "spec/n2", "{\"labels\":{\"zone\":\"a\"}}" },
	{ "spec/n3", "{\"labels\":{\"zone\":\"b\"}}" },
};
static const struct entry removed[] = { { "removed/n5", "{}" } };
static const struct entry alive[] = {
	{ "status/node/n1", "{}" },
	{ "status/node/n2", "{}" },
	{ "status/node/n3", "{}" },
};

static struct ctl_kvs kvs_of(const struct entry *v, size_t n, struct ctl_kv *room)
{
	for (size_t i = 0; i < n; i++)
		room[i] = (struct ctl_kv){ .key = (char *)(uintptr_t)v[i].key,
					   .value = (char *)(uintptr_t)v[i].value,
					   .value_len = strlen(v[i].value),
					   .mod_revision = 7 };
	return (struct ctl_kvs){ .v = room, .n = n, .revision = 10 };
}
#define KVS(v, room) kvs_of(v, ARRAY_SIZE(v), room)

/* "state: summary", then "node state via error" for each. */
static void expect(const char *json, const struct entry *said, size_t n, const char *want)
{
	struct ctl_kv room[6][8];
	struct route_view view = { .status = kvs_of(said, n, room[0]),
				   .nodes = KVS(nodes, room[1]),
				   .specs = KVS(specs, room[2]),
				   .removed = KVS(removed, room[3]),
				   .alive = KVS(alive, room[4]) };
	const struct entry route = { ROUTE, json };
	const struct ctl_kvs routes = kvs_of(&route, 1, room[5]);
	AUTO(json_put) struct json_object *row = NULL;
	char text[1024];
	size_t len;

	assert_int_equal(route_view_nodes(&view), 0);
	assert_int_equal(route_row(&view, &routes.v[0], true, &row), 0);
	len = (size_t)snprintf(text, sizeof(text), "%s: %s\n",
			       json_object_get_string(out_at(row, "state")),
			       json_object_get_string(out_at(row, "summary")));
	for (size_t i = 0; i < json_object_array_length(out_at(row, "nodes")); i++) {
		struct json_object *node = json_object_array_get_idx(out_at(row, "nodes"), i);

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s %s %s\n",
					json_object_get_string(out_at(node, "node")),
					json_object_get_string(out_at(node, "state")),
					json_object_get_string(out_at(node, "via")) ?: "-",
					json_object_get_string(out_at(node, "error")) ?: "-");
	}
	for (size_t i = 0; i < view.n; i++)
		node_spec_done(&view.v[i].spec);
	free(view.v);
	assert_string_equal(text, want);
}
#define SAID(...)                                                                                  \
	(const struct entry[]){ __VA_ARGS__ }, ARRAY_SIZE(((const struct entry[]){ __VA_ARGS__ }))
#define ON(node, json)                                                                             \
	{                                                                                          \
		"status/static-route/vpn/" node, "{" json "}"                                      \
	}

static void nodes_are_counted_by_what_they_say(void **unused)
{
	expect("{\"subnet\":\"10.9.0.0/16\"}",
	       SAID({ "status/static-route/vp/n1", "{}" }, ON("n1", THERE NOW),
		    ON("n2", NOW ",\"error\":\"no gateway\""), ON("n3", THERE OLD),
		    { "status/static-route/vpn2/n3", "{}" }),
	       "error: applied 1/4, 1 error, 1 pending, 1 silent\n"
	       "n1 applied 192.0.2.1 -\n"
	       "n2 error - no gateway\n"
	       "n3 pending 192.0.2.1 -\n"
	       "n4 silent - -\n");
}

static void only_selected_nodes_are_expected_to_report(void **unused)
{
	expect("{\"subnet\":\"10.9.0.0/16\",\"nodeSelector\":\"zone == 'a'\"}",
	       SAID(ON("n1", THERE NOW), ON("n2", THERE NOW)),
	       "ok: applied 2/2\nn1 applied 192.0.2.1 -\nn2 applied 192.0.2.1 -\n");
	expect("{\"subnet\":\"10.9.0.0/16\",\"nodeSelector\":\"kubernetes.io/hostname == 'n3'\"}",
	       SAID(ON("n1", THERE OLD), ON("n9", THERE OLD)),
	       "pending: applied 0/1, 1 pending, 2 withdrawing\n"
	       "n1 withdrawing 192.0.2.1 -\nn3 pending - -\nn9 withdrawing 192.0.2.1 -\n");
	expect("{\"subnet\":\"10.9.0.0/16\",\"nodeSelector\":\"zone == 'c'\"}", NULL, 0,
	       "ok: no node is selected\n");
}

static void a_record_that_is_wrong_concerns_the_nodes_that_it_selects(void **unused)
{
	expect("{\"subnet\":7,\"nodeSelector\":\"zone == 'b'\"}",
	       SAID(ON("n3", NOW ",\"error\":\"7 is no prefix\"")),
	       "invalid: applied 0/1, 1 error\nn3 error - 7 is no prefix\n");
	/* Nobody can tell whom it means, so all of them say that. */
	expect("{\"subnet\":\"10.9.0.0/16\",\"nodeSelector\":7}",
	       SAID(ON("n3", NOW ",\"error\":\"7 is no selector\"")),
	       "invalid: applied 0/4, 1 error, 2 pending, 1 silent\nn1 pending - -\n"
	       "n2 pending - -\nn3 error - 7 is no selector\nn4 silent - -\n");
}

static void what_is_deleted_waits_for_those_that_report(void **unused)
{
	expect("{\"subnet\":\"10.9.0.0/16\",\"deleting\":\"2026-11-16T02:45:55Z\"}",
	       SAID(ON("n2", THERE OLD)),
	       "deleting: deleting, 1 withdrawing\nn2 withdrawing 192.0.2.1 -\n");
}

static void a_status_that_cannot_be_read_is_an_error(void **unused)
{
	expect("{\"subnet\":\"10.9.0.0/16\",\"nodeSelector\":\"zone == 'b'\"}",
	       SAID(ON("n3", "\"table\":\"x\"")),
	       "error: applied 0/1, 1 error\nn3 error - status/static-route/vpn/n3: field "
	       "\"table\": \"x\" is a string, not an integer\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_counted_by_what_they_say),
		cmocka_unit_test(only_selected_nodes_are_expected_to_report),
		cmocka_unit_test(a_record_that_is_wrong_concerns_the_nodes_that_it_selects),
		cmocka_unit_test(what_is_deleted_waits_for_those_that_report),
		cmocka_unit_test(a_status_that_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
