/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cni/cni_result.h"

/* Both families, all that 1.1.0 can say. */
#define INTERFACES_11                                                                              \
	"\"interfaces\":[{\"name\":\"roost0123456789\",\"mac\":\"ee:ee:ee:ee:ee:ee\"},"            \
	"{\"name\":\"eth0\",\"mac\":\"02:00:00:00:00:05\",\"mtu\":1450,"                           \
	"\"sandbox\":\"/run/netns/x\",\"socketPath\":\"/s\",\"pciID\":\"0000:00\"}],"
#define INTERFACES_03                                                                              \
	"\"interfaces\":[{\"name\":\"roost0123456789\",\"mac\":\"ee:ee:ee:ee:ee:ee\"},"            \
	"{\"name\":\"eth0\",\"mac\":\"02:00:00:00:00:05\",\"sandbox\":\"/run/netns/x\"}],"
#define IP4 "\"interface\":1,\"address\":\"10.1.0.5/24\",\"gateway\":\"10.1.0.1\"}"
#define IP6 "\"interface\":1,\"address\":\"fd00::5/64\"}"
#define DNS                                                                                        \
	"\"dns\":{\"nameservers\":[\"10.0.0.53\"],\"domain\":\"a.b\",\"search\":[\"a\",\"b\"],"    \
	"\"options\":[\"ndots:5\"]}}"
#define ROUTES_03                                                                                  \
	"\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.1.0.1\"},{\"dst\":\"fd00:1::/64\"}],"
#define V(version) "{\"cniVersion\":\"" version "\","

static const char *const golden[CNI_VERSIONS] = {
	[CNI_0_1_0] = V("0.1.0") "\"ip4\":{\"ip\":\"10.1.0.5/24\",\"gateway\":\"10.1.0.1\","
				 "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.1.0.1\"}]},"
				 "\"ip6\":{\"ip\":\"fd00::5/64\","
				 "\"routes\":[{\"dst\":\"fd00:1::/64\"}]}," DNS,
	[CNI_0_2_0] = V("0.2.0") "\"ip4\":{\"ip\":\"10.1.0.5/24\",\"gateway\":\"10.1.0.1\","
				 "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.1.0.1\"}]},"
				 "\"ip6\":{\"ip\":\"fd00::5/64\","
				 "\"routes\":[{\"dst\":\"fd00:1::/64\"}]}," DNS,
	[CNI_0_3_0] = V("0.3.0") INTERFACES_03 "\"ips\":[{\"version\":\"4\"," IP4
					       ",{\"version\":\"6\"," IP6 "]," ROUTES_03 DNS,
	[CNI_0_3_1] = V("0.3.1") INTERFACES_03 "\"ips\":[{\"version\":\"4\"," IP4
					       ",{\"version\":\"6\"," IP6 "]," ROUTES_03 DNS,
	[CNI_0_4_0] = V("0.4.0") INTERFACES_03 "\"ips\":[{\"version\":\"4\"," IP4
					       ",{\"version\":\"6\"," IP6 "]," ROUTES_03 DNS,
	[CNI_1_0_0] = V("1.0.0") INTERFACES_03 "\"ips\":[{" IP4 ",{" IP6 "]," ROUTES_03 DNS,
	[CNI_1_1_0] = V("1.1.0") INTERFACES_11
	"\"ips\":[{" IP4 ",{" IP6 "],"
	"\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"10.1.0.1\",\"mtu\":1400,\"advmss\":1360,"
	"\"priority\":10,\"table\":0,\"scope\":253},{\"dst\":\"fd00:1::/64\"}]," DNS,
};

static struct cni_result full(void)
{
	static struct cni_interface interfaces[] = {
		{ .name = "roost0123456789", .mac = "ee:ee:ee:ee:ee:ee" },
		{ .name = "eth0",
		  .mac = "02:00:00:00:00:05",
		  .sandbox = "/run/netns/x",
		  .mtu = 1450,
		  .socket_path = "/s",
		  .pci_id = "0000:00" },
	};
	static struct cni_ip ips[] = { { .interface = 1 }, { .interface = 1 } };
	static struct cni_route routes[] = {
		{ .mtu = 1400, .advmss = 1360, .priority = 10, .table = 0, .scope = 253 },
		{ CNI_ROUTE_NONE },
	};
	static const char *servers[] = { "10.0.0.53" }, *search[] = { "a", "b" },
			  *options[] = { "ndots:5" };

