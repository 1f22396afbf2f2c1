/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cni/cni_assign.h"

/* All that an ADD reads, for one configuration. */
struct add {
	struct cni_conf conf;
	struct cni_env env;
	struct cni_want want;
	struct cni_ipam ipam;
};

static void add_done_auto(struct add *a)
{
	cni_ipam_done(&a->ipam);
	cni_want_done(&a->want);
	cni_conf_done(&a->conf);
}

static int read_add(const char *fields, struct add *a, struct cni_error *e)
{
	char text[4096];
	int r;

	snprintf(text, sizeof(text), "{\"cniVersion\":\"1.0.0\",\"name\":\"pods\"%s}", fields);
	a->env = (struct cni_env){ CNI_ADD, "c1",  "/run/netns/x",         "eth0",
				   "",      false, { "", "", "", "", "" }, NULL };
	assert_int_equal(cni_conf_read(text, strlen(text), CNI_ADD, &a->conf, e), 0);
	assert_int_equal(cni_want_read(&a->conf, &a->env, &a->want, e), 0);
	r = cni_ipam_read(&a->conf, &a->ipam, e);
	return r;
}

#define HEAD                                                                                       \
	"{\"network\":\"pods\",\"container\":\"c1\",\"interface\":\"eth0\",\"netns\":\"/run/"      \
	"netns/x\""

static void expect_body(const char *fields, const char *rest)
{
	AUTO(add_done) struct add a = { 0 };
	AUTO(free) char *body = NULL;
	struct cni_error e = { 0 };

	if (read_add(fields, &a, &e) < 0 ||
	    cni_assign_body(&a.conf, &a.env, &a.want, &a.ipam, &body, &e) < 0)
		fail_msg("%s: %s", fields, e.msg.text);
	assert_memory_equal(body, HEAD, strlen(HEAD));
	assert_string_equal(body + strlen(HEAD), rest);
}
#define IPAM(fields, rest) expect_body(",\"ipam\":{" fields "}", rest)

static void ipam_fails(const char *fields, unsigned code, const char *msg)
{
	AUTO(add_done) struct add a = { 0 };
	struct cni_error e = { 0 };

	if (read_add(fields, &a, &e) >= 0)
		fail_msg("taken: %s", fields);
	assert_string_equal(e.msg.text, msg);
	assert_int_equal(e.code, code);
}
#define FAILS(fields, code, msg) ipam_fails(",\"ipam\":{" fields "}", code, msg)

/* --- requests ------------------------------------------------------------------------------- */

static void the_smallest_configuration_asks_for_any_address(void **unused)
{
	expect_body("", "}");
	IPAM("\"type\":\"roost-ipam\"", "}");
	IPAM("\"range\":\"\",\"gateway\":\"\",\"node_slice_size\":\"\",\"ipRanges\":null", "}");
}

static void pod_pools_and_addresses_travel_along(void **unused)
{
	AUTO(add_done) struct add a = { 0 };
	AUTO(free) char *body = NULL;
	struct cni_error e = { 0 };

	assert_int_equal(read_add(",\"ipam\":{\"pool\":\"web\",\"gateway\":\"10.1.0.1\","
				  "\"exclude\":[\"10.1.0.9\",\"10.1.1.7/28\"]},"
				  "\"runtimeConfig\":{\"ips\":[\"10.1.0.5/24\"]}",
				  &a, &e),
			 0);
	a.env.args.namespace = "prod";
	a.env.args.pod = "web-1";
	a.env.args.uid = "u1";
	assert_int_equal(cni_assign_body(&a.conf, &a.env, &a.want, &a.ipam, &body, &e), 0);
	assert_string_equal(body + strlen(HEAD),
			    ",\"namespace\":\"prod\",\"pod\":\"web-1\",\"uid\":\"u1\","
			    "\"addresses\":[\"10.1.0.5\"],"
			    "\"exclude\":[\"10.1.0.9/32\",\"10.1.1.0/28\",\"10.1.0.1\"],"
			    "\"pools\":[\"web\"]}");
}

static void a_range_is_masked_and_keeps_its_limits(void **unused)
{
	IPAM("\"range\":\"10.5.3.225/16\"", ",\"ranges\":[{\"range\":\"10.5.0.0/16\"}]}");
	IPAM("\"range\":\"10.5.0.0/16\",\"range_start\":\"10.5.0.10\",\"range_end\":\"10.5.9.0\","
	     "\"exclude\":[\"10.5.1.5/24\"],\"network_name\":\"storage\",\"node_slice_size\":\"/"
	     "26\","
	     "\"gateway\":\"10.5.0.1\"",
	     ",\"ranges\":[{\"range\":\"10.5.0.0/16\",\"start\":\"10.5.0.10\",\"end\":\"10.5.9.0\","
	     "\"exclude\":[\"10.5.1.0/24\"],\"network\":\"storage\",\"sliceSize\":26,"
	     "\"gateway\":\"10.5.0.1\"}]}");
}

