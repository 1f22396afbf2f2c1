/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API server is, whom to believe there, and who we are.
 *
 *   kubeconfig or service account -> [kube_config] -> kube
 *
 * Reading a text is pure; the two functions that read files are thin. Errors name the file, the
 * context and the field. What a kubeconfig may ask for and we do not do (programs for
 * credentials, auth providers, passwords, proxies) is refused with a sentence, never skipped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

#define KUBE_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_config {
	char *source;      /* for messages: "/etc/kube.conf, context admin", or the folder */
	char *server;      /* "https://[fd00::1]:6443", without a slash at the end */
	char *server_name; /* TLS: the name to ask for and to check; NULL: the server's */
	/* Of each pair at most one is set: a path, or the PEM text itself. */
	char *ca_file, *ca_pem;
	char *cert_file, *cert_pem;
	char *key_file, *key_pem;
	char *token_file, *token;
	bool insecure;
};

void kube_config_free(struct kube_config *c);
AUTO_DEFINE(struct kube_config *, kube_config_free)

/*
 * A kubeconfig's text, YAML or JSON, with a NUL behind len. path: for messages, and relative paths
 * in it start from its folder. context NULL or "": the file's current-context. allow_insecure:
 * insecure-skip-tls-verify is obeyed instead of refused.
 */
int kube_config_parse(const char *path, const char *text, size_t len, const char *context,
		      bool allow_insecure, struct kube_config **ret, struct err *err);

/* In a pod: from the environment's two variables (NULL: not set) and the mounted folder. */
int kube_config_in_cluster(const char *folder, const char *host, const char *port,
			   struct kube_config **ret, struct err *err);

/* Reads the file. One that holds secrets and that others can read is refused. */
int kube_config_read(const char *path, const char *context, bool allow_insecure,
		     struct kube_config **ret, struct err *err);

/*
 * A bearer token from its file. Unlike our own secrets (lib/base/secret.h) it may be a link, longer
 * than a password, and readable by all in its container: that is how the kubelet mounts it.
 */
int kube_token_read(const char *path, char **ret, struct err *err);
/* The text, without blanks at its end, can be a token? */
bool kube_token_valid(const char *token);

/* What libcurl needs to connect; free() each. */
struct kube_url {
	char *base;       /* "https://10.96.0.1:443", with a path if the server has one */
	char *connect_to; /* "NAME:443:10.96.0.1:443" if TLS goes by another name, else NULL */
	char *host;       /* "Host: ..." likewise */
};

/* server: as kube_config.h has it; server_name may be NULL. 0 or -ENOMEM. */
int kube_url_make(const char *server, const char *server_name, struct kube_url *ret);
void kube_url_done(struct kube_url *u);
