/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird_step.h"

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
static void on_child_done(const struct child_result *result, void *arg)
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
	struct child_options options = { .argv = argv, .on_done = on_child_done, .arg = b };
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

/* --- the steps ------------------------------------------------------------------------------ */

struct pending {
	publish_answer_fn *answer; /* NULL: nothing is asked */
	void *arg;
};

struct bird_step {
	struct bird_step_options o;
	struct bird_control *control;
	struct bird_check *check;
	struct pending checked, reloaded;
	bool attempted; /* to connect, with whatever outcome */
	sd_event_source *soon;
};

static void answer(struct pending *p, enum publish_answer what, const char *words)
{
	publish_answer_fn *fn = TAKE(p->answer);

	if (fn)
		fn(what, words, p->arg);
}

/* --- check ---------------------------------------------------------------------------------- */

static void on_checked(int err, const char *words, void *arg)
{
	struct bird_step *b = arg;

	b->check = NULL;
	answer(&b->checked, err < 0 ? PUBLISH_REJECTED : PUBLISH_ACCEPTED, words);
}

static int check(const char *path, publish_answer_fn *fn, void *fn_arg, void *arg, struct err *err)
{
	struct bird_step *b = arg;

	b->checked = (struct pending){ fn, fn_arg };
	return bird_check(b->o.event, b->o.program, path, on_checked, b, &b->check, err);
}

static void cancel_check(void *arg)
{
	struct bird_step *b = arg;

	bird_check_cancel(TAKE(b->check));
	b->checked.answer = NULL;
}

/* --- reload --------------------------------------------------------------------------------- */

static void on_configured(enum bird_outcome outcome, const char *words, void *arg)
{
	struct bird_step *b = arg;

	switch (outcome) {
	case BIRD_OUTCOME_DONE:
		answer(&b->reloaded, PUBLISH_ACCEPTED, "");
		return;
	case BIRD_OUTCOME_REFUSED:
	case BIRD_OUTCOME_DENIED:
		answer(&b->reloaded, PUBLISH_REJECTED, words);
		return;
	case BIRD_OUTCOME_BUSY:
	case BIRD_OUTCOME_LOST:
	case BIRD_OUTCOME_SHUTDOWN:
		break;
	}
	answer(&b->reloaded, PUBLISH_NOBODY, words);
}

/* Answers at once where it cannot be tried: only for the loop. */
static void configure(struct bird_step *b)
{
	int r = bird_control_version(b->control) ? bird_configure(b->control, on_configured, b)
						 : -ENOTCONN;

	if (r == -ENOTCONN)
		answer(&b->reloaded, PUBLISH_NOBODY, bird_control_problem(b->control));
	else if (r < 0)
		answer(&b->reloaded, PUBLISH_NOBODY, strerror(-r));
}

static int on_soon(sd_event_source *source, void *arg)
{
	struct bird_step *b = arg;

	if (b->reloaded.answer)
		configure(b);
	return 0;
}

static int reload(const char *path, publish_answer_fn *fn, void *fn_arg, void *arg, struct err *err)
{
	struct bird_step *b = arg;
	int r = 0;

	if (b->attempted)
		r = sd_event_source_set_enabled(b->soon, SD_EVENT_ONESHOT);
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	b->reloaded = (struct pending){ fn, fn_arg };
	return 0;
}

/* A reply that is still to come finds nobody; BIRD may have been reloaded all the same. */
static void cancel_reload(void *arg)
{
	struct bird_step *b = arg;

	b->reloaded.answer = NULL;
}

/* --- connection ----------------------------------------------------------------------------- */

static void first_attempt(struct bird_step *b)
{
	if (!b->attempted && b->reloaded.answer)
		(void)sd_event_source_set_enabled(b->soon, SD_EVENT_ONESHOT);
	b->attempted = true;
}

static void on_connected(const struct bird_version *version, void *arg)
{
	struct bird_step *b = arg;

	first_attempt(b);
	if (b->o.handlers && b->o.handlers->on_connected)
		b->o.handlers->on_connected(version, b->o.arg);
}

static void on_disconnected(const char *reason, void *arg)
{
	struct bird_step *b = arg;

	first_attempt(b);
	if (b->o.handlers && b->o.handlers->on_disconnected)
		b->o.handlers->on_disconnected(reason, b->o.arg);
}

int bird_step_new(const struct bird_step_options *options, struct bird_step **ret)
{
	static const struct bird_control_handlers handlers = { on_connected, on_disconnected };
	AUTO(bird_step_free) struct bird_step *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->o = *options;
	r = sd_event_add_defer(b->o.event, &b->soon, on_soon, b);
	r = r < 0 ? r : sd_event_source_set_enabled(b->soon, SD_EVENT_OFF);
	r = r < 0 ? r : bird_control_new(b->o.event, b->o.socket, &handlers, b, &b->control);
	if (r < 0)
		return r;
	*ret = TAKE(b);
	return 0;
}

void bird_step_free(struct bird_step *b)
{
	if (!b)
		return;
	bird_check_cancel(b->check);
	bird_control_free(b->control);
	sd_event_source_disable_unref(b->soon);
	free(b);
}

struct publish_step bird_step_check(struct bird_step *b)
{
	return (struct publish_step){ check, cancel_check, b };
}

struct publish_step bird_step_reload(struct bird_step *b)
{
	return (struct publish_step){ reload, cancel_reload, b };
}

struct bird_control *bird_step_control(struct bird_step *b)
{
	return b->control;
}
