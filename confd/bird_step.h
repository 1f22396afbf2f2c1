/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BIRD as the steps of a publication: bird -p checks, configure reloads.
 *
 *   publish -> [bird_step] -> a child, bird_control -> answer -> publish
 *
 * A configuration that BIRD refuses is rejected, and publish puts the old file back. Where BIRD
 * does not run, hangs up or does not come to an end, nobody has rejected anything: the new file
 * stays for its next start, and the owner publishes again when BIRD is connected. Before the first
 * attempt to connect has ended, a reload waits for that.
 */
#pragma once

#include "confd/bird/bird_control.h"
#include "confd/publish.h"
#include "lib/base/child.h"

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

/* --- the check alone ------------------------------------------------------------------------ */

/*
 * `bird -p -c FILE`, in a child and never by `configure check`: a bad file can kill the parser, and
 * with it the daemon. Anything but exit 0 is bad. The file must lie in its final folder, because
 * BIRD's includes are relative to it.
 */
struct bird_check;

/*
 * err: 0 good, words are BIRD's warnings or ""; -EINVAL bad, words "FILE:LINE:COL message" or how
 * the parser died; -ETIMEDOUT. The check is over and its handle no longer valid.
 */
typedef void bird_check_fn(int err, const char *words, void *arg);

/* program: NULL for "bird". -ENOENT and the like when it cannot be run; *err has a sentence. */
int bird_check(sd_event *event, const char *program, const char *file, bird_check_fn *fn, void *arg,
	       struct bird_check **ret, struct err *err);
/* Killed and reaped; no callback. */
void bird_check_cancel(struct bird_check *b);

/*
 * What BIRD said, as one line: without "bird: " and, of BIRD 3, without time, thread and level;
 * lines joined by "; ". Cut to room. Returns text. Pure.
 */
const char *bird_check_words(const char *output, char *text, size_t room);
