/* SPDX-License-Identifier: Apache-2.0 */
/* What roostctl is told: argv, environ, the agent's /etc/roost/agent.json -> [settings]. */
#pragma once

#include "lib/daemon/options.h"

enum out_format { OUT_TABLE, OUT_WIDE, OUT_JSON };

struct ctl_settings {
	struct option_words words; /* noun, verb, arguments */
	struct etcd_settings etcd;
	const char *run_dir, *socket, *bird_socket, *node, *config;
	unsigned output; /* enum out_format */
	uint32_t no_color;
	uint32_t route_protocol, static_route_protocol;
	/* Not every command takes these: it names those that it does. */
	const char *file;
	const char *password_dir;
	uint32_t apply, watch, yes, dry_run, now, blocks, repair, all, diff, force, wait;
};

extern const struct option_table ctl_settings_table;

/* 0, or -EINVAL with the sentence; socket and node are filled in. */
int ctl_settings_load(int argc, char *const *argv, char *const *env, struct ctl_settings *ret,
		      enum options_verb *ret_verb, struct err *err);
void ctl_settings_done(struct ctl_settings *s);
