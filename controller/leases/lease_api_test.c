/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_api.h"
#include "lib/model/vtep.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect_call(const char *method, const char *path, int r, enum lease_verb verb,
			const char *network, const char *subnet)
{
	struct lease_call call = { .verb = LEASE_VERBS };
	struct err err = { "" };
	char text[PREFIX_TEXT] = "";

	assert_int_equal(lease_call_parse(method, path, &call, &err), r);
	if (r < 0) {
		assert_true(err.text[0]);
		return;
	}
	assert_int_equal(call.verb, verb);
	assert_string_equal(call.network, network);
	if (call.subnet.address.family)
		prefix_print(&call.subnet, text);
	assert_string_equal(text, subnet);
}

static void paths_and_verbs_are_understood(void **unused)
{
	expect_call("GET", "/v1/", 0, LEASE_NETWORKS, "", "");
	expect_call("GET", "/v1", 0, LEASE_NETWORKS, "", "");
	expect_call("GET", "/v1/_/config", 0, LEASE_CONFIG, "default", "");
	expect_call("GET", "/v1/blue/config", 0, LEASE_CONFIG, "blue", "");
	expect_call("GET", "/network/config", 0, LEASE_CONFIG, "default", "");
	expect_call("GET", "/network/leases", 0, LEASE_WATCH, "default", "");
	expect_call("POST", "/v1/_/leases", 0, LEASE_ACQUIRE, "default", "");
	expect_call("GET", "/v1/_/leases/10.5.34.0-24", 0, LEASE_WATCH_ONE, "default",
		    "10.5.34.0/24");
	expect_call("PUT", "/network/leases/10.5.34.0-24", 0, LEASE_RENEW, "default",
		    "10.5.34.0/24");
	expect_call("DELETE", "/v1/_/leases/10.5.34.0-24", 0, LEASE_REVOKE, "default",
		    "10.5.34.0/24");
	expect_call("GET", "/v1/_/reservations", 0, LEASE_RESERVATIONS, "default", "");
	expect_call("POST", "/v1/_/reservations", 0, LEASE_RESERVE, "default", "");
	expect_call("DELETE", "/v1/_/reservations/10.5.34.0-24", 0, LEASE_UNRESERVE, "default",
		    "10.5.34.0/24");
}

static void other_paths_and_verbs_are_refused(void **unused)
{
	expect_call("GET", "", -ENOENT, 0, "", "");
	expect_call("GET", "/", -ENOENT, 0, "", "");
	expect_call("POST", "/v1/", -ENOENT, 0, "", "");
	expect_call("GET", "/v1/_", -ENOENT, 0, "", "");
	expect_call("GET", "/v1/_/lease", -ENOENT, 0, "", "");
	expect_call("PUT", "/v1/_/leases", -ENOENT, 0, "", "");
	expect_call("GET", "/v1/_/config/10.5.34.0-24", -ENOENT, 0, "", "");
	expect_call("GET", "/v1/_/leases/10.5.34.0-24/x", -ENOENT, 0, "", "");
	expect_call("GET", "/v1/_/leases/10.5.34.1-24", -EINVAL, 0, "", "");
	expect_call("GET", "/v1/_/leases/fd00::-64", -EINVAL, 0, "", "");
	expect_call("GET", "/v1/A/leases", -EINVAL, 0, "", "");
	expect_call(
		"GET",
		"/v1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/leases",
		-EINVAL, 0, "", "");
}

static void cursors_are_revisions(void **unused)
{
	int64_t c = -1;

	assert_int_equal(lease_cursor_parse("0", &c), 0);
	assert_int_equal(c, 0);
	assert_int_equal(lease_cursor_parse("123456789012345678", &c), 0);
	assert_int_equal(c, 123456789012345678);
	assert_int_equal(lease_cursor_parse("", &c), -EINVAL);
	assert_int_equal(lease_cursor_parse("-1", &c), -EINVAL);
	assert_int_equal(lease_cursor_parse("1234567890123456789", &c), -EINVAL);
}

static int parse(enum lease_verb verb, const char *body, struct lease_wish *ret, struct err *err)
{
	return lease_wish_parse(verb, body, strlen(body), ret, err);
}

static void bodies_are_read(void **unused)
{
	AUTO_DONE(lease_wish_done) struct lease_wish a = { 0 }, b = { 0 }, c = { 0 };
	struct err err = { "" };
	char text[PREFIX_TEXT];

	assert_int_equal(parse(LEASE_ACQUIRE,
			       "{\"PublicIP\":\"192.0.2.5\",\"BackendType\":\"vxlan\","
			       "\"BackendData\":{\"VNI\":1,\"VtepMAC\":\"02:AB:00:00:00:09\"}}",
			       &a, &err),
			 0);
	assert_string_equal(a.backend_type, "vxlan");
	assert_string_equal(a.backend_data, "{\"VNI\":1,\"VtepMAC\":\"02:AB:00:00:00:09\"}");
	assert_int_equal(a.mac.bytes[1], 0xab);
	assert_int_equal(a.subnet.address.family, 0);
	assert_int_equal(parse(LEASE_RENEW,
			       "{\"Subnet\":\"10.5.34.0/"
			       "24\",\"Attrs\":{\"PublicIP\":\"192.0.2.5\",\"BackendData\":null},"
			       "\"Expiration\":\"x\"}",
			       &b, &err),
			 0);
	assert_string_equal(prefix_print(&b.subnet, text), "10.5.34.0/24");
	assert_string_equal(b.backend_data, "");
	assert_int_equal(parse(LEASE_RESERVE,
			       "{\"Subnet\":\"10.5.34.0/24\",\"PublicIP\":\"192.0.2.5\"}", &c,
			       &err),
			 0);
	assert_string_equal(c.backend_type, "");
}

