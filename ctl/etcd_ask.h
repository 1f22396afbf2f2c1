/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to etcd that the store has no call for: roles, and records at an older revision. */
#pragma once

#include "ctl/frame/ctl.h"
#include "lib/json/tree.h"

/*
 * Sends body, which it ends, to a path of etcd's gateway ("/v3/auth/role/get") and waits for the
 * answer, which may be NULL. -EEXIST: what should be added is there already.
 */
int etcd_ask(struct ctl *ctl, const char *path, struct tree *body, struct json_object **ret,
	     struct err *err);
