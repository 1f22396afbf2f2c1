/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/json_comments.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

static size_t after_string(const char *text, size_t i, size_t len)
{
	for (i++; i < len && text[i] != '"'; i++)
		if (text[i] == '\\')
			i++;
	return i + 1;
}

/* From the mark on; lines stay lines. -1: a comment without an end. */
static ssize_t blank_comment(char *text, size_t i, size_t len)
{
	bool line = text[i + 1] == '/';
	size_t end;
	char *stop;

	if (line) {
		stop = memchr(text + i, '\n', len - i);
		end = stop ? (size_t)(stop - text) : len;
	} else {
		stop = memmem(text + i + 2, len - i - 2, "*/", 2);
		if (!stop)
			return -1;
		end = (size_t)(stop - text) + 2;
	}
	for (; i < end; i++)
		if (text[i] != '\n')
			text[i] = ' ';
	return (ssize_t)end;
}

int json_blank_comments(char *text, size_t len, struct err *err)
{
	size_t i = 0;

	while (i < len) {
		bool comment = text[i] == '/' && i + 1 < len &&
			       (text[i + 1] == '/' || text[i + 1] == '*');
		ssize_t end;

		if (text[i] == '"') {
			i = after_string(text, i, len);
			continue;
		}
		if (!comment) {
			i++;
			continue;
		}
		end = blank_comment(text, i, len);
		if (end < 0)
			return err_set(err, -EINVAL, "the comment at byte %zu has no end", i + 1);
		i = (size_t)end;
	}
	return 0;
}
