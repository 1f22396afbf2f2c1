/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol numbers by which routes in the kernel are recognised as ours.
 *
 *   settings, once at the start ─> [route_protocol] <─ agent, roostctl: is this route ours?
 *
 * A program that is told other numbers sets them before anything looks at the kernel, and never
 * again: whatever was made under the old ones would be a stranger's from then on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/* The defaults, as the table of a program's options wants them. */
#define ROUTE_PROTOCOL_TEXT        "114"
#define STATIC_ROUTE_PROTOCOL_TEXT "115"

extern uint8_t route_protocol;        /* pods, blocks, the overlay */
extern uint8_t static_route_protocol; /* static routes */

static inline bool route_protocol_is_ours(uint8_t protocol)
{
	return protocol == route_protocol || protocol == static_route_protocol;
}

/* 0, or -EINVAL with the sentence: the kernel's own, another daemon's, or both the same. */
int route_protocols_check(uint32_t own, uint32_t statics, struct err *err);
/* What was checked. */
void route_protocols_set(uint32_t own, uint32_t statics);

/* "bird", "static", or its number; text holds 12 bytes. */
const char *route_protocol_name(uint8_t protocol, char *text);
