/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "ipam" section: ranges in Whereabouts' words, and what they become.
 *
 *   configuration -> [cni_ipam] + cni_want + cni_env -> cni_assign -> agent
 *
 * Pure. Read for ADD and CHECK alone. docs/WHEREABOUTS.md has every field with what
 * becomes of it. Gateway, routes and DNS of the section bind this request: they
 * take the place of what the pool says.
 */
#pragma once

#include "lib/cni/cni_want.h"

#define CNI_RANGES_MAX 64

struct cni_range {
	struct prefix range;       /* without host bits */
	struct address start, end; /* family 0: the range's own */
	struct prefixes exclude;
	uint8_t slice; /* node_slice_size; 0: none */
};

struct cni_ipam {
	ARRAY(struct cni_range) ranges;
	struct prefixes exclude;        /* where there are no ranges */
	ARRAY(struct cni_ip) addresses; /* given by the configuration itself */
	const char *slice_text;         /* node_slice_size as written; NULL: none */
	struct address gateway;         /* family 0: none */
	const char *network;            /* "" if absent */
	struct cni_routes routes;
	struct cni_dns dns;
	bool debug;        /* log_level is "debug" */
	char ignored[512]; /* names of fields that are there and mean nothing here, with commas */
};

int cni_ipam_read(const struct cni_conf *conf, struct cni_ipam *ret, struct cni_error *e);
void cni_ipam_done(struct cni_ipam *ipam);

/* Nothing to ask an agent for: fixed addresses, and neither a range nor a pool. */
bool cni_ipam_is_static(const struct cni_ipam *ipam, const struct cni_want *want);
