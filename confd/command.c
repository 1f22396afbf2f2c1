/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/command.h"

#include <errno.h>
#include <string.h>

#include "lib/base/child.h"

struct command {
	sd_event *event;
	const struct command_text *text;
	uint32_t timeout_ms;
	struct child *child;
	publish_answer_fn *answer;
	void *answer_arg;
};

/* --- the words ------------------------------------------------------------------------------ */

static void words_free(char **words)
{
	for (char **w = words; w && *w; w++)
		free(*w);
	free(words);
}
AUTO_DEFINE(char **, words_free)

static char **fill_words(const struct texts *words, const char *path)
{
	AUTO(words_free) char **ret = calloc(words->n + 1, sizeof(*ret));

	for (size_t i = 0; ret && i < words->n; i++) {
		ret[i] = command_fill(words->v[i], path);
		if (!ret[i])
			return NULL;
	}
	return TAKE(ret);
}

/* --- the step ------------------------------------------------------------------------------- */

static void on_done(const struct child_result *result, void *arg)
{
	struct command *c = arg;
	struct err err = { "" };

	c->child = NULL;
	if (child_verdict(result, &err) < 0)
		c->answer(PUBLISH_REJECTED, err.text, c->answer_arg);
	else
		c->answer(PUBLISH_ACCEPTED, "", c->answer_arg);
}

static int run(struct command *c, const char *path, struct err *err)
{
	AUTO(words_free) char **words = NULL;
	AUTO(free) char *line = NULL;
	struct child_options o = { .timeout_ms = c->timeout_ms, .on_done = on_done, .arg = c };
	int r;

	if (c->text->line)
		o.shell = line = command_fill(c->text->line, path);
	else
		o.argv = (const char *const *)(words = fill_words(&c->text->words, path));
	if (!line && !words)
		return err_set(err, -ENOMEM, "out of memory");
	r = child_start(c->event, &o, &c->child);
	return r < 0 ? err_set(err, r, "%s: %s", line ? "/bin/sh" : words[0], strerror(-r)) : 0;
}

static int start(const char *path, publish_answer_fn *answer, void *answer_arg, void *arg,
		 struct err *err)
{
	struct command *c = arg;

	c->answer = answer;
	c->answer_arg = answer_arg;
	return run(c, path, err);
}

static void cancel(void *arg)
{
	struct command *c = arg;

	child_cancel(TAKE(c->child));
}

int command_new(sd_event *event, const struct command_text *text, uint32_t timeout_ms,
		struct command **ret)
{
	struct command *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct command){ .event = event, .text = text, .timeout_ms = timeout_ms };
	*ret = c;
	return 0;
}

void command_free(struct command *c)
{
	if (!c)
		return;
	child_cancel(c->child);
	free(c);
}

struct publish_step command_step(struct command *c)
{
	return (struct publish_step){ start, cancel, c };
}
