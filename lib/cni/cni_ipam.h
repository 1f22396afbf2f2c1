/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "ipam" section: ranges in Whereabouts' words, and what they become.
 *
 *   configuration -> [cni_ipam] + cni_want + cni_env -> [cni_assign_body] -> agent
 *   agent's reply -> [cni_assign_reply] -> cni_result -> stdout
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
	struct cni_range *ranges;
	size_t n_ranges;
	struct prefixes exclude;  /* where there are no ranges */
	struct cni_ip *addresses; /* given by the configuration itself */
	size_t n_addresses;
	struct address gateway; /* family 0: none */
	const char *network;    /* "" if absent */
	struct cni_route *routes;
	size_t n_routes;
	struct cni_dns dns;
	bool debug;        /* log_level is "debug" */
	char ignored[512]; /* names of fields that are there and mean nothing here, with commas */
};

int cni_ipam_read(const struct cni_conf *conf, struct cni_ipam *ret, struct cni_error *e);
void cni_ipam_done(struct cni_ipam *ipam);

/* One range into *ret: "10.5.0.0/16", with host bits too, or "10.5.0.10-10.5.0.20/16". */
int cni_range_read(struct json_at at, struct cni_range *ret, struct cni_error *e);
/* A list of addresses and prefixes; free() ret->v. */
int cni_exclude_read(struct json_at at, struct prefixes *ret, struct cni_error *e);

/* Nothing to ask an agent for: fixed addresses, and neither a range nor a pool. */
bool cni_ipam_is_static(const struct cni_ipam *ipam, const struct cni_want *want);

/*
 * Bodies of docs/API.md; free() them. 0 or -ENOMEM, and for assign -EINVAL when the
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
