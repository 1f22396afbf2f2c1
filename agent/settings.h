/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own table of options: what roostd is told at its start.
 *
 *   argv, environ, /etc/roost/agent.json -> lib/daemon/options -> [settings] -> main
 *
 * On SIGHUP everything is read once more; what is marked live takes effect,
 * a difference in anything else is told as a sentence and changes nothing.
 */
#pragma once

#include "lib/daemon/options.h"

#define SETTINGS_FILE "/etc/roost/agent.json"

/* Where leases come from, instead of etcd. */
struct lease_settings {
	const char *servers; /* "": etcd it is */
	const char *network; /* "_": the default one */
	const char *cacert, *cert, *key;
};

enum setting_switch { SETTING_ON, SETTING_OFF };
enum setting_permission { SETTING_DENY, SETTING_ALLOW };

struct settings {
	struct etcd_settings etcd;
	struct lease_settings lease;
	const char *node;    /* "": the host name */
	const char *address; /* "": chosen; one, or one of each family with ',' between */
	const char *run_dir;
	const char *bird_config; /* "none": not managed */
	const char *bird_socket, *bird_program, *template_dir;
	const char *secret_dirs;                      /* with ':' between */
	unsigned ipv6_source_check, require_firewall; /* enum setting_switch */
	unsigned pod_loopback, pod_routing;           /* enum setting_permission */
	const char *nftables_library;
	const char *cni_conf_dir, *cni_bin_dir; /* the latter with ':' between */
	const char *metrics;                    /* "": not over TCP */
	const char *config;
	uint32_t clean; /* 1: remove what is ours from the kernel, and end */
	enum log_level log_level;
	unsigned log_format;              /* enum log_format */
	const char *machine_id, *boot_id; /* "": the machine's own */
	uint32_t route_protocol, static_route_protocol;
	uint32_t minute; /* ms of one, for house-keeping */
	uint32_t static_route_table;
	const char *protected_subnets, *fallback_gateway_probe; /* lists with ',' between */
};

extern const struct option_table settings_table;

/* 0, or a negative errno with the sentence; the rules between options included. */
int settings_load(int argc, char *const *argv, char *const *env, struct settings *ret,
		  enum options_verb *ret_verb, struct err *err);
void settings_done(struct settings *s);
/* The servers that this node depends on: of leases, or etcd's. */
const char *settings_servers(const struct settings *s);
/* Whether BIRD's configuration is rendered. */
bool settings_bird(const struct settings *s);

/*
 * Takes over from fresh what is live, so that now differs from fresh in the rest only; told()
 * gets a sentence for each difference: "log level is now debug", or "--node cannot change
 * while the agent runs: restart it". Values are not told: they may be secret paths.
 */
typedef void settings_told_fn(const char *sentence, bool taken, void *arg);
void settings_take_over(struct settings *now, const struct settings *fresh, settings_told_fn *told,
			void *arg);

/* The name check of --address. */
int settings_address_check(const char *text, struct err *err);
