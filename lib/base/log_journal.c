/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/log_journal.h"

/* The journal's own call-site fields would all name this file. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

bool log_journal_connected(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char own[64];

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	/* The variable is inherited, stderr may have been redirected since. */
	snprintf(own, sizeof(own), "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev,
		 (uintmax_t)st.st_ino);
	return !strcmp(stream, own);
}

static int priority(enum log_level level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return LOG_ERR;
	case LOG_LEVEL_WARNING:
		return LOG_WARNING;
	case LOG_LEVEL_INFO:
		return LOG_INFO;
	case LOG_LEVEL_DEBUG:
		break;
	}
	return LOG_DEBUG;
}

static struct iovec field(const char *text)
{
	return (struct iovec){ (void *)(uintptr_t)text, strlen(text) };
}

void log_to_journal(const struct log_record *record)
{
	char message[LOG_TEXT_MAX + 128], level[16], part[64];

	snprintf(level, sizeof(level), "PRIORITY=%d", priority(record->level));
	snprintf(part, sizeof(part), "ROOST_PART=%s", record->part);
	snprintf(message, sizeof(message), "MESSAGE=%s", record->text);
	const struct iovec fields[] = { field(message), field(level), field(part) };

	if (sd_journal_sendv(fields, ARRAY_SIZE(fields)) < 0)
		log_to_stderr(record);
}
