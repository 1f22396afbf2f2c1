/* SPDX-License-Identifier: Apache-2.0 */
/* roostctl: the words of its caller to one command, its outcome to an exit code. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ctl/frame/ctl.h"
#include "lib/daemon/program.h"

enum { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_UNREACHABLE, EXIT_NOT_FOUND };

static int exit_code(int r)
{
	switch (r) {
	case -EBADR: /* CTL_USAGE */
		return EXIT_USAGE;
	case -ENOTCONN:
	case -ETIMEDOUT:
	case -EAGAIN:
	case -ECONNRESET:
		return EXIT_UNREACHABLE;
	case -ENOENT:
		return EXIT_NOT_FOUND;
	default:
		return r < 0 ? EXIT_REFUSED : r;
	}
}

static int fail(int r, const struct err *err)
{
	fprintf(stderr, "roostctl: %s\n",
		r == -ENOMEM   ? "out of memory"
		: err->text[0] ? err->text
			       : strerror(-r));
	return exit_code(r);
}

static void ctl_done(struct ctl *ctl)
{
	store_free(ctl->store);
	sd_event_unref(ctl->event);
}

static int run(const struct ctl_settings *s)
{
	AUTO_DONE(ctl_done)
	struct ctl ctl = {
		.settings = s,
		.out = out_make(stdout, s),
		.timeout_ms = CTL_TIMEOUT_MS,
	};
	struct err err = { "" };
	size_t used = 0;
	int r = command_find(commands, s->words.v, s->words.n, &ctl.command, &used, &err);

	if (r == 0)
		r = command_check(ctl.command, s->words.n - used, s, &err);
	if (r < 0)
		return fail(r, &err);
	ctl.args = s->words.v + used;
	ctl.n_args = s->words.n - used;
	r = ctl.command->list ? ctl_list(&ctl, &err) : ctl.command->run(&ctl, &err);
	if (fflush(stdout) != 0 && r >= 0)
		r = err_set(&err, -EIO, "standard output: %s", strerror(errno));
	return r < 0 ? fail(r, &err) : r;
}

int main(int argc, char **argv)
{
	AUTO_DONE(ctl_settings_done) struct ctl_settings settings = { 0 };
	enum options_verb verb = OPTIONS_RUN;
	struct err err = { "" };
	int r = ctl_settings_load(argc, argv, environ, &settings, &verb, &err);

	if (r < 0)
		return fail(r == -EINVAL ? CTL_USAGE : r, &err);
	switch (verb) {
	case OPTIONS_HELP:
		return program_tell(command_help(commands, settings.words.v, settings.words.n));
	case OPTIONS_VERSION:
		return program_tell(options_version(&ctl_settings_table));
	case OPTIONS_RUN:
		break;
	}
	return run(&settings);
}
