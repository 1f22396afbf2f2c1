/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/status_view.h"

#define NOW 1767225610 /* 2026-01-01T00:00:10Z */

#define WELL                                                                                       \
	"\"node\":\"n1\",\"version\":\"0.1.0\",\"started\":\"2026-01-01T00:00:00.123456789Z\","    \
	"\"address\":\"192.0.2.1: configured\",\"ready\":true,\"reason\":\"\","                    \
	"\"etcd\":{\"connected\":true,\"endpoint\":\"http://192.0.2.9:2379\"},"                    \
	"\"kernel\":{\"links\":1,\"routes\":2,\"repairs\":1,\"conflicts\":0,\"failures\":0},"      \
	"\"bird\":{\"connected\":true,\"version\":\"2.0.12\",\"configuration\":\"published\","     \
	"\"when\":\"2026-01-01T00:00:01Z\",\"sessions\":2,\"established\":1},"                     \
	"\"attachments\":1,\"total\":{\"blocks\":1,\"used\":1,\"free\":63},"

static void expect(const char *json, const char *state, const char *want)
{
	AUTO(json_put) struct json_object *status = json_tokener_parse(json);
	AUTO_DONE(status_view_done) struct status_view v = status_view_new();
	AUTO(free) char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(status);
	status_view_agent(&v, status, NOW);
	assert_false(v.failed);
	assert_string_equal(status_view_state(&v), state);
	for (int which = 0; which < 2; which++) {
		struct json_object *rows = which ? v.problems : v.parts;

		for (size_t i = 0; i < json_object_array_length(rows); i++) {
			const char *blank = "";

			json_object_object_foreach(json_object_array_get_idx(rows, i), name,
						   value) {
				(void)name;
				fprintf(out, "%s%s", blank, json_object_get_string(value));
				blank = " | ";
			}
			fputc('\n', out);
		}
	}
	fclose(out);
	assert_string_equal(text, want);
}

/* Only where there is an overlay. */
static void the_overlay_has_a_line_of_its_own(void **unused)
{
	AUTO(json_put)
	struct json_object *status = json_tokener_parse(
		"{" WELL
		"\"overlay\":{\"vni\":4096,\"mtu\":1450,\"addresses\":[\"10.1.0.0\"],\"remotes\":2,"
		"\"tunnel\":3,\"direct\":1,\"missing\":1},\"health\":\"ok\"}");
	AUTO_DONE(status_view_done) struct status_view v = status_view_new();

	status_view_agent(&v, status, NOW);
	assert_string_equal(json_object_to_json_string_ext(json_object_array_get_idx(v.parts, 4),
							   JSON_C_TO_STRING_PLAIN),
			    "{\"part\":\"overlay\",\"state\":\"warning\",\"about\":\"VXLAN 4096, "
			    "MTU 1450, tunnel address 10.1.0.0; 2 other nodes, their blocks: 3 by "
			    "tunnel, 1 direct, 1 missing\"}");
	assert_string_equal(status_part_of("overlay/n2"), "overlay");
	assert_string_equal(status_part_of("overlay-route/10.1.0.0/26"), "overlay");
	assert_string_equal(status_part_of("tunnel-device/roost.vxlan"), "overlay");
	assert_string_equal(status_part_of("tunnel-address/ipv4"), "overlay");
}

static void a_node_that_is_well_has_five_lines(void **unused)
{
	expect("{" WELL "\"health\":\"ok\"}", "ok",
	       "agent | ok | roostd 0.1.0 since 2026-01-01T00:00:00Z on node n1; 192.0.2.1: "
	       "configured\n"
	       "etcd | ok | connected to http://192.0.2.9:2379\n"
	       "kernel | ok | 1 pod link, 2 routes; 1 repair, 0 refused\n"
	       "bird | ok | BIRD 2.0.12; bgp, 1 of 2 sessions up; configuration published at "
	       "2026-01-01T00:00:01Z\n"
	       "addresses | ok | 1 in use by 1 pod, 63 free, in 1 block\n");
}

