/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The installed network configuration: looked at, and its plugins asked for their versions.
 *
 *   conf folder, plugins' folders -> [network_config] -> network_plugins -> health
 *
 * Plugins are exchanged while the agent runs: by a package, by another installer. So it looks when
 * a file in one of the folders changes, and every ten minutes; plugins are executed only if a file
 * is another than before, one after the other beside the loop, and never for a pod. Without a
 * configuration of ours there is nothing to say.
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/timers.h"
#include "lib/daemon/health.h"

#define NETWORK_CONFIG_FILE "10-roost.conflist"

struct network_config_options {
	sd_event *event;
	struct timers *timers;
	struct health *health;
	const char *conf_dir;
	const char *bin_dirs; /* with ':' between */
	uint32_t minute;      /* ms */
};

struct network_config;

/* Texts are borrowed. */
int network_config_new(const struct network_config_options *options, struct network_config **ret);
void network_config_free(struct network_config *c);
AUTO_DEFINE(struct network_config *, network_config_free)
