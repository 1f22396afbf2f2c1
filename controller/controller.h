/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roost-controller, put together: the loop, etcd, the election, the keeper, what is shown.
 *
 *   settings -> [controller] -> elect -> keeper -> etcd
 *                     └-> /metrics, /healthz, /readyz
 */
#pragma once

#include "controller/settings.h"
#include "lib/base/auto.h"

struct controller;

/* settings is borrowed. 0, or a negative errno with the sentence. */
int controller_new(struct controller_settings *settings, int argc, char *const *argv,
		   struct controller **ret, struct err *err);
void controller_free(struct controller *c);
AUTO_DEFINE(struct controller *, controller_free)

/* Until it is told to stop: 0 or a negative errno. */
int controller_run(struct controller *c);