static void a_range_may_be_written_as_a_span(void **unused)
{
	IPAM("\"range\":\"10.5.0.10-10.5.0.20/16\"",
	     ",\"ranges\":[{\"range\":\"10.5.0.0/16\",\"start\":\"10.5.0.10\","
	     "\"end\":\"10.5.0.20\"}]}");
	/* Its limits beat the others, as in Whereabouts. */
	IPAM("\"Range\":\"fd00::10-fd00::20/64\",\"Range_Start\":\"fd00::1\"",
	     ",\"ranges\":[{\"range\":\"fd00::/"
	     "64\",\"start\":\"fd00::10\",\"end\":\"fd00::20\"}]}");
}

static void several_ranges_come_in_order_with_what_fits_each(void **unused)
{
	IPAM("\"range\":\"10.5.0.0/16\",\"exclude\":[\"10.5.0.1\"],\"node_slice_size\":\"22\","
	     "\"gateway\":\"10.5.0.1\",\"ipRanges\":[{\"range\":\"fd00::/"
	     "64\",\"exclude\":[\"fd00::1\"]},"
	     "{\"range\":\"10.6.0.0/24\",\"range_start\":\"10.6.0.9\"}]",
	     ",\"ranges\":[{\"range\":\"10.5.0.0/16\",\"exclude\":[\"10.5.0.1/"
	     "32\"],\"sliceSize\":22,"
	     "\"gateway\":\"10.5.0.1\"},{\"range\":\"fd00::/64\",\"exclude\":[\"fd00::1/128\"]},"
	     "{\"range\":\"10.6.0.0/24\",\"start\":\"10.6.0.9\",\"gateway\":\"10.5.0.1\"}]}");
	IPAM("\"exclude\":[\"10.5.0.1\"],\"ipRanges\":[{\"range\":\"10.5.0.0/16\"}]",
	     ",\"exclude\":[\"10.5.0.1/32\"],\"ranges\":[{\"range\":\"10.5.0.0/16\"}]}");
}

static void a_range_beats_the_pods_pool_but_not_the_configurations(void **unused)
{
	AUTO(add_done) struct add a = { 0 };
	struct cni_error e = { 0 };
	char *body = NULL;

	expect_body(",\"ipam\":{\"range\":\"10.5.0.0/16\"},\"runtimeConfig\":"
		    "{\"io.kubernetes.cri.pod-annotations\":{\"roost.io/pool\":\"web\"}}",
		    ",\"ranges\":[{\"range\":\"10.5.0.0/16\"}]}");
	assert_int_equal(read_add(",\"ipam\":{\"range\":\"10.5.0.0/16\",\"pool\":\"web\"}", &a, &e),
			 0);
	assert_int_equal(cni_assign_body(&a.conf, &a.env, &a.want, &a.ipam, &body, &e), -EINVAL);
	assert_int_equal(e.code, CNI_CODE_CONFIG);
}

static void a_wrong_range_is_refused_with_its_place(void **unused)
{
	FAILS("\"range\":5", 6, "field \"ipam.range\": 5 is an integer, not a string");
	FAILS("\"range\":\"10.5.0.0\"", 7,
	      "field \"ipam.range\": \"10.5.0.0\" is not a range such as \"10.5.0.0/16\" or "
	      "\"10.5.0.10-10.5.0.20/16\"");
	FAILS("\"range\":\"10.5.0.1-x/16\"", 7,
	      "field \"ipam.range\": \"10.5.0.1-x/16\" is not a range such as \"10.5.0.0/16\" or "
	      "\"10.5.0.10-10.5.0.20/16\"");
	FAILS("\"range\":\"fd00::1-10.5.0.2/16\"", 7,
	      "field \"ipam\": fd00::1 lies outside the range 10.5.0.0/16");
	FAILS("\"range\":\"10.5.0.0/16\",\"range_start\":\"10.6.0.0\"", 7,
	      "field \"ipam\": 10.6.0.0 lies outside the range 10.5.0.0/16");
	FAILS("\"range\":\"10.5.0.0/16\",\"range_end\":\"10.6.0.0\"", 7,
	      "field \"ipam\": 10.6.0.0 lies outside the range 10.5.0.0/16");
	FAILS("\"ipRanges\":[{\"range\":\"10.5.0.9-10.5.0.8/16\"}]", 7,
	      "field \"ipam.ipRanges[0]\": the range starts after its end, 10.5.0.8");
	FAILS("\"ipRanges\":[{}]", 7, "field \"ipam.ipRanges[0].range\": is missing");
	FAILS("\"ipRanges\":[\"10.5.0.0/16\"]", 6,
	      "field \"ipam.ipRanges[0]\": \"10.5.0.0/16\" is a string, not an object");
	FAILS("\"range\":\"10.5.0.0/16\",\"exclude\":[\"10.5.0.0/16\",\"x\"]", 7,
	      "field \"ipam.exclude[1]\": \"x\" is neither an address nor a prefix");
	FAILS("\"exclude\":[5]", 6, "field \"ipam.exclude[0]\": 5 is an integer, not a string");
}

