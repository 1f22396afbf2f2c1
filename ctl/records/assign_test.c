/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/records/assign.h"
#include "ctl/records/record_fields.h"

static int apply(const struct record *type, const char *before, const char *word, char **ret,
		 struct err *err)
{
	AUTO(json_put) struct json_object *object = json_tokener_parse(before);
	int r = assign(type, word, object, err);

	assert_int_equal(json_print(object, ret), 0);
	return r;
}

#define MAKES(type, before, word, after)                                                           \
	do {                                                                                       \
		AUTO(free) char *text_ = NULL;                                                     \
		struct err err_ = { "" };                                                          \
		if (apply(&(type), before, word, &text_, &err_) < 0)                               \
			fail_msg("%s", err_.text);                                                 \
		assert_string_equal(text_, after);                                                 \
	} while (0)
#define REFUSES(type, word, sentence)                                                              \
	do {                                                                                       \
		AUTO(free) char *text_ = NULL;                                                     \
		struct err err_ = { "" };                                                          \
		assert_int_equal(apply(&(type), "{}", word, &text_, &err_), -EINVAL);              \
		assert_string_equal(err_.text, sentence);                                          \
	} while (0)

static void a_value_has_the_type_of_its_field(void **unused)
{
	MAKES(pool_record, "{}", "cidr=10.1.0.0/16", "{\"cidr\":\"10.1.0.0/16\"}");
	MAKES(pool_record, "{}", "blockSize=26", "{\"blockSize\":26}");
	MAKES(pool_record, "{\"a\":1}", "disabled=yes", "{\"a\":1,\"disabled\":true}");
	MAKES(pool_record, "{}", "nodeSelector=zone in {'a','b'}",
	      "{\"nodeSelector\":\"zone in {'a','b'}\"}");
	MAKES(peer_record, "{}", "bfd=false", "{\"bfd\":false}");
	MAKES(peer_record, "{}", "families=ipv4,ipv6", "{\"families\":[\"ipv4\",\"ipv6\"]}");
}

static void what_does_not_fit_is_left_to_decoding(void **unused)
{
	MAKES(pool_record, "{}", "blockSize=many", "{\"blockSize\":\"many\"}");
	MAKES(pool_record, "{}", "disabled=perhaps", "{\"disabled\":\"perhaps\"}");
}

static void lists_are_typed_with_commas_or_as_json(void **unused)
{
	MAKES(pool_record, "{}", "namespaces=a,b-*", "{\"namespaces\":[\"a\",\"b-*\"]}");
	MAKES(pool_record, "{}", "exclude=[\"10.1.0.1\"]", "{\"exclude\":[\"10.1.0.1\"]}");
	MAKES(pool_record, "{}", "routes={\"dst\":\"10.0.0.0/8\",\"gw\":\"10.1.0.1\"}",
	      "{\"routes\":[{\"dst\":\"10.0.0.0/8\",\"gw\":\"10.1.0.1\"}]}");
}

static void dots_lead_into_objects(void **unused)
{
	MAKES(config_record, "{}", "bgp.holdTime=30", "{\"bgp\":{\"holdTime\":30}}");
	MAKES(config_record, "{\"bgp\":{\"bfd\":true}}", "bgp.holdTime=30",
	      "{\"bgp\":{\"bfd\":true,\"holdTime\":30}}");
	MAKES(spec_record, "{}", "labels.topology.io/zone=a",
	      "{\"labels\":{\"topology.io/zone\":\"a\"}}");
	MAKES(spec_record, "{}",
	      "labels=zone=a,disk=", "{\"labels\":{\"zone\":\"a\",\"disk\":\"\"}}");
	MAKES(pool_record, "{}", "dns={\"domain\":\"x\"}", "{\"dns\":{\"domain\":\"x\"}}");
}

static void an_empty_value_takes_the_field_out(void **unused)
{
	MAKES(pool_record, "{\"cidr\":\"x\",\"disabled\":true}", "disabled=", "{\"cidr\":\"x\"}");
	MAKES(config_record, "{\"bgp\":{\"bfd\":true}}", "bgp.bfd=", "{\"bgp\":{}}");
}

static void mistakes_are_told_with_what_was_meant(void **unused)
{
	REFUSES(pool_record, "blokSize=26", "unknown field \"blokSize\": perhaps \"blockSize\"?");
	REFUSES(config_record, "bgp.holdtime=26",
		"unknown field \"bgp.holdtime\": perhaps \"bgp.holdTime\"?");
	REFUSES(pool_record, "frobnicate=26", "unknown field \"frobnicate\"");
	REFUSES(pool_record, "cidr", "\"cidr\" is not of the form FIELD=VALUE");
	REFUSES(pool_record, "cidr.x=1", "field \"cidr\" has no fields inside: \"cidr.x\"");
	REFUSES(pool_record, "exclude=[1",
		"field \"exclude\": not valid JSON at byte 7: array value separator ',' expected");
	REFUSES(spec_record, "labels=zone",
		"field \"labels\": labels have the form key=value,key=value");
}

static void fields_that_nobody_knows_are_found_at_any_depth(void **unused)
{
	AUTO(json_put)
	struct json_object *bad = json_tokener_parse(
		"{\"rules\":[{\"match\":{\"cidr\":\"10.0.0.0/8\",\"comunity\":\"1:1\"}}]}");
	AUTO(json_put)
	struct json_object *good = json_tokener_parse("{\"rules\":[{\"match\":{\"ge\":8}}]}");
	struct err err = { "" };
	char field[128];

	assert_false(assign_unknown(&filter_record, good, field));
	assert_true(assign_unknown(&filter_record, bad, field));
	assert_string_equal(field, "rules.match.comunity");
	assert_int_equal(assign_refuse_unknown(&filter_record, field, &err), -EINVAL);
	assert_string_equal(
		err.text,
		"unknown field \"rules.match.comunity\": perhaps \"rules.match.community\"?");
}

static void defaults_are_filled_in_and_what_is_absent_stays_so(void **unused)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	const char *json = "{\"cidr\":\"10.1.0.0/24\"}";
	struct err err = { "" };
	AUTO(free) char *text = NULL;

	assert_int_equal(effective(&pool_record, "pool/web", json, strlen(json), object, &err), 0);
	json_print(object, &text);
	assert_non_null(strstr(text, "\"blockSize\":26"));
	assert_non_null(strstr(text, "\"cooldownSeconds\":60"));
	assert_null(strstr(text, "gateway"));
	assert_int_equal(effective(&pool_record, "pool/web", "{}", 2, object, &err), -EINVAL);
	assert_string_equal(err.text, "pool/web: field \"cidr\": is missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_has_the_type_of_its_field),
		cmocka_unit_test(what_does_not_fit_is_left_to_decoding),
		cmocka_unit_test(lists_are_typed_with_commas_or_as_json),
		cmocka_unit_test(dots_lead_into_objects),
		cmocka_unit_test(an_empty_value_takes_the_field_out),
		cmocka_unit_test(mistakes_are_told_with_what_was_meant),
		cmocka_unit_test(fields_that_nobody_knows_are_found_at_any_depth),
		cmocka_unit_test(defaults_are_filled_in_and_what_is_absent_stays_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
