/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/settings.h"

#include <errno.h>

#include "controller/leases/lease_server.h"
#include "lib/base/listen_address.h"

static const struct option_def defs[] = {
	OPTIONS_ETCD(controller_settings),
	{ OPTION(controller_settings, name, "name", TEXT), .argument = "NAME",
	  .check = node_name_check,
	  .help = "what this controller is called in leader/controller; without it the host name" },
	{ OPTION(controller_settings, lease, "lease", NUMBER), .initial = "15",
	  .argument = "SECONDS", .min = 2, .max = 600,
	  .help = "how long after a leader's sudden end another takes over; one that is "
		  "stopped is followed at once" },
	{ OPTION(controller_settings, metrics, "metrics", TEXT), .argument = "[ADDRESS:]PORT",
	  .check = listen_address_check,
	  .help = "where Prometheus finds /metrics, /healthz and /readyz; a port alone is on "
		  "loopback; without it nowhere" },
	{ OPTION(controller_settings, kubernetes, "kubernetes", FLAG),
	  .help = "copy labels of Kubernetes' Nodes, and remove nodes that are deleted there" },
	{ OPTION(controller_settings, kubeconfig, "kubeconfig", PATH), .argument = "FILE",
	  .help = "how to reach the API server; without it the service account of the pod; "
		  "together with --kubernetes" },
	{ OPTION(controller_settings, kube_context, "kube-context", TEXT), .argument = "NAME",
	  .help = "which context of the kubeconfig; without it the current one" },
	{ OPTION(controller_settings, kubernetes_insecure, "kubernetes-insecure", FLAG),
	  .help = "believe an API server whose certificate nobody checks, if the kubeconfig says "
		  "so" },
	{ OPTION(controller_settings, pod_cidrs, "pod-cidrs", FLAG),
	  .help = "copy the pod CIDRs of Nodes too: each node then claims its blocks in its own" },
	{ OPTION(controller_settings, lease_listen, "lease-listen", TEXT),
	  .argument = "[ADDRESS:]PORT[,...]", .check = lease_listen_check,
	  .help = "serve leases of subnets there, for nodes without etcd; a port alone is on "
		  "loopback; without it nowhere" },
	{ OPTION(controller_settings, lease_cert, "lease-cert", PATH), .argument = "FILE",
	  .help = "certificate of the lease server, with its chain, PEM" },
	{ OPTION(controller_settings, lease_key, "lease-key", PATH), .argument = "FILE",
	  .help = "its key" },
	{ OPTION(controller_settings, lease_client_ca, "lease-client-ca", PATH), .argument = "FILE",
	  .help = "who signs the certificates of clients; with it nobody else is heard" },
	{ OPTION(controller_settings, lease_ttl, "lease-ttl", NUMBER), .initial = "86400",
	  .argument = "SECONDS", .min = 60, .max = 31536000,
	  .help = "how long a lease lasts that is not renewed; its subnet is freed five minutes "
		  "later" },
	{ OPTION(controller_settings, config, "config", PATH), .argument = "FILE",
	  .not_in_file = true, .help = "the configuration file" },
	OPTIONS_LOG(controller_settings),
	{ OPTION(controller_settings, minute, "minute", NUMBER), .initial = "60000",
	  .argument = "MS", .min = 50, .max = 60000, .for_tests = true,
	  .help = "how long a minute is where reclaimAfter and comparisons are counted" },
};

const struct option_table controller_settings_table = {
	.program = "roost-controller",
	.about = "House-keeping for a cluster of roost's nodes: one leads, the others stand by.",
	.config_path = CONTROLLER_SETTINGS_FILE,
	.defs = defs,
	.n = ARRAY_SIZE(defs),
	.size = sizeof(struct controller_settings),
};

/* A setting that is about Kubernetes alone. */
static const char *lonely(const struct controller_settings *s)
{
	return s->kubeconfig[0]         ? "kubeconfig"
	       : s->kube_context[0]     ? "kube-context"
	       : s->kubernetes_insecure ? "kubernetes-insecure"
	       : s->pod_cidrs           ? "pod-cidrs"
					: NULL;
}

static int check_lease(const struct controller_settings *s, struct err *err)
{
	if (!s->lease_listen[0] && (s->lease_cert[0] || s->lease_key[0] || s->lease_client_ca[0]))
		return err_set(err, -EINVAL,
			       "--lease-cert, --lease-key and --lease-client-ca are of no use "
			       "without --lease-listen");
	if (!s->lease_cert[0] != !s->lease_key[0])
		return err_set(err, -EINVAL, "--lease-cert and --lease-key go together");
	if (s->lease_client_ca[0] && !s->lease_cert[0])
		return err_set(err, -EINVAL,
			       "--lease-client-ca needs --lease-cert and --lease-key");
	return 0;
}

int controller_settings_load(int argc, char *const *argv, char *const *env,
			     struct controller_settings *ret, enum options_verb *ret_verb,
			     struct err *err)
{
	int r = options_load(&controller_settings_table, argc, argv, env, ret, ret_verb, err);

	if (r < 0 || *ret_verb != OPTIONS_RUN)
		return r;
	r = options_check_etcd(&ret->etcd, err);
	if (r == 0 && !ret->kubernetes && lonely(ret))
		r = err_set(err, -EINVAL, "--%s is of no use without --kubernetes", lonely(ret));
	r = r < 0 ? r : check_lease(ret, err);
	if (r < 0)
		controller_settings_done(ret);
	return r;
}

void controller_settings_done(struct controller_settings *s)
{
	options_done(&controller_settings_table, s);
}
