/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/node/identity.h"
#include "agent/static/static_routes.h"
#include "lib/base/listen_address.h"
#include "lib/base/route_protocol.h"

#define BIRD_CONFIG  "/etc/bird/bird.conf"
#define ETCD_DEFAULT "http://127.0.0.1:2379"

static int lease_network_check(const char *text, struct err *err)
{
	return strcmp(text, "_") == 0 ? 0 : network_check(text, err);
}

static int bird_config_check(const char *text, struct err *err)
{
	return strcmp(text, "none") == 0 ? 0 : path_check(text, err);
}

#define SECRET_DIRS "/etc/roost:/etc/roost-peers"

static int folders_check(const char *text, struct err *err)
{
	while (*text) {
		size_t n = strcspn(text, ":");
		AUTO(free) char *folder = strndup(text, n);

		if (!folder)
			return err_set(err, -ENOMEM, "out of memory");
		if (path_check(folder, err) < 0)
			return -EINVAL;
		text += n + (text[n] == ':');
	}
	return 0;
}

static const char *const switch_choices[] = { "on", "off", NULL };
static const char *const permission_choices[] = { "deny", "allow", NULL };

static const struct option_def defs[] = {
	OPTIONS_ETCD(settings),
	{ OPTION(settings, lease.servers, "lease-server", TEXT), .argument = "URL[,URL]",
	  .help = "get this node's block from a lease server instead of etcd: http://HOST:PORT or "
		  "https://HOST:PORT; not together with --etcd" },
	{ OPTION(settings, lease.network, "lease-network", TEXT), .initial = "_",
	  .argument = "NETWORK", .check = lease_network_check,
	  .help = "the network whose leases are asked for; _ is the default one" },
	{ OPTION(settings, lease.cacert, "lease-cacert", PATH), .argument = "FILE",
	  .help = "PEM file with the authorities that sign the lease server's certificate" },
	{ OPTION(settings, lease.cert, "lease-cert", PATH), .argument = "FILE",
	  .help = "PEM file with our certificate for it; together with --lease-key" },
	{ OPTION(settings, lease.key, "lease-key", PATH), .argument = "FILE",
	  .help = "PEM file with its private key" },
	{ OPTION(settings, node, "node", TEXT), .argument = "NAME", .check = node_name_check,
	  .help = "this node's name; without it the host name" },
	{ OPTION(settings, address, "address", TEXT), .argument = "ADDRESS[,ADDRESS]",
	  .check = settings_address_check,
	  .help = "this node's address, or one of each family; without it the source address "
		  "towards etcd (or the lease server), else that of the default route's "
		  "interface, else one beside the other family's" },
	{ OPTION(settings, run_dir, "run-dir", PATH), .initial = "/run/roost", .argument = "DIR",
	  .help = "where state and the agent's socket lie; must not survive a reboot" },
	{ OPTION(settings, bird_config, "bird-config", TEXT), .initial = BIRD_CONFIG,
	  .argument = "FILE", .check = bird_config_check,
	  .help = "BIRD's configuration, which is rendered; \"none\": BIRD is not managed; with "
		  "--lease-server only a file other than the default is" },
	{ OPTION(settings, bird_socket, "bird-socket", PATH), .initial = "/run/bird/bird.ctl",
	  .argument = "PATH", .help = "BIRD's control socket" },
	{ OPTION(settings, template_dir, "template-dir", PATH), .initial = ROOST_TEMPLATES,
	  .argument = "DIR",
	  .help = "the templates; those in /etc/roost/templates go before them" },
	{ OPTION(settings, secret_dirs, "secret-dir", TEXT), .initial = SECRET_DIRS,
	  .argument = "DIR[:DIR]", .check = folders_check,
	  .help = "the only directories from which password files are read that records name" },
	{ OPTION(settings, route_protocol, "route-protocol", NUMBER),
	  .initial = ROUTE_PROTOCOL_TEXT, .argument = "NUMBER", .min = 1, .max = 255,
	  .help = "the protocol number of routes for pods and blocks, by which they are known as "
		  "ours" },
	{ OPTION(settings, static_route_protocol, "static-route-protocol", NUMBER),
	  .initial = STATIC_ROUTE_PROTOCOL_TEXT, .argument = "NUMBER", .min = 1, .max = 255,
	  .help = "the protocol number of static routes" },
	{ OPTION(settings, ipv6_source_check, "ipv6-source-check", CHOICE), .initial = "on",
	  .argument = "on|off", .choices = switch_choices,
	  .help = "drop what pods send from IPv6 addresses that are not their own; for IPv4 this "
		  "is always so" },
	{ OPTION(settings, require_firewall, "require-firewall", CHOICE), .initial = "off",
	  .argument = "on|off", .choices = switch_choices,
	  .help = "refuse new pods while the table inet roost of nftables, which protects this "
		  "node from pods, cannot be set" },
	{ OPTION(settings, pod_loopback, "pod-loopback", CHOICE), .initial = "deny",
	  .argument = "deny|allow", .choices = permission_choices,
	  .help = "whether pods may reach this node's loopback addresses where route_localnet of "
		  "their link permits it: routeLocalnet of the network configuration, portmap" },
	{ OPTION(settings, pod_routing, "pod-routing", CHOICE), .initial = "deny",
	  .argument = "deny|allow", .choices = permission_choices,
	  .help = "whether pods may use BGP and BFD with this node" },
	{ OPTION(settings, static_route_table, "static-route-table", NUMBER), .initial = "254",
	  .argument = "NUMBER", .min = 1, .max = INT32_MAX,
	  .help = "the kernel's table for static routes that name none; 254 is main" },
	{ OPTION(settings, protected_subnets, "protected-subnets", TEXT),
	  .argument = "SUBNET[,SUBNET]", .check = static_subnets_check,
	  .help = "no static route may overlap these; default routes, loopback, link-local, this "
		  "node's own addresses, etcd and pools are protected anyway" },
	{ OPTION(settings, fallback_gateway_probe, "fallback-gateway-probe", TEXT),
	  .initial = "10.0.0.1,fd00::1", .argument = "ADDRESS[,ADDRESS]",
	  .check = static_probes_check,
	  .help = "static routes without a gateway take the next hop towards this address, one "
		  "of each family" },
	{ OPTION(settings, cni_conf_dir, "cni-conf-dir", PATH), .initial = "/etc/cni/net.d",
	  .argument = "DIR",
	  .help = "where roost-install put the network configuration; it is checked, not changed" },
	{ OPTION(settings, cni_bin_dir, "cni-bin-dir", TEXT),
	  .initial = "/opt/cni/bin:/usr/lib/cni", .argument = "DIR[:DIR]", .check = folders_check,
	  .help = "where the container runtime looks for plugins; they are asked for their "
		  "versions" },
	{ OPTION(settings, metrics, "metrics", TEXT), .argument = "[ADDRESS:]PORT",
	  .check = listen_address_check,
	  .help = "where Prometheus finds /metrics, /healthz and /readyz; a port alone is on "
		  "loopback; without it on the agent's unix socket only" },
	{ OPTION(settings, clean, "clean", FLAG), .only_flag = true,
	  .help = "remove everything of roost from this node's kernel, and end; refused while an "
		  "agent or its BIRD runs" },
	{ OPTION(settings, config, "config", PATH), .argument = "FILE", .not_in_file = true,
	  .help = "the configuration file" },
	OPTIONS_LOG(settings),
	{ OPTION(settings, machine_id, "machine-id", TEXT), .argument = "ID", .check = id_check,
	  .for_tests = true, .help = "instead of /etc/machine-id" },
	{ OPTION(settings, boot_id, "boot-id", TEXT), .argument = "ID", .check = id_check,
	  .for_tests = true, .help = "instead of the kernel's" },
	{ OPTION(settings, bird_program, "bird-program", TEXT), .initial = "bird",
	  .argument = "PROGRAM", .for_tests = true, .help = "for the check of a configuration" },
	{ OPTION(settings, nftables_library, "nftables-library", TEXT),
	  .initial = "libnftables.so.1", .argument = "FILE", .for_tests = true,
	  .help = "what sets the firewall's table" },
	{ OPTION(settings, minute, "minute", NUMBER), .initial = "60000", .argument = "MS",
	  .min = 50, .max = 60000, .for_tests = true,
	  .help = "how long a minute is where leaks, lost keys and the time without etcd are "
		  "counted" },
};

