/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/resource.h"

#define READ(r, json)                                                                              \
	AUTO_DONE(resource_done) struct resource r = { 0 };                                        \
	do {                                                                                       \
		struct err err_ = { "" };                                                          \
		if (resource_read("web", json, strlen(json), &r, &err_) < 0)                       \
			fail_msg("%s", err_.text);                                                 \
	} while (0)

#define REFUSED(json, sentence)                                                                    \
	do {                                                                                       \
		struct resource r_ = { 0 };                                                        \
		struct err err_ = { "" };                                                          \
		assert_int_equal(resource_read("web", json, strlen(json), &r_, &err_), -EINVAL);   \
		assert_string_equal(err_.text, sentence);                                          \
		assert_null(r_.name);                                                              \
	} while (0)

#define SMALL "\"template\":\"t\",\"dest\":\"/d/f\",\"keys\":[\"k\"]"

static void the_smallest_one_has_defaults(void **unused)
{
	READ(r, "{" SMALL "}");
	assert_string_equal(r.name, "web");
	assert_string_equal(r.source, "t");
	assert_string_equal(r.dest, "/d/f");
	assert_int_equal(r.mode, 0640);
	assert_null(r.owner);
	assert_null(r.prefix);
	assert_null(r.check.line);
	assert_null(r.check.words.v);
	assert_null(r.bird);
	assert_int_equal(r.timeout_s, 30);
	assert_int_equal(r.escape, ESCAPE_NONE);
	assert_true(r.strict);
}

static void everything_can_be_said_with_comments(void **unused)
{
	READ(r, "{ // a comment\n"
		"\"template\": \"/srv/t.mustache\", \"dest\": \"/etc/x y\", \"mode\": \"0600\",\n"
		"\"owner\": \"bird\", \"group\": \"65534\", \"prefix\": \"/app/\",\n"
		"\"keys\": [\"a\", \"b/c\"], \"prefixes\": [\"d/\", \"\"],\n"
		"\"check\": [\"prog\", \"-c\", \"{}\"], \"reload\": {\"bird\": \"/run/b.ctl\"},\n"
		"\"timeout\": 5, \"escape\": \"html\", \"strict\": false /* end */ }");
	assert_int_equal(r.mode, 0600);
	assert_string_equal(r.owner, "bird");
	assert_string_equal(r.group, "65534");
	assert_string_equal(r.prefix, "/app/");
	assert_int_equal(r.keys.n, 2);
	assert_string_equal(r.keys.v[1], "b/c");
	assert_int_equal(r.prefixes.n, 2);
	assert_int_equal(r.check.words.n, 3);
	assert_string_equal(r.bird, "/run/b.ctl");
	assert_int_equal(r.timeout_s, 5);
	assert_int_equal(r.escape, ESCAPE_HTML);
	assert_false(r.strict);
}

static void a_command_may_be_a_line_for_the_shell(void **unused)
{
	READ(r, "{" SMALL ",\"check\":\"prog -c {}\",\"reload\":\"kill -HUP $(cat /run/pid)\"}");
	assert_string_equal(r.check.line, "prog -c {}");
	assert_string_equal(r.reload.line, "kill -HUP $(cat /run/pid)");
}

static void a_line_gets_no_path_that_the_shell_might_act_on(void **unused)
{
	const char *rest = "\"template\":\"t\",\"keys\":[\"k\"]";
	char text[256];

	snprintf(text, sizeof(text), "{%s,\"dest\":\"/a b\",\"check\":\"x {}\"}", rest);
	REFUSED(text, "field \"check\": \"/a b\" has characters that a shell might act on: give "
		      "the command as a list of words");
	snprintf(text, sizeof(text), "{%s,\"dest\":\"/a$(b)\",\"reload\":\"x {}\"}", rest);
	REFUSED(text, "field \"reload\": \"/a$(b)\" has characters that a shell might act on: give "
		      "the command as a list of words");
	snprintf(text, sizeof(text), "{%s,\"dest\":\"/a b\",\"check\":\"x\"}", rest);
	READ(r, text);
	assert_string_equal(r.check.line, "x");
}

static void what_is_missing_is_named(void **unused)
{
	REFUSED("{\"dest\":\"/d\",\"keys\":[\"k\"]}", "field \"template\": is missing");
	REFUSED("{\"template\":\"t\",\"keys\":[\"k\"]}", "field \"dest\": is missing");
	REFUSED("{\"template\":\"t\",\"dest\":\"/d\"}",
		"neither \"keys\" nor \"prefixes\" says what to read from etcd");
	REFUSED("{\"template\":\"t\",\"dest\":\"/d\",\"keys\":[]}",
		"neither \"keys\" nor \"prefixes\" says what to read from etcd");
}

static void what_is_wrong_is_named(void **unused)
{
	REFUSED("{" SMALL ",\"chekc\":\"x\"}", "unknown field \"chekc\"");
	REFUSED("{" SMALL ",\"mode\":\"999\"}",
		"field \"mode\": \"999\" is not a mode: octal digits in quotes, as \"0640\"");
	REFUSED("{" SMALL ",\"mode\":\"04755\"}",
		"field \"mode\": \"04755\" is not a mode: octal digits in quotes, as \"0640\"");
	REFUSED("{" SMALL ",\"escape\":\"xml\"}",
		"field \"escape\": \"xml\" is not one of none, html");
	REFUSED("{" SMALL ",\"check\":5}", "field \"check\": 5 is not a command: a line for the "
					   "shell, or a list of words");
	REFUSED("{" SMALL ",\"check\":[]}",
		"field \"check\": [] is not a command: the program, then its arguments");
	REFUSED("{" SMALL ",\"check\":\" \"}", "field \"check\": \" \" is not a command");
	REFUSED("{" SMALL ",\"reload\":{\"brid\":\"/x\"}}", "field \"reload.bird\": is missing");
	REFUSED("{" SMALL ",\"reload\":{\"bird\":\"x\"}}",
		"field \"reload.bird\": \"x\" is not a path: it begins with '/', has no control "
		"characters "
		"and at most 1023 bytes");
	REFUSED("{" SMALL ",\"keys\":[\"a b\"]}", "field \"keys[0]\": \"a b\" is not a key: it has "
						  "a blank or a character outside ASCII");
	REFUSED("{" SMALL ",\"keys\":[\"\"]}",
		"field \"keys[0]\": \"\" is not a key: 1 to 512 characters");
	REFUSED("{\"template\":\"../t\",\"dest\":\"/d\",\"keys\":[\"k\"]}",
		"field \"template\": \"../t\" is not the name of a template: parts separated by "
		"'/', "
		"none empty, none beginning with '.', at most 200 bytes");
	REFUSED("[]", "not a JSON object");
	REFUSED("{ /* }", "the comment at byte 3 has no end");
}

static void braces_become_the_path(void **unused)
{
	AUTO(free) char *two = command_fill("a {} b={}", "/x");
	AUTO(free) char *none = command_fill("{ }", "/x");

	assert_string_equal(two, "a /x b=/x");
	assert_string_equal(none, "{ }");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_one_has_defaults),
		cmocka_unit_test(everything_can_be_said_with_comments),
		cmocka_unit_test(a_command_may_be_a_line_for_the_shell),
		cmocka_unit_test(a_line_gets_no_path_that_the_shell_might_act_on),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(braces_become_the_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
