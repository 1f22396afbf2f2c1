/* SPDX-License-Identifier: Apache-2.0 */
/* render: what the agent would give BIRD, and how that differs from what runs. */
#include <errno.h>
#include <string.h>

#include "confd/diff.h"
#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "lib/json/tree.h"

#define EXIT_DIFFERS 1

/* What BIRD reads past, and so does patch(1). */
static void say_around(const struct ctl *ctl, struct json_object *config)
{
	struct json_object *left_out = out_at(config, "leftOut");

	if (ctl->settings->diff && strcmp(out_text(config, "runningFrom"), "accepted by BIRD") != 0)
		out_say(&ctl->out, "# %s: %s", out_text(config, "path"),
			out_text(config, "runningFrom"));
	for (size_t i = 0; left_out && i < json_object_array_length(left_out); i++) {
		struct json_object *entry = json_object_array_get_idx(left_out, i);

		out_say(&ctl->out, "# left out: %s: %s", out_text(entry, "record"),
			out_text(entry, "reason"));
	}
}

static int show_diff(const struct ctl *ctl, struct json_object *config, struct err *err)
{
	const char *running = out_text(config, "running"), *wanted = out_text(config, "wanted");
	const struct diff_side before = { "running", running, strlen(running) },
			       after = { "wanted", wanted, strlen(wanted) };
	AUTO(free) char *diff = NULL;
	int r = diff_unified(&before, &after, &diff, err);

	if (r < 0)
		return r;
	if (ctl->out.format == OUT_JSON) {
		json_object_object_add(config, "same", json_object_new_boolean(!*diff));
		json_object_object_add(config, "diff", json_object_new_string(diff));
		r = out_json(&ctl->out, config);
	} else {
		fputs(diff, ctl->out.to);
	}
	return r < 0 ? r : *diff ? EXIT_DIFFERS : 0;
}

/* No fault: somebody wanted it so. */
static int show_unmanaged(const struct ctl *ctl, struct json_object *config)
{
	if (ctl->out.format == OUT_JSON)
		return out_json(&ctl->out, config);
	out_say(&ctl->out, "# the agent does not manage BIRD: --bird-config is none");
	return 0;
}

int render_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *config = NULL;
	const char *wrong;
	int r = ctl_agent(ctl, "GET", "/v1/bird/config", NULL, NULL, &config, err);

	if (r < 0)
		return r;
	if (!json_object_get_boolean(out_at(config, "managed")))
		return show_unmanaged(ctl, config);
	wrong = out_text(config, "wantedError");
	if (*wrong)
		return err_set(err, -EINVAL, "BIRD's configuration cannot be rendered: %s", wrong);
	say_around(ctl, config);
	if (ctl->settings->diff)
		return show_diff(ctl, config, err);
	if (ctl->out.format == OUT_JSON)
		return out_json(&ctl->out, config);
	fputs(out_text(config, "wanted"), ctl->out.to);
	return 0;
}
