/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BIRD's control socket on our loop: connected whenever BIRD runs, one command at a time.
 *
 *   publish, status -> [bird_control] <-> BIRD -> bird_reply -> bird_parse_* -> callers
 *
 * Commands wait in a queue and go out one by one, because BIRD hangs up on 1024 unread
 * bytes. A command is at most 512 bytes: from 4096 on BIRD would loop for ever. A reply
 * that misses its deadline costs the connection, since it could no longer be told from
 * the next one. After a loss it comes back by itself: at once when the socket appears
 * (inotify), else after 0.1 s doubling to 5 s. Connected and idle it costs nothing, not
 * even a timer. Callbacks come from the loop, never from within a call; they may give
 * commands, but not free the struct.
 */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "confd/bird/bird_reply.h"

#define BIRD_COMMAND_MAX          512
#define BIRD_COMMAND_TIMEOUT_MS   5000
#define BIRD_CONFIGURE_TIMEOUT_MS 30000

struct bird_control;

struct bird_control_handlers {
	void (*on_connected)(const struct bird_version *version, void *arg);
	/* Lost, or cannot be had; also told when the reason changes. reason is a sentence. */
	void (*on_disconnected)(const char *reason, void *arg);
};

/* handlers may be NULL. -ENAMETOOLONG: the path does not fit a socket's address. */
int bird_control_new(sd_event *event, const char *path,
		     const struct bird_control_handlers *handlers, void *arg,
		     struct bird_control **ret);
/* Commands under way are dropped without a callback. */
void bird_control_free(struct bird_control *c);
AUTO_DEFINE(struct bird_control *, bird_control_free)

/* NULL while not connected. */
const struct bird_version *bird_control_version(const struct bird_control *c);
/* Why not connected; "" while connected. */
const char *bird_control_problem(const struct bird_control *c);

/* err: 0, -ECONNRESET (lost), -ETIMEDOUT. The reply is there with 0 alone, and until the return. */
typedef void bird_reply_fn(int err, const struct bird_reply *reply, void *arg);
/*
 * timeout_ms counts from the sending; 0: BIRD_COMMAND_TIMEOUT_MS.
 * -ENOTCONN, -E2BIG (over 512 bytes), -EINVAL (empty, or control bytes), -ENOMEM.
 */
int bird_command(struct bird_control *c, const char *command, uint32_t timeout_ms,
		 bird_reply_fn *fn, void *arg);

/* bird_command() with an argument that is released after the callback, or without one. */
int bird_ask(struct bird_control *c, const char *command, uint32_t timeout_ms, bird_reply_fn *fn,
	     void *arg, void (*release)(void *arg));

/* --- configure ------------------------------------------------------------------------------ */

enum bird_outcome {
	BIRD_OUTCOME_DONE,     /* the new configuration runs */
	BIRD_OUTCOME_REFUSED,  /* the old one runs; words: "FILE:LINE:COL message" */
	BIRD_OUTCOME_BUSY,     /* one, ours or another's, does not come to its end */
	BIRD_OUTCOME_LOST,     /* connection lost: nobody knows. Do it again when connected */
	BIRD_OUTCOME_SHUTDOWN, /* BIRD ends */
	BIRD_OUTCOME_DENIED,   /* the session is restricted */
};
const char *bird_outcome_name(enum bird_outcome o);
/* words: BIRD's own, or ours; until the return. */
typedef void bird_configured_fn(enum bird_outcome outcome, const char *words, void *arg);
/*
 * BIRD reads its file again. Never two at a time, ours or another's that we know of: BIRD 3 aborts
 * on two that queue behind a running one. Those asked for while one is on the wire are
 * answered by one more after it. -ENOTCONN, -ENOMEM.
 */
int bird_configure(struct bird_control *c, bird_configured_fn *fn, void *arg);
