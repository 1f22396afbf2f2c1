/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/base64.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/auto.h"

static const struct {
	const char *plain, *coded;
} known[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xff\xef\xbe", "/+++" },
};

static void known_texts_encode_and_decode(void **unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t n = strlen(known[i].plain);
		char text[32];
		uint8_t data[32];

		base64_encode(known[i].plain, n, text);
		assert_string_equal(text, known[i].coded);
		assert_int_equal(base64_decode(text, strlen(text), data), n);
		assert_memory_equal(data, known[i].plain, n);
	}
}

static void every_byte_survives(void **unused)
{
	uint8_t data[256], back[258];
	char text[BASE64_LENGTH(256) + 1];

	for (unsigned i = 0; i < 256; i++)
		data[i] = (uint8_t)(i * 7);
	for (size_t n = 0; n <= sizeof(data); n++) {
		base64_encode(data, n, text);
		assert_int_equal(strlen(text), BASE64_LENGTH(n));
		assert_int_equal(base64_decode(text, strlen(text), back), n);
		assert_memory_equal(back, data, n);
	}
}

static void anything_but_the_one_form_is_refused(void **unused)
{
	const char *bad[] = { "Zg",   "Zg=",  "Zg===", "Z===", "====",     "Zm9v\n",   " Zm9v",
			      "Zm-v", "Zm_v", "Zh==",  "Zm9=", "Zg==Zg==", "Zm8=Zm8=", "\x80m9v" };
	uint8_t data[16];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(base64_decode(bad[i], strlen(bad[i]), data), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts_encode_and_decode),
		cmocka_unit_test(every_byte_survives),
		cmocka_unit_test(anything_but_the_one_form_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
