/* SPDX-License-Identifier: Apache-2.0 */
/* status: how this node is, from its agent, or without it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/status_alone.h"
#include "lib/json/tree.h"

#define EXIT_PROBLEMS    1
#define EXIT_UNREACHABLE 3

#define PATH "/v1/status"

static const struct out_column part_columns[] = {
	COLUMN("PART", "part"),
	COLUMN("STATE", "state"),
	COLUMN("ABOUT", "about"),
	COLUMNS_END,
};

static const struct out_column problem_columns[] = {
	COLUMN("LEVEL", "level"),
	COLUMN("SINCE", "since"),
	COLUMN("PART", "part"),
	COLUMN("PROBLEM", "problem"),
	COLUMNS_END,
};

static int print_json(const struct out *out, const struct ctl *ctl, const struct status_view *v,
		      struct json_object *status, const char *state)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct tree t = tree_new();
	struct json_object *node = out_at(status, "node");
	int r;

	tree_text(&t, "node", node ? json_object_get_string(node) : ctl->settings->node);
	tree_bool(&t, "reachable", status != NULL);
	tree_text(&t, "state", state);
	tree_share(&t, "parts", v->parts);
	tree_share(&t, "problems", v->problems);
	/* All that the agent says, for scripts that want a number of it. */
	tree_share(&t, "agent", status);
	r = tree_end(&t, &object);
	if (r < 0)
		return r;
	return ctl->settings->watch ? out_json_line(out, object) : out_json(out, object);
}

static int print(const struct out *out, const struct ctl *ctl, const struct status_view *v,
		 struct json_object *status, const char *state)
{
	int r;

	if (out->format == OUT_JSON)
		return print_json(out, ctl, v, status, state);
	r = out_list(out, v->parts, part_columns, NULL);
	out_say(out, "%s", "");
	return r < 0 ? r : out_list(out, v->problems, problem_columns, "All is well.");
}

/* What was seen at one moment. */
struct seen {
	struct status_view view;
	struct json_object *status; /* NULL: no agent */
	const char *state;
};

static void seen_done_auto(struct seen *s)
{
	status_view_done(&s->view);
	json_object_put(s->status);
}

static int look(struct ctl *ctl, const char *path, struct seen *ret, struct err *err)
{
	struct err why = { "" };
	unsigned code = 0;
	int r = ctl_agent(ctl, "GET", path, NULL, &code, &ret->status, &why);

	if (r == -EACCES)
		return err_set(err, r, "%s", why.text);
	if (r == 0 && !out_at(ret->status, "version"))
		return err_set(err, -EBADMSG, "%s answers, but not as an agent does",
			       ctl->settings->socket);
	ret->view = status_view_new();
	if (r < 0)
		status_alone(ctl, &why, &ret->view);
	else
		status_view_agent(&ret->view, ret->status);
	ret->state = r < 0 ? "unreachable" : status_view_state(&ret->view);
	return ret->view.failed ? err_set(err, -ENOMEM, "out of memory") : 0;
}

/* --- again and again ------------------------------------------------------------------------ */

#define CLEAR "\033[H\033[2J"

/* The text, if it is another than the last; a terminal shows one at a time. */
static int print_if_new(const struct ctl *ctl, const struct seen *s, char **last)
{
	AUTO(free) char *text = NULL;
	struct out out = ctl->out;
	size_t len = 0;
	int r;

	out.to = open_memstream(&text, &len);
	if (!out.to)
		return -ENOMEM;
	r = print(&out, ctl, &s->view, s->status, s->state);
	if (fclose(out.to) != 0 || r < 0)
		return -ENOMEM;
	if (*last && strcmp(*last, text) == 0)
		return 0;
	if (out.format != OUT_JSON && isatty(fileno(ctl->out.to)))
		fputs(CLEAR, ctl->out.to);
	else if (out.format != OUT_JSON && *last)
		fputc('\n', ctl->out.to);
	fputs(text, ctl->out.to);
	fflush(ctl->out.to);
	free(*last);
	*last = TAKE(text);
	return 0;
}

/* The agent answers when there is something new. Without one there is nobody to wait for. */
static int watch(struct ctl *ctl, struct err *err)
{
	AUTO(free) char *last = NULL;
	char path[64] = PATH;

	while (!ferror(ctl->out.to)) {
		AUTO(seen_done) struct seen s = { 0 };
		int64_t generation;
		int r = look(ctl, path, &s, err);

		if (r < 0)
			return r;
		generation = json_object_get_int64(out_at(s.status, "generation"));
		/* It says nothing by itself: what differs in nothing else is no news. */
		if (s.status)
			json_object_object_del(s.status, "generation");
		if (print_if_new(ctl, &s, &last) < 0)
			return err_set(err, -ENOMEM, "out of memory");
		snprintf(path, sizeof(path), PATH "?after=%lld", (long long)generation);
		if (!generation)
			sleep(1);
	}
	return 0;
}

int status_run(struct ctl *ctl, struct err *err)
{
	AUTO(seen_done) struct seen s = { 0 };
	int r;

	if (ctl->settings->watch)
		return watch(ctl, err);
	r = look(ctl, PATH, &s, err);
	if (r < 0)
		return r;
	if (print(&ctl->out, ctl, &s.view, s.status, s.state) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	if (!s.status)
		return EXIT_UNREACHABLE;
	return strcmp(s.state, "ok") == 0 ? 0 : EXIT_PROBLEMS;
}