static void expect_refused(enum lease_verb verb, const char *body, const char *sentence)
{
	struct lease_wish w = { 0 };
	struct err err = { "" };

	assert_int_equal(parse(verb, body, &w, &err), -EINVAL);
	if (!strstr(err.text, sentence))
		assert_string_equal(err.text, sentence);
}

static void bodies_that_cannot_be_are_refused_with_their_place(void **unused)
{
	expect_refused(LEASE_ACQUIRE, "", "not a whole JSON object");
	expect_refused(LEASE_ACQUIRE, "{}", "field \"PublicIP\": is missing");
	expect_refused(LEASE_ACQUIRE, "{\"PublicIP\":\"127.0.0.1\"}", "other nodes can reach");
	expect_refused(LEASE_ACQUIRE, "{\"PublicIP\":\"10.0.0.256\"}", "field \"PublicIP\"");
	expect_refused(LEASE_ACQUIRE, "{\"PublicIP\":\"10.0.0.1\",\"BackendType\":\"a\\u0001\"}",
		       "field \"BackendType\"");
	expect_refused(LEASE_ACQUIRE,
		       "{\"PublicIP\":\"10.0.0.1\",\"BackendType\":\"vxlan\",\"BackendData\":{"
		       "\"VtepMAC\":\"01:00:00:00:00:01\"}}",
		       "field \"BackendData.VtepMAC\"");
	expect_refused(LEASE_ACQUIRE,
		       "{\"PublicIP\":\"10.0.0.1\",\"BackendType\":\"vxlan\",\"BackendData\":{"
		       "\"VtepMAC\":\"02:00:00:00:00:01\",\"vtepMac\":\"02:00:00:00:00:02\"}}",
		       "only in case");
	expect_refused(LEASE_RENEW, "{\"Subnet\":\"10.5.34.0/24\"}", "field \"Attrs\": is missing");
	expect_refused(LEASE_RENEW, "{\"Subnet\":\"fd00::/64\"}", "not an IPv4 subnet");
	expect_refused(LEASE_RESERVE, "{\"Subnet\":\"10.5.34.1/24\"}", "field \"Subnet\"");
}

static void leases_are_spelled_as_clients_read_them(void **unused)
{
	AUTO(free) char *text = NULL, *attrs = NULL, *agent = NULL, *config = NULL;
	struct block block = { .lease = { .backend_type = "vxlan",
					  .backend_data = "{\"VNI\":1}",
					  .expires = "2026-11-16T02:45:55Z" } };
	struct node node = { .name = "n1", .vtep = { .mac = vtep_mac("n1") } };
	struct lease_network_config c = { .vxlan = { .vni = 1, .port = 8472 } };

	prefix_parse("10.5.34.0/24", &block.block);
	address_parse("192.0.2.5", &block.lease.public_ip);
	assert_int_equal(lease_render(&block, NULL, NULL, &text, &attrs), 0);
	assert_string_equal(
		text, "{\"Subnet\":\"10.5.34.0/"
		      "24\",\"Attrs\":{\"PublicIP\":\"192.0.2.5\",\"BackendType\":\"vxlan\","
		      "\"BackendData\":{\"VNI\":1}},\"Expiration\":\"2026-11-16T02:45:55Z\"}");
	assert_string_equal(attrs, "{\"PublicIP\":\"192.0.2.5\",\"BackendType\":\"vxlan\","
				   "\"BackendData\":{\"VNI\":1}}");
	block.lease = (struct block_lease){ .backend_type = "", .backend_data = "" };
	assert_int_equal(lease_render(&block, NULL, &c.vxlan, &agent, NULL), -ENODATA);
	prefix_parse_host("192.0.2.1/24", &node.ipv4);
	assert_int_equal(lease_render(&block, &node, &c.vxlan, &agent, NULL), 0);
	assert_string_equal(agent, "{\"Subnet\":\"10.5.34.0/"
				   "24\",\"Attrs\":{\"PublicIP\":\"192.0.2.1\",\"BackendType\":"
				   "\"vxlan\",\"BackendData\":{\"VNI\":1,\"VtepMAC\":\"ae:ce:09:56:"
				   "5a:88\"}},\"Expiration\":\"" LEASE_NEVER "\"}");
	prefix_parse("10.5.0.0/16", &c.network);
	prefix_parse("10.5.1.0/24", &c.first);
	prefix_parse("10.5.255.0/24", &c.last);
	assert_int_equal(lease_render_config(&c, &config), 0);
	assert_string_equal(
		config,
		"{\"Network\":\"10.5.0.0/"
		"16\",\"SubnetMin\":\"10.5.1.0\",\"SubnetMax\":\"10.5.255.0\",\"SubnetLen\":24,"
		"\"Backend\":{\"Type\":\"vxlan\",\"VNI\":1,\"Port\":8472}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_and_verbs_are_understood),
		cmocka_unit_test(other_paths_and_verbs_are_refused),
		cmocka_unit_test(cursors_are_revisions),
		cmocka_unit_test(bodies_are_read),
		cmocka_unit_test(bodies_that_cannot_be_are_refused_with_their_place),
		cmocka_unit_test(leases_are_spelled_as_clients_read_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
