/* SPDX-License-Identifier: Apache-2.0 */
/* roostd, the node agent: arguments, log, loop. */
#include <errno.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/clean.h"
#include "lib/base/route_protocol.h"
#include "lib/daemon/program.h"

static int run(struct settings *settings, int argc, char **argv)
{
	AUTO(agent_free) struct agent *agent = NULL;
	struct err err = { "" };
	int r = agent_new(settings, argc, argv, &agent, &err);

	if (r == 0)
		r = agent_run(agent);
	if (r < 0)
		log_error("agent", "%s", err.text[0] ? err.text : "the event loop failed");
	return r < 0 ? 1 : 0;
}

/* The exit status tells a script whether to wait. */
static int run_clean(const struct settings *settings)
{
	struct err err = { "" };
	int r = clean(settings, &err);

	if (r < 0)
		log_error("clean", "%s", err.text);
	return r == -EBUSY ? 4 : r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
	AUTO_DONE(settings_done) struct settings settings = { 0 };
	enum options_verb verb = OPTIONS_RUN;
	struct err err = { "" };

	if (settings_load(argc, argv, environ, &settings, &verb, &err) < 0) {
		fprintf(stderr, "roostd: %s\n", err.text);
		return 2;
	}
	switch (verb) {
	case OPTIONS_HELP:
		return program_tell(options_help(&settings_table));
	case OPTIONS_VERSION:
		return program_tell(options_version(&settings_table));
	case OPTIONS_RUN:
		break;
	}
	route_protocols_set(settings.route_protocol, settings.static_route_protocol);
	program_choose_log(settings.log_level, settings.log_format);
	if (settings.clean)
		return run_clean(&settings);
	log_info("agent", "roostd " ROOST_VERSION " starts");
	return run(&settings, argc, argv);
}
