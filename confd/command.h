/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command as a step of a publication: exit 0 accepts, anything else rejects with its words.
 *
 *   publish -> [command] -> lib/base/child -> verdict -> publish
 *
 * Runs in our own folder, with the deadline and the limits of lib/base/child.
 */
#pragma once

#include <stdint.h>

#include "confd/publish.h"
#include "confd/resource.h"

struct command;

/* text is borrowed. 0 or -ENOMEM. */
int command_new(sd_event *event, const struct command_text *text, uint32_t timeout_ms,
		struct command **ret);
void command_free(struct command *c);

struct publish_step command_step(struct command *c);
