/* SPDX-License-Identifier: Apache-2.0 */
/* version, and the hidden __examples. */
#include <errno.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "lib/json/json.h"

int version_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = json_object_new_object(), *status = NULL;
	struct json_object *agent;
	unsigned code;

	if (!object)
		return -ENOMEM;
	json_object_object_add(object, "roostctl", json_object_new_string(ROOST_VERSION));
	/* Not every machine with roostctl has an agent. */
	if (ctl_agent(ctl, "GET", "/v1/status", NULL, &code, &status, NULL) == 0) {
		agent = out_at(status, "version");
		if (agent)
			json_object_object_add(object, "roostd", json_object_get(agent));
	}
	return out_show(&ctl->out, object);
}

int examples_run(struct ctl *ctl, struct err *err)
{
	for (const struct command *c = commands; c->noun; c++)
		for (size_t i = 0; c->examples && c->examples[i]; i++)
			fprintf(ctl->out.to, "%s\n", c->examples[i]);
	return 0;
}
