/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent says of the overlay, as rows: one for each block of another node.
 *
 *   GET /v1/overlay ─> [overlay_rows] ─> table
 *
 * Pure. What is wrong comes first: nodes that cannot be reached, then blocks that
 * the kernel has no way to; then by node.
 */
#pragma once

#include "lib/json/json.h"

/* 0 or -ENOMEM. */
int overlay_rows(struct json_object *overlay, struct json_object *array);
