/* SPDX-License-Identifier: Apache-2.0 */
/* What of a node can be seen without its agent, and what to do. */
#pragma once

#include "ctl/status_view.h"

struct ctl;

/* why: the sentence with which the agent could not be reached. */
void status_alone(struct ctl *ctl, const struct err *why, struct status_view *v);
