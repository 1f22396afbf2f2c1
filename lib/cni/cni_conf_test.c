/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cni/cni_conf.h"

#define OK(version) "{\"cniVersion\":\"" version "\",\"name\":\"pods\",\"type\":\"ptp\"}"

static struct cni_conf conf_of(const char *text, enum cni_verb verb)
{
	struct cni_conf conf;
	struct cni_error e = { 0 };

	if (cni_conf_read(text, strlen(text), verb, &conf, &e) < 0)
		fail_msg("%s: %s", text, e.msg.text);
	return conf;
}

static void conf_fails(enum cni_verb verb, const char *text, size_t len, unsigned code,
		       const char *msg)
{
	struct cni_conf conf;
	struct cni_error e = { 0 };

	if (cni_conf_read(text, len, verb, &conf, &e) >= 0)
		fail_msg("taken: %s", text);
	assert_string_equal(e.msg.text, msg);
	assert_int_equal(e.code, code);
}
#define FAILS(verb, text, code, msg) conf_fails(verb, text, sizeof(text) - 1, code, msg)

static void what_is_not_one_object_cannot_be_decoded(void **unused)
{
#define STDIN "the network configuration on stdin is "
	FAILS(CNI_ADD, "", 6, STDIN "not a whole JSON object: ends at byte 0");
	FAILS(CNI_ADD, "{\"name\":", 6, STDIN "not a whole JSON object: ends at byte 8");
	FAILS(CNI_ADD, "[]", 6, STDIN "not a JSON object");
	FAILS(CNI_ADD, "\"x\"", 6, STDIN "not a JSON object");
	FAILS(CNI_ADD, OK("1.0.0") "x", 6, STDIN "not valid JSON at byte 50: unexpected character");
	FAILS(CNI_ADD, OK("1.0.0") "\0", 6, STDIN "not valid JSON at byte 50: more than one value");
	FAILS(CNI_DEL, "null null", 6, STDIN "not valid JSON at byte 6: unexpected character");
}

static void null_is_an_object_without_a_name(void **unused)
{
	FAILS(CNI_ADD, "null", 7, "the network configuration has no \"name\"");
	FAILS(CNI_ADD, " null\n", 7, "the network configuration has no \"name\"");
	FAILS(CNI_ADD, "{}", 7, "the network configuration has no \"name\"");
	FAILS(CNI_ADD, "{\"name\":\"\"}", 7, "the network configuration has no \"name\"");
	FAILS(CNI_ADD, "{\"name\":null}", 7, "the network configuration has no \"name\"");
}

static void a_value_of_another_type_cannot_be_decoded(void **unused)
{
	FAILS(CNI_ADD, "{\"name\":5}", 6, "field \"name\": 5 is an integer, not a string");
	FAILS(CNI_ADD, "{\"cniVersion\":1.0,\"name\":\"x\"}", 6,
	      "field \"cniVersion\": 1.0 is a fraction, not a string");
	FAILS(CNI_ADD, "{\"name\":\"x\",\"ipam\":\"y\"}", 6,
	      "field \"ipam\": \"y\" is a string, not an object");
	FAILS(CNI_ADD, "{\"name\":\"x\",\"ipam\":{\"socket\":[]}}", 6,
	      "field \"ipam.socket\": [] is an array, not a string");
}

static void a_name_is_made_of_few_characters(void **unused)
{
#define RULE " is not made of A-Z, a-z, 0-9, '_', '.', '-', beginning with a letter or digit"
	FAILS(CNI_ADD, "{\"name\":\"a/b\"}", 7, "invalid network name: \"a/b\"" RULE);
	FAILS(CNI_ADD, "{\"name\":\".a\"}", 7, "invalid network name: \".a\"" RULE);
	FAILS(CNI_ADD, "{\"name\":\"\xc3\xbc\"}", 7, "invalid network name: \"??\"" RULE);
	cni_conf_done(&(struct cni_conf[]){ conf_of("{\"name\":\"0A_.-\"}", CNI_ADD) }[0]);
}

static void every_version_is_known_and_no_other(void **unused)
{
	for (int i = 0; i < CNI_VERSIONS; i++) {
		char text[64];

		snprintf(text, sizeof(text), "{\"cniVersion\":\"%s\",\"name\":\"x\"}",
			 cni_version_name((enum cni_version)i));
		AUTO_DONE(cni_conf_done) struct cni_conf conf = conf_of(text, CNI_ADD);
		assert_int_equal(conf.version, i);
	}
	FAILS(CNI_ADD, OK("1.2.0"), 1, "cniVersion \"1.2.0\" is not supported");
	FAILS(CNI_DEL, OK("abc"), 1, "cniVersion \"abc\" is not supported");
	FAILS(CNI_ADD, OK(" 1.0.0"), 1, "cniVersion \" 1.0.0\" is not supported");
}

