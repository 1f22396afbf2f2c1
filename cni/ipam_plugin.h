/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gives the pod its addresses: the IPAM plugin that the configuration names.
 *
 *   verb -> [ipam_plugin] -> our own roost-ipam: the agent, in this process
 *                   -> any other: delegate
 *
 * roost-ipam is a plugin like others, and can be run like them; where the one that would be run
 * lies beside this program, doing here what it would do there saves an exec.
 */
#pragma once

#include "cni/conf.h"
#include "cni/delegate.h"
#include "ipam/plugin/plugin.h"

struct ipam_plugin {
	bool own;
	char program[PATH_MAX]; /* unless own */
};

/* Negative with e filled: it is not named, or nowhere in CNI_PATH. */
int ipam_plugin_choose(const struct cni_call *call, struct ipam_plugin *ret, struct cni_error *e);

/* What the addresses are to the agent. */
const char *ipam_plugin_name(const struct ipam_plugin *ipam, const struct cni_call *call,
			     const struct plugin_given *given);

/* After a failure nothing of this call is held. */
int ipam_plugin_add(const struct ipam_plugin *ipam, const struct cni_call *call,
		    const struct roost_conf *conf, struct plugin_given *ret, struct cni_error *e);
/* Gives back what this very call was given; cannot fail. */
void ipam_plugin_undo(const struct ipam_plugin *ipam, const struct cni_call *call,
		      const struct plugin_given *given);

/* CHECK of either. */
int ipam_plugin_check(const struct ipam_plugin *ipam, const struct cni_call *call,
		      struct cni_error *e);
/* Another plugin's DEL, GC, STATUS; our own has no part of it that the agent did not do. */
int ipam_plugin_forward(const struct ipam_plugin *ipam, const struct cni_call *call,
			struct cni_error *e);
