/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two texts as a unified diff for people, made by diff(1) of diffutils.
 *
 * Blocks for the milliseconds that diff takes. The texts may hold passwords: they lie in memory,
 * never in a file.
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

struct diff_side {
	const char *name; /* for the head; "/dev/null" where there is no file */
	const char *text;
	size_t len;
};

/* "" when they are equal; free() it. 0 or -errno with a sentence. */
int diff_unified(const struct diff_side *before, const struct diff_side *after, char **ret,
		 struct err *err);
