/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cni/conf.h"

/* The call that a runtime makes with these fields behind the usual ones. */
static struct cni_call call_of(const char *fields)
{
	struct cni_call call = { .env = { .ifname = "eth0", .args = { "", "", "", "", "" } } };
	struct cni_error e = { 0 };
	char text[1024];

	snprintf(text, sizeof(text), "{\"cniVersion\":\"1.0.0\",\"name\":\"pods\"%s}", fields);
	if (cni_conf_read(text, strlen(text), CNI_ADD, &call.conf, &e) < 0)
		fail_msg("%s: %s", text, e.msg.text);
	return call;
}

#define IPAM ",\"ipam\":{\"type\":\"roost-ipam\"}"

static void fails(const char *fields, unsigned code, const char *msg)
{
	struct cni_call call = call_of(fields);
	struct roost_conf conf;
	struct cni_error e = { 0 };

	if (roost_conf_read(&call, &conf, &e) >= 0)
		fail_msg("taken: %s", fields);
	assert_string_equal(e.msg.text, msg);
	assert_int_equal(e.code, code);
	cni_conf_done(&call.conf);
}

static void the_smallest_configuration_is_enough(void **unused)
{
	struct cni_call call = call_of(IPAM);
	struct roost_conf conf;
	struct cni_error e = { 0 };

	assert_int_equal(roost_conf_read(&call, &conf, &e), 0);
	assert_int_equal(conf.mtu, 0);
	assert_false(conf.route_localnet);
	assert_false(conf.chained);
	roost_conf_done(&conf);
	cni_conf_done(&call.conf);
}

static void all_of_its_own_fields_are_read_in_any_case(void **unused)
{
	struct cni_call call = call_of(IPAM
				       ",\"MTU\":1400,\"routelocalnet\":true,"
				       "\"dns\":{\"nameservers\":[\"10.0.0.53\"]},"
				       "\"runtimeConfig\":{\"mac\":\"02:00:00:00:00:09\"},"
				       "\"prevResult\":{\"interfaces\":[{\"name\":\"net0\"}]}");
	struct roost_conf conf;
	struct cni_error e = { 0 };

	assert_int_equal(roost_conf_read(&call, &conf, &e), 0);
	assert_int_equal(conf.mtu, 1400);
	assert_true(conf.route_localnet);
	assert_string_equal(conf.dns.nameservers.v[0], "10.0.0.53");
	assert_int_equal(conf.want.mac.bytes[5], 9);
	assert_true(conf.chained);
	assert_string_equal(conf.prev.interfaces.v[0].name, "net0");
	roost_conf_done(&conf);
	cni_conf_done(&call.conf);
}

static void who_gives_addresses_must_be_named(void **unused)
{
	const char *msg = "network \"pods\" names no IPAM plugin: write \"ipam\": {\"type\": "
			  "\"roost-ipam\"}; pods without an address are not supported";

	fails("", CNI_CODE_CONFIG, msg);
	fails(",\"ipam\":{}", CNI_CODE_CONFIG, msg);
	fails(",\"ipam\":{\"type\":\"\"}", CNI_CODE_CONFIG, msg);
	fails(",\"ipam\":{\"type\":\"../sh\"}", CNI_CODE_CONFIG,
	      "field \"ipam.type\": \"../sh\" is not the name of a plugin in CNI_PATH");
	fails(",\"ipam\":{\"type\":\"..\"}", CNI_CODE_CONFIG,
	      "field \"ipam.type\": \"..\" is not the name of a plugin in CNI_PATH");
}

static void wrong_values_are_refused(void **unused)
{
	fails(IPAM ",\"mtu\":67", CNI_CODE_CONFIG,
	      "field \"mtu\": 67 is neither 0 nor between 68 and 65535");
	fails(IPAM ",\"mtu\":65536", CNI_CODE_CONFIG,
	      "field \"mtu\": 65536 is not between 0 and 65535");
	fails(IPAM ",\"mtu\":\"1400\"", CNI_CODE_DECODE,
	      "field \"mtu\": \"1400\" is a string, not an integer");
	fails(IPAM ",\"routeLocalnet\":1", CNI_CODE_DECODE,
	      "field \"routeLocalnet\": 1 is an integer, not true or false");
	fails(IPAM ",\"prevResult\":5", CNI_CODE_DECODE,
	      "field \"prevResult\": 5 is an integer, not an object");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_configuration_is_enough),
		cmocka_unit_test(all_of_its_own_fields_are_read_in_any_case),
		cmocka_unit_test(who_gives_addresses_must_be_named),
		cmocka_unit_test(wrong_values_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