static void an_unsupported_version_is_told_with_all_that_are(void **unused)
{
	struct cni_conf conf;
	struct cni_error e = { 0 };

	assert_int_equal(cni_conf_read(OK("9"), strlen(OK("9")), CNI_ADD, &conf, &e), -EINVAL);
	assert_string_equal(e.details.text,
			    "config is \"9\", plugin supports [\"0.1.0\" \"0.2.0\" \"0.3.0\" "
			    "\"0.3.1\" \"0.4.0\" \"1.0.0\" \"1.1.0\"]");
	assert_int_equal(conf.version, CNI_VERSION_NEWEST);
}

static void no_version_means_the_first(void **unused)
{
	AUTO_DONE(cni_conf_done) struct cni_conf absent = conf_of("{\"name\":\"x\"}", CNI_ADD);
	AUTO_DONE(cni_conf_done)
	struct cni_conf empty = conf_of("{\"name\":\"x\",\"cniVersion\":\"\"}", CNI_DEL);

	assert_int_equal(absent.version, CNI_0_1_0);
	assert_int_equal(empty.version, CNI_0_1_0);
}

static void a_verb_needs_the_version_that_has_it(void **unused)
{
	FAILS(CNI_CHECK, OK("0.3.1"), 1,
	      "config version \"0.3.1\" does not allow CHECK: it needs \"0.4.0\"");
	FAILS(CNI_GC, OK("1.0.0"), 1,
	      "config version \"1.0.0\" does not allow GC: it needs \"1.1.0\"");
	FAILS(CNI_STATUS, OK("1.0.0"), 1,
	      "config version \"1.0.0\" does not allow STATUS: it needs \"1.1.0\"");
	FAILS(CNI_CHECK, "{\"name\":\"x\"}", 1,
	      "config version \"0.1.0\" does not allow CHECK: it needs \"0.4.0\"");
	cni_conf_done(&(struct cni_conf[]){ conf_of(OK("0.4.0"), CNI_CHECK) }[0]);
	cni_conf_done(&(struct cni_conf[]){ conf_of(OK("1.1.0"), CNI_GC) }[0]);
}

static void a_verb_that_compares_versions_needs_one_to_compare(void **unused)
{
	FAILS(CNI_CHECK, OK("abc"), 6, "cniVersion \"abc\" is not a version");
	FAILS(CNI_STATUS, OK("1.0.0.0"), 6, "cniVersion \"1.0.0.0\" is not a version");
	FAILS(CNI_GC, OK("2.0.0"), 1, "cniVersion \"2.0.0\" is not supported");
}

static void the_name_is_told_before_the_version(void **unused)
{
	FAILS(CNI_ADD, "{\"cniVersion\":\"9\"}", 7, "the network configuration has no \"name\"");
	FAILS(CNI_ADD, "{\"cniVersion\":\"9\",\"name\":5}", 6,
	      "field \"name\": 5 is an integer, not a string");
}

static void an_error_is_reported_in_the_configurations_version(void **unused)
{
	struct cni_conf conf;
	struct cni_error e = { 0 };
	const char *text = OK("0.3.1");

	assert_int_equal(cni_conf_read(text, strlen(text), CNI_GC, &conf, &e), -EINVAL);
	assert_int_equal(conf.version, CNI_0_3_1);
}

static void names_of_fields_are_matched_without_regard_to_case(void **unused)
{
	AUTO_DONE(cni_conf_done)
	struct cni_conf conf = conf_of("{\"CNIVERSION\":\"0.4.0\",\"NAME\":\"pods\",\"Type\":\"T\","
				       "\"Ipam\":{\"TYPE\":\"I\",\"Socket\":\"/a\"},\"x\":{}}",
				       CNI_ADD);

	assert_int_equal(conf.version, CNI_0_4_0);
	assert_string_equal(conf.name, "pods");
	assert_string_equal(conf.type, "T");
	assert_string_equal(conf.ipam_type, "I");
	assert_string_equal(conf.socket, "/a");
}

static void of_several_that_match_the_last_counts(void **unused)
{
	AUTO_DONE(cni_conf_done)
	struct cni_conf conf = conf_of("{\"name\":\"a\",\"Name\":\"b\"}", CNI_ADD);

	assert_string_equal(conf.name, "b");
}

static void the_socket_is_found_inside_then_above_then_by_default(void **unused)
{
	AUTO_DONE(cni_conf_done) struct cni_conf none = conf_of("{\"name\":\"x\"}", CNI_ADD);
	AUTO_DONE(cni_conf_done)
	struct cni_conf top = conf_of("{\"name\":\"x\",\"socket\":\"/t\",\"ipam\":{}}", CNI_ADD);
	AUTO_DONE(cni_conf_done)
	struct cni_conf in = conf_of(
		"{\"name\":\"x\",\"socket\":\"/t\",\"ipam\":{\"socket\":\"/i\"}}", CNI_ADD);

	assert_string_equal(none.socket, "/run/roost/agent.sock");
	assert_string_equal(top.socket, "/t");
	assert_string_equal(in.socket, "/i");
	FAILS(CNI_ADD, "{\"name\":\"x\",\"socket\":\"t\"}", 7,
	      "field \"socket\": \"t\" is not a path: it begins with '/', has no control "
	      "characters "
	      "and at most 1023 bytes");
}

/* --- GC ------------------------------------------------------------------------------------- */

