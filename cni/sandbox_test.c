/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cni/sandbox.h"

static const struct cni_env env = { .container = "c1", .ifname = "eth0", .netns = "/run/netns/x" };
static const struct mac some_mac = { { 2, 0, 0, 0, 0, 5 } };

static struct cni_result result_of(const char *text, struct json_object **document)
{
	struct cni_result result;
	struct cni_error e = { 0 };

	assert_int_equal(json_parse(text, strlen(text), document, &e.msg), 0);
	if (cni_result_read(cni_root(*document, &e), CNI_1_1_0, &result, &e) < 0)
		fail_msg("%s: %s", text, e.msg.text);
	return result;
}

/* From an IPAM plugin's result, and that of the chain or NULL, to what goes to stdout. */
static void expect(const char *given_text, const char *prev_text, uint32_t mtu,
		   enum cni_version version, const char *want)
{
	AUTO(json_put) struct json_object *given_document = NULL, *prev_document = NULL;
	AUTO_DONE(cni_result_done) struct cni_result given = result_of(given_text, &given_document);
	AUTO_DONE(roost_conf_done) struct roost_conf conf = { 0 };
	AUTO_DONE(sandbox_done) struct sandbox pod = { 0 };
	AUTO(free) char *text = NULL;
	struct cni_error e = { 0 };

	if (prev_text)
		conf.prev = result_of(prev_text, &prev_document);
	if (sandbox_plan(&env, &conf, &given, mtu, &some_mac, &pod, &e) < 0 ||
	    sandbox_result(&pod, &conf, &given, version, &text, &e) < 0)
		fail_msg("%s", e.msg.text);
	assert_string_equal(text, want);
}

#define HOST(mtu) "{\"name\":\"roostc9279ba82c\",\"mac\":\"ee:ee:ee:ee:ee:ee\"" mtu "}"
#define POD(mtu)                                                                                   \
	"{\"name\":\"eth0\",\"mac\":\"02:00:00:00:00:05\"" mtu ",\"sandbox\":\"/run/netns/x\"}"
#define GW4   "\"169.254.1.1\""
#define GW6   "\"fe80::ecee:eeff:feee:eeee\""
#define BOTH4 "{\"ips\":[{\"address\":\"10.1.0.5/24\",\"gateway\":\"10.1.0.1\"}]}"

static void an_address_is_alone_and_everything_is_behind_the_node(void **unused)
{
	expect(BOTH4, NULL, 0, CNI_1_0_0,
	       "{\"cniVersion\":\"1.0.0\",\"interfaces\":[" HOST("") "," POD(
		       "") "],\"ips\":[{\"interface\":1,\"address\":\"10.1.0.5/"
			   "32\",\"gateway\":" GW4
			   "}],\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":" GW4 "}]}");
}

static void the_mtu_is_told_where_it_can_be(void **unused)
{
	expect(BOTH4, NULL, 1400, CNI_1_1_0,
	       "{\"cniVersion\":\"1.1.0\",\"interfaces\":[" HOST(",\"mtu\":1400") "," POD(
		       ",\"mtu\":1400") "],\"ips\":[{\"interface\":1,\"address\":\"10.1.0.5/32\","
					"\"gateway\":" GW4
					"}],\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":" GW4 "}]}");
}

static void old_versions_get_their_shape(void **unused)
{
	expect(BOTH4, NULL, 0, CNI_0_2_0,
	       "{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"10.1.0.5/32\",\"gateway\":" GW4
	       ",\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":" GW4 "}]}}");
}

static void routes_that_are_named_take_the_place_of_the_default_of_their_family(void **unused)
{
	expect("{\"ips\":[{\"address\":\"10.1.0.5/24\"},{\"address\":\"fd00::5/64\"}],"
	       "\"routes\":[{\"dst\":\"10.0.0.0/8\",\"gw\":\"10.1.0.1\"},{\"dst\":\"10.0.0.0/"
	       "8\"}]}",
	       NULL, 0, CNI_1_0_0,
	       "{\"cniVersion\":\"1.0.0\",\"interfaces\":[" HOST("") "," POD(
		       "") "],\"ips\":[{\"interface\":1,\"address\":\"10.1.0.5/"
			   "32\",\"gateway\":" GW4
			   "},{\"interface\":1,\"address\":\"fd00::5/128\",\"gateway\":" GW6
			   "}],\"routes\":[{\"dst\":\"10.0.0.0/8\",\"gw\":" GW4
			   "},{\"dst\":\"::/0\",\"gw\":" GW6 "}]}");
}

static void a_route_of_a_family_without_address_is_none(void **unused)
{
	expect("{\"ips\":[{\"address\":\"fd00::5/64\"}],\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}",
	       NULL, 0, CNI_1_0_0,
	       "{\"cniVersion\":\"1.0.0\",\"interfaces\":[" HOST("") "," POD(
		       "") "],\"ips\":[{\"interface\":1,\"address\":\"fd00::5/"
			   "128\",\"gateway\":" GW6 "}],\"routes\":[{\"dst\":\"::/0\",\"gw\":" GW6
			   "}]}");
}

