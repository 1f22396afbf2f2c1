/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log: levels, one sink, no secrets.
 *
 * Called from mains and from what runs on the loop, never from pure code.
 * A line has a level, the part of the program it speaks for, and a sentence.
 * Sinks: plain lines or JSON on stderr here; journald in log_journal.h, so
 * that the static plugins do not link libsystemd. Every text registered by
 * log_hide() is replaced by "***" in whatever is logged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/auto.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

const char *log_level_name(enum log_level level); /* "error", "warning", "info", "debug" */
int log_level_parse(const char *text, enum log_level *ret); /* 0 or -EINVAL */

/* A longer text is cut and ends in "...". */
#define LOG_TEXT_MAX 2048

struct log_record {
	enum log_level level;
	const char *part; /* "store", "kernel", ... */
	const char *text; /* secrets hidden, valid UTF-8, one line without control characters */
};

typedef void log_sink_fn(const struct log_record *record);

void log_set_level(enum log_level level);
enum log_level log_get_level(void);
void log_set_sink(log_sink_fn *sink);
log_sink_fn log_to_stderr;      /* "2026-11-16T02:45:55.123Z warning store: text" ; the default */
log_sink_fn log_to_stderr_json; /* one object per line: time, level, part, message */

/* From now on this text never appears in a line. Shorter than 4 bytes is refused (-EINVAL). */
int log_hide(const char *secret);
void log_forget_hidden(void);

void log_line(enum log_level level, const char *part, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Arguments are not evaluated below the level. */
#define log_at(level_, part_, ...)                                                                 \
	do {                                                                                       \
		if ((level_) <= log_get_level())                                                   \
			log_line((level_), (part_), __VA_ARGS__);                                  \
	} while (0)
#define log_error(part, ...)   log_at(LOG_LEVEL_ERROR, part, __VA_ARGS__)
#define log_warning(part, ...) log_at(LOG_LEVEL_WARNING, part, __VA_ARGS__)
#define log_info(part, ...)    log_at(LOG_LEVEL_INFO, part, __VA_ARGS__)
#define log_debug(part, ...)   log_at(LOG_LEVEL_DEBUG, part, __VA_ARGS__)

/*
 * A line that may come a thousand times: the first at once, then at most one
 * per interval, which says how many were left out ("... (17 more like this)").
 *   static struct log_limit limit = { .interval_ms = 10000 };
 *   log_limited(&limit, LOG_LEVEL_WARNING, "store", "...");
 */
struct log_limit {
	uint64_t interval_ms;
	uint64_t next_ms;
	unsigned suppressed;
};
/* The decision alone: may the line come now, and how many were left out since the last one. */
bool log_limit_at(struct log_limit *limit, uint64_t now_ms, unsigned *ret_suppressed);
void log_limited(struct log_limit *limit, enum log_level level, const char *part, const char *fmt,
		 ...) PRINTF_LIKE(4, 5);