	prefix_parse_host("10.1.0.5/24", &ips[0].address);
	address_parse("10.1.0.1", &ips[0].gateway);
	prefix_parse_host("fd00::5/64", &ips[1].address);
	prefix_parse("0.0.0.0/0", &routes[0].dst);
	address_parse("10.1.0.1", &routes[0].gw);
	prefix_parse("fd00:1::/64", &routes[1].dst);
	return (struct cni_result){ .interfaces = { interfaces, 2, 0 },
				    .ips = { ips, 2, 0 },
				    .routes = { routes, 2, 0 },
				    .dns = { .domain = "a.b",
					     .nameservers = { servers, 1 },
					     .search = { search, 2 },
					     .options = { options, 1 } } };
}

static char *print(const struct cni_result *result, enum cni_version version)
{
	struct cni_error e = { 0 };
	char *text = NULL;

	if (cni_result_print(result, version, &text, &e) < 0)
		fail_msg("%s", e.msg.text);
	return text;
}

static void every_version_has_its_own_shape(void **unused)
{
	const struct cni_result result = full();

	for (int i = 0; i < CNI_VERSIONS; i++) {
		AUTO(free) char *text = print(&result, (enum cni_version)i);

		assert_string_equal(text, golden[i]);
	}
}

static int read_result(const char *text, enum cni_version version, struct cni_result *ret,
		       struct json_object **ret_json, struct cni_error *e)
{
	struct json_at root;

	assert_int_equal(json_parse(text, strlen(text), ret_json, NULL), 0);
	root = cni_root(*ret_json, e);
	return cni_result_read(json_member(&root, "prevResult"), version, ret, e);
}

static void what_was_printed_is_read_back(void **unused)
{
	for (int i = 0; i < CNI_VERSIONS; i++) {
		AUTO(json_put) struct json_object *json = NULL;
		AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
		AUTO(free) char *text = NULL;
		struct cni_error e = { 0 };
		char wrapped[2048];

		snprintf(wrapped, sizeof(wrapped), "{\"PrevResult\":%s}", golden[i]);
		/* Its own version counts, not the configuration's. */
		if (read_result(wrapped, CNI_0_1_0, &result, &json, &e) < 0)
			fail_msg("%s: %s", golden[i], e.msg.text);
		text = print(&result, (enum cni_version)i);
		assert_string_equal(text, golden[i]);
	}
}

static void without_a_version_of_its_own_the_configurations_counts(void **unused)
{
	AUTO(json_put) struct json_object *json = NULL;
	AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
	struct cni_error e = { 0 };

	assert_int_equal(read_result("{\"prevResult\":{\"IP4\":{\"IP\":\"10.1.0.5/24\"}}}",
				     CNI_0_2_0, &result, &json, &e),
			 0);
	assert_int_equal(result.ips.n, 1);
	assert_int_equal(result.ips.v[0].interface, -1);
}

static void names_in_a_result_may_have_any_case(void **unused)
{
	AUTO(json_put) struct json_object *json = NULL;
	AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
	AUTO(free) char *text = NULL;
	struct cni_error e = { 0 };

	assert_int_equal(
		read_result("{\"prevresult\":{\"CNIVersion\":\"1.0.0\",\"Interfaces\":[{\"Name\":"
			    "\"eth0\"}],\"IPS\":[{\"Interface\":0,\"Address\":\"10.1.0.5/24\"}],"
			    "\"Routes\":[{\"DST\":\"10.0.0.7/8\",\"GW\":\"\"}],\"DNS\":{}}}",
			    CNI_1_0_0, &result, &json, &e),
		0);
	text = print(&result, CNI_1_0_0);
	assert_string_equal(text, V("1.0.0") "\"interfaces\":[{\"name\":\"eth0\"}],\"ips\":[{"
					     "\"interface\":0,\"address\":\"10.1.0.5/24\"}],"
					     "\"routes\":[{\"dst\":\"10.0.0.0/8\"}]}");
}

static void fails(const char *result, unsigned code, const char *msg)
{
	AUTO(json_put) struct json_object *json = NULL;
	struct cni_result ret;
	struct cni_error e = { 0 };
	char text[512];

	snprintf(text, sizeof(text), "{\"prevResult\":%s}", result);
	assert_int_equal(read_result(text, CNI_1_1_0, &ret, &json, &e), -EINVAL);
	assert_string_equal(e.msg.text, msg);
	assert_int_equal(e.code, code);
}

