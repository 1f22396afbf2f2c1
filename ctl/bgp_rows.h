/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions as rows: from a node's status, local or as it lies in etcd.
 *
 *   status -> [bgp_rows] -> rows -> out
 *
 * Pure. A node without sessions has one row all the same, whose "state" and "error" say why.
 */
#pragma once

#include "lib/json/json.h"

/* status NULL: the node has none, its agent is silent. 0 or -ENOMEM. */
int bgp_rows(const char *node, struct json_object *status, struct json_object *array);
/* Those that are not up first, then by node and session. */
void bgp_rows_sort(struct json_object *array);
