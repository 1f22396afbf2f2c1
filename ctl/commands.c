/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands: what each is called, takes, says of itself, and does. */
#include "ctl/frame/verbs.h"

#define NAME(word, second) .noun = (word), .verb = (second)
#define TAKES(words, least, most, ...)                                                             \
	.usage = (words), .min = (least), .max = (most), .arguments = { __VA_ARGS__ }
#define FIELDS_HELP                                                                                \
	"The type of the field decides how FIELD=VALUE is read: lists with commas or as JSON, "    \
	"dots lead into objects, an empty value restores the default. roostctl refuses what an "   \
	"agent would refuse, with the same message."
#define EDIT_HELP                                                                                  \
	"Without FIELD=VALUE the record is opened as JSON in $VISUAL, $EDITOR or "                 \
	"vi.\n\n" FIELDS_HELP

/* The examples are run from first to last by a test, on a cluster with the nodes n1 and n2. */
const struct command commands[] = {
	{ NAME("status", NULL),
	  .help = "show the state of this node: agent, etcd, kernel, BIRD, addresses, and every "
		  "problem",
	  .more = "The status comes from the agent's socket and needs no etcd. If the agent does "
		  "not answer, roostctl reports what it can read from the socket, etcd, BIRD and "
		  "the kernel, and what to do.\n\nExit codes: 0 all is well, 1 there are problems, "
		  "3 the agent cannot be reached. Entries of level info, such as a drained node, "
		  "are not problems.\n\nWith --watch a terminal always shows the current state; "
		  "otherwise each change is printed, with -o json as one line.",
	  .examples = EXAMPLES("roostctl status", "roostctl status -o json"),
	  .flags = FLAGS("watch"), .run = status_run },
	{ NAME("bgp", NULL),
	  .help = "list the BGP sessions of this node, sessions that are down first",
	  .more = "The agent asks BIRD at this moment. --all lists the sessions of every node, as "
		  "each node reported them to etcd; AGE is the time since its last report, which "
		  "follows each change. A node that runs another protocol, or that has not "
		  "reported for a minute, has one line with the reason. RECORD is the peer or node "
		  "that a session follows from.",
	  .examples = EXAMPLES("roostctl bgp", "roostctl bgp -o wide", "roostctl bgp --all",
			       "roostctl bgp --all -o json"),
	  .flags = FLAGS("all"), .list = &bgp_list },
	{ NAME("overlay", NULL),
	  .help = "list the other nodes of the overlay, and how this node reaches their blocks",
	  .more = "WAY is what the kernel has: tunnel, direct (a plain route, with "
		  "vxlan-cross-subnet) or missing. Unreachable nodes come first, with the reason. "
		  "-o wide adds tunnel address, MAC and device, as in ip route, ip neigh and "
		  "bridge fdb.",
	  .examples = EXAMPLES("roostctl overlay", "roostctl overlay -o wide",
			       "roostctl overlay -o json"),
	  .list = &overlay_list },
	{ NAME("render", NULL),
	  .help = "print the configuration that the agent would write for BIRD now",
	  .more = "Passwords are left out. --diff prints the difference to the configuration that "
		  "BIRD runs.\n\nExit codes: 0 done (with --diff: no difference), 1 it cannot be "
		  "rendered (with --diff: or there is a difference), 3 the agent cannot be "
		  "reached.",
	  .examples = EXAMPLES("roostctl render", "roostctl render --diff",
			       "roostctl render -o json"),
	  .flags = FLAGS("diff"), .run = render_run },
	{ NAME("pool", "list"), .help = "list the address pools, and how much of each is in use",
	  .examples = EXAMPLES("roostctl pool list", "roostctl pool list -o wide",
			       "roostctl pool list -o json"),
	  .list = &pool_list },
	{ NAME("pool", "create"),
	  TAKES("NAME FIELD=VALUE...", 2, ARGUMENTS_ANY, ARG_NONE, ARG_FIELD),
	  .help = "create a pool", .more = FIELDS_HELP,
	  .examples = EXAMPLES("roostctl pool create web cidr=10.1.0.0/16 blockSize=26",
			       "roostctl pool create db cidr=10.2.0.0/16 nodeSelector=\"disk == "
			       "'ssd'\" namespaces=db,cache"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_create },
	{ NAME("pool", "show"), TAKES("NAME", 1, 1, ARG_POOL),
	  .help = "show one pool: its fields, its use, its problems",
	  .examples = EXAMPLES("roostctl pool show web"), .run = pool_show },
	{ NAME("pool", "edit"),
	  TAKES("NAME [FIELD=VALUE]...", 1, ARGUMENTS_ANY, ARG_POOL, ARG_FIELD),
	  .help = "change fields of a pool", .more = EDIT_HELP,
	  .examples = EXAMPLES("roostctl pool edit db disabled=true cooldownSeconds=300 --yes",
			       "roostctl pool edit db cooldownSeconds=",
			       "EDITOR='sed -i s/true/false/' roostctl pool edit db --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_edit },
	{ NAME("pool", "delete"), TAKES("NAME", 1, 1, ARG_POOL),
	  .help = "delete a pool, after showing what is in use",
	  .examples = EXAMPLES("roostctl pool delete db --yes"), .flags = FLAGS("yes", "dry-run"),
	  .run = record_delete, .destroys = true },
	{ NAME("filter", "list"), .help = "list the filters",
	  .examples = EXAMPLES("roostctl filter list"), .list = &filter_list },
	{ NAME("filter", "create"),
	  TAKES("NAME FIELD=VALUE...", 2, ARGUMENTS_ANY, ARG_NONE, ARG_FIELD),
	  .help = "create a filter", .more = FIELDS_HELP,
	  .examples = EXAMPLES(
		  "roostctl filter create no-default "
		  "rules='[{\"match\":{\"cidr\":\"0.0.0.0/0\"},\"action\":\"reject\"}]'",
		  "roostctl filter create keep rules='[{\"action\":\"accept\"}]'"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_create },
	{ NAME("filter", "show"), TAKES("NAME", 1, 1, ARG_FILTER),
	  .help = "show one filter: its rules",
	  .examples = EXAMPLES("roostctl filter show no-default"), .run = record_show },
	{ NAME("filter", "edit"),
	  TAKES("NAME [FIELD=VALUE]...", 1, ARGUMENTS_ANY, ARG_FILTER, ARG_FIELD),
	  .help = "change a filter", .more = EDIT_HELP,
	  .examples = EXAMPLES(
		  "EDITOR='sed -i s/reject/accept/' roostctl filter edit no-default --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_edit },
	{ NAME("filter", "delete"), TAKES("NAME", 1, 1, ARG_FILTER),
	  .help = "delete a filter that no peer uses",
	  .examples = EXAMPLES("roostctl filter delete keep --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_delete, .destroys = true },
	{ NAME("peer", "list"),
	  .help = "list the peers: routers and groups of nodes that nodes have BGP sessions with",
	  .examples = EXAMPLES("roostctl peer list", "roostctl peer list -o wide"),
	  .list = &peer_list },
	{ NAME("peer", "create"),
	  TAKES("NAME FIELD=VALUE...", 2, ARGUMENTS_ANY, ARG_NONE, ARG_FIELD),
	  .help = "create a peer", .more = FIELDS_HELP,
	  .examples = EXAMPLES(
		  "roostctl peer create tor address=192.0.2.1 asn=64600 importFilter=no-default"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_create },
	{ NAME("peer", "show"), TAKES("NAME", 1, 1, ARG_PEER),
	  .help = "show one peer with every field", .examples = EXAMPLES("roostctl peer show tor"),
	  .run = record_show },
	{ NAME("peer", "edit"),
	  TAKES("NAME [FIELD=VALUE]...", 1, ARGUMENTS_ANY, ARG_PEER, ARG_FIELD),
	  .help = "change fields of a peer", .more = EDIT_HELP,
	  .examples = EXAMPLES("roostctl peer edit tor bfd=true holdTime=30 --yes",
			       "roostctl peer edit tor importFilter= --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_edit },
	{ NAME("peer", "delete"), TAKES("NAME", 1, 1, ARG_PEER),
	  .help = "delete a peer, after showing which sessions end",
	  .examples = EXAMPLES("roostctl peer delete tor --yes"), .flags = FLAGS("yes", "dry-run"),
	  .run = record_delete, .destroys = true },
	{ NAME("route", "list"),
	  .help = "list the static routes, and how many nodes have applied each",
	  .more = "NODES summarises the reports: applied 41/42 means that 41 of the 42 selected "
		  "nodes have the route. error: the node reports an error. pending: the node has "
		  "not reported on the current record. silent: the same, and its agent reports "
		  "nothing at all.",
	  .examples = EXAMPLES("roostctl route list", "roostctl route list -o wide",
			       "roostctl route list -o json"),
	  .list = &route_list },
	{ NAME("route", "create"),
	  TAKES("NAME FIELD=VALUE...", 2, ARGUMENTS_ANY, ARG_NONE, ARG_FIELD),
	  .help = "create a static route, on all nodes or on those that a selector names",
	  .more = "Without gateways each node uses its own next hop towards the subnet. roostctl "
		  "notes pools and other routes that overlap.\n\n" FIELDS_HELP,
	  .examples = EXAMPLES("roostctl route create vpn subnet=172.20.0.0/16 gateways=192.0.2.1",
			       "roostctl route create lab subnet=fd20::/48 nodeSelector=\"zone == "
			       "'a'\" table=100"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_create },
	{ NAME("route", "show"), TAKES("NAME", 1, 1, ARG_ROUTE),
	  .help = "show one static route: its fields, and its state on each node",
	  .examples = EXAMPLES("roostctl route show vpn", "roostctl route show vpn -o json"),
	  .run = route_show },
	{ NAME("route", "edit"),
	  TAKES("NAME [FIELD=VALUE]...", 1, ARGUMENTS_ANY, ARG_ROUTE, ARG_FIELD),
	  .help = "change fields of a static route", .more = EDIT_HELP,
	  .examples = EXAMPLES("roostctl route edit vpn gateways=192.0.2.1,192.0.2.2",
			       "roostctl route edit vpn onTamper=report",
			       "roostctl route edit lab table= --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_edit },
	{ NAME("route", "delete"), TAKES("NAME", 1, 1, ARG_ROUTE),
	  .help = "delete a static route: every node withdraws it",
	  .more = "The record is marked as deleting, the nodes withdraw the route, and the last "
		  "node deletes the record; --wait waits for that. The controller deletes the "
		  "reports of removed nodes. Until the record is gone, roostctl route edit NAME "
		  "deleting= cancels the deletion.\n\n--force deletes the record and all reports "
		  "at once, even if nodes still have the route.",
	  .examples = EXAMPLES("roostctl route delete vpn --yes",
			       "roostctl route delete lab --force --yes"),
	  .flags = FLAGS("force", "wait", "yes", "dry-run"), .run = route_delete,
	  .destroys = true },
	{ NAME("config", "show"),
	  .help = "show the settings of the whole cluster, defaults included",
	  .examples = EXAMPLES("roostctl config show", "roostctl config show -o json"),
	  .run = record_show },
	{ NAME("config", "set"), TAKES("[FIELD=VALUE]...", 0, ARGUMENTS_ANY, ARG_FIELD, ARG_FIELD),
	  .help = "change settings of the whole cluster", .more = EDIT_HELP,
	  .examples = EXAMPLES("roostctl config set asn=64512 bgp.holdTime=60 --dry-run",
			       "roostctl config set asn=64512 bgp.holdTime=60 --yes",
			       "roostctl config set bgp.holdTime= --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = record_edit },
	{ NAME("node", "list"),
	  .help = "list the nodes: alive, silent, drained or removed, and their blocks and "
		  "addresses",
	  .examples = EXAMPLES("roostctl node list", "roostctl node list -o wide"),
	  .list = &node_list },
	{ NAME("node", "show"), TAKES("NAME", 1, 1, ARG_NODE),
	  .help = "show one node: records, blocks, health, sessions",
	  .examples = EXAMPLES("roostctl node show n1"), .run = node_show },
	{ NAME("node", "label"),
	  TAKES("NAME KEY=VALUE|KEY-...", 2, ARGUMENTS_ANY, ARG_NODE, ARG_LABEL),
	  .help = "set labels of a node, or remove them with KEY-",
	  .examples = EXAMPLES("roostctl node label n1 zone=a disk=ssd",
			       "roostctl node label n1 disk- --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = node_label },
	{ NAME("node", "drain"), TAKES("NAME", 1, 1, ARG_NODE),
	  .help = "stop giving new addresses on a node; running pods keep theirs",
	  .examples = EXAMPLES("roostctl node drain n1"), .flags = FLAGS("dry-run"),
	  .run = node_drain },
	{ NAME("node", "undrain"), TAKES("NAME", 1, 1, ARG_NODE),
	  .help = "give new addresses on the node again",
	  .examples = EXAMPLES("roostctl node undrain n1"), .flags = FLAGS("dry-run"),
	  .run = node_undrain },
	{ NAME("node", "delete"), TAKES("NAME", 1, 1, ARG_NODE),
	  .help = "mark a node as removed, after showing what it holds",
	  .more = "The controller frees the blocks of a removed node when the node has been silent "
		  "for the reclaimAfter of its record. With --now it frees them at once; --now is "
		  "refused while the agent is alive.",
	  .examples = EXAMPLES("roostctl node delete n2 --yes"),
	  .flags = FLAGS("now", "yes", "dry-run"), .run = node_delete, .destroys = true },
	{ NAME("node", "restore"), TAKES("NAME", 1, 1, ARG_NODE),
	  .help = "undo node delete, and show what is freed already",
	  .more = "Deletes the mark that node delete made. Blocks that the controller has not "
		  "freed yet stay with the node; if its record is gone, the agent registers "
		  "again and claims new blocks.",
	  .examples = EXAMPLES("roostctl node restore n2"), .flags = FLAGS("dry-run"),
	  .run = node_restore },
	{ NAME("block", "list"), TAKES("[NODE]", 0, 1, ARG_NODE),
	  .help = "list the blocks that nodes own",
	  .examples = EXAMPLES("roostctl block list", "roostctl block list n1"),
	  .list = &block_list },
	{ NAME("block", "show"), TAKES("BLOCK [NETWORK]", 1, 2, ARG_BLOCK, ARG_NONE),
	  .help = "show the block of a prefix or an address: its owner, its addresses in use",
	  .examples = EXAMPLES(
		  "roostctl block show $(roostctl block list n1 -o json | jq -r '.[0].block')"),
	  .run = block_show },
	{ NAME("lease", "list"), TAKES("[NETWORK]", 0, 1, ARG_NONE),
	  .help = "list the subnets that the lease server has leased",
	  .examples = EXAMPLES("roostctl lease list", "roostctl lease list default -o wide"),
	  .list = &lease_list },
	{ NAME("lease", "show"), TAKES("SUBNET [NETWORK]", 1, 2, ARG_BLOCK, ARG_NONE),
	  .help = "show the lease of a subnet or an address: its holder, its expiration",
	  .examples = EXAMPLES("roostctl lease show 10.5.9.0/24"), .run = lease_show },
	{ NAME("lease", "delete"), TAKES("SUBNET [NETWORK]", 1, 2, ARG_BLOCK, ARG_NONE),
	  .help = "revoke a lease, after showing its holder",
	  .more = "The subnet stays reserved for its holder for at most an hour, or until the "
		  "lease would have expired: a holder that is alive notices, asks again and gets "
		  "it back. With --now another client may get the subnet at once; use this only if "
		  "the machine is off.",
	  .examples = EXAMPLES("roostctl lease delete 10.5.9.0/24 --yes",
			       "roostctl lease delete 10.5.9.0/24 --now --yes"),
	  .flags = FLAGS("now", "yes", "dry-run"), .run = lease_delete, .destroys = true },
	{ NAME("pod", "why"), TAKES("NAMESPACE/POD", 1, 1, ARG_NONE),
	  .help = "show what is known of a pod of this node, and why it was refused",
	  .more = "Shows address, link, what the kernel has of it, announcement of its block, and "
		  "refusals, which the agent keeps since its start (the last 256 of all pods). "
		  "Instead of NAMESPACE/POD a container id works too. Of a pod on another node it "
		  "says where it is.",
	  .examples = EXAMPLES("roostctl pod why $(roostctl address list n1 -o json | jq -r "
			       "'.[0].container')"),
	  .list = &pod_why },
	{ NAME("address", "list"), TAKES("[NODE]", 0, 1, ARG_NODE),
	  .help = "list the addresses in use",
	  .examples = EXAMPLES("roostctl address list", "roostctl address list n1 -o wide"),
	  .list = &address_list },
	{ NAME("address", "show"), TAKES("ADDRESS [NETWORK]", 1, 2, ARG_ADDRESS, ARG_NONE),
	  .help = "show the owner of an address, or of its block",
	  .examples = EXAMPLES("roostctl address show $(roostctl address list n1 -o json | jq -r "
			       "'.[0].address')"),
	  .run = address_show },
	{ NAME("address", "release"), TAKES("ADDRESS [NETWORK]", 1, 2, ARG_ADDRESS, ARG_NONE),
	  .help = "release an address of this node, after showing the pod that holds it",
	  .examples = EXAMPLES("roostctl address release $(roostctl address list n1 -o json | jq "
			       "-r '.[0].address') --yes"),
	  .flags = FLAGS("yes", "dry-run"), .run = address_release, .destroys = true },
	{ NAME("ipam", "show"), .help = "show how much of each pool is in use, and by which node",
	  .more = "Everything is read from etcd at one revision, so the command works on any "
		  "machine. IN BLOCKS: addresses of claimed blocks. IN POOL: all addresses of the "
		  "pool. USE: the share in use. A pool is full when every block is claimed and "
		  "every address is in use; it differs when it was edited after its first block "
		  "was claimed.",
	  .examples = EXAMPLES("roostctl ipam show", "roostctl ipam show --blocks",
			       "roostctl ipam show -o json"),
	  .flags = FLAGS("blocks"), .run = ipam_show },
	{ NAME("ipam", "check"),
	  .help = "find inconsistencies, and repair those with one certain repair",
	  .more = "Compares all records of etcd at one revision; on a node whose agent answers "
		  "also the agent's list, its files, and the kernel's links and routes. Each "
		  "finding says what to do. --repair makes the repairs that are certain, each in "
		  "one transaction, which fails if a record has changed meanwhile; it leaves the "
		  "rest alone and says why.\n\nExit codes: 0 nothing found (or all repaired), 1 "
		  "something found. docs/TROUBLESHOOTING.md explains each kind.",
	  .examples = EXAMPLES("roostctl ipam check", "roostctl ipam check -o json",
			       "roostctl ipam check --repair --yes"),
	  .flags = FLAGS("repair", "yes", "dry-run"), .run = ipam_check },
	{ NAME("get", NULL), TAKES("KIND [NAME]", 1, 2, ARG_KIND, ARG_NAME_OF_KIND),
	  .help = "print records as they are stored; apply accepts the JSON form",
	  .examples = EXAMPLES("roostctl get pool", "roostctl get pool web -o json",
			       "roostctl get config -o json"),
	  .run = get_run },
	{ NAME("apply", NULL), .help = "create or change records as given in a file",
	  .more = "The file has one record, an array of records, or several records one after the "
		  "other, each with its \"kind\", its \"name\" and its fields, as get -o json "
		  "prints them. A record is replaced as a whole. All records are checked first and "
		  "written in one transaction: all or none.",
	  .examples = EXAMPLES(
		  "roostctl get pool -o json | roostctl apply -f -",
		  "echo '{\"kind\":\"pool\",\"name\":\"web\",\"cidr\":\"10.1.0.0/16\"}' | roostctl "
		  "apply -f -"),
	  .flags = FLAGS("file", "yes", "dry-run"), .run = apply_run },
	{ NAME("history", NULL), TAKES("[KIND [NAME]]", 0, 2, ARG_KIND, ARG_NAME_OF_KIND),
	  .help = "show who changed what with roostctl, the newest first",
	  .more = "Every command of roostctl that writes notes its user, host and words in the "
		  "same "
		  "transaction; the last 500 are kept. SUDO is what sudo set in the environment: "
		  "anybody can set that, so it is only claimed. With KIND and NAME the versions of "
		  "that record are shown that etcd has not compacted yet, also those that other "
		  "programs wrote, without a user.",
	  .examples = EXAMPLES("roostctl history", "roostctl history pool",
			       "roostctl history pool web -o json"),
	  .run = history_run },
	{ NAME("completion", NULL), TAKES("bash|zsh", 1, 1, ARG_SHELL),
	  .help = "print the completion script for a shell",
	  .examples = EXAMPLES("roostctl completion bash", "roostctl completion zsh"),
	  .run = completion_run },
	{ NAME("etcd", "roles"), TAKES("[NODE]...", 0, ARGUMENTS_ANY, ARG_NODE, ARG_NODE),
	  .help = "print the roles and users of etcd that give each program least right",
	  .more = "Prints commands of etcdctl: one role and one user for the agent of each NODE "
		  "(default: every registered node), and for the controller, for operators and "
		  "for viewers. With --apply roostctl sets them itself, as a user with the role "
		  "root: missing permissions are granted, others of these roles are revoked, "
		  "existing users keep their passwords. The password of a new user goes to "
		  "DIR/USER, which only root can read: move it to the node and name it in "
		  "etcdPasswordFile, with the user in etcdUser.\n\nAuthentication itself is "
		  "enabled by `etcdctl auth enable`, after every program has its user.",
	  .examples = EXAMPLES("roostctl etcd roles", "roostctl etcd roles n1 n2 -o json",
			       "roostctl etcd roles --apply --password-dir /run/etcd-users"),
	  .flags = FLAGS("apply", "password-dir", "dry-run"), .run = etcd_roles_run },
	{ NAME("version", NULL),
	  .help = "print the version of this program, and of the agent on this node",
	  .examples = EXAMPLES("roostctl version"), .run = version_run },
	{ .noun = "__examples",
	  .help = "print every example",
	  .hidden = true,
	  .run = examples_run },
	{ .noun = "__complete",
	  TAKES("WORD...", 0, ARGUMENTS_ANY, ARG_NONE),
	  .help = "print the completions of the last word",
	  .hidden = true,
	  .run = complete_run },
	{ .noun = NULL },
};
