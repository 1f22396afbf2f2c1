/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until etcd says that something has changed. */
#pragma once

#include "ctl/frame/ctl.h"

struct ctl_watch {
	bool dirty;
};

/* Keys that begin so, NULL-ended. It lasts as long as ctl; dirty once all is listed. */
int ctl_watch(struct ctl *ctl, const char *const *beginnings, struct ctl_watch *w, struct err *err);
/* Until something has changed since the last call; what comes in the next moment belongs to it. An
 * interrupt ends the program, as it should. 0 or a negative errno. */
int ctl_watch_next(struct ctl *ctl, struct ctl_watch *w);
