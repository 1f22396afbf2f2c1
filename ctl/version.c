/* SPDX-License-Identifier: Apache-2.0 */
/* version, and the hidden __examples. */
#include <errno.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "lib/json/tree.h"

int version_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL, *status = NULL;
	struct tree t = tree_new();
	unsigned code;
	int r;

	tree_text(&t, "roostctl", ROOST_VERSION);
	/* Not every machine with roostctl has an agent. */
	if (ctl_agent(ctl, "GET", "/v1/status", NULL, &code, &status, NULL) == 0)
		tree_share(&t, "roostd", out_at(status, "version"));
	r = tree_end(&t, &object);
	return r < 0 ? r : out_show(&ctl->out, object);
}

int examples_run(struct ctl *ctl, struct err *err)
{
	for (const struct command *c = commands; c->noun; c++)
		for (size_t i = 0; c->examples && c->examples[i]; i++)
			fprintf(ctl->out.to, "%s\n", c->examples[i]);
	return 0;
}
