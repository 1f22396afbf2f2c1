/* SPDX-License-Identifier: Apache-2.0 */
/* roost-confd: arguments, log, loop. */
#include <unistd.h>

#include "confd/confd.h"
#include "lib/daemon/program.h"

static int run(struct confd_settings *settings, int argc, char **argv)
{
	AUTO(confd_free) struct confd *confd = NULL;
	struct err err = { "" };

	if (confd_new(settings, argc, argv, &confd, &err) < 0) {
		log_error("confd", "%s", err.text);
		return 1;
	}
	return confd_run(confd);
}

int main(int argc, char **argv)
{
	AUTO_DONE(confd_settings_done) struct confd_settings settings = { 0 };
	enum options_verb verb = OPTIONS_RUN;
	struct err err = { "" };

	/* Not 2: that is what a dry run says of differences. */
	if (confd_settings_load(argc, argv, environ, &settings, &verb, &err) < 0) {
		fprintf(stderr, "roost-confd: %s\n", err.text);
		return 1;
	}
	switch (verb) {
	case OPTIONS_HELP:
		return program_tell(options_help(&confd_settings_table));
	case OPTIONS_VERSION:
		return program_tell(options_version(&confd_settings_table));
	case OPTIONS_RUN:
		break;
	}
	program_choose_log(settings.log_level, settings.log_format);
	return run(&settings, argc, argv);
}
