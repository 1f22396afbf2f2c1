/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comments as in C and C++ in files that people write.
 *
 * Pure. They become blanks before the strict reader sees the text, so that everything else stays
 * as strict as it is for records, and byte positions in messages stay true.
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

/* 0, or -EINVAL for a comment without an end. */
int json_blank_comments(char *text, size_t len, struct err *err);
