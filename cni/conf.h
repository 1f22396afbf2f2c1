/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What roost itself reads of the network configuration, beyond what all plugins do.
 *
 *   stdin -> cni_conf -> [conf] -> ADD, CHECK
 *
 * Pure. Read for ADD and CHECK alone, and whole before anything is done, so that a
 * mistake in it costs nothing to undo.
 */
#pragma once

#include "lib/cni/cni_main.h"
#include "lib/cni/cni_want.h"

struct roost_conf {
	struct cni_want want;
	struct cni_dns dns;     /* "dns" at the top */
	uint32_t mtu;           /* 0: that of the node's uplink */
	bool route_localnet;    /* the pod may reach what listens on the node's loopback */
	bool chained;           /* there is a prevResult */
	struct cni_result prev; /* it */
};

/* 0, release it with roost_conf_done(); or negative with e filled. */
int roost_conf_read(const struct cni_call *call, struct roost_conf *ret, struct cni_error *e);
void roost_conf_done(struct roost_conf *conf);

/* Whether a plugin's name may be looked for in CNI_PATH; an empty one may not. */
int roost_ipam_check(const struct cni_conf *conf, struct cni_error *e);
