/* SPDX-License-Identifier: Apache-2.0 */
/* roost-controller: arguments, log, loop. */
#include <unistd.h>

#include "controller/controller.h"
#include "lib/daemon/program.h"

int main(int argc, char **argv)
{
	AUTO_DONE(controller_settings_done) struct controller_settings settings = { 0 };
	enum options_verb verb = OPTIONS_RUN;
	AUTO(controller_free) struct controller *controller = NULL;
	struct err err = { "" };
	int r;

	if (controller_settings_load(argc, argv, environ, &settings, &verb, &err) < 0) {
		fprintf(stderr, "roost-controller: %s\n", err.text);
		return 2;
	}
	switch (verb) {
	case OPTIONS_HELP:
		return program_tell(options_help(&controller_settings_table));
	case OPTIONS_VERSION:
		return program_tell(options_version(&controller_settings_table));
	case OPTIONS_RUN:
		break;
	}
	program_choose_log(settings.log_level, settings.log_format);
	log_info("controller", "roost-controller " ROOST_VERSION " starts");
	r = controller_new(&settings, argc, argv, &controller, &err);
	if (r == 0)
		r = controller_run(controller);
	if (r < 0)
		log_error("controller", "%s", err.text[0] ? err.text : "the event loop failed");
	return r < 0 ? 1 : 0;
}
