/* SPDX-License-Identifier: Apache-2.0 */
/* status: how this node is, from its agent, or without it. */
#include <errno.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/status_alone.h"
#include "ctl/tree.h"
#include "ctl/verbs.h"

#define EXIT_PROBLEMS    1
#define EXIT_UNREACHABLE 3

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

static int print_json(const struct ctl *ctl, const struct status_view *v,
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
	return r < 0 ? r : out_json(&ctl->out, object);
}

static int print(const struct ctl *ctl, const struct status_view *v, struct json_object *status,
		 const char *state)
{
	int r;

	if (ctl->out.format == OUT_JSON)
		return print_json(ctl, v, status, state);
	r = out_list(&ctl->out, v->parts, part_columns, NULL);
	out_say(&ctl->out, "%s", "");
	return r < 0 ? r : out_list(&ctl->out, v->problems, problem_columns, "All is well.");
}

int status_run(struct ctl *ctl, struct err *err)
{
	AUTO(status_view_done) struct status_view v = status_view_new();
	AUTO(json_put) struct json_object *status = NULL;
	struct err why = { "" };
	const char *state;
	unsigned code = 0;
	int r = ctl_agent(ctl, "GET", "/v1/status", NULL, &code, &status, &why);

	if (r == -EACCES)
		return err_set(err, r, "%s", why.text);
	if (r == 0 && !out_at(status, "version"))
		return err_set(err, -EBADMSG, "%s answers, but not as an agent does",
			       ctl->settings->socket);
	if (r < 0)
		status_alone(ctl, &why, &v);
	else
		status_view_agent(&v, status);
	state = r < 0 ? "unreachable" : status_view_state(&v);
	if (v.failed || print(ctl, &v, status, state) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	if (r < 0)
		return EXIT_UNREACHABLE;
	return strcmp(state, "ok") == 0 ? 0 : EXIT_PROBLEMS;
}
