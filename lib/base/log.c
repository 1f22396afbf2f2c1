/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line on its way: format, hide the secrets, make it one clean line, cut,
 * sink. Hiding comes first, on the whole text: after a cut or an escape a
 * secret would no longer look like itself, and half of it would get through.
 */
#include "lib/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/json_out.h"
#include "lib/base/names.h"

#define SECRET_MIN 4
#define MORE_MAX   40 /* " (4294967295 more like this)" */

static const char *const level_names[] = { "error", "warning", "info", "debug" };

static enum log_level current_level = LOG_LEVEL_INFO;
static log_sink_fn *current_sink = log_to_stderr;
static ARRAY(char *) secrets;

/* --- settings ------------------------------------------------------------------------------- */

const char *log_level_name(enum log_level level)
{
	return (size_t)level < ARRAY_SIZE(level_names) ? level_names[level] : "unknown";
}

int log_level_parse(const char *text, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (!strcmp(text, level_names[i])) {
			*ret = (enum log_level)i;
			return 0;
		}
	return -EINVAL;
}

void log_set_level(enum log_level level)
{
	current_level = level;
}

enum log_level log_get_level(void)
{
	return current_level;
}

void log_set_sink(log_sink_fn *sink)
{
	current_sink = sink;
}

/* --- secrets -------------------------------------------------------------------------------- */

int log_hide(const char *secret)
{
	AUTO(free) char *copy = NULL;

	if (strlen(secret) < SECRET_MIN)
		return -EINVAL;
	for (size_t i = 0; i < secrets.n; i++)
		if (!strcmp(secrets.v[i], secret))
			return 0;

	copy = strdup(secret);
	if (!copy || array_append(&secrets, copy) < 0)
		return -ENOMEM;
	TAKE(copy);
	return 0;
}

void log_forget_hidden(void)
{
	for (size_t i = 0; i < secrets.n; i++) {
		explicit_bzero(secrets.v[i], strlen(secrets.v[i]));
		free(secrets.v[i]);
	}
	array_done(&secrets);
}

/* The end of the secret that starts here and reaches furthest, or NULL. */
static const char *secret_end(const char *p)
{
	const char *end = NULL;

	for (size_t i = 0; i < secrets.n; i++) {
		size_t length = strlen(secrets.v[i]);

		if (!strncmp(p, secrets.v[i], length) && (!end || p + length > end))
			end = p + length;
	}
	return end;
}

/*
 * In place, for "***" is shorter than any secret. Secrets that overlap vanish
 * together; replacing one after the other would leave the tail of the second.
 */
static void hide_secrets(char *text)
{
	const char *from = text;
	char *to = text;

	while (*from) {
		const char *end = secret_end(from);

		if (!end) {
			*to++ = *from++;
			continue;
		}
		while (from < end) {
			const char *further = secret_end(from++);

			if (further && further > end)
				end = further;
		}
		to = mempcpy(to, "***", 3);
	}
	*to = '\0';
}

/* --- one clean line ------------------------------------------------------------------------- */

static bool is_control(const unsigned char *p)
{
	return *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0);
}

/*
 * Line feeds and tabs become blanks, other control characters and what is
 * not UTF-8 question marks: a text from outside can neither forge a second
 * line nor steer the terminal, and every sink gets valid UTF-8.
 */
static void clean(char *text)
{
	unsigned char *p = (unsigned char *)text;

	while (*p) {
		size_t n = utf8_length((const char *)p);

		if (*p == '\n' || *p == '\r' || *p == '\t')
			*p = ' ';
		else if (n == 0 || is_control(p))
			memset(p, '?', n ?: 1);
		p += n ?: 1;
	}
	while (p > (unsigned char *)text && p[-1] == ' ')
		*--p = '\0';
}

/* The text is clean, so stepping back over continuation bytes finds a character's start. */
static void cut(char *text)
{
	size_t at = LOG_TEXT_MAX - 3;

	if (strlen(text) <= LOG_TEXT_MAX)
		return;
	while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	memcpy(text + at, "...", sizeof("..."));
}

/* --- lines ---------------------------------------------------------------------------------- */

static void hand_to_sink(enum log_level level, const char *part, char *text, unsigned more)
{
	char line[LOG_TEXT_MAX + MORE_MAX];
	struct log_record record = { .level = level, .part = part, .text = text };

	hide_secrets(text);
	clean(text);
	cut(text);
	if (more > 0) {
		snprintf(line, sizeof(line), "%s (%u more like this)", text, more);
		record.text = line;
	}
	current_sink(&record);
}

static void PRINTF_LIKE(4, 0)
	log_va(enum log_level level, const char *part, unsigned more, const char *fmt, va_list ap)
{
	AUTO(free) char *text = NULL;
	int saved = errno;
	int length = vasprintf(&text, fmt, ap);

	if (length < 0) {
		/* Without memory at least the sentence's constant part gets out; it has no secrets.
		 */
		text = NULL;
		current_sink(&(struct log_record){ level, part, fmt });
	} else {
		hand_to_sink(level, part, text, more);
		explicit_bzero(text, (size_t)length);
	}
	errno = saved;
}

void log_line(enum log_level level, const char *part, const char *fmt, ...)
{
	va_list ap;

	if (level > current_level)
		return;
	va_start(ap, fmt);
	log_va(level, part, 0, fmt, ap);
	va_end(ap);
}

bool log_limit_at(struct log_limit *limit, uint64_t now_ms, unsigned *ret_suppressed)
{
	if (now_ms < limit->next_ms) {
		limit->suppressed++;
		return false;
	}
	*ret_suppressed = limit->suppressed;
	limit->suppressed = 0;
	limit->next_ms = now_ms + limit->interval_ms;
	return true;
}

static uint64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void log_limited(struct log_limit *limit, enum log_level level, const char *part, const char *fmt,
		 ...)
{
	unsigned suppressed;
	va_list ap;

	if (level > current_level || !log_limit_at(limit, monotonic_ms(), &suppressed))
		return;
	va_start(ap, fmt);
	log_va(level, part, suppressed, fmt, ap);
	va_end(ap);
}

/* --- sinks ---------------------------------------------------------------------------------- */

static void print_time(char *ret, size_t size)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(ret, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(ret + n, size - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

/* One write for a line: programs that share a stderr do not mix theirs. */
static void write_line(char *line, size_t length)
{
	line[length] = '\n';
	/* Who should be told that the log cannot be written? */
	if (TEMP_FAILURE_RETRY(write(STDERR_FILENO, line, length + 1)) < 0)
		return;
}

void log_to_stderr(const struct log_record *record)
{
	char line[LOG_TEXT_MAX + MORE_MAX + 128];
	char when[32];
	int n;

	print_time(when, sizeof(when));
	n = snprintf(line, sizeof(line), "%s %s %s: %s", when, log_level_name(record->level),
		     record->part, record->text);
	write_line(line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

void log_to_stderr_json(const struct log_record *record)
{
	struct json_out out = { 0 };
	AUTO(free) char *line = NULL;
	char when[32];

	print_time(when, sizeof(when));
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "time", when);
	json_out_text(&out, "level", log_level_name(record->level));
	json_out_text(&out, "part", record->part);
	json_out_text(&out, "message", record->text);
	json_out_close(&out, '}');
	/* The line feed takes the place of the NUL. */
	if (json_out_take(&out, &line) == 0)
		write_line(line, strlen(line));
}
