/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ADD is asked for beyond the network's own configuration: pools, fixed
 * addresses, a MAC address, DNS settings.
 *
 * Pure. Each has several sources; the first that says something counts:
 *   pools       pod annotation roost.io/pool; "pool" or "pools" in "ipam"; at the top
 *   addresses   capability "ips"; pod annotation roost.io/addresses; args.cni.ips; IP in CNI_ARGS
 *   mac         capability "mac"; args.cni.mac; MAC in CNI_ARGS
 *   dns         capability "dns"
 * Annotations come by the capability io.kubernetes.cri.pod-annotations, so no plugin
 * has to ask the API server; "podAnnotations": false, in "ipam" or at the top, ignores
 * them. A list in an annotation is written as JSON or with
 * commas. "args" is optional metadata by CNI's conventions: what is wrong there is
 * ignored; everything else that is wrong is refused, because an address silently
 * other than the one asked for is worse than none.
 */
#pragma once

#include "lib/base/names.h"
#include "lib/cni/cni_conf.h"
#include "lib/cni/cni_env.h"
#include "lib/cni/cni_result.h"

#define CNI_POOLS_MAX     16
#define CNI_ADDRESSES_MAX 64

struct cni_want {
	char pools[CNI_POOLS_MAX][NAME_TEXT];
	struct address addresses[CNI_ADDRESSES_MAX];
	size_t n_pools, n_addresses;
	bool pools_from_pod; /* named by the annotation */
	struct mac mac;      /* all zero: none */
	struct cni_dns dns;
};

int cni_want_read(const struct cni_conf *conf, const struct cni_env *env, struct cni_want *ret,
		  struct cni_error *e);
void cni_want_done(struct cni_want *want);
