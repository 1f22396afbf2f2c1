/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as CNI's runtimes write and read it.
 *
 * Pure, over json.h. Go matches names of fields without regard to case, and
 * containerd depends on it ("HostPort" for hostPort), so every look-up here does
 * so too; of several that match, the last counts. An empty string where a value may be
 * absent means absent. A value of another type is CNI_CODE_DECODE, a wrong one
 * CNI_CODE_CONFIG.
 */
#pragma once

#include "lib/cni/cni_error.h"
#include "lib/json/json.h"
#include "lib/json/values.h"

/* As json_member, without regard to case. */
struct json_at cni_member(const struct json_at *object, const char *name);
/* Whether the name is there at all, be it with null. */
bool cni_has(const struct json_at *object, const char *name);

/*
 * The readers: 1, 0 if absent (*ret is left alone), or -EINVAL with e filled; at.err must be
 * &e->msg, as cni_root makes it.
 */
struct json_at cni_root(struct json_object *object, struct cni_error *e);
int cni_read_text(struct cni_error *e, struct json_at at, const char **ret);
int cni_read_address(struct cni_error *e, struct json_at at, struct address *ret);
int cni_read_host_prefix(struct cni_error *e, struct json_at at, struct prefix *ret);
int cni_read_array(struct cni_error *e, struct json_at at, size_t *ret);
int cni_read_object(struct cni_error *e, struct json_at at);
/* The texts live as long as the document; free() ret->v. -ENOMEM too. */
int cni_read_texts(struct cni_error *e, struct json_at at, struct texts *ret);

/* e's text is set; gives it its code by what is wrong with the value. Returns -EINVAL. */
int cni_wrong(struct cni_error *e, struct json_at at, enum json_type wanted);
int cni_no_memory(struct cni_error *e); /* -ENOMEM */
