/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody may have meant: the known name nearest to a mistyped one.
 *
 *   struct nearest near = nearest_to("pol", 3);
 *   for each known name: nearest_try(&near, name);
 *   near.name            "" if none is near
 *
 * Pure.
 */
#pragma once

#include <stddef.h>

#define NEAREST_TEXT 25 /* longer names are not compared */

struct nearest {
	char typed[NEAREST_TEXT], name[NEAREST_TEXT];
	unsigned best;
};

struct nearest nearest_to(const char *typed, size_t len);
void nearest_try(struct nearest *near, const char *name);
