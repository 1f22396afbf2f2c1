/* SPDX-License-Identifier: Apache-2.0 */
/* What the entries of commands.c name. */
#pragma once

#include "ctl/command.h"

typedef int verb_fn(struct ctl *ctl, struct err *err);

extern const struct command_list pool_list;
verb_fn pool_show;
verb_fn status_run, render_run;
extern const struct command_list bgp_list;
verb_fn version_run, examples_run;