#define GC(fields) "{\"cniVersion\":\"1.1.0\",\"name\":\"pods\"" fields "}"

/* "container/ifname " of each. */
static void expect_valid(const char *text, const char *want)
{
	AUTO_DONE(cni_conf_done) struct cni_conf conf = conf_of(text, CNI_GC);
	AUTO(cni_attachments) struct cni_attachments valid = { 0 };
	struct cni_error e = { 0 };
	char got[256] = "";

	if (cni_valid_read(&conf, &valid, &e) < 0)
		fail_msg("%s: %s", text, e.msg.text);
	for (size_t i = 0; i < valid.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s/%s ",
			 valid.v[i].container, valid.v[i].ifname);
	assert_string_equal(got, want);
}

static void valid_fails(const char *text, unsigned code, const char *msg)
{
	AUTO_DONE(cni_conf_done) struct cni_conf conf = conf_of(text, CNI_GC);
	struct cni_attachments valid;
	struct cni_error e = { 0 };

	assert_int_equal(cni_valid_read(&conf, &valid, &e), -EINVAL);
	assert_string_equal(e.msg.text, msg);
	assert_int_equal(e.code, code);
}

static void an_absent_list_is_not_an_empty_one(void **unused)
{
	valid_fails(GC(""), CNI_CODE_CONFIG,
		    "GC without \"cni.dev/valid-attachments\": nothing was released; an empty list "
		    "would say that no attachment is valid");
	expect_valid(GC(",\"cni.dev/valid-attachments\":null"), "");
	expect_valid(GC(",\"cni.dev/valid-attachments\":[]"), "");
	expect_valid(GC(",\"cni.dev/attachments\":null"), "");
}

static void both_names_of_the_list_are_known(void **unused)
{
#define ONE(id) "[{\"containerID\":\"" id "\",\"ifname\":\"eth0\"}]"
	expect_valid(GC(",\"cni.dev/valid-attachments\":" ONE("a")), "a/eth0 ");
	expect_valid(GC(",\"cni.dev/attachments\":" ONE("b")), "b/eth0 ");
	expect_valid(
		GC(",\"cni.dev/attachments\":" ONE("b") ",\"cni.dev/valid-attachments\":" ONE("a")),
		"a/eth0 ");
	expect_valid(GC(",\"CNI.dev/Valid-Attachments\":[{\"ContainerId\":\"a\",\"IfName\":\"e\"},"
			"{\"containerid\":\"b\",\"ifname\":\"f\"}]"),
		     "a/e b/f ");
}

static void one_bad_entry_spoils_the_list(void **unused)
{
#define VALID(text) GC(",\"cni.dev/valid-attachments\":" text)
#define FIELD_AT    "field \"cni.dev/valid-attachments"
	valid_fails(VALID("{}"), CNI_CODE_DECODE, FIELD_AT "\": {} is an object, not an array");
	valid_fails(VALID("[null]"), CNI_CODE_CONFIG, FIELD_AT "[0]\": null is not allowed here");
	valid_fails(VALID("[5]"), CNI_CODE_DECODE,
		    FIELD_AT "[0]\": 5 is an integer, not an object");
	valid_fails(VALID("[{\"ifname\":\"e\"}]"), CNI_CODE_CONFIG,
		    FIELD_AT "[0].containerID\": is missing");
	valid_fails(VALID("[{\"containerID\":\"\",\"ifname\":\"e\"}]"), CNI_CODE_CONFIG,
		    FIELD_AT "[0].containerID\": \"\" is not a container id: 1 to 1024 of A-Z, "
			     "a-z, 0-9, '_', '.', '-', beginning with a letter or digit");
	valid_fails(VALID("[{\"containerID\":\"a\",\"ifname\":\"a/b\"}]"), CNI_CODE_CONFIG,
		    FIELD_AT
		    "[0].ifname\": \"a/b\" is not an interface name: 1 to 15 bytes without "
		    "'/', ':' and blanks, and not '.' or '..'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_one_object_cannot_be_decoded),
		cmocka_unit_test(null_is_an_object_without_a_name),
		cmocka_unit_test(a_value_of_another_type_cannot_be_decoded),
		cmocka_unit_test(a_name_is_made_of_few_characters),
		cmocka_unit_test(every_version_is_known_and_no_other),
		cmocka_unit_test(an_unsupported_version_is_told_with_all_that_are),
		cmocka_unit_test(no_version_means_the_first),
		cmocka_unit_test(a_verb_needs_the_version_that_has_it),
		cmocka_unit_test(a_verb_that_compares_versions_needs_one_to_compare),
		cmocka_unit_test(the_name_is_told_before_the_version),
		cmocka_unit_test(an_error_is_reported_in_the_configurations_version),
		cmocka_unit_test(names_of_fields_are_matched_without_regard_to_case),
		cmocka_unit_test(of_several_that_match_the_last_counts),
		cmocka_unit_test(the_socket_is_found_inside_then_above_then_by_default),
		cmocka_unit_test(an_absent_list_is_not_an_empty_one),
		cmocka_unit_test(both_names_of_the_list_are_known),
		cmocka_unit_test(one_bad_entry_spoils_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
