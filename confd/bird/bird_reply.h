/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BIRD's control socket, the reading side: bytes in, whole replies out.
 *
 *   socket -> bird_control -> [bird_reply] -> bird_parse_* -> status, metrics
 *
 * Pure. A reply is a number of lines "dddd-text" (more follows) or " text" (the
 * same code again), ended by "dddd text". Lines "+text" come at any time and
 * belong to no reply; they are left out. "8000-<line overflow>" within a reply
 * stands for a line over 511 bytes that BIRD dropped: no failure. Bytes may come
 * in any pieces. Anything else is no BIRD, and -EBADMSG.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/auto.h"

/* 5,000 peers make 1.9 MB of `show protocols all`. */
#define BIRD_REPLY_MAX (16 << 20)

enum bird_code {
	BIRD_READY = 1,
	BIRD_RECONFIGURED = 3,
	BIRD_IN_PROGRESS = 4,
	BIRD_QUEUED = 5,
	BIRD_SHUTTING_DOWN = 6,
	BIRD_ROUTE = 1007,
	BIRD_RUNTIME_ERRORS = 8000, /* from here on */
	BIRD_LINE_OVERFLOW = 8000,
	BIRD_REFUSED = 8002,
	BIRD_DENIED = 8007,
};

/* One whole reply; lies in the reader. */
struct bird_reply {
	int code;         /* of the last line */
	const char *text; /* of the last line */
	const char *data; /* all lines, each with a NUL behind it */
	size_t len;
};

/* Zero it, then bird_line_next() until it returns false. */
struct bird_line {
	int code;
	const char *text;
	size_t next;
};
bool bird_line_next(const struct bird_reply *reply, struct bird_line *line);
static inline bool bird_reply_failed(const struct bird_reply *reply)
{
	return reply->code >= BIRD_RUNTIME_ERRORS;
}

struct bird_reader {
	char *data;
	size_t len, room;
	size_t line;  /* where the line begins that is not complete */
	int code;     /* of the line before; 0 with started false: none yet */
	bool started; /* a line of this reply has come */
	size_t max;   /* 0: BIRD_REPLY_MAX */
};

/*
 * 1: a reply is complete and in *ret until bird_reader_next(); *used tells how many bytes it took.
 * 0: all bytes used, more needed. -EBADMSG, -EMSGSIZE (over max), -ENOMEM: give up the connection.
 */
int bird_reader_feed(struct bird_reader *r, const char *bytes, size_t n, size_t *used,
		     struct bird_reply *ret);
/* Ready for the next reply. Does not hold on to the room of a large one. */
void bird_reader_next(struct bird_reader *r);
/* Whether part of a reply is there. */
bool bird_reader_pending(const struct bird_reader *r);
void bird_reader_done(struct bird_reader *r);
