/* SPDX-License-Identifier: Apache-2.0 */
/* What roost-confd is told at its start: argv, environ, /etc/roost/confd.json -> [settings]. */
#pragma once

#include "lib/daemon/options.h"

#define CONFD_SETTINGS_FILE "/etc/roost/confd.json"

struct confd_settings {
	struct etcd_settings etcd;
	const char *resource_dir, *template_dir, *state_dir;
	const char *resource; /* "": all */
	const char *data;     /* "": etcd; "-": standard input */
	uint32_t once, watch, dry_run, accept;
	const char *metrics; /* "": nowhere */
	const char *config;
	enum log_level log_level;
	unsigned log_format; /* enum log_format */
};

extern const struct option_table confd_settings_table;

/* 0, or a negative errno with the sentence; the rules between options included. After it once is
 * set for everything that is not to go on for ever. */
int confd_settings_load(int argc, char *const *argv, char *const *env, struct confd_settings *ret,
			enum options_verb *ret_verb, struct err *err);
void confd_settings_done(struct confd_settings *s);