static void a_problem_marks_its_part_with_its_level(void **unused)
{
	expect("{" WELL
	       "\"drained\":true,\"bird\":{\"connected\":false},\"health\":[{\"part\":\"pool-full/"
	       "web\",\"level\":\"error\",\"reason\":\"full\",\"since\":\"T\"},{\"part\":\"route/"
	       "10.1.0.0/"
	       "26\",\"level\":\"warning\",\"reason\":\"x\",\"since\":\"T\"},{\"part\":\"drain\","
	       "\"level\":\"info\",\"reason\":\"no\",\"since\":\"T\"}]}",
	       "error",
	       "agent | ok | roostd 0.1.0 since 2026-01-01T00:00:00Z on node n1; 192.0.2.1: "
	       "configured\n"
	       "etcd | ok | connected to http://192.0.2.9:2379\n"
	       "kernel | warning | 1 pod link, 2 routes; 1 repair, 0 refused\n"
	       "bird | warning | not connected\n"
	       "addresses | error | 1 in use by 1 pod, 63 free, in 1 block; drained\n"
	       "error | T | pool-full/web | full\n"
	       "warning | T | route/10.1.0.0/26 | x\n"
	       "info | T | drain | no\n");
}

static void what_is_merely_told_is_no_problem(void **unused)
{
	AUTO_DONE(status_view_done) struct status_view v = status_view_new();

	status_problem(&v, "info", "", "drain", "no new pods");
	assert_string_equal(status_view_state(&v), "ok");
	status_problem(&v, "warning", "", "etcd", "away");
	assert_string_equal(status_view_state(&v), "warning");
}

/* An older agent, or a damaged one: nothing is assumed. */
static void an_agent_that_is_not_ready_is_a_problem_of_its_own(void **unused)
{
	expect("{\"version\":\"1\",\"node\":\"n1\",\"started\":\"T\",\"ready\":false,\"reason\":"
	       "\"not registered "
	       "yet\",\"bird\":{\"connected\":true,\"version\":\"2\",\"protocol\":\"ospf\","
	       "\"configuration\":\"none\"}}",
	       "error",
	       "agent | error | roostd 1 since T on node n1; its address is not known yet\n"
	       "etcd | warning | not connected: it has not answered yet\n"
	       "kernel | ok | 0 pod links, 0 routes; 0 repairs, 0 refused\n"
	       "bird | ok | BIRD 2; ospf; configuration none\n"
	       "addresses | ok | 0 in use by 0 pods, 0 free, in 0 blocks\n"
	       "error | agent | not ready: not registered yet\n");
}

static void a_lease_server_is_called_so(void **unused)
{
	expect("{\"version\":\"1\",\"started\":\"T\",\"node\":\"n1\",\"ready\":true,\"etcd\":{"
	       "\"connected\":false,\"server\":\"lease-server\",\"error\":\"gone\"},\"bird\":{"
	       "\"connected\":true,\"version\":\"2\",\"protocol\":\"ospf\",\"configuration\":"
	       "\"none\"}}",
	       "ok",
	       "agent | ok | roostd 1 since T on node n1; its address is not known yet\n"
	       "lease-server | warning | not connected: gone\n"
	       "kernel | ok | 0 pod links, 0 routes; 0 repairs, 0 refused\n"
	       "bird | ok | BIRD 2; ospf; configuration none\n"
	       "addresses | ok | 0 in use by 0 pods, 0 free, in 0 blocks\n");
	assert_string_equal(status_part_of("lease-server"), "etcd");
}

static void every_part_of_health_has_its_place(void **unused)
{
	assert_string_equal(status_part_of("etcd"), "etcd");
	assert_string_equal(status_part_of("bird-config"), "bird");
	assert_string_equal(status_part_of("bird-other"), "agent");
	assert_string_equal(status_part_of("session/x"), "bird");
	assert_string_equal(status_part_of("routing/peer/x"), "bird");
	assert_string_equal(status_part_of("static-route/vpn"), "kernel");
	assert_string_equal(status_part_of("static-routes"), "kernel");
	assert_string_equal(status_part_of("static-route-status"), "etcd");
	assert_string_equal(status_part_of("block/default/10.1.0.0-26"), "addresses");
	assert_string_equal(status_part_of("registration"), "agent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_is_well_has_five_lines),
		cmocka_unit_test(the_overlay_has_a_line_of_its_own),
		cmocka_unit_test(a_problem_marks_its_part_with_its_level),
		cmocka_unit_test(what_is_merely_told_is_no_problem),
		cmocka_unit_test(an_agent_that_is_not_ready_is_a_problem_of_its_own),
		cmocka_unit_test(a_lease_server_is_called_so),
		cmocka_unit_test(every_part_of_health_has_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
