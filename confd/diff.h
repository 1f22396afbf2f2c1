/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two texts as a unified diff of lines, as diff -u prints it, for people.
 *
 * Pure. The shortest edit (Myers) between what is left when the common head and tail are
 * taken away; texts that differ in more than DIFF_EDITS_MAX lines are shown as one block
 * out, one block in, so that time and memory stay bounded.
 */
#pragma once

#include <stddef.h>

#define DIFF_EDITS_MAX 1000
#define DIFF_CONTEXT   3

struct diff_side {
	const char *name; /* for the head; "/dev/null" where there is no file */
	const char *text;
	size_t len;
};

/* "" when they are equal; free() it. 0 or -ENOMEM. */
int diff_unified(const struct diff_side *before, const struct diff_side *after, char **ret);
