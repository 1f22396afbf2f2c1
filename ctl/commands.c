/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: what each is called, takes, says of itself, and does. */
#include "ctl/verbs.h"

const struct command commands[] = {
	{
		.noun = "pool",
		.verb = "list",
		.help = "list the address pools, and how much of each is in use",
		.examples = EXAMPLES("roostctl pool list", "roostctl pool list -o wide",
				     "roostctl pool list -o json"),
		.list = &pool_list,
	},
	{
		.noun = "pool",
		.verb = "show",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_POOL },
		.help = "show one pool: its fields, its blocks, what is wrong with it",
		.examples = EXAMPLES("roostctl pool show web"),
		.run = pool_show,
	},
	{
		.noun = "status",
		.help = "show how this node is: agent, etcd, kernel, BIRD, addresses, and each "
			"problem",
		.more = "Everything comes from the agent's socket, also while etcd is away. "
			"Without "
			"an agent it\nshows what can be seen all the same, and what to do.\n\n"
			"Exit codes: 0 all is well, 1 there are problems, 3 the agent cannot be "
			"reached.\nWhat is merely told (level info, such as a drained node) is no "
			"problem.",
		.examples = EXAMPLES("roostctl status", "roostctl status -o json"),
		.run = status_run,
	},
	{
		.noun = "bgp",
		.help = "list the BGP sessions of this node, those that are not up first",
		.more = "What the agent has read from BIRD a few seconds ago. With --all those of "
			"every node, as\neach has reported them to etcd; a node that runs another "
			"protocol, or has not\nreported for a minute, has one line that says so.",
		.examples = EXAMPLES("roostctl bgp", "roostctl bgp -o wide", "roostctl bgp --all",
				     "roostctl bgp --all -o json"),
		.flags = FLAGS("all"),
		.list = &bgp_list,
	},
	{
		.noun = "render",
		.help = "print the configuration that the agent would give BIRD now",
		.more = "Passwords are left out. With --diff it prints how that differs from what "
			"runs.\n\nExit codes: 0 done (with --diff: both are the same), 1 it cannot "
			"be "
			"rendered\n(with --diff: or they differ), 3 the agent cannot be reached.",
		.examples = EXAMPLES("roostctl render", "roostctl render --diff",
				     "roostctl render -o json"),
		.flags = FLAGS("diff"),
		.run = render_run,
	},
	{
		.noun = "version",
		.help = "print the version of this program, and of the agent on this node",
		.examples = EXAMPLES("roostctl version"),
		.run = version_run,
	},
	{ .noun = "__examples",
	  .help = "print every example",
	  .hidden = true,
	  .run = examples_run },
	{ .noun = NULL },
};
