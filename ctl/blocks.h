/* SPDX-License-Identifier: Apache-2.0 */
/* The block that the words of a command mean: BLOCK [NETWORK]. */
#pragma once

#include "ctl/frame/ctl.h"

/* By its prefix, or by any address in it; the second word names the network where there are
 * several. 0, or a negative errno with the sentence. */
int ctl_find_block(struct ctl *ctl, const struct ctl_kvs *kvs, const struct ctl_kv **ret,
		   struct err *err);