static void the_chain_is_kept_and_ours_comes_behind_it(void **unused)
{
	expect(BOTH4,
	       "{\"interfaces\":[{\"name\":\"net9\",\"mac\":\"02:00:00:00:00:01\"}],"
	       "\"ips\":[{\"interface\":0,\"address\":\"10.9.0.1/24\"}],"
	       "\"routes\":[{\"dst\":\"10.9.0.0/16\"}],\"dns\":{\"domain\":\"a.b\"}}",
	       0, CNI_1_0_0,
	       "{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"net9\",\"mac\":"
	       "\"02:00:00:00:00:01\"}," HOST("") "," POD(
		       "") "],\"ips\":[{\"interface\":0,\"address\":\"10.9.0.1/"
			   "24\"},{\"interface\":2,"
			   "\"address\":\"10.1.0.5/32\",\"gateway\":" GW4
			   "}],\"routes\":[{\"dst\":\"10.9.0.0/16\"},{\"dst\":\"0.0.0.0/"
			   "0\",\"gw\":" GW4 "}],\"dns\":{\"domain\":\"a.b\"}}");
}

static void the_nearest_dns_settings_count(void **unused)
{
	AUTO(json_put) struct json_object *document = NULL;
	AUTO_DONE(cni_result_done)
	struct cni_result given = result_of(
		"{\"ips\":[{\"address\":\"10.1.0.5/24\"}],\"dns\":{\"domain\":\"pool\"}}",
		&document);
	AUTO_DONE(sandbox_done) struct sandbox pod = { 0 };
	struct cni_error e = { 0 };
	struct roost_conf conf = { .prev = { .dns = { .domain = "chain" } } };
	const char *const domains[] = { "pool", "network" };

	assert_int_equal(sandbox_plan(&env, &conf, &given, 0, &some_mac, &pod, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
		AUTO(free) char *text = NULL;
		char want[64];

		if (i > 0)
			conf.dns.domain = domains[i];
		assert_int_equal(sandbox_result(&pod, &conf, &given, CNI_1_0_0, &text, &e), 0);
		snprintf(want, sizeof(want), "\"dns\":{\"domain\":\"%s\"}}", domains[i]);
		assert_non_null(strstr(text, want));
	}
}

static void a_requested_mac_and_the_networks_mtu_are_used(void **unused)
{
	AUTO(json_put) struct json_object *document = NULL;
	AUTO_DONE(cni_result_done) struct cni_result given = result_of(BOTH4, &document);
	AUTO_DONE(sandbox_done) struct sandbox pod = { 0 };
	struct cni_error e = { 0 };
	struct roost_conf conf = { .mtu = 1300, .want = { .mac = { { 2, 0, 0, 0, 0, 9 } } } };

	assert_int_equal(sandbox_plan(&env, &conf, &given, 1500, &some_mac, &pod, &e), 0);
	assert_string_equal(pod.mac_text, "02:00:00:00:00:09");
	assert_int_equal(pod.mtu, 1300);
	assert_string_equal(pod.link, "roostc9279ba82c");
}

static void what_cannot_work_is_refused(void **unused)
{
	AUTO(json_put) struct json_object *document = NULL, *other = NULL;
	AUTO_DONE(cni_result_done)
	struct cni_result six = result_of("{\"ips\":[{\"address\":\"fd00::5/64\"}]}", &document);
	AUTO_DONE(cni_result_done) struct cni_result none = result_of("{}", &other);
	struct roost_conf conf = { .mtu = 1279 };
	struct cni_error e = { 0 };
	struct sandbox pod;

	assert_int_equal(sandbox_plan(&env, &conf, &six, 0, &some_mac, &pod, &e), -EINVAL);
	assert_string_equal(e.msg.text, "an MTU of 1279 is too small for IPv6, which needs 1280");
	assert_int_equal(sandbox_plan(&env, &conf, &none, 0, &some_mac, &pod, &e), -EINVAL);
	assert_string_equal(e.msg.text, "the IPAM plugin gave no address");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_alone_and_everything_is_behind_the_node),
		cmocka_unit_test(the_mtu_is_told_where_it_can_be),
		cmocka_unit_test(old_versions_get_their_shape),
		cmocka_unit_test(
			routes_that_are_named_take_the_place_of_the_default_of_their_family),
		cmocka_unit_test(a_route_of_a_family_without_address_is_none),
		cmocka_unit_test(the_chain_is_kept_and_ours_comes_behind_it),
		cmocka_unit_test(the_nearest_dns_settings_count),
		cmocka_unit_test(a_requested_mac_and_the_networks_mtu_are_used),
		cmocka_unit_test(what_cannot_work_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