static void a_slice_lies_between_range_and_address(void **unused)
{
#define SLICE(text) "\"range\":\"10.5.0.0/16\",\"node_slice_size\":" text
#define NO_SLICE    " is not a prefix length between that of the range 10.5.0.0/16 and 32"
	const char *at = "field \"ipam.node_slice_size\": ";
	const char *const bad[] = { "/15", "/33", "/", "x", "/22x", "/-1", "0022", "//22" };

	IPAM(SLICE("\"16\""), ",\"ranges\":[{\"range\":\"10.5.0.0/16\",\"sliceSize\":16}]}");
	IPAM(SLICE("\"/32\""), ",\"ranges\":[{\"range\":\"10.5.0.0/16\",\"sliceSize\":32}]}");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char fields[128], msg[256];

		snprintf(fields, sizeof(fields), ",\"ipam\":{" SLICE("\"%s\"") "}", bad[i]);
		snprintf(msg, sizeof(msg), "%s\"%s\"" NO_SLICE, at, bad[i]);
		ipam_fails(fields, CNI_CODE_CONFIG, msg);
	}
	FAILS(SLICE("22"), 6, "field \"ipam.node_slice_size\": 22 is an integer, not a string");
}

static void the_other_fields_are_checked_too(void **unused)
{
	FAILS("\"gateway\":\"x\"", 7,
	      "field \"ipam.gateway\": \"x\" is not an address such as \"10.1.0.5\" or "
	      "\"fd00::5\"");
	FAILS("\"network_name\":\"A\"", 7,
	      "field \"ipam.network_name\": \"A\" is not a network name: 1 to 63 of a-z, 0-9, '.', "
	      "'-', with a letter or digit at both ends");
	FAILS("\"addresses\":[{\"address\":\"10.1.0.5\"}]", 7,
	      "field \"ipam.addresses[0].address\": \"10.1.0.5\" is not an address with its "
	      "prefix "
	      "length, such as \"192.0.2.7/24\" or \"fd00::7/64\"");
	FAILS("\"routes\":[{}]", 7, "field \"ipam.routes[0].dst\": is missing");
	FAILS("\"dns\":5", 6, "field \"ipam.dns\": 5 is an integer, not an object");
}

static void what_is_ignored_is_named_and_never_shown(void **unused)
{
	AUTO(add_done) struct add a = { 0 }, b = { 0 };
	struct cni_error e = { 0 };

	assert_int_equal(read_add(",\"ipam\":{\"Datastore\":5,\"etcd_password\":\"s3cret\","
				  "\"log_level\":\"Debug\",\"unheard_of\":1}",
				  &a, &e),
			 0);
	assert_string_equal(a.ipam.ignored, "datastore, etcd_password");
	assert_true(a.ipam.debug);
	assert_int_equal(read_add("", &b, &e), 0);
	assert_string_equal(b.ipam.ignored, "");
	assert_false(b.ipam.debug);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_configuration_asks_for_any_address),
		cmocka_unit_test(pod_pools_and_addresses_travel_along),
		cmocka_unit_test(a_range_is_masked_and_keeps_its_limits),
		cmocka_unit_test(a_range_may_be_written_as_a_span),
		cmocka_unit_test(several_ranges_come_in_order_with_what_fits_each),
		cmocka_unit_test(a_range_beats_the_pods_pool_but_not_the_configurations),
		cmocka_unit_test(a_wrong_range_is_refused_with_its_place),
		cmocka_unit_test(a_slice_lies_between_range_and_address),
		cmocka_unit_test(the_other_fields_are_checked_too),
		cmocka_unit_test(what_is_ignored_is_named_and_never_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