const struct option_table settings_table = {
	.program = "roostd",
	.about = "The node agent of roost: addresses and routes for the pods of this machine.",
	.config_path = SETTINGS_FILE,
	.defs = defs,
	.n = ARRAY_SIZE(defs),
	.size = sizeof(struct settings),
};

int settings_address_check(const char *text, struct err *err)
{
	struct identity_candidates c = { 0 };

	return identity_configured(text, &c, err);
}

/* A node has one source of truth. The default of --etcd cannot be told from no --etcd at all. */
static int check_lease(const struct settings *s, struct err *err)
{
	const struct etcd_settings *e = &s->etcd;

	if (!*s->lease.servers)
		return 0;
	if (strcmp(e->endpoints, ETCD_DEFAULT) != 0 || *e->cacert || *e->cert || *e->key ||
	    *e->user)
		return err_set(err, -EINVAL,
			       "--lease-server and --etcd exclude each other: this node gets its "
			       "block either from a lease server or from etcd; remove one, also "
			       "from the environment and " SETTINGS_FILE);
	if (!*s->lease.cert != !*s->lease.key)
		return err_set(err, -EINVAL,
			       "--lease-cert and --lease-key go together: %s is missing",
			       *s->lease.cert ? "--lease-key" : "--lease-cert");
	return 0;
}

