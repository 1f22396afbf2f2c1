/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ipam/attachments/request.h"

#define KEY "\"network\":\"pods\",\"container\":\"3f9c\",\"interface\":\"eth0\""

#define DECODE(noun, json, ret)                                                                    \
	do {                                                                                       \
		struct err err_;                                                                   \
		if (noun##_decode(json, strlen(json), ret, &err_) != 0)                            \
			fail_msg("%s", err_.text);                                                 \
	} while (0)

#define REFUSED(noun, json, sentence)                                                              \
	do {                                                                                       \
		struct err err_ = { "" };                                                          \
		struct noun r_;                                                                    \
		assert_int_equal(noun##_decode(json, strlen(json), &r_, &err_), -EINVAL);          \
		assert_string_equal(err_.text, sentence);                                          \
	} while (0)

static void the_example_of_the_documentation_is_understood(void **unused)
{
	AUTO_DONE(assign_request_done) struct assign_request r = { 0 };
	char a[ADDRESS_TEXT], p[PREFIX_TEXT];

	DECODE(assign_request,
	       "{" KEY ",\"netns\":\"/run/netns/x\",\"namespace\":\"prod\",\"pod\":\"web-1\","
	       "\"uid\":\"\",\"addresses\":[\"10.1.0.5\"],\"exclude\":[\"10.1.0.9\",\"10.1.1.0/"
	       "28\"],"
	       "\"ranges\":[{\"range\":\"10.5.7.7/"
	       "16\",\"start\":\"10.5.0.10\",\"end\":\"10.5.200.0\","
	       "\"exclude\":[\"10.5.1.0/24\"],\"network\":\"storage\",\"sliceSize\":26,"
	       "\"gateway\":\"10.5.0.1\"},{\"range\":\"fd00::/112\"}],\"whatever\":17}",
	       &r);
	assert_string_equal(r.network, "pods");
	assert_string_equal(r.container, "3f9c");
	assert_string_equal(r.interface, "eth0");
	assert_string_equal(r.netns, "/run/netns/x");
	assert_string_equal(r.namespace, "prod");
	assert_string_equal(r.pod, "web-1");
	assert_string_equal(r.uid, "");
	assert_int_equal(r.pools.n, 0);
	assert_int_equal(r.addresses.n, 1);
	assert_string_equal(address_print(&r.addresses.v[0], a), "10.1.0.5");
	assert_string_equal(prefix_print(&r.exclude.v[0], p), "10.1.0.9/32");
	assert_int_equal(r.ranges.n, 2);
	assert_string_equal(prefix_print(&r.ranges.v[0].range, p), "10.5.0.0/16");
	assert_string_equal(address_print(&r.ranges.v[0].start, a), "10.5.0.10");
	assert_string_equal(address_print(&r.ranges.v[0].end, a), "10.5.200.0");
	assert_string_equal(address_print(&r.ranges.v[0].gateway, a), "10.5.0.1");
	assert_string_equal(r.ranges.v[0].network, "storage");
	assert_int_equal(r.ranges.v[0].slice_size, 26);
	assert_int_equal(r.ranges.v[0].exclude.n, 1);
	assert_string_equal(r.ranges.v[1].network, "default");
	assert_int_equal(r.ranges.v[1].start.family, 0);
}

static void a_senseless_assign_is_refused_with_a_sentence(void **unused)
{
	REFUSED(assign_request, "[]", "not a JSON object");
	REFUSED(assign_request, "{}", "field \"network\": is missing");
	REFUSED(assign_request, "{\"network\":\"pods\",\"container\":\"c\"}",
		"field \"interface\": is missing");
	REFUSED(assign_request, "{" KEY ",\"pools\":\"web\"}",
		"field \"pools\": \"web\" is a string, not an array");
	REFUSED(assign_request,
		"{" KEY ",\"pools\":[\"a\"],\"ranges\":[{\"range\":\"10.0.0.0/8\"}]}",
		"field \"ranges\": cannot be given beside \"pools\"");
	REFUSED(assign_request, "{" KEY ",\"addresses\":[\"10.0.0.1\",\"10.0.0.1\"]}",
		"field \"addresses[1]\": 10.0.0.1 is asked for twice");
	REFUSED(assign_request,
		"{" KEY ",\"ranges\":[{\"range\":\"10.0.0.0/24\",\"start\":\"10.0.1.1\"}]}",
		"field \"ranges[0].start\": 10.0.1.1 is not in 10.0.0.0/24");
	REFUSED(assign_request,
		"{" KEY ",\"ranges\":[{\"range\":\"10.0.0.0/24\",\"start\":\"10.0.0.9\",\"end\":"
		"\"10.0.0.8\"}]}",
		"field \"ranges[0].end\": 10.0.0.8 comes before start 10.0.0.9");
	REFUSED(assign_request,
		"{" KEY ",\"ranges\":[{\"range\":\"10.0.0.0/24\",\"sliceSize\":23}]}",
		"field \"ranges[0].sliceSize\": 23 is not between 24 and 32");
	REFUSED(assign_request,
		"{" KEY ",\"ranges\":[{\"range\":\"fd00::/64\",\"sliceSize\":100}]}",
		"field \"ranges[0].sliceSize\": 100 makes more than 2^20 slices");
	REFUSED(assign_request,
		"{" KEY ",\"ranges\":[{\"range\":\"10.0.0.0/24\",\"gateway\":\"fd00::1\"}]}",
		"field \"ranges[0].gateway\": is of another family");
	REFUSED(assign_request, "{" KEY ",\"ranges\":[{}]}",
		"field \"ranges[0].range\": is missing");
}

static void a_list_has_its_limit(void **unused)
{
	char json[2048] = "{" KEY ",\"pools\":[\"a\"", *end = json + strlen(json);
	struct assign_request r;
	struct err err;

	for (int i = 0; i < REQUEST_LIST_MAX; i++)
		end = stpcpy(end, ",\"a\"");
	stpcpy(end, "]}");
	assert_int_equal(assign_request_decode(json, strlen(json), &r, &err), -EINVAL);
	assert_string_equal(err.text, "field \"pools\": 65 elements are more than 64");
}

static void a_release_may_be_a_note_from_the_spool(void **unused)
{
	AUTO_DONE(release_request_done) struct release_request r = { 0 };

	DECODE(release_request, "{" KEY "}", &r);
	assert_int_equal(r.boottime, 0);
	release_request_done(&r);
	DECODE(release_request, "{" KEY ",\"boottime\":98765432109876}", &r);
	assert_int_equal(r.boottime, 98765432109876);
	assert_string_equal(request_key(&r).container, "3f9c");
	REFUSED(release_request, "{" KEY ",\"boottime\":-1}", "field \"boottime\": -1 is negative");
}

#define ATTACH                                                                                     \
	"{" KEY ",\"link\":\"roost96c6b68b65\",\"ipam\":\"host-local\","                           \
	"\"mac\":\"02:00:0a:01:00:05\",\"addresses\":[\"10.1.0.5\",\"fd00::5\"]"

static void an_attach_names_the_link_that_follows_from_its_key(void **unused)
{
	AUTO_DONE(attach_request_done) struct attach_request r = { 0 };

	DECODE(attach_request, ATTACH ",\"routeLocalnet\":true}", &r);
	assert_string_equal(r.link, "roost96c6b68b65");
	assert_int_equal(r.mac.bytes[5], 5);
	assert_true(r.route_localnet);
	assert_int_equal(r.addresses.n, 2);
	REFUSED(attach_request,
		"{" KEY
		",\"link\":\"roost0000000000\",\"ipam\":\"x\",\"mac\":\"02:00:0a:01:00:05\","
		"\"addresses\":[\"10.1.0.5\"]}",
		"field \"link\": roost0000000000 is not the name that follows from container and "
		"interface (roost96c6b68b65)");
	REFUSED(attach_request,
		"{" KEY
		",\"link\":\"roost96c6b68b65\",\"ipam\":\"x\",\"mac\":\"02:00:0a:01:00:05\","
		"\"addresses\":[]}",
		"field \"addresses\": is empty");
	REFUSED(attach_request, "{" KEY ",\"link\":\"roost96c6b68b65\",\"ipam\":\"x\"}",
		"field \"mac\": is missing");
}

static void an_attach_must_hold_exactly_its_addresses(void **unused)
{
	AUTO_DONE(attach_request_done) struct attach_request r = { 0 };
	struct held_address held[3] = { { .address = { AF_INET, { 10, 1, 0, 5 } } },
					{ .address = { AF_INET6, { 0xfd, [15] = 5 } } },
					{ .address = { AF_INET, { 10, 1, 0, 6 } } } };
	struct attachment a = { .container = "3f9c",
				.interface = "eth0",
				.addresses = { held, 2 } };
	struct err err = { "" };

	DECODE(attach_request, ATTACH "}", &r);
	assert_int_equal(attach_verdict(&r, &a, &err), 0);
	a.addresses.n = 3;
	assert_int_equal(attach_verdict(&r, &a, &err), 103);
	assert_string_equal(err.text, "eth0 of container 3f9c holds 3 addresses, not 2");
	a.addresses.n = 1;
	assert_int_equal(attach_verdict(&r, &a, &err), 103);
	assert_string_equal(err.text, "eth0 of container 3f9c does not hold fd00::5");
}

static void check_compares_the_addresses(void **unused)
{
	AUTO_DONE(check_request_done) struct check_request r = { 0 };
	struct held_address held = { .address = { AF_INET, { 10, 1, 0, 5 } } };
	const struct attachment a = { .container = "3f9c",
				      .interface = "eth0",
				      .addresses = { &held, 1 } };
	struct err err;

	DECODE(check_request, "{" KEY ",\"addresses\":[\"10.1.0.5\"]}", &r);
	assert_int_equal(check_verdict(&r, &a, &err), 0);
	held.address.bytes[3] = 6;
	assert_int_equal(check_verdict(&r, &a, &err), 103);
	assert_string_equal(err.text, "eth0 of container 3f9c does not hold 10.1.0.5");
}

static void gc_keeps_what_is_listed_or_elsewhere(void **unused)
{
	AUTO_DONE(gc_request_done) struct gc_request r = { 0 };
	struct attachment a = { .network = "pods", .container = "c1", .interface = "eth0" };

	DECODE(gc_request,
	       "{\"network\":\"pods\",\"valid\":[{\"container\":\"c1\",\"interface\":\"eth0\"}]}",
	       &r);
	assert_true(gc_keeps(&r, &a));
	a.interface = "eth1";
	assert_false(gc_keeps(&r, &a));
	a.network = "other";
	assert_true(gc_keeps(&r, &a));
	a.network = "";
	assert_true(gc_keeps(&r, &a));
	gc_request_done(&r);
	DECODE(gc_request, "{\"network\":\"pods\",\"valid\":[]}", &r);
	a.network = "pods";
	assert_false(gc_keeps(&r, &a));
	REFUSED(gc_request, "{\"network\":\"pods\"}", "field \"valid\": is missing");
	REFUSED(gc_request, "{\"network\":\"pods\",\"valid\":null}", "field \"valid\": is missing");
	REFUSED(gc_request, "{\"network\":\"pods\",\"valid\":[{\"container\":\"c\"}]}",
		"field \"valid[0].interface\": is missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_the_documentation_is_understood),
		cmocka_unit_test(a_senseless_assign_is_refused_with_a_sentence),
		cmocka_unit_test(a_list_has_its_limit),
		cmocka_unit_test(a_release_may_be_a_note_from_the_spool),
		cmocka_unit_test(an_attach_names_the_link_that_follows_from_its_key),
		cmocka_unit_test(an_attach_must_hold_exactly_its_addresses),
		cmocka_unit_test(check_compares_the_addresses),
		cmocka_unit_test(gc_keeps_what_is_listed_or_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
