/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/settings.h"

#include <errno.h>

#include "controller/leases/lease_server.h"
#include "lib/base/listen_address.h"

static const struct option_def defs[] = {
	OPTIONS_ETCD(controller_settings),
	{ OPTION(controller_settings, name, "name", TEXT), .argument = "NAME",
	  .check = node_name_check,
	  .help = "name of this controller in leader/controller; default: the host name" },
	{ OPTION(controller_settings, lease, "lease", NUMBER), .initial = "15",
	  .argument = "SECONDS", .min = 2, .max = 600,
	  .help = "after this time another controller takes over from a leader that crashed; a "
		  "leader that stops is replaced at once" },
	{ OPTION(controller_settings, metrics, "metrics", TEXT), .argument = "[ADDRESS:]PORT",
	  .check = listen_address_check,
	  .help = "where to serve /metrics, /healthz and /readyz; a port alone means loopback; "
		  "default: nowhere" },
	{ OPTION(controller_settings, probes, "probes", TEXT), .argument = "[ADDRESS:]PORT",
	  .check = listen_address_check,
	  .help = "where to serve /healthz and /readyz alone, apart from those who read metrics; "
		  "default: nowhere" },
	{ OPTION(controller_settings, kubernetes, "kubernetes", FLAG),
	  .help = "copy labels of Kubernetes Nodes, and remove nodes that are deleted in "
		  "Kubernetes" },
	{ OPTION(controller_settings, kubeconfig, "kubeconfig", PATH), .argument = "FILE",
	  .help = "how to reach the API server; default: the pod's service account; needs "
		  "--kubernetes" },
	{ OPTION(controller_settings, kube_context, "kube-context", TEXT), .argument = "NAME",
	  .help = "context of the kubeconfig; default: the current one" },
	{ OPTION(controller_settings, kubernetes_insecure, "kubernetes-insecure", FLAG),
	  .help = "accept insecure-skip-tls-verify of the kubeconfig: the API server's certificate "
		  "is not checked" },
	{ OPTION(controller_settings, pod_cidrs, "pod-cidrs", FLAG),
	  .help = "copy the pod CIDRs of Nodes too: each node then claims blocks only in its own" },
	{ OPTION(controller_settings, lease_listen, "lease-listen", TEXT),
	  .argument = "[ADDRESS:]PORT[,...]", .check = lease_listen_check,
	  .help = "where to serve leases of subnets, for nodes without etcd; a port alone means "
		  "loopback; default: nowhere" },
	{ OPTION(controller_settings, lease_cert, "lease-cert", PATH), .argument = "FILE",
	  .help = "certificate of the lease server, with its chain, PEM" },
	{ OPTION(controller_settings, lease_key, "lease-key", PATH), .argument = "FILE",
	  .help = "private key of the lease server, PEM" },
	{ OPTION(controller_settings, lease_client_ca, "lease-client-ca", PATH), .argument = "FILE",
	  .help = "CA of the clients' certificates; clients without such a certificate are "
		  "refused. SIGHUP reloads it" },
	{ OPTION(controller_settings, lease_client_crl, "lease-client-crl", PATH),
	  .argument = "FILE",
	  .help = "certificates that the clients' CA has revoked, PEM; SIGHUP reloads it" },
	{ OPTION(controller_settings, lease_allow_anonymous, "lease-allow-anonymous", FLAG),
	  .help = "serve leases beyond loopback without --lease-client-ca: a client is then known "
		  "by its address only" },
	{ OPTION(controller_settings, lease_operator, "lease-operator", TEXT),
	  .argument = "NAME[,...]", .check = lease_operators_check,
	  .help = "clients that may reserve subnets and change leases of others: URI:, DNS:, IP: "
		  "or CN: and the name in the certificate, or address: and an address; default: "
		  "none" },
	{ OPTION(controller_settings, lease_quota, "lease-quota", NUMBER), .initial = "2",
	  .argument = "N", .min = 1, .max = 65536,
	  .help = "leases that one client may have in a network" },
	{ OPTION(controller_settings, lease_ttl, "lease-ttl", NUMBER), .initial = "86400",
	  .argument = "SECONDS", .min = 60, .max = 31536000,
	  .help = "duration of a lease that is not renewed; its subnet is freed five minutes "
		  "later" },
	{ OPTION(controller_settings, config, "config", PATH), .argument = "FILE",
	  .not_in_file = true, .help = "the configuration file" },
	OPTIONS_LOG(controller_settings),
	{ OPTION(controller_settings, minute, "minute", NUMBER), .initial = "60000",
	  .argument = "MS", .min = 50, .max = 60000, .for_tests = true,
	  .help = "length of a minute for reclaimAfter and comparisons" },
};

const struct option_table controller_settings_table = {
	.program = "roost-controller",
	.about = "Housekeeping for a cluster of roost nodes: one controller leads, the others "
		 "stand by.",
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
		return err_set(
			err, -EINVAL,
			"--lease-cert, --lease-key and --lease-client-ca need --lease-listen");
	if (!s->lease_listen[0] && (s->lease_operator[0] || s->lease_allow_anonymous))
		return err_set(err, -EINVAL,
			       "--lease-operator and --lease-allow-anonymous need --lease-listen");
	if (!s->lease_cert[0] != !s->lease_key[0])
		return err_set(err, -EINVAL, "--lease-cert and --lease-key need each other");
	if (s->lease_client_ca[0] && !s->lease_cert[0])
		return err_set(err, -EINVAL,
			       "--lease-client-ca needs --lease-cert and --lease-key");
	if (s->lease_client_crl[0] && !s->lease_client_ca[0])
		return err_set(err, -EINVAL, "--lease-client-crl needs --lease-client-ca");
	if (s->lease_listen[0] && !s->lease_client_ca[0] && !s->lease_allow_anonymous &&
	    !lease_listen_is_local(s->lease_listen))
		return err_set(
			err, -EINVAL,
			"--lease-listen %s is not on loopback: set --lease-client-ca, so that "
			"clients prove who they are, or --lease-allow-anonymous, if every "
			"machine that can connect may have a lease for its address",
			s->lease_listen);
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
		r = err_set(err, -EINVAL, "--%s needs --kubernetes", lonely(ret));
	r = r < 0 ? r : check_lease(ret, err);
	if (r < 0)
		controller_settings_done(ret);
	return r;
}

void controller_settings_done(struct controller_settings *s)
{
	options_done(&controller_settings_table, s);
}
