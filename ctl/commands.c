/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: what each is called, takes, says of itself, and does. */
#include "ctl/frame/verbs.h"

#define FIELDS_HELP                                                                                \
	"FIELD=VALUE is typed by the field's own type: lists with commas or as JSON, dots lead\n"  \
	"into objects, an empty value brings the default back. What an agent would refuse is\n"    \
	"refused here, in the same words."
#define EDIT_HELP                                                                                  \
	"Without FIELD=VALUE the record is opened in $VISUAL, $EDITOR or vi, as "                  \
	"JSON.\n" FIELDS_HELP

/* The examples are run from first to last by a test, on a cluster with the nodes n1 and n2. */
const struct command commands[] = {
	{
		.noun = "status",
		.help = "show how this node is: agent, etcd, kernel, BIRD, addresses, and each "
			"problem",
		.more = "Everything comes from the agent's socket, also while etcd is away. "
			"Without "
			"an agent it\nshows what can be seen all the same, and what to do.\n\n"
			"Exit codes: 0 all is well, 1 there are problems, 3 the agent cannot be "
			"reached.\nWhat is merely told (level info, such as a drained node) is no "
			"problem.\n\nWith --watch a terminal always shows how it is now; elsewhere "
			"each change is printed,\nas JSON on one line.",
		.examples = EXAMPLES("roostctl status", "roostctl status -o json"),
		.flags = FLAGS("watch"),
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
		.noun = "overlay",
		.help = "list the other nodes of the overlay, and how this one reaches their "
			"blocks",
		.more = "WAY is what the kernel holds: tunnel, direct (a plain route, with "
			"vxlan-cross-subnet),\nmissing. Nodes that cannot be reached come first, "
			"with the reason. -o wide adds tunnel\naddress, MAC and device: what ip "
			"route, ip neigh and bridge fdb show.",
		.examples = EXAMPLES("roostctl overlay", "roostctl overlay -o wide",
				     "roostctl overlay -o json"),
		.list = &overlay_list,
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
		.noun = "pool",
		.verb = "list",
		.help = "list the address pools, and how much of each is in use",
		.examples = EXAMPLES("roostctl pool list", "roostctl pool list -o wide",
				     "roostctl pool list -o json"),
		.list = &pool_list,
	},
	{
		.noun = "pool",
		.verb = "create",
		.usage = "NAME FIELD=VALUE...",
		.min = 2,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_NONE, ARG_FIELD },
		.help = "make a pool",
		.more = FIELDS_HELP,
		.examples = EXAMPLES("roostctl pool create web cidr=10.1.0.0/16 blockSize=26",
				     "roostctl pool create db cidr=10.2.0.0/16 nodeSelector=\"disk "
				     "== 'ssd'\" namespaces=db,cache"),
		.run = record_create,
	},
	{
		.noun = "pool",
		.verb = "show",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_POOL },
		.help = "show one pool: its fields, its use, what is wrong with it",
		.examples = EXAMPLES("roostctl pool show web"),
		.run = pool_show,
	},
	{
		.noun = "pool",
		.verb = "edit",
		.usage = "NAME [FIELD=VALUE]...",
		.min = 1,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_POOL, ARG_FIELD },
		.help = "change fields of a pool",
		.more = EDIT_HELP,
		.examples = EXAMPLES("roostctl pool edit db disabled=true cooldownSeconds=300",
				     "roostctl pool edit db cooldownSeconds=",
				     "EDITOR='sed -i s/true/false/' roostctl pool edit db"),
		.run = record_edit,
	},
	{
		.noun = "pool",
		.verb = "delete",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_POOL },
		.help = "delete a pool, after saying what that touches",
		.examples = EXAMPLES("roostctl pool delete db --yes"),
		.flags = FLAGS("yes"),
		.run = record_delete,
	},
	{
		.noun = "filter",
		.verb = "list",
		.help = "list the filters",
		.examples = EXAMPLES("roostctl filter list"),
		.list = &filter_list,
	},
	{
		.noun = "filter",
		.verb = "create",
		.usage = "NAME FIELD=VALUE...",
		.min = 2,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_NONE, ARG_FIELD },
		.help = "make a filter",
		.more = FIELDS_HELP,
		.examples = EXAMPLES(
			"roostctl filter create no-default "
			"rules='[{\"match\":{\"cidr\":\"0.0.0.0/0\"},\"action\":\"reject\"}]'",
			"roostctl filter create keep rules='[{\"action\":\"accept\"}]'"),
		.run = record_create,
	},
	{
		.noun = "filter",
		.verb = "show",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_FILTER },
		.help = "show one filter: its rules",
		.examples = EXAMPLES("roostctl filter show no-default"),
		.run = record_show,
	},
	{
		.noun = "filter",
		.verb = "edit",
		.usage = "NAME [FIELD=VALUE]...",
		.min = 1,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_FILTER, ARG_FIELD },
		.help = "change a filter",
		.more = EDIT_HELP,
		.examples = EXAMPLES(
			"EDITOR='sed -i s/reject/accept/' roostctl filter edit no-default"),
		.run = record_edit,
	},
	{
		.noun = "filter",
		.verb = "delete",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_FILTER },
		.help = "delete a filter that no peer uses",
		.examples = EXAMPLES("roostctl filter delete keep --yes"),
		.flags = FLAGS("yes"),
		.run = record_delete,
	},
	{
		.noun = "peer",
		.verb = "list",
		.help = "list the peers: routers and groups of nodes that nodes talk BGP with",
		.examples = EXAMPLES("roostctl peer list", "roostctl peer list -o wide"),
		.list = &peer_list,
	},
	{
		.noun = "peer",
		.verb = "create",
		.usage = "NAME FIELD=VALUE...",
		.min = 2,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_NONE, ARG_FIELD },
		.help = "make a peer",
		.more = FIELDS_HELP,
		.examples = EXAMPLES("roostctl peer create tor address=192.0.2.1 asn=64600 "
				     "importFilter=no-default"),
		.run = record_create,
	},
	{
		.noun = "peer",
		.verb = "show",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_PEER },
		.help = "show one peer with every field",
		.examples = EXAMPLES("roostctl peer show tor"),
		.run = record_show,
	},
	{
		.noun = "peer",
		.verb = "edit",
		.usage = "NAME [FIELD=VALUE]...",
		.min = 1,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_PEER, ARG_FIELD },
		.help = "change fields of a peer",
		.more = EDIT_HELP,
		.examples = EXAMPLES("roostctl peer edit tor bfd=true holdTime=30",
				     "roostctl peer edit tor importFilter="),
		.run = record_edit,
	},
	{
		.noun = "peer",
		.verb = "delete",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_PEER },
		.help = "delete a peer, after saying what that touches",
		.examples = EXAMPLES("roostctl peer delete tor --yes"),
		.flags = FLAGS("yes"),
		.run = record_delete,
	},
	{
		.noun = "route",
		.verb = "list",
		.help = "list the static routes, and on how many nodes each is in place",
		.more = "NODES sums up what nodes report: applied 41/42 is the nodes that have the "
			"route of those\nthat the record selects. An error is told by the node; "
			"pending has not reported on the\nrecord as it is now; silent neither, and "
			"its agent reports nothing at all.",
		.examples = EXAMPLES("roostctl route list", "roostctl route list -o wide",
				     "roostctl route list -o json"),
		.list = &route_list,
	},
	{
		.noun = "route",
		.verb = "create",
		.usage = "NAME FIELD=VALUE...",
		.min = 2,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_NONE, ARG_FIELD },
		.help = "make a static route, on all nodes or on those of a selector",
		.more = "Without gateways each node takes the next hop that it uses itself. A note "
			"tells of pools and\nother routes that it overlaps.\n" FIELDS_HELP,
		.examples = EXAMPLES("roostctl route create vpn subnet=172.20.0.0/16 "
				     "gateways=192.0.2.1",
				     "roostctl route create lab subnet=fd20::/48 "
				     "nodeSelector=\"zone == 'a'\" table=100"),
		.run = record_create,
	},
	{
		.noun = "route",
		.verb = "show",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_ROUTE },
		.help = "show one static route: its fields, and how it is on each node",
		.examples = EXAMPLES("roostctl route show vpn", "roostctl route show vpn -o json"),
		.run = route_show,
	},
	{
		.noun = "route",
		.verb = "edit",
		.usage = "NAME [FIELD=VALUE]...",
		.min = 1,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_ROUTE, ARG_FIELD },
		.help = "change fields of a static route",
		.more = EDIT_HELP,
		.examples = EXAMPLES("roostctl route edit vpn gateways=192.0.2.1,192.0.2.2",
				     "roostctl route edit vpn onTamper=report",
				     "roostctl route edit lab table="),
		.run = record_edit,
	},
	{
		.noun = "route",
		.verb = "delete",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_ROUTE },
		.help = "delete a static route: every node withdraws it",
		.more = "The record is marked, nodes withdraw the route, and with the last of them "
			"the record goes;\n--wait waits for that. What removed nodes have said of "
			"it "
			"is cleaned by the controller.\nUntil then roostctl route edit NAME "
			"deleting= "
			"takes the mark back.\n\nWith --force the record and what nodes say of it "
			"go "
			"at once, whoever has the route.",
		.examples = EXAMPLES("roostctl route delete vpn --yes",
				     "roostctl route delete lab --force --yes"),
		.flags = FLAGS("force", "wait", "yes"),
		.run = route_delete,
	},
	{
		.noun = "config",
		.verb = "show",
		.help = "show the settings of the whole cluster, defaults included",
		.examples = EXAMPLES("roostctl config show", "roostctl config show -o json"),
		.run = record_show,
	},
	{
		.noun = "config",
		.verb = "set",
		.usage = "[FIELD=VALUE]...",
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_FIELD, ARG_FIELD },
		.help = "change settings of the whole cluster",
		.more = EDIT_HELP,
		.examples = EXAMPLES("roostctl config set asn=64512 bgp.holdTime=60",
				     "roostctl config set bgp.holdTime="),
		.run = record_edit,
	},
	{
		.noun = "node",
		.verb = "list",
		.help = "list the nodes: alive, silent, drained or removed, and what they hold",
		.examples = EXAMPLES("roostctl node list", "roostctl node list -o wide"),
		.list = &node_list,
	},
	{
		.noun = "node",
		.verb = "show",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_NODE },
		.help = "show one node: records, blocks, health, sessions",
		.examples = EXAMPLES("roostctl node show n1"),
		.run = node_show,
	},
	{
		.noun = "node",
		.verb = "label",
		.usage = "NAME KEY=VALUE|KEY-...",
		.min = 2,
		.max = ARGUMENTS_ANY,
		.arguments = { ARG_NODE, ARG_LABEL },
		.help = "set labels of a node, or with KEY- take them away",
		.examples = EXAMPLES("roostctl node label n1 zone=a disk=ssd",
				     "roostctl node label n1 disk-"),
		.run = node_label,
	},
	{
		.noun = "node",
		.verb = "drain",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_NODE },
		.help = "have a node give no new addresses, and keep what runs",
		.examples = EXAMPLES("roostctl node drain n1"),
		.run = node_drain,
	},
	{
		.noun = "node",
		.verb = "undrain",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_NODE },
		.help = "have it give new addresses again",
		.examples = EXAMPLES("roostctl node undrain n1"),
		.run = node_undrain,
	},
	{
		.noun = "node",
		.verb = "delete",
		.usage = "NAME",
		.min = 1,
		.max = 1,
		.arguments = { ARG_NODE },
		.help = "mark a node as removed, after saying what it holds",
		.more = "The blocks of a removed node are freed when it has been silent for the "
			"reclaimAfter of its\n"
			"record; with --now at once, which is refused while its agent is alive.",
		.examples = EXAMPLES("roostctl node delete n2 --yes"),
		.flags = FLAGS("now", "yes"),
		.run = node_delete,
	},
	{
		.noun = "block",
		.verb = "list",
		.usage = "[NODE]",
		.max = 1,
		.arguments = { ARG_NODE },
		.help = "list the blocks that nodes own",
		.examples = EXAMPLES("roostctl block list", "roostctl block list n1"),
		.list = &block_list,
	},
	{
		.noun = "block",
		.verb = "show",
		.usage = "BLOCK [NETWORK]",
		.min = 1,
		.max = 2,
		.arguments = { ARG_BLOCK, ARG_NONE },
		.help = "show one block by itself or an address in it: its owner, its addresses in "
			"use",
		.examples = EXAMPLES("roostctl block show $(roostctl block list n1 -o json | jq -r "
				     "'.[0].block')"),
		.run = block_show,
	},
	{
		.noun = "lease",
		.verb = "list",
		.usage = "[NETWORK]",
		.max = 1,
		.help = "list the subnets that the lease server gave away",
		.examples = EXAMPLES("roostctl lease list", "roostctl lease list default -o wide"),
		.list = &lease_list,
	},
	{
		.noun = "lease",
		.verb = "show",
		.usage = "SUBNET [NETWORK]",
		.min = 1,
		.max = 2,
		.arguments = { ARG_BLOCK, ARG_NONE },
		.help = "show one lease by its subnet or an address in it: its holder, until when",
		.examples = EXAMPLES("roostctl lease show 10.5.9.0/24"),
		.run = lease_show,
	},
	{
		.noun = "lease",
		.verb = "delete",
		.usage = "SUBNET [NETWORK]",
		.min = 1,
		.max = 2,
		.arguments = { ARG_BLOCK, ARG_NONE },
		.help = "take a lease back, after saying who holds it",
		.more = "The subnet is kept for that holder for an hour at most, or until its "
			"lease "
			"would have ended:\none that lives is told, asks again and gets it. With "
			"--now another may have it at once; only for\na machine that is off.",
		.examples = EXAMPLES("roostctl lease delete 10.5.9.0/24 --yes",
				     "roostctl lease delete 10.5.9.0/24 --now --yes"),
		.flags = FLAGS("now", "yes"),
		.run = lease_delete,
	},
	{
		.noun = "address",
		.verb = "list",
		.usage = "[NODE]",
		.max = 1,
		.arguments = { ARG_NODE },
		.help = "list the addresses in use",
		.examples = EXAMPLES("roostctl address list", "roostctl address list n1 -o wide"),
		.list = &address_list,
	},
	{
		.noun = "address",
		.verb = "show",
		.usage = "ADDRESS [NETWORK]",
		.min = 1,
		.max = 2,
		.arguments = { ARG_ADDRESS, ARG_NONE },
		.help = "show who has an address, or could have it",
		.examples = EXAMPLES("roostctl address show $(roostctl address list n1 -o json | "
				     "jq -r '.[0].address')"),
		.run = address_show,
	},
	{
		.noun = "address",
		.verb = "release",
		.usage = "ADDRESS [NETWORK]",
		.min = 1,
		.max = 2,
		.arguments = { ARG_ADDRESS, ARG_NONE },
		.help = "give back an address of this node, after saying what holds it",
		.examples = EXAMPLES("roostctl address release $(roostctl address list n1 -o json "
				     "| jq -r '.[0].address') --yes"),
		.flags = FLAGS("yes"),
		.run = address_release,
	},
	{
		.noun = "ipam",
		.verb = "show",
		.help = "show how much of each pool is in use, and by which node",
		.more = "All of it is read from etcd at one revision, so it can be typed anywhere. "
			"IN BLOCKS are the\n"
			"addresses of claimed blocks, IN POOL those that the pool can give in all; "
			"USE is the share\n"
			"in use. A pool is full when every block is claimed and every address in "
			"use; it differs\n"
			"when it was edited after its first block was cut.",
		.examples = EXAMPLES("roostctl ipam show", "roostctl ipam show --blocks",
				     "roostctl ipam show -o json"),
		.flags = FLAGS("blocks"),
		.run = ipam_show,
	},
	{
		.noun = "ipam",
		.verb = "check",
		.help = "find what does not fit together, and mend what is certain",
		.more = "Compares all records of etcd at one revision; on a node whose agent "
			"answers also the agent's\n"
			"list, its files, and the kernel's links and routes. Each finding says "
			"what "
			"to do. With\n"
			"--repair what is certain is mended, each by one transaction that a change "
			"meanwhile refuses;\n"
			"the rest is left alone, with the reason. Exit code 0: nothing found (or "
			"all mended);\n"
			"1: something found. docs/TROUBLESHOOTING.md explains each kind.",
		.examples = EXAMPLES("roostctl ipam check", "roostctl ipam check -o json",
				     "roostctl ipam check --repair --yes"),
		.flags = FLAGS("repair", "yes"),
		.run = ipam_check,
	},
	{
		.noun = "get",
		.usage = "KIND [NAME]",
		.min = 1,
		.max = 2,
		.arguments = { ARG_KIND, ARG_NAME_OF_KIND },
		.help = "print records as they are stored; as JSON they can be given to apply",
		.examples = EXAMPLES("roostctl get pool", "roostctl get pool web -o json",
				     "roostctl get config -o json"),
		.run = get_run,
	},
	{
		.noun = "apply",
		.help = "make records as a file says: created, changed, or left as they are",
		.more = "The file has one record, an array of them, or several one after the "
			"other, each with its\n"
			"\"kind\", its \"name\" and its fields, as get -o json prints them. A "
			"record is replaced\n"
			"whole. All are checked first and written in one transaction: all of them "
			"or none.",
		.examples = EXAMPLES(
			"roostctl get pool -o json | roostctl apply -f -",
			"echo '{\"kind\":\"pool\",\"name\":\"web\",\"cidr\":\"10.1.0.0/16\"}' | "
			"roostctl apply -f -"),
		.flags = FLAGS("file"),
		.run = apply_run,
	},
	{
		.noun = "completion",
		.usage = "bash|zsh",
		.min = 1,
		.max = 1,
		.arguments = { ARG_SHELL },
		.help = "print what makes a shell complete roostctl's words",
		.examples = EXAMPLES("roostctl completion bash", "roostctl completion zsh"),
		.run = completion_run,
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
	{ .noun = "__complete",
	  .usage = "WORD...",
	  .max = ARGUMENTS_ANY,
	  .help = "print what may stand last",
	  .hidden = true,
	  .run = complete_run },
	{ .noun = NULL },
};
