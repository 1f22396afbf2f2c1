/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a pod, as rows: {part, state ("ok", "warning", "error", "info"), about}.
 *
 *   GET /v1/pod -> [pod_rows] -> out
 *   host/: address records ─┘
 *
 * Pure.
 */
#pragma once

#include "lib/json/json.h"

/* From the agent's reply; 0 or -ENOMEM. */
int pod_rows(struct json_object *said, struct json_object *array);
/* From rows of `address list`: where it is, if that is another node. */
int pod_rows_elsewhere(const char *pod, const char *self, struct json_object *rows,
		       struct json_object *array);
