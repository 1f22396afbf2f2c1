/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's reply as a result, and the smaller bodies. */
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

/* --- replies -------------------------------------------------------------------------------- */

#define GIVEN(address, length, gateway)                                                            \
	"{\"address\":\"" address "\",\"length\":" length                                          \
	",\"pool\":\"p\",\"network\":\"default\",\"gateway\":\"" gateway "\"}"

/* reply NULL: the agent was not asked. */
static int result_of(const char *fields, const char *reply, bool *ret_existing, char **ret,
		     struct cni_error *e)
{
	AUTO(add_done) struct add a = { 0 };
	AUTO(json_put) struct json_object *json = NULL;
	AUTO_DONE(cni_result_done) struct cni_result result = { 0 };
	int r;

	assert_int_equal(read_add(fields, &a, e), 0);
	if (reply)
		assert_int_equal(json_parse(reply, strlen(reply), &json, NULL), 0);
	r = cni_assign_reply(json, &a.ipam, ret_existing, &result, e);
	return r < 0 ? r : cni_result_print(&result, CNI_1_0_0, ret, e);
}

static void expect_result(const char *fields, const char *reply, bool existing, const char *want)
{
	AUTO(free) char *got = NULL;
	struct cni_error e = { 0 };
	bool said = !existing;

	if (result_of(fields, reply, &said, &got, &e) < 0)
		fail_msg("%s", e.msg.text);
	assert_string_equal(got, want);
	assert_int_equal(said, existing);
}

#define R(rest) "{\"cniVersion\":\"1.0.0\"," rest "}"

static void a_reply_becomes_a_result(void **unused)
{
	expect_result("",
		      "{\"addresses\":[" GIVEN("10.1.0.5", "32", "") "," GIVEN(
			      "fd00::5", "64", "fd00::1") "],\"routes\":[{\"dst\":\"0.0.0.0/0\","
							  "\"gw\":\"\"}],\"dns\":{},"
							  "\"existing\":true}",
		      true,
		      R("\"ips\":[{\"address\":\"10.1.0.5/32\"},{\"address\":\"fd00::5/64\","
			"\"gateway\":\"fd00::1\"}],\"routes\":[{\"dst\":\"0.0.0.0/0\"}]"));
	expect_result("", "{\"addresses\":[" GIVEN("10.1.0.5", "24", "") "]}", false,
		      R("\"ips\":[{\"address\":\"10.1.0.5/24\"}]"));
}

static void the_configuration_takes_the_place_of_the_pool(void **unused)
{
	expect_result(",\"ipam\":{\"gateway\":\"10.1.0.254\",\"routes\":[{\"dst\":\"10.0.0.0/8\"}],"
		      "\"dns\":{\"nameservers\":[\"10.0.0.2\"]},"
		      "\"addresses\":[{\"address\":\"10.9.0.5/24\",\"gateway\":\"10.9.0.1\"}],"
		      "\"pool\":\"p\"}",
		      "{\"addresses\":[" GIVEN("10.1.0.5", "24", "10.1.0.1") "," GIVEN(
			      "fd00::5", "64", "fd00::1") "],\"routes\":[{\"dst\":\"0.0.0.0/0\"}],"
							  "\"dns\":{\"nameservers\":[\"10.0.0.1\"],"
							  "\"domain\":\"x\"}}",
		      false,
		      R("\"ips\":[{\"address\":\"10.1.0.5/24\",\"gateway\":\"10.1.0.254\"},"
			"{\"address\":\"fd00::5/64\",\"gateway\":\"fd00::1\"},"
			"{\"address\":\"10.9.0.5/24\",\"gateway\":\"10.9.0.1\"}],"
			"\"routes\":[{\"dst\":\"10.0.0.0/8\"}],"
			"\"dns\":{\"nameservers\":[\"10.0.0.2\"]}"));
}

