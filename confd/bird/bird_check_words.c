/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "confd/bird/bird_check.h"

/* Without "bird: " or, of BIRD 3, "bird: 2026-11-16 23:31:36.199 [0001] <FATAL> ". */
static const char *skip_prefix(const char *line)
{
	static const char bird[] = "bird: ", thread[] = "] <";
	const char *end = line + strcspn(line, "\n"), *mark;

	if (strncmp(line, bird, strlen(bird)) != 0)
		return line;
	line += strlen(bird);
	/* A time comes first there; else a file's name, whatever is in it. */
	mark = *line >= '0' && *line <= '9' ? strstr(line, thread) : NULL;
	if (!mark || mark > end)
		return line;
	mark = memchr(mark, '>', (size_t)(end - mark));
	return mark && mark[1] == ' ' ? mark + 2 : line;
}

const char *bird_check_words(const char *output, char *text, size_t room)
{
	size_t used = 0;

	while (*output) {
		const char *line = skip_prefix(output);
		size_t n = strcspn(line, "\n");

		output = line + n + (line[n] == '\n');
		if (n == 0)
			continue;
		if (used)
			used += (size_t)snprintf(text + used, room - used, "; ");
		for (size_t i = 0; i < n && used + 4 < room; i++)
			text[used++] = (unsigned char)line[i] < ' ' ? '?' : line[i];
		if (used + 4 >= room)
			break;
	}
	text[used] = '\0';
	return text;
}
