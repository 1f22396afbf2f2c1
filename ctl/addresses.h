/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that are in use, as etcd has them. */
#pragma once

#include "ctl/frame/ctl.h"

struct block;

/* node NULL: of all; block NULL: of all, else those inside it. An array of rows. */
int addresses_read(struct ctl *ctl, const char *node, const struct block *block,
		   struct json_object **ret, struct err *err);
