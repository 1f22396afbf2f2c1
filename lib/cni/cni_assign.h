/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugins' side of docs/API.md: bodies of requests, and the agent's reply as a result.
 *
 *   cni_conf, cni_env, cni_want, cni_ipam -> [cni_assign_body] -> agent
 *   agent's reply -> [cni_assign_reply] -> cni_result -> stdout
 *
 * Pure.
 */
#pragma once

#include "lib/cni/cni_ipam.h"

/*
 * free() the bodies. 0 or -ENOMEM, and for assign -EINVAL when the
 * configuration names both a pool and a range. A pool that the pod names does not count there:
 * it was meant for another of the pod's networks.
 */
int cni_assign_body(const struct cni_conf *conf, const struct cni_env *env,
		    const struct cni_want *want, const struct cni_ipam *ipam, char **ret,
		    struct cni_error *e);
/* For release and check; addresses may be NULL. */
int cni_attachment_body(const struct cni_conf *conf, const struct cni_env *env,
			const struct addresses *addresses, char **ret);
int cni_gc_body(const struct cni_conf *conf, const struct cni_attachments *valid, char **ret);

/*
 * The result for this configuration, routes and DNS moved out of ipam; reply is NULL for a static
 * one. Texts in ret live as long as reply and conf. What the agent should not have said is
 * CNI_CODE_IO.
 */
int cni_assign_reply(struct json_object *reply, struct cni_ipam *ipam, bool *ret_existing,
		     struct cni_result *ret, struct cni_error *e);

/* The addresses in prev that the agent gave for this interface; AUTO(addresses) releases them. */
static inline void addresses_auto(struct addresses *a)
{
	free(a->v);
}
int cni_check_addresses(const struct cni_result *prev, const char *ifname,
			const struct cni_ipam *ipam, struct addresses *ret);