const char *settings_servers(const struct settings *s)
{
	return *s->lease.servers ? s->lease.servers : s->etcd.endpoints;
}

bool settings_bird(const struct settings *s)
{
	if (*s->lease.servers && strcmp(s->bird_config, BIRD_CONFIG) == 0)
		return false;
	return strcmp(s->bird_config, "none") != 0;
}

int settings_load(int argc, char *const *argv, char *const *env, struct settings *ret,
		  enum options_verb *ret_verb, struct err *err)
{
	int r = options_load(&settings_table, argc, argv, env, ret, ret_verb, err);

	if (r < 0 || *ret_verb != OPTIONS_RUN)
		return r;
	r = options_check_etcd(&ret->etcd, err);
	r = r ?: check_lease(ret, err);
	if (r == 0 && ret->static_route_table == RT_TABLE_LOCAL)
		r = err_set(err, -EINVAL,
			    "--static-route-table: 255 is the kernel's own table (local)");
	r = r ?: route_protocols_check(ret->route_protocol, ret->static_route_protocol, err);
	if (r < 0)
		settings_done(ret);
	return r;
}

void settings_done(struct settings *s)
{
	options_done(&settings_table, s);
}

void settings_take_over(struct settings *now, const struct settings *fresh, settings_told_fn *told,
			void *arg)
{
	const struct option_def *def = NULL;
	char sentence[128];

	while ((def = options_differ(&settings_table, now, fresh, def))) {
		if (!def->live) {
			snprintf(sentence, sizeof(sentence),
				 "--%s cannot change while the agent runs: restart it", def->name);
			told(sentence, false, arg);
			continue;
		}
		/* Only numbers are live: nothing is owned twice. */
		memcpy((char *)now + def->at, (const char *)fresh + def->at, sizeof(uint32_t));
		snprintf(sentence, sizeof(sentence), "--%s is taken over", def->name);
		told(sentence, true, arg);
	}
}
