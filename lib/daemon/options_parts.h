/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/daemon/options*.c: one value on its way into the struct. */
#pragma once

#include "lib/daemon/options.h"

/*
 * Checks the text and puts it at its place, releasing what was there. The sentence says what is
 * wrong with the value; the caller puts in front where it came from.
 */
int option_set(const struct option_def *def, const char *text, void *record, struct err *err);

/* By flag's or by field's name; NULL: unknown. */
const struct option_def *option_find(const struct option_table *table, const char *name, size_t len,
				     bool by_field);
/* The name nearest to a mistyped one, or NULL if none is near. text holds OPTION_NAME bytes. */
const char *option_nearest(const struct option_table *table, const char *name, bool by_field,
			   char *text);

/* The file's text into the struct. */
int options_from_file(const struct option_table *table, const char *text, size_t len, void *record,
		      struct err *err);
