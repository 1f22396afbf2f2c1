/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one pod gets: decided once, then made, told to the agent and reported.
 *
 *   conf, IPAM's result -> [sandbox_plan] -> link, inside, agent
 *                                     -> [sandbox_result] -> stdout
 *
 * Pure. Every address is alone on its link (/32, /128), whatever length the IPAM plugin
 * gives: the way to anything is through the node. So routes have the one gateway, whatever
 * the IPAM plugin says; a family for which it names no route gets a default one.
 */
#pragma once

#include "cni/conf.h"
#include "lib/cni/pod_link.h"

struct sandbox {
	char link[IF_NAME_TEXT]; /* the host's end */
	const char *ifname, *netns;
	struct mac mac;
	char mac_text[MAC_TEXT];
	uint32_t mtu; /* 0: the kernel's own */
	struct address *addresses;
	size_t n_addresses;
	struct cni_route *routes;
	size_t n_routes;
};

/*
 * given: the IPAM plugin's result. mtu, mac: what it is if the configuration says nothing. 0,
 * release it with sandbox_done(); or negative with e filled.
 */
int sandbox_plan(const struct cni_env *env, const struct roost_conf *conf,
		 const struct cni_result *given, uint32_t mtu, const struct mac *mac,
		 struct sandbox *ret, struct cni_error *e);
void sandbox_done(struct sandbox *pod);

bool sandbox_has(const struct sandbox *pod, sa_family_t family);

/* The result on stdout: the one before us in the chain, and ours behind it. free() *ret. */
int sandbox_result(const struct sandbox *pod, const struct roost_conf *conf,
		   const struct cni_result *given, enum cni_version version, char **ret,
		   struct cni_error *e);
