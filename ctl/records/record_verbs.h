/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of pool, peer, filter, route and config share. */
#pragma once

#include "ctl/records/change.h"

/* The stored record of a key; -ENOENT with "there is no pool web: see roostctl pool list". */
int record_need(const struct ctl_kvs *kvs, const struct kind *kind, const char *key,
		const struct ctl_kv **ret, struct err *err);
/* Those of the world that a kind's records are in; NULL: none. */
const struct ctl_kvs *world_of(const struct world *world, const struct kind *kind);

/* A list's row for a record that cannot be decoded, and for one that can: name, then its fields. */
int record_row(const struct kind *kind, const struct ctl_kv *kv, struct json_object *array);

/* To the operator, of a route that was written: pools and other routes that it overlaps. */
void route_notes(struct ctl *ctl, const struct world *world, const char *key, const char *value);

/* What deleting a pool would touch, as a sentence. */
int pool_touched(struct ctl *ctl, const char *pool, char **ret, struct err *err);

/* The object in the operator's editor. 0 and *ret, or a negative errno; *ret_path is the file, to
 * be unlinked or told; free() it. */
int editor_edit(struct json_object *object, struct json_object **ret, char **ret_path,
		struct err *err);
