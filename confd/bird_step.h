/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BIRD as the steps of a publication: bird -p checks, configure reloads.
 *
 *   publish -> [bird_step] -> bird_check, bird_control -> answer -> publish
 *
 * A configuration that BIRD refuses is rejected, and publish puts the old file back. Where BIRD
 * does not run, hangs up or does not come to an end, nobody has rejected anything: the new file
 * stays for its next start, and the owner publishes again when BIRD is connected. Before the first
 * attempt to connect has ended, a reload waits for that.
 */
#pragma once

#include "confd/bird/bird_control.h"
#include "confd/publish.h"

struct bird_step;

struct bird_step_options {
	sd_event *event;
	const char *socket;
	const char *program;                          /* for the check; NULL: "bird" */
	const struct bird_control_handlers *handlers; /* NULL: nobody wants to know */
	void *arg;
};

/* As bird_control_new(). */
int bird_step_new(const struct bird_step_options *options, struct bird_step **ret);
void bird_step_free(struct bird_step *b);
AUTO_DEFINE(struct bird_step *, bird_step_free)

struct publish_step bird_step_check(struct bird_step *b);
struct publish_step bird_step_reload(struct bird_step *b);
/* For other questions to the same BIRD. */
struct bird_control *bird_step_control(struct bird_step *b);
