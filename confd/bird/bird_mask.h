/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration of BIRD that may be shown: without its passwords.
 *
 * Pure. What follows the word "password" is replaced wherever the word stands, in comments and
 * texts too, and so is every secret that the caller knows: a template of the operator's may use it
 * in another place. Too much may be hidden, never too little.
 */
#pragma once

#include <stddef.h>

#include "lib/json/values.h"

#define BIRD_MASK "********"

/* free() it; NULL: out of memory. */
char *bird_mask(const char *text, size_t len, const struct texts *secrets);
