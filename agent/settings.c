/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/identity.h"
#include "agent/static_routes.h"
#include "lib/listen_address.h"
#include "lib/route_protocol.h"

static int bird_config_check(const char *text, struct err *err)
{
	return strcmp(text, "none") == 0 ? 0 : path_check(text, err);
}

static const struct option_def defs[] = {
	OPTIONS_ETCD(settings),
	{ OPTION(settings, node, "node", TEXT), .argument = "NAME", .check = node_name_check,
	  .help = "this node's name; without it the host name" },
	{ OPTION(settings, address, "address", TEXT), .argument = "ADDRESS[,ADDRESS]",
	  .check = settings_address_check,
	  .help = "this node's address, or one of each family; without it the source address "
		  "towards etcd, else that of the default route's interface" },
	{ OPTION(settings, run_dir, "run-dir", PATH), .initial = "/run/roost", .argument = "DIR",
	  .help = "where state and the agent's socket lie; must not survive a reboot" },
	{ OPTION(settings, bird_config, "bird-config", TEXT), .initial = "/etc/bird/bird.conf",
	  .argument = "FILE", .check = bird_config_check,
	  .help = "BIRD's configuration, which is rendered; \"none\": BIRD is not managed" },
	{ OPTION(settings, bird_socket, "bird-socket", PATH), .initial = "/run/bird/bird.ctl",
	  .argument = "PATH", .help = "BIRD's control socket" },
	{ OPTION(settings, template_dir, "template-dir", PATH), .initial = ROOST_TEMPLATES,
	  .argument = "DIR",
	  .help = "the templates; those in /etc/roost/templates go before them" },
	{ OPTION(settings, route_protocol, "route-protocol", NUMBER),
	  .initial = ROUTE_PROTOCOL_TEXT, .argument = "NUMBER", .min = 1, .max = 255,
	  .help = "the protocol number of routes for pods and blocks, by which they are known as "
		  "ours" },
	{ OPTION(settings, static_route_protocol, "static-route-protocol", NUMBER),
	  .initial = STATIC_ROUTE_PROTOCOL_TEXT, .argument = "NUMBER", .min = 1, .max = 255,
	  .help = "the protocol number of static routes" },
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
	{ OPTION(settings, metrics, "metrics", TEXT), .argument = "[ADDRESS:]PORT",
	  .check = listen_address_check,
	  .help = "where Prometheus finds /metrics, /healthz and /readyz; a port alone is on "
		  "loopback; without it on the agent's unix socket only" },
	{ OPTION(settings, config, "config", PATH), .argument = "FILE", .not_in_file = true,
	  .help = "the configuration file" },
	OPTIONS_LOG(settings),
	{ OPTION(settings, machine_id, "machine-id", TEXT), .argument = "ID", .check = id_check,
	  .for_tests = true, .help = "instead of /etc/machine-id" },
	{ OPTION(settings, boot_id, "boot-id", TEXT), .argument = "ID", .check = id_check,
	  .for_tests = true, .help = "instead of the kernel's" },
	{ OPTION(settings, bird_program, "bird-program", TEXT), .initial = "bird",
	  .argument = "PROGRAM", .for_tests = true, .help = "for the check of a configuration" },
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

int settings_load(int argc, char *const *argv, char *const *env, struct settings *ret,
		  enum options_verb *ret_verb, struct err *err)
{
	int r = options_load(&settings_table, argc, argv, env, ret, ret_verb, err);

	if (r < 0 || *ret_verb != OPTIONS_RUN)
		return r;
	r = options_check_etcd(&ret->etcd, err);
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
