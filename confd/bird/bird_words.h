/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting of BIRD's rows at blanks, in place. Pure. */
#pragma once

/* The next word of *rest, ended by a NUL; "" at the end. *rest moves behind it. */
char *bird_word(char **rest);
/* What is left, without blanks at either end. */
char *bird_rest(char *rest);
/* "00:37:24.345", "2026-11-16", and "2026-11-16 00:37:24.345" in spite of its blank. */
char *bird_time(char **rest);