static void fixed_addresses_alone_need_no_agent(void **unused)
{
	static const struct {
		const char *fields;
		bool fixed;
	} cases[] = {
		{ ",\"ipam\":{\"addresses\":[{\"address\":\"10.9.0.5/24\"}]}", true },
		{ ",\"ipam\":{\"addresses\":[]}", false },
		{ ",\"ipam\":{\"addresses\":[{\"address\":\"10.9.0.5/24\"}],\"pool\":\"p\"}",
		  false },
		{ ",\"ipam\":{\"addresses\":[{\"address\":\"10.9.0.5/24\"}],"
		  "\"range\":\"10.5.0.0/16\"}",
		  false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(add_done) struct add a = { 0 };
		struct cni_error e = { 0 };

		assert_int_equal(read_add(cases[i].fields, &a, &e), 0);
		assert_int_equal(cni_ipam_is_static(&a.ipam, &a.want), cases[i].fixed);
	}
	expect_result(cases[0].fields, NULL, false, R("\"ips\":[{\"address\":\"10.9.0.5/24\"}]"));
}

static void a_reply_that_makes_no_sense_is_not_passed_on(void **unused)
{
	static const struct {
		const char *reply, *why;
	} cases[] = {
		{ "{}", "field \"addresses\": is missing" },
		{ "{\"addresses\":[]}", "field \"addresses\": is empty" },
		{ "{\"addresses\":{}}", "field \"addresses\": {} is an object, not an array" },
		{ "{\"addresses\":[" GIVEN("10.1.0.5", "33", "") "]}",
		  "field \"addresses[0].length\": 33 is not between 0 and 32" },
		{ "{\"addresses\":[" GIVEN("x", "32", "") "]}",
		  "field \"addresses[0].address\": \"x\" is not an address such as \"10.1.0.5\" or "
		  "\"fd00::5\"" },
		{ "{\"addresses\":[" GIVEN("10.1.0.5", "32", "") "],\"existing\":1}",
		  "field \"existing\": 1 is an integer, not true or false" },
		{ "{\"addresses\":[" GIVEN("10.1.0.5", "32", "") "],\"routes\":5}",
		  "field \"routes\": 5 is an integer, not an array" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cni_error e = { 0 };
		char *text = NULL, want[256];
		bool existing;

		assert_int_equal(result_of("", cases[i].reply, &existing, &text, &e), -EINVAL);
		snprintf(want, sizeof(want), "the agent's reply is invalid: %s", cases[i].why);
		assert_string_equal(e.msg.text, want);
		assert_int_equal(e.code, CNI_CODE_IO);
	}
}

/* --- the other bodies ----------------------------------------------------------------------- */

static void the_addresses_to_check_are_those_of_the_interface(void **unused)
{
	AUTO(add_done) struct add a = { 0 };
	AUTO_DONE(cni_result_done) struct cni_result prev = { 0 };
	AUTO(addresses) struct addresses addresses = { 0 };
	AUTO(free) char *body = NULL;
	struct cni_error e = { 0 };
	struct json_at root;

	assert_int_equal(
		read_add(",\"ipam\":{\"pool\":\"p\",\"addresses\":[{\"address\":\"10.9.0.5/24\"}]},"
			 "\"prevResult\":{\"interfaces\":[{\"name\":\"veth1\"},{\"name\":\"eth0\"},"
			 "{\"name\":\"net1\"}],\"ips\":[{\"interface\":1,\"address\":\"10.1.0.5/"
			 "24\"},"
			 "{\"address\":\"fd00::5/64\"},{\"interface\":2,\"address\":\"10.7.0.5/"
			 "24\"},"
			 "{\"interface\":1,\"address\":\"10.9.0.5/24\"}]}",
			 &a, &e),
		0);
	root = cni_root(a.conf.json, &e);
	assert_int_equal(cni_result_read(json_member(&root, "prevResult"), CNI_1_0_0, &prev, &e),
			 0);
	assert_int_equal(cni_check_addresses(&prev, "eth0", &a.ipam, &addresses), 0);
	assert_int_equal(cni_attachment_body(&a.conf, &a.env, &addresses, &body), 0);
	assert_string_equal(body,
			    "{\"network\":\"pods\",\"container\":\"c1\",\"interface\":\"eth0\","
			    "\"addresses\":[\"10.1.0.5\",\"fd00::5\"]}");
}

static void release_and_gc_name_what_they_mean(void **unused)
{
	AUTO(add_done) struct add a = { 0 };
	AUTO(free) char *release = NULL, *gc = NULL, *none = NULL;
	struct cni_attachment one = { "c1", "eth0" };
	struct cni_error e = { 0 };

	assert_int_equal(read_add("", &a, &e), 0);
	assert_int_equal(cni_attachment_body(&a.conf, &a.env, NULL, &release), 0);
	assert_string_equal(release,
			    "{\"network\":\"pods\",\"container\":\"c1\",\"interface\":\"eth0\"}");
	assert_int_equal(cni_gc_body(&a.conf, &(struct cni_attachments){ &one, 1 }, &gc), 0);
	assert_string_equal(gc, "{\"network\":\"pods\",\"valid\":[{\"container\":\"c1\","
				"\"interface\":\"eth0\"}]}");
	assert_int_equal(cni_gc_body(&a.conf, &(struct cni_attachments){ NULL, 0 }, &none), 0);
	assert_string_equal(none, "{\"network\":\"pods\",\"valid\":[]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_becomes_a_result),
		cmocka_unit_test(the_configuration_takes_the_place_of_the_pool),
		cmocka_unit_test(fixed_addresses_alone_need_no_agent),
		cmocka_unit_test(a_reply_that_makes_no_sense_is_not_passed_on),
		cmocka_unit_test(the_addresses_to_check_are_those_of_the_interface),
		cmocka_unit_test(release_and_gc_name_what_they_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
