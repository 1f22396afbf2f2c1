/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What roost asks of the agent: docs/API.md, the part that is not IPAM's.
 */
#pragma once

#include "cni/sandbox.h"

/* ipam: who gave the addresses. Negative with e filled, as plugin_ask() does. */
int ask_attach(const struct cni_call *call, const struct roost_conf *conf,
	       const struct sandbox *pod, const char *ipam, struct cni_error *e);
int ask_check(const struct cni_call *call, const struct roost_conf *conf, const struct sandbox *pod,
	      const char *ipam, struct cni_error *e);

/*
 * Takes the pod out of routing, its link away and, where they are the agent's, its addresses back:
 * by the agent, or in its absence the link here and now and the rest by a note that it will read.
 * Never fails; what could not be done is told on stderr, and found by the agent itself.
 */
void ask_detach(const struct cni_call *call, const struct deadline *deadline);

int ask_gc(const struct cni_call *call, const struct cni_attachments *valid, struct cni_error *e);
/* That of the node's uplink; 0: not known. */
int ask_mtu(const struct cni_call *call, uint32_t *ret, struct cni_error *e);
