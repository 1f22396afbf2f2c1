/* SPDX-License-Identifier: Apache-2.0 */
/* roostd, the node agent: arguments, log, loop. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "lib/program.h"
#include "lib/route_protocol.h"

/* The first version of the kernel's struct sched_attr, which every kernel knows. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

#define RESET_ON_FORK 1U
#define SLICE_NS      100000U

/*
 * An ADD waits for this process, which needs a core for a fraction of a millisecond. A short slice
 * asks the kernel (6.12 and later; others ignore it) for an early turn instead of a long one: the
 * share of the CPU stays what the cgroup's weight says. Children get the usual slice. If it is
 * refused (a system call filter), only that is lost.
 */
static void ask_for_early_turns(void)
{
	struct scheduling s = { 0 };

	if (syscall(SYS_sched_getattr, 0, &s, sizeof(s), 0) < 0 || s.policy != SCHED_OTHER)
		return;
	s.size = sizeof(s);
	s.flags = RESET_ON_FORK;
	s.runtime = SLICE_NS;
	if (syscall(SYS_sched_setattr, 0, &s, 0) < 0)
		log_debug("agent", "sched_setattr: %s", strerror(errno));
}

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

int main(int argc, char **argv)
{
	AUTO(settings_done) struct settings settings = { 0 };
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
	log_info("agent", "roostd " ROOST_VERSION " starts");
	ask_for_early_turns();
	return run(&settings, argc, argv);
}
