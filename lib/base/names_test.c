/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/names.h"

static char *repeat(char c, size_t n, char *text)
{
	memset(text, c, n);
	text[n] = '\0';
	return text;
}

/* Both lists end in NULL. */
static void expect(name_check_fn *check, const char *const *good, const char *const *bad)
{
	struct err err;

	for (; *good; good++)
		if (check(*good, &err) != 0)
			fail_msg("\"%s\" was refused: %s", *good, err.text);
	for (; *bad; bad++) {
		err.text[0] = '\0';
		if (check(*bad, &err) != -EINVAL)
			fail_msg("\"%s\" was accepted", *bad);
		assert_true(err.text[0] != '\0');
		assert_int_equal(check(*bad, NULL), -EINVAL);
	}
}
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void names_are_lower_case_with_letter_or_digit_at_both_ends(void **unused)
{
	char text[300];

	expect(name_check, LIST("a", "0", "web-1", "a.b", "a--b", repeat('a', 63, text)),
	       LIST("", "-a", "a-", ".a", "a.", "A", "a_b", "a/b", "..", "a b", "\xc3\xa4"));
	expect(name_check, LIST("a"), LIST(repeat('a', 64, text)));
	expect(network_check, LIST("default", "net-2"), LIST("", "Net", repeat('a', 64, text)));
}

static void node_names_are_as_long_as_host_names(void **unused)
{
	char text[300];

	expect(node_name_check, LIST("n1", "a.example.org", repeat('a', 253, text)),
	       LIST("", "N1", "n_1", "a."));
	expect(node_name_check, LIST("n1"), LIST(repeat('a', 254, text)));
}

static void interfaces_are_those_the_kernel_and_bird_take(void **unused)
{
	expect(interface_check,
	       LIST("eth0", "roost.vxlan", "a-b_c.d", "A", "...", "123456789012345"),
	       LIST("", ".", "..", "1234567890123456", "a/b", "a b", "a:b", "a\"", "eth*"));
	expect(interface_pattern_check, LIST("eth*", "en?s*", "*", "eth0"),
	       LIST("", "a b", "a\"", "1234567890123456"));
}

static void container_ids_are_as_in_the_cni_specification(void **unused)
{
	char text[1100];

	expect(container_id_check, LIST("a", "Z9", "0_.-", repeat('f', 1024, text)),
	       LIST("", "_a", ".a", "-a", "a/b", "a b"));
	expect(container_id_check, LIST("a"), LIST(repeat('f', 1025, text)));
}

static void namespaces_are_exact_or_a_beginning(void **unused)
{
	char text[100];

	expect(namespace_pattern_check,
	       LIST("default", "kube-*", "a", "*", "team-*", repeat('a', 63, text)),
	       LIST("", "-a", "-*", "a-", "a*b", "**", "A", "a.b", "a_b"));
	expect(namespace_pattern_check, LIST("a"), LIST(repeat('a', 64, text)));
}

static void ids_words_and_paths_have_their_sets(void **unused)
{
	char text[1100];

	expect(id_check, LIST("4c4c4544-0042", "a:b", "A_1.x"), LIST("", "a b", "a\"b", "a/b"));
	expect(id_check, LIST(repeat('a', 128, text)), LIST("a\n"));
	expect(word_check, LIST("web-5d4f", "a b", "roostctl by ada"), LIST("", "a\nb", "\x7f"));
	expect(word_check, LIST("a"), LIST(repeat('a', 254, text)));
	expect(path_check, LIST("/", "/var/run/netns/cni-1", "/\xc3\xa4"),
	       LIST("", "a", "./a", "/a\nb", "/a\x7f"));
	expect(path_check, LIST("/a"), LIST(repeat('/', 1024, text)));
}

static void what_reaches_bird_in_quotes_cannot_leave_them(void **unused)
{
	char text[200];

	expect(description_check, LIST("", "to rack 7; # {'}\\", repeat('a', 128, text)),
	       LIST("x\"; passive; description \"y", "a\nb", "a\tb", "\xc3\xa4"));
	expect(description_check, LIST("a"), LIST(repeat('a', 129, text)));
	expect(password_check, LIST(" ", "~!#;", repeat('a', 80, text)),
	       LIST("", "a\"", "a\n", "\x7f"));
	expect(password_check, LIST("a"), LIST(repeat('a', 81, text)));
}

static void a_refused_password_is_not_shown(void **unused)
{
	struct err err;

	assert_int_equal(password_check("se\"cret", &err), -EINVAL);
	assert_null(strstr(err.text, "cret"));
}

static void the_sentence_shows_the_text_and_states_the_set(void **unused)
{
	struct err err;

	name_check("Web\x1b", &err);
	assert_string_equal(err.text, "\"Web?\" is not a name: 1 to 63 of a-z, 0-9, '.', '-', with "
				      "a letter or digit at both ends");
}

static void communities_are_two_small_or_three_large_numbers(void **unused)
{
	expect(community_check, LIST("0:0", "65535:65535", "65536:1:4294967295", "4294967295:0:0"),
	       LIST("", "1", "1:", ":1", "1:2:", "1:2:3:4", "65536:1", "1:65536", "01:1", "a:1",
		    "1:4294967296:1", "-1:1", "1: 2", "99999999999:1:1"));
}

static void times_are_rfc_3339_in_utc(void **unused)
{
	expect(time_check,
	       LIST("2026-11-16T02:45:55Z", "2026-11-16T02:45:55.123456789Z",
		    "2024-02-29T00:00:00Z", "2000-02-29T23:59:59.5Z"),
	       LIST("", "2026-11-16T02:45:55", "2026-11-16T02:45:55+00:00", "2026-11-16t02:45:55z",
		    "2026-11-16 02:45:55Z", "2026-13-16T02:45:55Z", "2026-00-16T02:45:55Z",
		    "2026-11-31T02:45:55Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
		    "2026-11-00T02:45:55Z", "2026-11-16T24:00:00Z", "2026-11-16T02:60:00Z",
		    "2026-11-16T02:45:60Z", "2026-11-16T02:45:55.Z",
		    "2026-11-16T02:45:55.1234567890Z", "2026-11-16T02:45:55Zx",
		    "26-11-16T02:45:55Z"));
}

static void shown_text_is_cut_and_harmless(void **unused)
{
	char text[200], shown[SHOW_TEXT];

	assert_string_equal(text_show("a\nb\x7f", shown), "a?b?");
	text_show(repeat('x', SHOW_TEXT - 1, text), shown);
	assert_string_equal(shown, text);
	text_show(repeat('x', SHOW_TEXT, text), shown);
	assert_int_equal(strlen(shown), SHOW_TEXT - 1);
	assert_string_equal(shown + SHOW_TEXT - 5, "x...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_lower_case_with_letter_or_digit_at_both_ends),
		cmocka_unit_test(node_names_are_as_long_as_host_names),
		cmocka_unit_test(interfaces_are_those_the_kernel_and_bird_take),
		cmocka_unit_test(container_ids_are_as_in_the_cni_specification),
		cmocka_unit_test(namespaces_are_exact_or_a_beginning),
		cmocka_unit_test(ids_words_and_paths_have_their_sets),
		cmocka_unit_test(what_reaches_bird_in_quotes_cannot_leave_them),
		cmocka_unit_test(a_refused_password_is_not_shown),
		cmocka_unit_test(the_sentence_shows_the_text_and_states_the_set),
		cmocka_unit_test(communities_are_two_small_or_three_large_numbers),
		cmocka_unit_test(times_are_rfc_3339_in_utc),
		cmocka_unit_test(shown_text_is_cut_and_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