static void a_result_that_makes_no_sense_is_refused(void **unused)
{
#define AT "field \"prevResult"
	fails("null", CNI_CODE_CONFIG, AT "\": is missing");
	fails("[]", CNI_CODE_DECODE, AT "\": [] is an array, not an object");
	fails("{\"cniVersion\":\"7\"}", CNI_CODE_CONFIG,
	      AT ".cniVersion\": \"7\" is not a version that this plugin supports");
	fails("{\"ips\":{}}", CNI_CODE_DECODE, AT ".ips\": {} is an object, not an array");
	fails("{\"ips\":[{}]}", CNI_CODE_CONFIG, AT ".ips[0].address\": is missing");
	fails("{\"ips\":[{\"address\":\"x\"}]}", CNI_CODE_CONFIG,
	      AT ".ips[0].address\": \"x\" is not an address with its prefix length, such as "
		 "\"192.0.2.7/24\" or \"fd00::7/64\"");
	fails("{\"ips\":[{\"address\":\"10.1.0.5/24\",\"interface\":0}]}", CNI_CODE_CONFIG,
	      AT ".ips[0].interface\": 0 is beyond the list of interfaces");
	fails("{\"ips\":[{\"address\":\"10.1.0.5/24\",\"interface\":-1}],\"interfaces\":[{}]}",
	      CNI_CODE_CONFIG, AT ".ips[0].interface\": -1 is not between 0 and 4294967295");
	fails("{\"routes\":[{\"gw\":\"10.1.0.1\"}]}", CNI_CODE_CONFIG,
	      AT ".routes[0].dst\": is missing");
	fails("{\"dns\":[]}", CNI_CODE_DECODE, AT ".dns\": [] is an array, not an object");
	fails("{\"dns\":{\"nameservers\":[\"a\"],\"search\":[5]}}", CNI_CODE_DECODE,
	      AT ".dns.search[0]\": 5 is an integer, not a string");
	fails("{\"cniVersion\":\"0.2.0\",\"ip4\":{}}", CNI_CODE_CONFIG, AT ".ip4.ip\": is missing");
	fails("{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"10.1.0.5/24\"},\"ip6\":{\"ip\":5}}",
	      CNI_CODE_DECODE, AT ".ip6.ip\": 5 is an integer, not a string");
}

static void old_versions_cannot_say_two_of_a_family_or_none(void **unused)
{
	struct cni_result result = full();
	struct cni_error e = { 0 };
	char *text = NULL;

	result.ips.v[1] = result.ips.v[0];
	assert_int_equal(cni_result_print(&result, CNI_0_2_0, &text, &e), -EINVAL);
	assert_int_equal(e.code, CNI_CODE_CONFIG);
	assert_string_equal(e.msg.text,
			    "a result of cniVersion \"0.2.0\" has one address, or one of each "
			    "family; this one would have 2: set a cniVersion from \"0.3.0\" on");
	result.ips.n = 0;
	assert_int_equal(cni_result_print(&result, CNI_0_1_0, &text, &e), -EINVAL);
	result.ips.n = 1;
	assert_int_equal(cni_result_print(&result, CNI_0_1_0, &text, &e), 0);
	free(text);
}

static void an_ipam_result_has_no_interfaces(void **unused)
{
	struct cni_ip ip = { .interface = -1 };
	struct cni_result result = { .ips = { &ip, 1, 0 } };
	AUTO(free) char *old = NULL, *new = NULL;

	prefix_parse_host("10.1.0.5/32", &ip.address);
	old = print(&result, CNI_0_4_0);
	new = print(&result, CNI_1_1_0);
	assert_string_equal(old, V("0.4.0") "\"ips\":[{\"version\":\"4\","
					    "\"address\":\"10.1.0.5/32\"}]}");
	assert_string_equal(new, V("1.1.0") "\"ips\":[{\"address\":\"10.1.0.5/32\"}]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_has_its_own_shape),
		cmocka_unit_test(what_was_printed_is_read_back),
		cmocka_unit_test(without_a_version_of_its_own_the_configurations_counts),
		cmocka_unit_test(names_in_a_result_may_have_any_case),
		cmocka_unit_test(a_result_that_makes_no_sense_is_refused),
		cmocka_unit_test(old_versions_cannot_say_two_of_a_family_or_none),
		cmocka_unit_test(an_ipam_result_has_no_interfaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
