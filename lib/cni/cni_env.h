/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a plugin: CNI_* variables as a typed request.
 *
 *   environment -> [cni_env] + stdin -> cni_conf -> verb
 *
 * Pure: it asks a function for each variable. Empty counts as missing. An id or
 * interface name that is wrong is told before what is missing, and all that is
 * missing in one sentence, as the reference library does. Only the variables that
 * the verb uses are looked at: runtimes pass the rest as they please.
 */
#pragma once

#include "lib/cni/cni_error.h"

/* Never NULL: "" if absent. From CNI_ARGS, "K=V;K=V", read laxly. */
struct cni_args {
	const char *ip;        /* IP: one address, or several with ',' between */
	const char *mac;       /* MAC */
	const char *namespace; /* K8S_POD_NAMESPACE; "" means: not Kubernetes */
	const char *pod;       /* K8S_POD_NAME: podman puts the container's name here */
	const char *uid;       /* K8S_POD_UID */
};

struct cni_env {
	enum cni_verb verb;
	const char *container, *netns, *ifname, *path; /* never NULL; as the variable has them */
	bool netns_override;
	struct cni_args args;
	char *args_store; /* what args points into */
};

typedef const char *cni_variable_fn(const char *name, void *arg); /* NULL: unset */

/*
 * 1 with *ret filled, release it with cni_env_done(). 0 if CNI_COMMAND is unset: somebody typed
 * the plugin's name, tell him what it is. -EINVAL with CNI_CODE_ENVIRONMENT, or -ENOMEM.
 */
int cni_env_read(cni_variable_fn *variable, void *arg, struct cni_env *ret, struct cni_error *e);
void cni_env_done(struct cni_env *env);

/* The interface name's rule, which is wider than ours in names.h. */
bool cni_ifname_ok(const char *name);
