/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of JSON lines: a test's commands on stdin, one object per line on stdout.
 *
 *   stdin -> [json_lines] -> on_command() ... line_end() -> stdout
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/json/json_stream.h"

/* Members of an object that is to be printed. */
void line_text(struct json_object *o, const char *name, const char *text);
void line_number(struct json_object *o, const char *name, int64_t n);
void line_bool(struct json_object *o, const char *name, bool v);
/* Prints the object on one line and releases it. */
void line_end(struct json_object *o);

/* Members of a command; NULL, 0, false: it has none. */
const char *command_text(struct json_object *o, const char *name);
int64_t command_number(struct json_object *o, const char *name);
bool command_flag(struct json_object *o, const char *name);

/* Of this process. */
int64_t peak_rss_kib(void);

/*
 * Runs the loop until {"op":"quit"} or the end of stdin; each other command goes to fn. 0 or a
 * negative errno; a command that is not JSON ends it with -EBADMSG and a message on stderr.
 */
int json_lines_run(sd_event *event, json_stream_fn *fn, void *arg);
