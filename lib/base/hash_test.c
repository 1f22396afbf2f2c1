/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/hash.h"

/* The authors' key and inputs: bytes 0, 1, 2, ...; what openssl's SIPHASH says of them. */
static void the_hash_is_siphash(void **unused)
{
	static const struct {
		size_t len;
		const char *want;
	} cases[] = {
		{ 0, "a3817f04ba25a8e66df67214c7550293" },
		{ 1, "da87c1d86b99af44347659119b22fc45" },
		{ 2, "8177228da4a45dc7fca38bdef60affe4" },
		{ 15, "5493e99933b0a8117e08ec0f97cfc3d9" },
	};
	uint8_t bytes[16];
	char text[HASH_TEXT];

	for (uint8_t i = 0; i < 16; i++)
		bytes[i] = i;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(hash_print(siphash128(bytes, bytes, cases[i].len), text),
				    cases[i].want);
}

static void where_a_text_ends_matters(void **unused)
{
	struct hash a = HASH_TEXTS("ab", "c"), b = HASH_TEXTS("a", "bc"), c = HASH_TEXTS("ab", "c");

	assert_memory_equal(&a, &c, sizeof(a));
	assert_memory_not_equal(&a, &b, sizeof(a));
}

/* Written on disks and into etcd by other versions: this line must never change. */
static void the_value_never_changes(void **unused)
{
	char text[HASH_TEXT];

	assert_string_equal(hash_print(HASH_TEXTS("pods", "3f9c", "eth0"), text),
			    "d0449f4f4f6dd519d5a479e83cafa33d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_siphash),
		cmocka_unit_test(where_a_text_ends_matters),
		cmocka_unit_test(the_value_never_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
