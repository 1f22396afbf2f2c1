/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network configurations and results, read by tables of fields as records are.
 *
 *   document -> cni_root() -> fields_read(), json_read_*() -> cni_read() -> verb
 *
 * Pure, over lib/json/fields.h. Names match as Go matches them (json_at.as_go): containerd writes
 * "HostPort" for hostPort. A value of another type is CNI_CODE_DECODE, an invalid one
 * CNI_CODE_CONFIG. Texts are borrowed from
 * the document.
 */
#pragma once

#include "lib/cni/cni_error.h"
#include "lib/json/fields.h"

/* What is refused below is told in e->msg. */
struct json_at cni_root(struct json_object *object, struct cni_error *e);
/* r is what a reader returned: if it is negative, e gets its code. r, -EINVAL or -ENOMEM. */
int cni_read(struct cni_error *e, int r);
/* Whether the name is there at all, even with null. */
bool cni_has(struct json_object *object, const char *name);
int cni_no_memory(struct cni_error *e); /* -ENOMEM */

/* A number that may be left out: -1, as 0 is a value. */
extern const struct field_type field_said;
typedef int64_t field_c_said;
