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
