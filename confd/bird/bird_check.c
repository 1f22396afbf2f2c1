/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_check.h"

#include <errno.h>
#include <string.h>

/* --- BIRD's words --------------------------------------------------------------------------- */

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

/* --- the child ------------------------------------------------------------------------------ */

struct bird_check {
	struct child *child;
	bird_check_fn *fn;
	void *arg;
};

/* BIRD's own sentence for a file that is bad; for a parser that died how it did, too. */
static void on_done(const struct child_result *result, void *arg)
{
	AUTO(free) struct bird_check *b = arg;
	bool said_why = result->end == CHILD_EXITED && result->len > 0;
	char words[CHILD_OUTPUT_MAX];
	struct err err = { "" };
	int r = child_verdict(result, &err);

	bird_check_words(result->output, words, sizeof(words));
	b->fn(r, r == 0 || said_why ? words : err.text, b->arg);
}

int bird_check(sd_event *event, const char *program, const char *file, bird_check_fn *fn, void *arg,
	       struct bird_check **ret, struct err *err)
{
	const char *const argv[] = { program ?: "bird", "-p", "-c", file, NULL };
	AUTO(free) struct bird_check *b = calloc(1, sizeof(*b));
	struct child_options options = { .argv = argv, .on_done = on_done, .arg = b };
	int r;

	if (!b)
		return err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	b->fn = fn;
	b->arg = arg;
	r = child_start(event, &options, &b->child);
	if (r < 0)
		return err_set(err, r, "%s: %s", argv[0], strerror(-r));
	*ret = TAKE(b);
	return 0;
}

void bird_check_cancel(struct bird_check *b)
{
	if (!b)
		return;
	child_cancel(b->child);
	free(b);
}
