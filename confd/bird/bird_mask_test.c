/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "confd/bird/bird_mask.h"
#include "lib/base/auto.h"

static void becomes(const char *text, const char *want)
{
	AUTO(free) char *masked = bird_mask(text, strlen(text), &(struct texts){ 0 });

	assert_non_null(masked);
	assert_string_equal(masked, want);
}

static void passwords_are_not_shown(void **unused)
{
	becomes("", "");
	becomes("router id 1.2.3.4;\n", "router id 1.2.3.4;\n");
	becomes("\tpassword \"s e;cret\";\n", "\tpassword \"********\";\n");
	becomes("password \"x\" { id 1; };", "password \"********\" { id 1; };");
	becomes("password\"x\";password \"y\";", "password\"********\";password \"********\";");
	becomes("password hex:00:11;", "password ********;");
	becomes("PASSWORD \"x\";", "PASSWORD \"********\";");
	becomes("password /* of \"tor\" */ # now\n \"x\";",
		"password /* of \"tor\" */ # now\n \"********\";");
	becomes("# password \"x\";\n", "# password \"********\";\n");
}

static void a_text_without_an_end_hides_the_rest(void **unused)
{
	becomes("password \"secret;\nmore", "password \"********\"");
	becomes("password /* secret", "password /* secret");
	becomes("password", "password");
}

static void other_words_stay(void **unused)
{
	becomes("passwords { password \"x\"; }", "passwords { password \"********\"; }");
	becomes("my_password \"x\"; password2 \"y\";", "my_password \"x\"; password2 \"y\";");
	becomes("password;", "password;");
}

static void known_secrets_go_wherever_they_are(void **unused)
{
	static const char *const secrets[] = { "s3cret", "" };
	const struct texts known = { (const char **)(uintptr_t)secrets, 2 };
	const char *text = "define X = \"s3cret\"; # s3crets3cret";
	AUTO(free) char *masked = bird_mask(text, strlen(text), &known);

	assert_string_equal(masked, "define X = \"********\"; # ****************");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passwords_are_not_shown),
		cmocka_unit_test(a_text_without_an_end_hides_the_rest),
		cmocka_unit_test(other_words_stay),
		cmocka_unit_test(known_secrets_go_wherever_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
