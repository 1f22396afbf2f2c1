/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this a configuration? `bird -p -c FILE` in a child beside the loop.
 *
 *   render -> candidate file -> [bird_check] -> verdict -> publish
 *
 * In a child and never by `configure check`: a bad file can kill the parser, and there
 * the daemon with it. Anything but exit 0 is bad. The file must lie in its final folder,
 * because BIRD's includes are relative to it.
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/child.h"

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
