/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/frame/settings.h"

#include <errno.h>
#include <string.h>

#include "lib/base/route_protocol.h"

static const char *const formats[] = { "table", "wide", "json", NULL };

/* What is marked only_flag belongs to single commands, which list it in their .flags. */
static const struct option_def defs[] = {
	{ OPTION(ctl_settings, output, "output", CHOICE), .letter = 'o', .initial = "table",
	  .argument = "FORMAT", .choices = formats, .not_in_file = true,
	  .help = "table, wide (with more columns) or json" },
	{ OPTION(ctl_settings, no_color, "no-color", FLAG), .not_in_file = true,
	  .help = "no colours; also off if NO_COLOR is set or without a terminal" },
	OPTIONS_ETCD(ctl_settings),
	{ OPTION(ctl_settings, node, "node", TEXT), .argument = "NAME", .check = node_name_check,
	  .help = "this node's name; default: the host name" },
	{ OPTION(ctl_settings, run_dir, "run-dir", PATH), .initial = "/run/roost",
	  .argument = "DIR", .help = "the agent's directory" },
	{ OPTION(ctl_settings, socket, "socket", PATH), .argument = "FILE", .not_in_file = true,
	  .help = "the agent's socket; default: agent.sock in --run-dir" },
	{ OPTION(ctl_settings, bird_socket, "bird-socket", PATH), .initial = "/run/bird/bird.ctl",
	  .argument = "PATH", .help = "BIRD's control socket, read if the agent does not answer" },
	{ OPTION(ctl_settings, route_protocol, "route-protocol", NUMBER),
	  .initial = ROUTE_PROTOCOL_TEXT, .argument = "NUMBER", .min = 1, .max = 255,
	  .help = "the agent's protocol number of routes" },
	{ OPTION(ctl_settings, static_route_protocol, "static-route-protocol", NUMBER),
	  .initial = STATIC_ROUTE_PROTOCOL_TEXT, .argument = "NUMBER", .min = 1, .max = 255,
	  .help = "the agent's protocol number of static routes" },
	{ OPTION(ctl_settings, config, "config", PATH), .argument = "FILE", .not_in_file = true,
	  .help = "the configuration file; roostctl ignores the agent's other fields" },
	{ OPTION(ctl_settings, file, "file", TEXT), .letter = 'f', .argument = "FILE",
	  .only_flag = true, .help = "the records to apply; - is standard input" },
	{ OPTION(ctl_settings, apply, "apply", FLAG), .only_flag = true,
	  .help = "set it in etcd instead of printing it" },
	{ OPTION(ctl_settings, password_dir, "password-dir", PATH), .argument = "DIR",
	  .only_flag = true, .help = "write the password of each new user to a file there" },
	{ OPTION(ctl_settings, watch, "watch", FLAG), .letter = 'w', .only_flag = true,
	  .help = "print it again on every change, until interrupted" },
	{ OPTION(ctl_settings, yes, "yes", FLAG), .letter = 'y', .only_flag = true,
	  .help = "do not ask for confirmation" },
	{ OPTION(ctl_settings, dry_run, "dry-run", FLAG), .only_flag = true,
	  .help = "print what would change, and change nothing" },
	{ OPTION(ctl_settings, now, "now", FLAG), .only_flag = true,
	  .help = "the machine is certainly off: free its blocks at once" },
	{ OPTION(ctl_settings, force, "force", FLAG), .only_flag = true,
	  .help = "at once, even if nodes still have it" },
	{ OPTION(ctl_settings, wait, "wait", FLAG), .only_flag = true,
	  .help = "wait until no node has it any more" },
	{ OPTION(ctl_settings, all, "all", FLAG), .letter = 'a', .only_flag = true,
	  .help = "of all nodes, as they report to etcd" },
	{ OPTION(ctl_settings, diff, "diff", FLAG), .only_flag = true,
	  .help = "the difference to what runs, as diff -u; exit code 1 if there is one" },
	{ OPTION(ctl_settings, blocks, "blocks", FLAG), .only_flag = true,
	  .help = "list each block too" },
	{ OPTION(ctl_settings, repair, "repair", FLAG), .only_flag = true,
	  .help = "repair what is certain, after showing it and asking" },
};

const struct option_table ctl_settings_table = {
	.program = "roostctl",
	.about = "Shows, checks and changes pools, addresses, nodes, peers, filters and routes of "
		 "a cluster.",
	.config_path = "/etc/roost/agent.json",
	.defs = defs,
	.n = ARRAY_SIZE(defs),
	.size = sizeof(struct ctl_settings),
	.takes_words = true,
	.borrowed_file = true,
};

/* What was not given follows from something else. */
static int follow(const char **text, const char *first, const char *second, struct err *err)
{
	char *made;

	if (**text)
		return 0;
	if (asprintf(&made, "%s%s", first, second) < 0)
		return -ENOMEM;
	free((void *)(uintptr_t)*text);
	*text = made;
	return 0;
}

static int fill_in(struct ctl_settings *s, struct err *err)
{
	char host[NODE_NAME_TEXT] = "";
	int r = follow(&s->socket, s->run_dir, "/agent.sock", err);

	/* A host name that cannot be a node's is told by whoever needs it. */
	if (r == 0 && gethostname(host, sizeof(host) - 1) == 0)
		r = follow(&s->node, host, "", err);
	r = r ?: options_check_etcd(&s->etcd, err);
	r = r ?: route_protocols_check(s->route_protocol, s->static_route_protocol, err);
	if (r == 0)
		route_protocols_set(s->route_protocol, s->static_route_protocol);
	return r;
}

int ctl_settings_load(int argc, char *const *argv, char *const *env, struct ctl_settings *ret,
		      enum options_verb *ret_verb, struct err *err)
{
	int r = options_load(&ctl_settings_table, argc, argv, env, ret, ret_verb, err);

	if (r < 0 || *ret_verb != OPTIONS_RUN)
		return r;
	r = fill_in(ret, err);
	if (r < 0)
		ctl_settings_done(ret);
	return r;
}

void ctl_settings_done(struct ctl_settings *s)
{
	options_done(&ctl_settings_table, s);
}
