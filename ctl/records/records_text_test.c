/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/records/records_text.h"

static char seen[512];

static int see(const struct kind *kind, const char *name, struct json_object *fields, void *arg,
	       struct err *err)
{
	size_t n = strlen(seen);

	snprintf(seen + n, sizeof(seen) - n, "%s/%s%s;", kind->name, name,
		 json_object_to_json_string_ext(fields, JSON_C_TO_STRING_PLAIN));
	return 0;
}

#define GIVES(json, want)                                                                          \
	do {                                                                                       \
		struct err err_ = { "" };                                                          \
		seen[0] = '\0';                                                                    \
		if (records_text(json, strlen(json), see, NULL, &err_) < 0)                        \
			fail_msg("%s", err_.text);                                                 \
		assert_string_equal(seen, want);                                                   \
	} while (0)
#define REFUSES(json, sentence)                                                                    \
	do {                                                                                       \
		struct err err_ = { "" };                                                          \
		assert_true(records_text(json, strlen(json), see, NULL, &err_) < 0);               \
		assert_string_equal(err_.text, sentence);                                          \
	} while (0)

static void one_an_array_or_several(void **unused)
{
	GIVES("{\"kind\":\"pool\",\"name\":\"a\",\"cidr\":\"x\"}", "pool/a{\"cidr\":\"x\"};");
	GIVES("[{\"kind\":\"pool\",\"name\":\"a\"},{\"kind\":\"peer\",\"name\":\"b\",\"asn\":1}]",
	      "pool/a{};peer/b{\"asn\":1};");
	GIVES("{\"kind\":\"config\",\"asn\":1} // the "
	      "cluster\n\n{\"kind\":\"spec\",\"name\":\"n\"}\n",
	      "config/{\"asn\":1};spec/n{};");
	GIVES("[] {\"kind\":\"config\"}", "config/{};");
}

static void what_is_wrong_is_told_with_its_place(void **unused)
{
	REFUSES("", "it contains no record");
	REFUSES("[]", "it contains no record");
	REFUSES("{\"kind\":\"pool\"", "ends inside a record");
	REFUSES("{\"kind\" 1}",
		"not valid JSON at byte 9: object property name separator ':' expected");
	REFUSES("[7]", "record 1: is not a JSON object");
	REFUSES("{\"kind\":\"config\"} {\"name\":\"a\"}", "record 2: field \"kind\": is missing");
	REFUSES("{\"kind\":\"pol\",\"name\":\"a\"}",
		"record 1: unknown kind \"pol\": perhaps \"pool\"?");
	REFUSES("{\"kind\":\"pool\"}", "record 1: field \"name\": is missing");
	REFUSES("{\"kind\":\"config\",\"name\":\"a\"}",
		"record 1: config has no name: there is only one");
	REFUSES("{\"kind\":\"block\",\"name\":\"a\"}",
		"record 1: kind \"block\" is written by agents only");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_an_array_or_several),
		cmocka_unit_test(what_is_wrong_is_told_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
