/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's own table of options.
 *
 *   argv, environ, /etc/roost/controller.json -> lib/daemon/options -> [settings] -> main
 */
#pragma once

#include "lib/daemon/options.h"

#define CONTROLLER_SETTINGS_FILE "/etc/roost/controller.json"

struct controller_settings {
	struct etcd_settings etcd;
	const char *name;                                    /* "": the host name */
	const char *metrics, *probes;                        /* "": nowhere */
	uint32_t kubernetes, kubernetes_insecure, pod_cidrs; /* flags */
	const char *kubeconfig, *kube_context; /* "": the pod's service account; the current one */
	const char *lease_listen;              /* "": leases are not served */
	const char *lease_cert, *lease_key, *lease_client_ca; /* "": plain HTTP */
	const char *lease_client_crl;
	const char *lease_operator;     /* "": none */
	uint32_t lease_allow_anonymous; /* flag */
	uint32_t lease_quota;
	uint32_t lease_ttl; /* s */
	const char *config;
	enum log_level log_level;
	unsigned log_format; /* enum log_format */
	uint32_t lease;      /* s */
	uint32_t minute;     /* ms of one */
};

extern const struct option_table controller_settings_table;

/* 0, or a negative errno with the sentence; the rules between options included. */
int controller_settings_load(int argc, char *const *argv, char *const *env,
			     struct controller_settings *ret, enum options_verb *ret_verb,
			     struct err *err);
void controller_settings_done(struct controller_settings *s);
