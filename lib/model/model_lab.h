/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of records: there and back again, and refused with its sentence. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/model/model.h"

/* Decodes, encodes to exactly `want`, and decodes that to an equal record. */
#define ROUND_TRIP(noun, key, json, want)                                                          \
	do {                                                                                       \
		AUTO_DONE(noun##_done) struct noun a_ = { 0 }, b_ = { 0 };                         \
		AUTO(free) char *text_ = NULL;                                                     \
		struct err err_ = { "" };                                                          \
		if (noun##_decode(key, json, strlen(json), &a_, &err_) != 0)                       \
			fail_msg("%s", err_.text);                                                 \
		assert_int_equal(noun##_encode(&a_, &text_), 0);                                   \
		assert_string_equal(text_, want);                                                  \
		assert_int_equal(noun##_decode(key, text_, strlen(text_), &b_, &err_), 0);         \
		assert_true(noun##_equal(&a_, &b_));                                               \
	} while (0)
/* Every field differs from its default, in the order of the tables: the text is its own echo. */
#define ECHOES(noun, key, json) ROUND_TRIP(noun, key, json, json)

#define REFUSED(noun, key, json, sentence)                                                         \
	do {                                                                                       \
		struct noun a_ = { 0 };                                                            \
		struct err err_ = { "" };                                                          \
		assert_int_equal(noun##_decode(key, json, strlen(json), &a_, &err_), -EINVAL);     \
		assert_string_equal(err_.text, sentence);                                          \
	} while (0)
